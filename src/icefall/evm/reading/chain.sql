-- Blocks and transactions. A list is a walk along one index, joined by key: one seek per joined table.

-- name: tip
select number, hash, parent_hash, time, tx_count, base_fee, gas_used, gas_limit, gas_cost, fees_spent, cumulative_txs
from block where number >= 0 order by number desc limit 1;

-- name: lowest
select number, time from block where number >= 0 order by number limit 1;

-- name: block
select number, hash, parent_hash, time, tx_count, base_fee, gas_used, gas_limit, gas_cost, fees_spent, cumulative_txs
from block where number = :number;

-- name: block_hash_of
select number, hash from block where number = ?;

-- postgres: block_hash_of
select number, hash from block where number = any(?);

-- name: block_by_hash
select number, hash, parent_hash, time, tx_count, base_fee, gas_used, gas_limit, gas_cost, fees_spent, cumulative_txs
from block where hash = :hash;

-- name: blocks
select number, hash, parent_hash, time, tx_count, base_fee, gas_used, gas_limit, gas_cost, fees_spent, cumulative_txs
from block where number < :before order by number desc limit :limit;

-- name: meta
select value from meta where name = :name;

-- name: is_known
select 1 from address where address = :address;

-- name: tx
select * from full_tx_view where tx_at = (
    select t.tx_at from tx_by_hash h
    join tx t on t.tx_at between h.block << 24 and h.block << 24 | 16777215 and t.hash = :hash
    where h.prefix = substr(:hash, 1, 4));

-- Otherwise the server may look for the hash in all transactions: it does not know how few rows a prefix and a block have.
-- postgres: tx
select * from full_tx_view where tx_at = (
    select t.tx_at from tx_by_hash h
    cross join lateral (
        select tx_at from tx
        where tx_at between h.block << 24 and h.block << 24 | 16777215 and hash = :hash order by tx_at limit 1) t
    where h.prefix = substr(:hash, 1, 4) limit 1);

-- name: tx_at
select * from full_tx_view where tx_at = :tx_at;

-- name: txs
select * from tx_view where tx_at >= :low and tx_at < :high order by tx_at desc limit :limit;

-- name: txs_with_status
select * from tx_view where tx_at >= :low and tx_at < :high and (kind >> 2 & 1) = :status
order by tx_at desc limit :limit;

-- The position where a search for a status ends: `read_max` transactions further down.
-- name: search_end
select tx_at from tx where tx_at < :high order by tx_at desc limit 1 offset :read_max;

-- name: txs_of
select o.tx_at, v.block_hash, v.time, v.hash, v.sender_address, v.recipient_address, v.amounts, v.kind,
    v.selector, v.sender, v.recipient
from native_of o join tx_view v on v.tx_at = o.tx_at
where o.address = (select id from address where address = :address) and o.tx_at >= :low and o.tx_at < :high
order by o.tx_at desc limit :limit;

-- Two lists that never share a row, merged by the index they walk.
-- name: touched
select o.tx_at, v.block_hash, v.time, v.hash, v.sender_address, v.recipient_address, v.amounts, v.kind,
    v.selector, v.sender, v.recipient
from native_of o join tx_view v on v.tx_at = o.tx_at
where o.address = (select id from address where address = :address) and o.tx_at >= :low and o.tx_at < :high
union all
select o.tx_at, v.block_hash, v.time, v.hash, v.sender_address, v.recipient_address, v.amounts, v.kind,
    v.selector, v.sender, v.recipient
from touch_of o join tx_view v on v.tx_at = o.tx_at
where o.address = (select id from address where address = :address) and o.tx_at >= :low and o.tx_at < :high
order by 1 desc limit :limit;

-- Each list is bounded by itself: otherwise the server reads and sorts all of both.
-- postgres: touched
(select o.tx_at, v.block_hash, v.time, v.hash, v.sender_address, v.recipient_address, v.amounts, v.kind,
    v.selector, v.sender, v.recipient
from native_of o join tx_view v on v.tx_at = o.tx_at
where o.address = (select id from address where address = :address) and o.tx_at >= :low and o.tx_at < :high
order by o.tx_at desc limit :limit)
union all
(select o.tx_at, v.block_hash, v.time, v.hash, v.sender_address, v.recipient_address, v.amounts, v.kind,
    v.selector, v.sender, v.recipient
from touch_of o join tx_view v on v.tx_at = o.tx_at
where o.address = (select id from address where address = :address) and o.tx_at >= :low and o.tx_at < :high
order by o.tx_at desc limit :limit)
order by 1 desc limit :limit;

-- name: touched_ascending
select o.tx_at, v.block_hash, v.time, v.hash, v.sender_address, v.recipient_address, v.amounts, v.kind,
    v.selector, v.sender, v.recipient
from native_of o join tx_view v on v.tx_at = o.tx_at
where o.address = (select id from address where address = :address) and o.tx_at >= :low and o.tx_at < :high
union all
select o.tx_at, v.block_hash, v.time, v.hash, v.sender_address, v.recipient_address, v.amounts, v.kind,
    v.selector, v.sender, v.recipient
from touch_of o join tx_view v on v.tx_at = o.tx_at
where o.address = (select id from address where address = :address) and o.tx_at >= :low and o.tx_at < :high
order by 1 limit :limit;

-- Each list is bounded by itself: otherwise the server reads and sorts all of both.
-- postgres: touched_ascending
(select o.tx_at, v.block_hash, v.time, v.hash, v.sender_address, v.recipient_address, v.amounts, v.kind,
    v.selector, v.sender, v.recipient
from native_of o join tx_view v on v.tx_at = o.tx_at
where o.address = (select id from address where address = :address) and o.tx_at >= :low and o.tx_at < :high
order by o.tx_at limit :limit)
union all
(select o.tx_at, v.block_hash, v.time, v.hash, v.sender_address, v.recipient_address, v.amounts, v.kind,
    v.selector, v.sender, v.recipient
from touch_of o join tx_view v on v.tx_at = o.tx_at
where o.address = (select id from address where address = :address) and o.tx_at >= :low and o.tx_at < :high
order by o.tx_at limit :limit)
order by 1 limit :limit;
