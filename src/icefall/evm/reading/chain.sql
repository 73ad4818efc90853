-- Blocks and transactions. A list is a walk along one index, joined by key: one seek for each thing of a row.

-- name: tip
select number, hash, parent_hash, time, tx_count, base_fee, gas_used, gas_limit, gas_cost, fees_spent, cumulative_txs
from block where number >= 0 order by number desc limit 1;

-- name: lowest
select number from block where number >= 0 order by number limit 1;

-- name: block
select number, hash, parent_hash, time, tx_count, base_fee, gas_used, gas_limit, gas_cost, fees_spent, cumulative_txs
from block where number = :number;

-- name: block_by_hash
select number, hash, parent_hash, time, tx_count, base_fee, gas_used, gas_limit, gas_cost, fees_spent, cumulative_txs
from block where hash = :hash;

-- name: blocks
select number, hash, parent_hash, time, tx_count, base_fee, gas_used, gas_limit, gas_cost, fees_spent, cumulative_txs
from block where number < :before order by number desc limit :limit;

-- name: fact
select value from fact where name = :name;

-- name: is_known
select 1 from address where address = :address;

-- name: tx
select t.tx_at, b.hash, b.time, t.hash, s.address, r.address, t.value, t.nonce, t.gas_limit, t.gas_used, t.gas_price,
    t.max_fee, t.max_priority_fee, t.kind, t.selector, t.sender, t.recipient, t.input, b.base_fee
from tx t
join block b on b.number = t.tx_at >> 24
join address s on s.id = t.sender
join address r on r.id = t.recipient
where substr(t.hash, 1, 6) = substr(:hash, 1, 6) and t.hash = :hash;

-- name: tx_at
select t.tx_at, b.hash, b.time, t.hash, s.address, r.address, t.value, t.nonce, t.gas_limit, t.gas_used, t.gas_price,
    t.max_fee, t.max_priority_fee, t.kind, t.selector, t.sender, t.recipient, t.input, b.base_fee
from tx t
join block b on b.number = t.tx_at >> 24
join address s on s.id = t.sender
join address r on r.id = t.recipient
where t.tx_at = :tx_at;

-- name: txs
select t.tx_at, b.hash, b.time, t.hash, s.address, r.address, t.value, t.nonce, t.gas_limit, t.gas_used, t.gas_price,
    t.max_fee, t.max_priority_fee, t.kind, t.selector, t.sender, t.recipient
from tx t
join block b on b.number = t.tx_at >> 24
join address s on s.id = t.sender
join address r on r.id = t.recipient
where t.tx_at >= :low and t.tx_at < :high order by t.tx_at desc limit :limit;

-- name: txs_with_status
select t.tx_at, b.hash, b.time, t.hash, s.address, r.address, t.value, t.nonce, t.gas_limit, t.gas_used, t.gas_price,
    t.max_fee, t.max_priority_fee, t.kind, t.selector, t.sender, t.recipient
from tx t
join block b on b.number = t.tx_at >> 24
join address s on s.id = t.sender
join address r on r.id = t.recipient
where t.tx_at >= :low and t.tx_at < :high and (t.kind >> 2 & 1) = :status order by t.tx_at desc limit :limit;

-- The position to which a search for a status goes: so many transactions further down.
-- name: search_end
select tx_at from tx where tx_at < :high order by tx_at desc limit 1 offset :looked_at;

-- name: txs_of
select o.tx_at, b.hash, b.time, t.hash, s.address, r.address, t.value, t.nonce, t.gas_limit, t.gas_used, t.gas_price,
    t.max_fee, t.max_priority_fee, t.kind, t.selector, t.sender, t.recipient
from native_of o
join tx t on t.tx_at = o.tx_at
join block b on b.number = t.tx_at >> 24
join address s on s.id = t.sender
join address r on r.id = t.recipient
where o.address = (select id from address where address = :address) and o.tx_at >= :low and o.tx_at < :high
order by o.tx_at desc limit :limit;

-- Two lists that never share a row, merged.
-- name: touched
select o.tx_at, b.hash, b.time, t.hash, s.address, r.address, t.value, t.nonce, t.gas_limit, t.gas_used, t.gas_price,
    t.max_fee, t.max_priority_fee, t.kind, t.selector, t.sender, t.recipient
from native_of o
join tx t on t.tx_at = o.tx_at
join block b on b.number = t.tx_at >> 24
join address s on s.id = t.sender
join address r on r.id = t.recipient
where o.address = (select id from address where address = :address) and o.tx_at >= :low and o.tx_at < :high
union all
select o.tx_at, b.hash, b.time, t.hash, s.address, r.address, t.value, t.nonce, t.gas_limit, t.gas_used, t.gas_price,
    t.max_fee, t.max_priority_fee, t.kind, t.selector, t.sender, t.recipient
from touch_of o
join tx t on t.tx_at = o.tx_at
join block b on b.number = t.tx_at >> 24
join address s on s.id = t.sender
join address r on r.id = t.recipient
where o.address = (select id from address where address = :address) and o.tx_at >= :low and o.tx_at < :high
order by 1 desc limit :limit;

-- name: touched_ascending
select o.tx_at, b.hash, b.time, t.hash, s.address, r.address, t.value, t.nonce, t.gas_limit, t.gas_used, t.gas_price,
    t.max_fee, t.max_priority_fee, t.kind, t.selector, t.sender, t.recipient
from native_of o
join tx t on t.tx_at = o.tx_at
join block b on b.number = t.tx_at >> 24
join address s on s.id = t.sender
join address r on r.id = t.recipient
where o.address = (select id from address where address = :address) and o.tx_at >= :low and o.tx_at < :high
union all
select o.tx_at, b.hash, b.time, t.hash, s.address, r.address, t.value, t.nonce, t.gas_limit, t.gas_used, t.gas_price,
    t.max_fee, t.max_priority_fee, t.kind, t.selector, t.sender, t.recipient
from touch_of o
join tx t on t.tx_at = o.tx_at
join block b on b.number = t.tx_at >> 24
join address s on s.id = t.sender
join address r on r.id = t.recipient
where o.address = (select id from address where address = :address) and o.tx_at >= :low and o.tx_at < :high
order by 1 limit :limit;
