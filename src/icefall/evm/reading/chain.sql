-- Blocks and transactions. A list is a walk along one index, joined by key: one seek per joined table.

-- fragment: block
number, hash, parent_hash, time, tx_count, base_fee, gas_used, gas_limit, gas_cost, fees_spent, cumulative_txs,
    fee_recipient, size, fees_burned;

-- name: tip
select {block}
from block where number >= 0 order by number desc limit 1;

-- name: lowest
select number, time from block where number >= 0 order by number limit 1;

-- name: block
select {block}
from block where number = :number;

-- name: block_hash_of
select number, hash from block where number = ?;

-- postgres: block_hash_of
select number, hash from block where number = any(?);

-- name: block_by_hash
select {block}
from block where hash = :hash;

-- name: blocks
select {block}
from block where number < :before order by number desc limit :limit;

-- name: meta
select value from meta where name = :name;

-- How often blocks were rolled back; null: never. Every rollback counts itself in its own transaction.
-- name: rollbacks
select (select value from meta where name = 'rollbacks');

-- Blocks and transactions whose hash is in a range.
-- name: blocks_between
select {block}
from block where hash >= :low and hash <= :high order by hash limit :limit;

-- Nearly every row of the range has such a transaction in its block: four bytes are compared.
-- name: txs_between
select t.hash, b.number, b.time from tx_by_hash h
join tx t on t.tx_at between h.block << 24 and h.block << 24 | 16777215 and substr(t.hash, 1, 4) = +h.prefix
    and t.hash >= :low and t.hash <= :high
join block b on b.number = h.block
where h.prefix >= substr(:low, 1, 4) and h.prefix <= substr(:high, 1, 4) limit :limit;

-- postgres: txs_between
select t.hash, b.number, b.time from tx t join block b on b.number = t.tx_at >> 24
where substr(t.hash, 1, 4) >= substr(:low, 1, 4) and substr(t.hash, 1, 4) <= substr(:high, 1, 4)
    and t.hash >= :low and t.hash <= :high limit :limit;

-- name: is_known
select 1 from address where address = :address;

-- name: tx
select * from full_tx_view where tx_at = (
    select t.tx_at from tx_by_hash h
    join tx t on t.tx_at between h.block << 24 and h.block << 24 | 16777215 and t.hash = :hash
    where h.prefix = substr(:hash, 1, 4));

-- postgres: tx
select * from full_tx_view where tx_at = (
    select tx_at from tx where substr(hash, 1, 4) = substr(:hash, 1, 4) and hash = :hash limit 1);

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

