-- The atomic side of the C-Chain: its blocks by hash and time, and its atomic transactions.

-- name: put_block
insert into c_block (height, block_id, time, number) values (?, ?, ?, ?);

-- name: next_seq
select coalesce(max(seq) + 1, 0) from c_tx;

-- name: put_tx
insert into c_tx (seq, txid, height, bytes) values (?, ?, ?, ?);

-- name: put_address_tx
insert into c_address_tx (address, seq) values (?, ?);

-- fragment: block
select b.height, b.block_id, b.time, c.bytes from c_block b
left join container c on c.series = 1 and c.number = b.number

-- name: blocks
{block} where b.height >= :low and b.height < :below order by b.height desc limit :limit;

-- name: block_by_id
{block} where b.block_id = :block_id;

-- name: block_of
{block} where b.height = ?;

-- postgres: block_of
{block} where b.height = any(?);

-- name: block_count
select coalesce(max(height) + 1, 0) from c_block;

-- name: first_block
select coalesce(min(height), 0) from c_block;

-- name: block_time
select time from c_block where height = :height;

-- name: tx_time
select b.time from c_tx t join c_block b on b.height = t.height where t.seq = :seq;

-- fragment: tx
select t.seq, t.txid, t.height, t.bytes, b.block_id, b.time from c_tx t join c_block b on b.height = t.height

-- name: txs_down
{tx} where t.seq >= :low and t.seq < :below order by t.seq desc limit :limit;

-- name: txs_up
{tx} where t.seq >= :low and t.seq < :below order by t.seq limit :limit;

-- name: txs_of_address_down
{tx} join c_address_tx a on a.seq = t.seq
where a.address = :address and a.seq >= :low and a.seq < :below order by a.seq desc limit :limit;

-- name: txs_of_address_up
{tx} join c_address_tx a on a.seq = t.seq
where a.address = :address and a.seq >= :low and a.seq < :below order by a.seq limit :limit;

-- name: tx_of
{tx} where t.txid = :txid;

-- name: tx_bytes
select bytes from c_tx where txid = ?;

-- postgres: tx_bytes
select bytes from c_tx where txid = any(?);
