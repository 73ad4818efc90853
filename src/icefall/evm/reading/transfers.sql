-- Transfers, internal transactions and deployments. A list is a walk along one index, joined by key to the view of its rows.

-- fragment: {single_nft}_in_token
select * from {single_nft}_view where token = (select id from address where address = :address)
    and log_at >= :low and log_at < :high;

-- fragment: {batched}_in_token
select * from {batched}_view where token = (select id from address where address = :address)
    and log_at >= :low and (log_at, position) < (:high, :inside);

-- The lists of the standards are disjoint; each is read in index order and merged. The blocks of ERC-20 tokens are found
-- first.
-- name: in_token
select * from (
    select v.* from erc20_in i
    join erc20_view v on v.log_at between i.block << 24 | i.first_log and i.block << 24 | i.last_log and v.token = i.token
    where i.token = (select id from address where address = :address)
        and i.block >= :low >> 24 and i.block <= :high >> 24 and v.log_at >= :low and v.log_at < :high
    order by i.block desc, v.log_at desc limit :limit) page
union all
{union {single_nft}_in_token}
union all
{union {batched}_in_token}
order by log_at desc, position desc limit :limit;

-- fragment: {single_nft}_page_in_token
({{single_nft}_in_token}
order by log_at desc, position desc limit :limit);

-- fragment: {batched}_page_in_token
({{batched}_in_token}
order by log_at desc, position desc limit :limit);

-- Each list is bounded by itself: otherwise the server may read and sort all of them. That of ERC-20 is walked by groups of
-- four blocks.
-- postgres: in_token
(select v.* from (
    select log_at from (
        select +log_at as log_at from erc20
        where +token = (select id from address where address = :address)
            and cast(+log_at >> 26 as integer) >= :low >> 26 and cast(+log_at >> 26 as integer) <= :high >> 26
            and +log_at >= :low and +log_at < :high
        order by cast(+log_at >> 26 as integer) desc fetch first :limit rows with ties) as near
    order by log_at desc limit :limit) page
join erc20_view v on v.log_at = page.log_at)
union all
{union {single_nft}_page_in_token}
union all
{union {batched}_page_in_token}
order by log_at desc, position desc limit :limit;

-- fragment: {single}_of_tx
select * from {single}_view where log_at > :low and log_at < :high and tx_index = :tx_index;

-- fragment: {batched}_of_tx
select * from {batched}_view where log_at >= :low and log_at < :high and (log_at, position) > (:low, :inside)
    and tx_index = :tx_index;

-- The transfers of one transaction, in log order behind (:low, :inside). The lists of the standards are disjoint; each is
-- read in index order and merged. Reads all logs of its block up to the end of the page.
-- name: transfers_of_tx
{union {single}_of_tx}
union all
{union {batched}_of_tx}
order by log_at, position limit :limit;

-- fragment: {single}_page_of_tx
({{single}_of_tx}
order by log_at, position limit :limit);

-- fragment: {batched}_page_of_tx
({{batched}_of_tx}
order by log_at, position limit :limit);

-- Each list is bounded by itself: otherwise the server may read and sort all of them.
-- postgres: transfers_of_tx
{union {single}_page_of_tx}
union all
{union {batched}_page_of_tx}
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
