-- The rows of one address or token in the order of the chain, for export jobs: those behind (:low, :inside) and before
-- :high.
-- The positions of a page are found first, in the order of an index, and joined to the view of their rows.

-- fragment: of_address
address = (select id from address where address = :address);

-- name: transactions
select v.tx_at, v.block_hash, v.time, v.hash, v.sender_address, v.recipient_address, v.amounts, v.kind, v.selector,
    v.sender, v.recipient
from (select tx_at from native_of where {of_address} and tx_at > :low and tx_at < :high order by tx_at limit :limit) o
join tx_view v on v.tx_at = o.tx_at
order by v.tx_at;

-- A server walks the list by groups of four blocks, and sorts the rows of a page.
-- postgres: transactions
select v.tx_at, v.block_hash, v.time, v.hash, v.sender_address, v.recipient_address, v.amounts, v.kind, v.selector,
    v.sender, v.recipient
from (
    select tx_at from native_of
    where {of_address} and block_group >= :low >> 26 and block_group <= :high >> 26 and tx_at > :low and tx_at < :high
    order by block_group fetch first :limit rows with ties) o
join tx_view v on v.tx_at = o.tx_at
order by o.tx_at limit :limit;

-- name: internals
select v.*
from (
    select tx_at, frame from internal_of
    where {of_address} and tx_at >= :low and tx_at < :high and (tx_at, frame) > (:low, :inside)
    order by tx_at, frame limit :limit) o
join internal_view v on v.tx_at = o.tx_at and v.frame = o.frame
order by v.tx_at, v.frame;

-- name: {single}_transfers
select v.*
from (select log_at from {single}_of where {of_address} and log_at > :low and log_at < :high order by log_at limit :limit) o
join {single}_view v on v.log_at = o.log_at
order by v.log_at;

-- postgres: erc20_transfers
select v.*
from (
    select log_at from erc20_of
    where {of_address} and block_group >= :low >> 26 and block_group <= :high >> 26 and log_at > :low and log_at < :high
    order by block_group fetch first :limit rows with ties) o
join erc20_view v on v.log_at = o.log_at
order by o.log_at limit :limit;

-- Logs are bounded first: a batch is read as a whole, and what is too much of it is cut off.
-- name: {batched}_transfers
select v.*
from (
    select log_at from {batched}_of
    where {of_address} and log_at >= :low and log_at < :high order by log_at limit :logs) o
join {batched}_view v on v.log_at = o.log_at
where (v.log_at, v.position) > (:low, :inside)
order by v.log_at, v.position limit :limit;

-- The blocks in which the token moved are found first, and in each the logs between its first and its last one.
-- name: erc20_transfers_in_token
select v.* from erc20_in i
join erc20_view v on v.log_at between i.block << 24 | i.first_log and i.block << 24 | i.last_log and v.token = i.token
where i.token = (select id from address where address = :address)
    and i.block >= :low >> 24 and i.block <= :high >> 24 and v.log_at > :low and v.log_at < :high
order by i.block, v.log_at limit :limit;

-- postgres: erc20_transfers_in_token
select v.* from (
    select +log_at as log_at from erc20
    where +token = (select id from address where address = :address) and +log_at > :low and +log_at < :high
    order by +log_at limit :limit) page
join erc20_view v on v.log_at = page.log_at
order by v.log_at;

-- name: {single_nft}_transfers_in_token
select v.* from {single_nft}_view v
where v.token = (select id from address where address = :address) and v.log_at > :low and v.log_at < :high
order by v.log_at limit :limit;

-- name: {batched}_transfers_in_token
select v.* from {batched}_view v
where v.token = (select id from address where address = :address)
    and v.log_at >= :low and v.log_at < :high and (v.log_at, v.position) > (:low, :inside)
order by v.log_at, v.position limit :limit;
