-- Rows of lists without joins to addresses and blocks, which the caller completes: from a cache (cached.py), or with one
-- statement for each table (per_table.py).

-- What the tables of transfers store, behind the standard and the position of a row: in the order in which lists/rows.py
-- reads it. The position is that of the index that is walked, which gives the order.
-- fragment: erc20
0, e.tx_index, null, e.value, e.token, e.sender, e.recipient;

-- fragment: erc721
0, e.tx_index, e.token_id, e.last_id, e.token, e.sender, e.recipient;

-- fragment: erc1155
e.position, e.tx_index, e.token_id, e.value, e.token, e.sender, e.recipient;

-- fragment: tx
t.tx_at, t.hash, t.amounts, t.kind, t.selector, t.sender, t.recipient;

-- How often blocks were rolled back, in the snapshot that the statement reads; null: never.
-- fragment: rollbacks
(select value from meta where name = 'rollbacks');

-- fragment: in_list
address = (select id from address where address = :address) and log_at >= :low and log_at < :high;

-- fragment: in_txs
address = (select id from address where address = :address) and tx_at >= :low and tx_at < :high;

-- The positions of a page are found first, and give the order: they are the outermost loop.

-- name: txs_of
select {tx}, {rollbacks}
from (select tx_at from native_of where {in_txs} order by tx_at desc limit :limit) page
join tx t on t.tx_at = page.tx_at;

-- The two lists are disjoint; each is read in index order and merged.
-- name: touched
select {tx}, {rollbacks}
from (
    select tx_at from native_of where {in_txs}
    union all
    select tx_at from touch_of where {in_txs}
    order by 1 desc limit :limit) page
join tx t on t.tx_at = page.tx_at;

-- name: touched_ascending
select {tx}, {rollbacks}
from (
    select tx_at from native_of where {in_txs}
    union all
    select tx_at from touch_of where {in_txs}
    order by 1 limit :limit) page
join tx t on t.tx_at = page.tx_at;

-- name: erc20_of
select 1, o.log_at, {erc20}, t.hash, {rollbacks}
from (select log_at from erc20_of where {in_list} order by log_at desc limit :limit) o
join erc20 e on e.log_at = o.log_at
join tx t on t.tx_at = e.log_at & -16777216 | e.tx_index;

-- name: erc721_of
select 2, o.log_at, {erc721}, t.hash, {rollbacks}
from (select log_at from erc721_of where {in_list} order by log_at desc limit :limit) o
join erc721 e on e.log_at = o.log_at
join tx t on t.tx_at = e.log_at & -16777216 | e.tx_index;

-- The transfers of a page of transactions, whose hashes the caller has. The three lists are disjoint; each is read in
-- index order and merged. Only batches can be continued inside a log (`low`, `inside`); `from_log` is where the others go
-- on.
-- name: transfers_of_page
select 1, o.log_at, {erc20}, null, {rollbacks}
from erc20_of o join erc20 e on e.log_at = o.log_at
where o.address = (select id from address where address = :address) and o.log_at >= :from_log and o.log_at < :high
    and (o.log_at & -16777216 | e.tx_index) between :first_tx and :last_tx
union all
select 2, o.log_at, {erc721}, null, {rollbacks}
from erc721_of o join erc721 e on e.log_at = o.log_at
where o.address = (select id from address where address = :address) and o.log_at >= :from_log and o.log_at < :high
    and (o.log_at & -16777216 | e.tx_index) between :first_tx and :last_tx
union all
select 4, o.log_at, {erc1155}, null, {rollbacks}
from erc1155_of o join erc1155 e on e.log_at = o.log_at
where o.address = (select id from address where address = :address) and o.log_at >= :low and o.log_at < :high
    and (o.log_at, e.position) > (:low, :inside)
    and (o.log_at & -16777216 | e.tx_index) between :first_tx and :last_tx
order by 2, 3 limit :limit;

-- What completes these rows, each with the count of rollbacks.

-- name: known_addresses
select id, address, {rollbacks} from address where id in (select value from json_each(:ids));

-- name: known_blocks
select number, hash, time, {rollbacks} from block where number in (select value from json_each(:numbers));

-- The same lists table by table: one key, or a list of them, and no join. The columns of hash and count are null.

-- name: address_id
select id from address where address = :address;

-- name: erc20_positions
select log_at from erc20_of where address = :id and log_at >= :low and log_at < :high order by log_at desc limit :limit;

-- name: erc721_positions
select log_at from erc721_of where address = :id and log_at >= :low and log_at < :high order by log_at desc limit :limit;

-- name: erc1155_positions
select log_at from erc1155_of where address = :id and log_at >= :low and log_at < :high order by log_at desc limit :limit;

-- name: tx_positions
select tx_at from native_of where address = :id and tx_at >= :low and tx_at < :high order by tx_at desc limit :limit;

-- name: erc20_at
select 1, e.log_at, {erc20}, null, null from erc20 e where e.log_at in (select value from json_each(:positions));

-- name: erc721_at
select 2, e.log_at, {erc721}, null, null from erc721 e where e.log_at in (select value from json_each(:positions));

-- The rows of each batch below a position: a batch may have tens of thousands, a page needs `limit` of all.
-- name: erc1155_at
select 4, e.log_at, {erc1155}, null, null from erc1155 e where e.log_at in (select value from json_each(:positions)) and e.position < :inside;

-- postgres: erc1155_at
select 4, e.log_at, {erc1155}, null, null from erc1155 e
where e.log_at = any(:positions) and e.position < :inside order by e.log_at desc, e.position desc limit :limit;

-- name: txs_at
select {tx}, null from tx t where t.tx_at in (select value from json_each(:positions));

-- name: tx_hashes
select tx_at, hash from tx where tx_at in (select value from json_each(:positions));

-- name: blocks
select number, hash, time from block where number in (select value from json_each(:numbers));

-- name: addresses
select id, address from address where id in (select value from json_each(:ids));

-- name: token_details
select token, name, symbol, decimals from token where token in (select value from json_each(:ids));

-- name: prices
select token_address, value from price where token_address = ? and currency = ? and day = -1;

-- postgres: prices
select token_address, value from price where token_address = any(?) and currency = any(?) and day = -1;
