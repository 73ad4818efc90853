-- Rows of lists of an embedded store, without what a worker keeps (kept.py): addresses by ID, and blocks by number. The
-- last column is how often blocks were rolled back, in the snapshot that the statement reads; null: never.

-- name: rollbacks
select (select value from meta where name = 'rollbacks');

-- name: addresses
select id, address, (select value from meta where name = 'rollbacks')
from address where id in (select value from json_each(:ids));

-- name: blocks
select number, hash, time, (select value from meta where name = 'rollbacks')
from block where number in (select value from json_each(:numbers));

-- name: block_numbers
select number, (select value from meta where name = 'rollbacks')
from block where number < :before order by number desc limit :limit;

-- The positions of a page are found first, and give the order: they are the outermost loop.

-- name: txs_of
select page.tx_at, t.hash, t.amounts, t.kind, t.selector, t.sender, t.recipient,
    (select value from meta where name = 'rollbacks')
from (
    select tx_at from native_of where address = (select id from address where address = :address) and tx_at >= :low and tx_at < :high
    order by tx_at desc limit :limit) page
join tx t on t.tx_at = page.tx_at;

-- Two lists that never share a row, merged by the index they walk.
-- name: touched
select page.tx_at, t.hash, t.amounts, t.kind, t.selector, t.sender, t.recipient,
    (select value from meta where name = 'rollbacks')
from (
    select tx_at from native_of where address = (select id from address where address = :address) and tx_at >= :low and tx_at < :high
    union all
    select tx_at from touch_of where address = (select id from address where address = :address) and tx_at >= :low and tx_at < :high
    order by 1 desc limit :limit) page
join tx t on t.tx_at = page.tx_at;

-- name: touched_ascending
select page.tx_at, t.hash, t.amounts, t.kind, t.selector, t.sender, t.recipient,
    (select value from meta where name = 'rollbacks')
from (
    select tx_at from native_of where address = (select id from address where address = :address) and tx_at >= :low and tx_at < :high
    union all
    select tx_at from touch_of where address = (select id from address where address = :address) and tx_at >= :low and tx_at < :high
    order by 1 limit :limit) page
join tx t on t.tx_at = page.tx_at;

-- name: erc20_of
select 1, page.log_at, 0, e.tx_index, t.hash, null, e.value, e.token, e.sender, e.recipient,
    (select value from meta where name = 'rollbacks')
from (
    select log_at from erc20_of where address = (select id from address where address = :address) and log_at >= :low and log_at < :high
    order by log_at desc limit :limit) page
join erc20 e on e.log_at = page.log_at
join tx t on t.tx_at = e.log_at & -16777216 | e.tx_index;

-- name: erc721_of
select 2, o.log_at, 0, e.tx_index, t.hash, e.token_id, null, e.token, e.sender, e.recipient,
    (select value from meta where name = 'rollbacks')
from erc721_of o
join erc721 e on e.log_at = o.log_at
join tx t on t.tx_at = e.log_at & -16777216 | e.tx_index
where o.address = (select id from address where address = :address) and o.log_at >= :low and o.log_at < :high
order by o.log_at desc limit :limit;

-- Of a page of transactions, whose hashes the caller has: three lists that never share a log, merged by the index they
-- walk. Only batches can be continued inside a log (`low`, `inside`); `from_log` is where the others go on.
-- name: transfers_of_page
select 1, o.log_at, 0, e.tx_index, null, null, e.value, e.token, e.sender, e.recipient,
    (select value from meta where name = 'rollbacks')
from erc20_of o join erc20 e on e.log_at = o.log_at
where o.address = (select id from address where address = :address) and o.log_at >= :from_log and o.log_at < :high
    and (o.log_at & -16777216 | e.tx_index) between :first_tx and :last_tx
union all
select 2, o.log_at, 0, e.tx_index, null, e.token_id, null, e.token, e.sender, e.recipient,
    (select value from meta where name = 'rollbacks')
from erc721_of o join erc721 e on e.log_at = o.log_at
where o.address = (select id from address where address = :address) and o.log_at >= :from_log and o.log_at < :high
    and (o.log_at & -16777216 | e.tx_index) between :first_tx and :last_tx
union all
select 4, o.log_at, e.position, e.tx_index, null, e.token_id, e.value, e.token, e.sender, e.recipient,
    (select value from meta where name = 'rollbacks')
from erc1155_of o join erc1155 e on e.log_at = o.log_at
where o.address = (select id from address where address = :address) and o.log_at >= :low and o.log_at < :high
    and (o.log_at, e.position) > (:low, :inside)
    and (o.log_at & -16777216 | e.tx_index) between :first_tx and :last_tx
order by 2, 3 limit :limit;
