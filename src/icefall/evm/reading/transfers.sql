-- Transfers, internal transactions and deployments. A list is a walk along one index, joined by key to the view of its rows.

-- name: erc20_of
select v.standard, o.log_at, v.position, v.tx_index, v.block_hash, v.time, v.tx_hash, v.token_address, v.sender_address,
    v.recipient_address, v.token_id, v.value, v.token, v.sender, v.recipient
from erc20_of o join erc20_view v on v.log_at = o.log_at
where o.address = (select id from address where address = :address) and o.log_at >= :low and o.log_at < :high
order by o.log_at desc limit :limit;

-- The same in one round trip with what is known of tokens: of the token, with its price, and of sender and recipient, which
-- are seldom tokens; null of what is none.
-- name: erc20_of_with_tokens
select v.standard, o.log_at, v.position, v.tx_index, v.block_hash, v.time, v.tx_hash, v.token_address, v.sender_address,
    v.recipient_address, v.token_id, v.value, v.token, v.sender, v.recipient, k.token, k.name, k.symbol, k.decimals,
    (select p.value from price p where p.token_address = v.token_address and p.currency = :currency and p.day = -1) as price,
    s.token, s.name, s.symbol, s.decimals, r.token, r.name, r.symbol, r.decimals
from erc20_of o join erc20_view v on v.log_at = o.log_at
left join token k on k.token = v.token left join token s on s.token = v.sender
left join token r on r.token = v.recipient
where o.address = (select id from address where address = :address) and o.log_at >= :low and o.log_at < :high
order by o.log_at desc limit :limit;

-- name: erc721_of
select v.* from erc721_of o join erc721_view v on v.log_at = o.log_at
where o.address = (select id from address where address = :address) and o.log_at >= :low and o.log_at < :high
order by o.log_at desc limit :limit;

-- name: erc1155_of
select v.* from erc1155_of o join erc1155_view v on v.log_at = o.log_at
where o.address = (select id from address where address = :address) and o.log_at >= :low and o.log_at < :high
order by o.log_at desc, v.position desc limit :limit;

-- Logs are bounded, and so is each batch: otherwise the server reads and sorts all of a batch.
-- postgres: erc1155_of
select v.* from (
    select o.log_at, e.position from (
        select log_at from erc1155_of
        where address = (select id from address where address = :address) and log_at >= :low and log_at < :high
        order by log_at desc limit :limit) o
    cross join lateral (
        select position from erc1155 where log_at = o.log_at order by position desc limit :limit) e
    order by o.log_at desc, e.position desc limit :limit) page
join erc1155_view v on v.log_at = page.log_at and v.position = page.position
order by v.log_at desc, v.position desc;

-- The remainder of a batch in which the page before ended.
-- name: erc1155_rest
select v.* from erc1155_of o join erc1155_view v on v.log_at = o.log_at
where o.address = (select id from address where address = :address) and o.log_at = :high and v.position < :inside
order by v.position desc limit :limit;

-- Of a page of transactions: three lists that never share a log, merged by the index they walk.
-- name: transfers_of_page
select v.standard, o.log_at, v.position, v.tx_index, v.block_hash, v.time, v.tx_hash, v.token_address, v.sender_address,
    v.recipient_address, v.token_id, v.value, v.token, v.sender, v.recipient
from erc20_of o join erc20_view v on v.log_at = o.log_at
where o.address = (select id from address where address = :address) and o.log_at >= :low and o.log_at < :high
    and (o.log_at, v.position) > (:low, :inside)
    and (o.log_at & -16777216 | v.tx_index) between :first_tx and :last_tx
union all
select v.standard, o.log_at, v.position, v.tx_index, v.block_hash, v.time, v.tx_hash, v.token_address, v.sender_address,
    v.recipient_address, v.token_id, v.value, v.token, v.sender, v.recipient
from erc721_of o join erc721_view v on v.log_at = o.log_at
where o.address = (select id from address where address = :address) and o.log_at >= :low and o.log_at < :high
    and (o.log_at, v.position) > (:low, :inside)
    and (o.log_at & -16777216 | v.tx_index) between :first_tx and :last_tx
union all
select v.standard, o.log_at, v.position, v.tx_index, v.block_hash, v.time, v.tx_hash, v.token_address, v.sender_address,
    v.recipient_address, v.token_id, v.value, v.token, v.sender, v.recipient
from erc1155_of o join erc1155_view v on v.log_at = o.log_at
where o.address = (select id from address where address = :address) and o.log_at >= :low and o.log_at < :high
    and (o.log_at, v.position) > (:low, :inside)
    and (o.log_at & -16777216 | v.tx_index) between :first_tx and :last_tx
order by 2, 3 limit :limit;

-- Each list is bounded by itself, and so is a batch of it: otherwise the server may read and sort all of them.
-- postgres: transfers_of_page
(select v.standard, o.log_at, v.position, v.tx_index, v.block_hash, v.time, v.tx_hash, v.token_address, v.sender_address,
    v.recipient_address, v.token_id, v.value, v.token, v.sender, v.recipient
from erc20_of o join erc20_view v on v.log_at = o.log_at
where o.address = (select id from address where address = :address) and o.log_at >= :low and o.log_at < :high
    and (o.log_at, v.position) > (:low, :inside)
    and (o.log_at & -16777216 | v.tx_index) between :first_tx and :last_tx
order by o.log_at, v.position limit :limit)
union all
(select v.standard, o.log_at, v.position, v.tx_index, v.block_hash, v.time, v.tx_hash, v.token_address, v.sender_address,
    v.recipient_address, v.token_id, v.value, v.token, v.sender, v.recipient
from erc721_of o join erc721_view v on v.log_at = o.log_at
where o.address = (select id from address where address = :address) and o.log_at >= :low and o.log_at < :high
    and (o.log_at, v.position) > (:low, :inside)
    and (o.log_at & -16777216 | v.tx_index) between :first_tx and :last_tx
order by o.log_at, v.position limit :limit)
union all
(select v.standard, v.log_at, v.position, v.tx_index, v.block_hash, v.time, v.tx_hash, v.token_address, v.sender_address,
    v.recipient_address, v.token_id, v.value, v.token, v.sender, v.recipient
from (
    select o.log_at, e.position from erc1155_of o
    cross join lateral (
        select position from erc1155
        where log_at = o.log_at and (log_at, position) > (:low, :inside)
            and (log_at & -16777216 | tx_index) between :first_tx and :last_tx
        order by position limit :limit) e
    where o.address = (select id from address where address = :address) and o.log_at >= :low and o.log_at < :high
    order by o.log_at, e.position limit :limit) page
join erc1155_view v on v.log_at = page.log_at and v.position = page.position
order by v.log_at, v.position limit :limit)
order by 2, 3 limit :limit;

-- Three lists that never share a log, merged. Of ERC-20 tokens the blocks are found first.
-- name: in_token
select * from (
    select v.* from erc20_in i
    join erc20_view v on v.log_at between i.block << 24 | i.first_log and i.block << 24 | i.last_log and v.token = i.token
    where i.token = (select id from address where address = :address)
        and i.block >= :low >> 24 and i.block <= :high >> 24 and v.log_at >= :low and v.log_at < :high
    order by i.block desc, v.log_at desc limit :limit) page
union all
select * from erc721_view where token = (select id from address where address = :address)
    and log_at >= :low and log_at < :high
union all
select * from erc1155_view where token = (select id from address where address = :address)
    and log_at >= :low and (log_at, position) < (:high, :inside)
order by log_at desc, position desc limit :limit;

-- Each list is bounded by itself, and so are blocks and the logs of each: otherwise the server may read and sort all of
-- them. Of the first block, all may be listed already.
-- postgres: in_token
(select v.* from (
    select e.log_at from (
        select token, block, first_log, last_log from erc20_in
        where token = (select id from address where address = :address) and block >= :low >> 24 and block <= :high >> 24
        order by block desc limit :limit + 1) i
    cross join lateral (
        select log_at from erc20
        where log_at between i.block << 24 | i.first_log and i.block << 24 | i.last_log and token = i.token
            and log_at >= :low and log_at < :high
        order by log_at desc limit :limit) e
    order by e.log_at desc limit :limit) page
join erc20_view v on v.log_at = page.log_at)
union all
(select * from erc721_view where token = (select id from address where address = :address)
    and log_at >= :low and log_at < :high
order by log_at desc, position desc limit :limit)
union all
(select * from erc1155_view where token = (select id from address where address = :address)
    and log_at >= :low and (log_at, position) < (:high, :inside)
order by log_at desc, position desc limit :limit)
order by log_at desc, position desc limit :limit;

-- Of one transaction, in log order behind (:low, :inside): three lists that never share a log, merged. Reads all logs of
-- its block up to the end of the page.
-- name: transfers_of_tx
select * from erc20_view where log_at > :low and log_at < :high and tx_index = :tx_index
union all
select * from erc721_view where log_at > :low and log_at < :high and tx_index = :tx_index
union all
select * from erc1155_view where log_at >= :low and log_at < :high and (log_at, position) > (:low, :inside)
    and tx_index = :tx_index
order by log_at, position limit :limit;

-- Each list is bounded by itself: otherwise the server may read and sort all of them.
-- postgres: transfers_of_tx
(select * from erc20_view where log_at > :low and log_at < :high and tx_index = :tx_index
order by log_at, position limit :limit)
union all
(select * from erc721_view where log_at > :low and log_at < :high and tx_index = :tx_index
order by log_at, position limit :limit)
union all
(select * from erc1155_view where log_at >= :low and log_at < :high and (log_at, position) > (:low, :inside)
    and tx_index = :tx_index
order by log_at, position limit :limit)
order by log_at, position limit :limit;

-- name: internals_of
select v.* from internal_of o join internal_view v on v.tx_at = o.tx_at and v.frame = o.frame
where o.address = (select id from address where address = :address) and o.tx_at >= :low
    and (o.tx_at, o.frame) < (:high, :inside)
order by o.tx_at desc, o.frame desc limit :limit;

-- name: internals_of_page
select v.* from internal_of o join internal_view v on v.tx_at = o.tx_at and v.frame = o.frame
where o.address = (select id from address where address = :address) and o.tx_at >= :low and o.tx_at <= :last_tx
    and (o.tx_at, o.frame) > (:low, :inside)
order by o.tx_at, o.frame limit :limit;

-- name: internals_of_tx
select * from internal_view where tx_at = :tx_at and frame > :after order by frame limit :limit;

-- name: deployment
select address, tx_at, frame, creator_address, tx_hash, sender_address
from deployment_view where address = :address order by tx_at desc, frame desc limit 1;

-- Contracts whose latest deployment it was: one seek per row finds the latest one.
-- name: deployed_by
select v.address, v.tx_at, v.frame, v.creator_address, v.tx_hash, v.sender_address
from deployed_by o
join deployment d on d.tx_at = o.tx_at and d.frame = o.frame
join deployment_view v on v.tx_at = o.tx_at and v.frame = o.frame
where o.address = (select id from address where address = :address)
    and (o.tx_at, o.frame) < (:high, :inside) and (o.tx_at, o.frame) >= (:low, :low_frame)
    and (o.tx_at, o.frame) = (
        select latest.tx_at, latest.frame from deployment latest where latest.address = d.address
        order by latest.tx_at desc, latest.frame desc limit 1)
order by o.tx_at desc, o.frame desc limit :limit;

-- The deployment where a page of them ends at the latest: `read_max` further down.
-- name: deployed_by_end
select tx_at, frame from deployed_by
where address = (select id from address where address = :address) and (tx_at, frame) < (:high, :inside)
order by tx_at desc, frame desc limit 1 offset :read_max;

-- name: message
select message_id, peer_blockchain_id, is_source from message where tx_at = :tx_at;
