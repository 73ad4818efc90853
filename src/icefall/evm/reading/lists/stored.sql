-- Rows of lists without joins to addresses and blocks, which the caller completes: from a cache (cached.py), or with one
-- statement for each table (per_table.py).

-- What the tables of transfers store, behind the standard and the position of a row, is {stored} (evm/standards.py): in
-- the order in which lists/rows.py reads it. The position is that of the index that is walked, which gives the order.

-- fragment: tx
t.tx_at, t.hash, t.amounts, t.kind, t.selector, t.sender, t.recipient;

-- How often blocks were rolled back, in the snapshot that the statement reads; null: never.
-- fragment: rollbacks
(select value from meta where name = 'rollbacks');

-- fragment: in_list
address = (select id from address where address = :address) and log_at >= :low and log_at < :high;

-- fragment: in_txs
address = (select id from address where address = :address) and tx_at >= :low and tx_at < :high;

-- The positions of a page are found first, and give the order: they are the outermost loop. With `cross join`
-- SQLite reads them as it goes along instead of putting them in a table first.

-- name: txs_of
select {tx}, {rollbacks}
from (select tx_at from native_of where {in_txs} order by tx_at desc limit :limit) page
cross join tx t where t.tx_at = page.tx_at;

-- The two lists are disjoint; each is read in index order and merged.
-- name: touched
select {tx}, {rollbacks}
from (
    select tx_at from native_of where {in_txs}
    union all
    select tx_at from touch_of where {in_txs}
    order by 1 desc limit :limit) page
cross join tx t where t.tx_at = page.tx_at;

-- name: touched_ascending
select {tx}, {rollbacks}
from (
    select tx_at from native_of where {in_txs}
    union all
    select tx_at from touch_of where {in_txs}
    order by 1 limit :limit) page
cross join tx t where t.tx_at = page.tx_at;

-- The list that is asked for most, without the columns that are the same in all of its rows: each column of a row costs
-- as much as a number that is computed with it.
-- name: erc20_of
select o.log_at, e.tx_index, e.value, e.token, e.sender, e.recipient, t.hash, {rollbacks}
from (select log_at from erc20_of where {in_list} order by log_at desc limit :limit) o
cross join erc20 e cross join tx t
where e.log_at = o.log_at and t.tx_at = e.log_at & -16777216 | e.tx_index;

-- name: {single_nft}_of
select {number}, o.log_at, {stored}, t.hash, {rollbacks}
from (select log_at from {single_nft}_of where {in_list} order by log_at desc limit :limit) o
cross join {single_nft} e cross join tx t
where e.log_at = o.log_at and t.tx_at = e.log_at & -16777216 | e.tx_index;

-- Null: the address is no party of an internal transaction from the first to the last of these transactions.
-- fragment: has_internals
(select 1 from internal_of where address = (select id from address where address = :address)
    and tx_at >= :first_tx and tx_at <= :last_tx limit 1);

-- fragment: {single}_of_txs
select {number}, o.log_at, {stored}, {has_internals}, {rollbacks}
from {single}_of o join {single} e on e.log_at = o.log_at
where o.address = (select id from address where address = :address) and o.log_at >= :from_log and o.log_at < :high
    and (o.log_at & -16777216 | e.tx_index) between :first_tx and :last_tx;

-- fragment: {batched}_of_txs
select {number}, o.log_at, {stored}, {has_internals}, {rollbacks}
from {batched}_of o join {batched} e on e.log_at = o.log_at
where o.address = (select id from address where address = :address) and o.log_at >= :low and o.log_at < :high
    and (o.log_at, e.position) > (:low, :inside)
    and (o.log_at & -16777216 | e.tx_index) between :first_tx and :last_tx;

-- The transfers of a page of transactions, whose places the caller has. The lists of the standards are disjoint; each is
-- read in index order and merged. Only batches can be continued inside a log (`low`, `inside`); `from_log` is where the
-- others go on.
-- name: transfers_of_page
{union {single}_of_txs}
union all
{union {batched}_of_txs}
order by 2, 3 limit :limit;

-- What completes these rows, each with the count of rollbacks.

-- name: known_addresses
select id, address, {rollbacks} from address where id in (select value from json_each(:ids));

-- name: known_blocks
select number, hash, time, {rollbacks} from block where number in (select value from json_each(:numbers));

-- The same lists table by table: one key, or a list of them, and no join. The columns of hash and count are null.

-- name: address_id
select id from address where address = :address;

-- name: {standard}_positions
select log_at from {standard}_of where address = :id and log_at >= :low and log_at < :high order by log_at desc limit :limit;

-- postgres: erc20_positions
select log_at from (
    select log_at from erc20_of
    where address = :id and block_group >= :low >> 26 and block_group <= :high >> 26 and log_at >= :low and log_at < :high
    order by block_group desc fetch first :limit rows with ties) as near
order by log_at desc limit :limit;

-- name: tx_positions
select tx_at from native_of where address = :id and tx_at >= :low and tx_at < :high order by tx_at desc limit :limit;

-- postgres: tx_positions
select tx_at from (
    select tx_at from native_of
    where address = :id and block_group >= :low >> 26 and block_group <= :high >> 26 and tx_at >= :low and tx_at < :high
    order by block_group desc fetch first :limit rows with ties) as near
order by tx_at desc limit :limit;

-- name: {single}_at
select {number}, e.log_at, {stored}, null, null from {single} e where e.log_at in (select value from json_each(:positions));

-- The rows of each batch below a position: a batch may have tens of thousands, a page needs `limit` of all.
-- name: {batched}_at
select {number}, e.log_at, {stored}, null, null from {batched} e
where e.log_at in (select value from json_each(:positions)) and e.position < :inside;

-- postgres: {batched}_at
select {number}, e.log_at, {stored}, null, null from {batched} e
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

-- Current prices, and what the operator's list says: a row has one or the other.
-- name: prices_and_listed
select token_address, value, null from price where token_address = ? and currency = ? and day = -1
union all
select token_address, null, details from listed_token where token_address = ?;

-- postgres: prices_and_listed
select token_address, value, null from price where token_address = any(?) and currency = any(?) and day = -1
union all
select token_address, null, details from listed_token where token_address = any(?);
