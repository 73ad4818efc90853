-- Native balances of all addresses of a chain, a piece of their numbers at a time.

-- One more than the highest number of an address.
-- name: end
select coalesce(max(id), 0) + 1 from address;

-- fragment: first_changes
select n.block, n.balance from native_balance n
where n.address = a.id and n.block >= :block and n.block < :stop order by n.block limit :limit

-- What is stored of an address: the balance before a block; the block of its first row, which is null of an address
-- without any, and the balance before that one, which is null where it is not known; then how many changes there are in
-- the blocks in question, of the first few, and after how many of them the balance was large enough.
-- name: held
select a.id, a.address,
    (select newest.balance from (
        select n.block, n.balance from native_balance n
        where n.address = a.id and n.block < :block order by n.block desc limit 1) newest),
    (select oldest.block from (
        select n.block from native_balance n where n.address = a.id order by n.block limit 1) oldest),
    (select oldest.before from (
        select n.block, n.before from native_balance n where n.address = a.id order by n.block limit 1) oldest),
    (select count(*) from ({first_changes}) counted),
    (select count(*) from ({first_changes}) counted where counted.balance >= :least)
from address a where a.id >= :low and a.id < :high;

-- Some balances of an address, in the order of blocks.
-- name: between
select n.block, n.balance from native_balance n
where n.address = :id and n.block >= :low and n.block < :high order by n.block limit :limit;
