-- Lists of X: blocks and transactions, each read by a range of its key. The time of a block is in its bytes.

-- fragment: block
select b.height, b.block_id, b.container, b.inner_at, b.inner_size from ledger_block b

-- name: blocks
{block} where b.chain = :chain and b.height >= :low and b.height < :below order by b.height desc limit :limit;

-- name: block_by_id
{block} where b.chain = :chain and b.block_id = :block_id;

-- name: block_of
{block} where b.chain = ? and b.height = ?;

-- postgres: block_of
{block} join unnest(?::bigint[], ?::bigint[]) wanted (chain, height)
on b.chain = wanted.chain and b.height = wanted.height;

-- name: block_time
select substr(container, cast(inner_at + 47 as int), 8) from ledger_block where chain = :chain and height = :height;

-- name: tx_time
select substr(b.container, cast(b.inner_at + 47 as int), 8) from ledger_tx t
join ledger_block b on b.chain = t.chain and b.height = t.height where t.chain = :chain and t.seq = :seq;

-- name: ledger
select chain, genesis_txs from ledger where chain_id = :chain_id;

-- name: counts
select height + 1, next_seq from ledger where chain = :chain;

-- fragment: tx
select t.seq, t.txid, t.height, t.bytes, b.block_id, substr(b.container, cast(b.inner_at + 47 as int), 8)
from ledger_tx t join ledger_block b on b.chain = t.chain and b.height = t.height

-- name: txs_down
{tx} where t.chain = :chain and t.seq >= :low and t.seq < :below order by t.seq desc limit :limit;

-- name: txs_up
{tx} where t.chain = :chain and t.seq >= :low and t.seq < :below order by t.seq limit :limit;

-- name: txs_of_address_down
{tx} join (
    select distinct seq from address_tx where chain = :chain and address = :address and seq >= :low and seq < :below
    order by seq desc limit :limit
) found on found.seq = t.seq where t.chain = :chain order by t.seq desc;

-- name: txs_of_address_up
{tx} join (
    select distinct seq from address_tx where chain = :chain and address = :address and seq >= :low and seq < :below
    order by seq limit :limit
) found on found.seq = t.seq where t.chain = :chain order by t.seq;

-- name: txs_of_asset
{tx} join asset_tx a on a.chain = t.chain and a.seq = t.seq
where a.chain = :chain and a.asset = :asset and a.seq >= :low and a.seq < :below order by a.seq desc limit :limit;

-- name: tx_bytes
select bytes from ledger_tx where chain = ? and txid = ?;

-- postgres: tx_bytes
select t.bytes from ledger_tx t join unnest(?::bigint[], ?::bytea[]) wanted (chain, txid)
on t.chain = wanted.chain and t.txid = wanted.txid;

-- name: tx_of
{tx} where t.chain = :chain and t.txid = :txid;
