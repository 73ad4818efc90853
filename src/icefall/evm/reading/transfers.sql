-- Transfers, internal transactions and deployments. A list is a walk along one index, joined to rows as they are told.

-- name: erc20_of
select v.* from erc20_of o join told_erc20 v on v.log_at = o.log_at
where o.address = (select id from address where address = :address) and o.log_at >= :low and o.log_at < :high
order by o.log_at desc limit :limit;

-- name: erc20_of_page
select v.* from erc20_of o join told_erc20 v on v.log_at = o.log_at
where o.address = (select id from address where address = :address) and o.log_at >= :low and o.log_at < :high
order by o.log_at limit :limit;

-- Of one transaction: the logs of its block are looked through.
-- name: erc20_of_tx
select * from told_erc20 where log_at >= :low and log_at < :high and tx_index = :tx_index order by log_at;

-- name: erc721_of
select v.* from erc721_of o join told_erc721 v on v.log_at = o.log_at
where o.address = (select id from address where address = :address) and o.log_at >= :low and o.log_at < :high
order by o.log_at desc limit :limit;

-- name: erc721_of_page
select v.* from erc721_of o join told_erc721 v on v.log_at = o.log_at
where o.address = (select id from address where address = :address) and o.log_at >= :low and o.log_at < :high
order by o.log_at limit :limit;

-- Of one transaction: the logs of its block are looked through.
-- name: erc721_of_tx
select * from told_erc721 where log_at >= :low and log_at < :high and tx_index = :tx_index order by log_at;

-- name: erc1155_of
select v.* from erc1155_of o join told_erc1155 v on v.log_at = o.log_at
where o.address = (select id from address where address = :address) and o.log_at >= :low and o.log_at < :high
order by o.log_at desc, v.position desc limit :limit;

-- The rest of a batch that a page ended in.
-- name: erc1155_rest
select v.* from erc1155_of o join told_erc1155 v on v.log_at = o.log_at
where o.address = (select id from address where address = :address) and o.log_at = :high and v.position < :inside
order by v.position desc limit :limit;

-- name: erc1155_of_page
select v.* from erc1155_of o join told_erc1155 v on v.log_at = o.log_at
where o.address = (select id from address where address = :address) and o.log_at >= :low and o.log_at < :high
order by o.log_at, v.position limit :limit;

-- Of one transaction: the logs of its block are looked through.
-- name: erc1155_of_tx
select * from told_erc1155 where log_at >= :low and log_at < :high and tx_index = :tx_index
order by log_at, position;

-- Three lists that never share a log, merged. 1, 2 and 4: the standard, as in token.standards.
-- name: in_token
select log_at, 0, 1, tx_index, block_hash, time, tx_hash, token_address, sender_address, recipient_address,
    value, null, token, sender, recipient
from told_erc20 where token = (select id from address where address = :address) and log_at >= :low and log_at < :high
union all
select log_at, 0, 2, tx_index, block_hash, time, tx_hash, token_address, sender_address, recipient_address,
    token_id, null, token, sender, recipient
from told_erc721 where token = (select id from address where address = :address) and log_at >= :low and log_at < :high
union all
select log_at, position, 4, tx_index, block_hash, time, tx_hash, token_address, sender_address, recipient_address,
    token_id, value, token, sender, recipient
from told_erc1155 where token = (select id from address where address = :address) and log_at >= :low
    and (log_at, position) < (:high, :inside)
order by 1 desc, 2 desc limit :limit;

-- name: internals_of
select v.* from internal_of o join told_internal v on v.tx_at = o.tx_at and v.frame = o.frame
where o.address = (select id from address where address = :address) and o.tx_at >= :low
    and (o.tx_at, o.frame) < (:high, :inside)
order by o.tx_at desc, o.frame desc limit :limit;

-- name: internals_of_page
select v.* from internal_of o join told_internal v on v.tx_at = o.tx_at and v.frame = o.frame
where o.address = (select id from address where address = :address) and o.tx_at >= :first_tx and o.tx_at <= :last_tx
order by o.tx_at, o.frame limit :limit;

-- name: internals_of_tx
select * from told_internal where tx_at = :tx_at order by frame;

-- name: deployment
select * from told_deployment where address = :address order by tx_at desc, frame desc limit 1;

-- name: deployed_by
select v.* from deployed_by o join told_deployment v on v.tx_at = o.tx_at and v.frame = o.frame
where o.address = (select id from address where address = :address) and o.tx_at >= :low
    and (o.tx_at, o.frame) < (:high, :inside)
order by o.tx_at desc, o.frame desc limit :limit;

-- name: message
select message_id, peer_blockchain_id, is_source from message where tx_at = :tx_at;
