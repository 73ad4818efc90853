-- Rows of tables that have more columns on a server than in a file, for copying a whole store to a server. Each query ends
-- with the key by which it is read page by page, which has an index in both. Those named walk_of_ are views on a server:
-- the order in which it reads them is that of the key of the file's table.

-- The balance of a sender is in its last transaction of a block, unless nothing is known of earlier blocks.
-- name: tx
select t.tx_at, t.sender, t.recipient, t.kind, t.hash, t.amounts, t.selector, t.input, coalesce(
    (select n.balance from native_balance n
     where n.address = t.sender and n.block = t.tx_at >> 24 and n.before is null and not exists (
        select 1 from tx l where l.tx_at > t.tx_at and l.tx_at <= t.tx_at | 16777215 and l.sender = t.sender)),
    x'') as sender_balance
from tx t order by tx_at;

-- What no transaction has as its sender's.
-- name: native_rest
select n.address, n.block, n.balance, n.before from native_balance n
where n.before is not null or not exists (
    select 1 from tx t where t.sender = n.address
        and t.tx_at between cast(n.block as bigint) << 24 and cast(n.block as bigint) << 24 | 16777215) order by address, block;

-- A balance is in the last transfer of its block that names the holder, and a touch in the first of its transaction
-- (storing/writing.py).
-- name: erc20
select e.log_at, e.tx_index, e.token, e.sender, e.recipient, e.value,
    (select b.balance from erc20_balance b
     where b.holder = e.sender and b.token = e.token and b.block = e.log_at >> 24 and not exists (
        select 1 from erc20 l where l.log_at > e.log_at and l.log_at <= e.log_at | 16777215
            and l.token = e.token and (l.sender = e.sender or l.recipient = e.sender))) as sender_balance,
    (select b.balance from erc20_balance b
     where b.holder = e.recipient and e.recipient <> e.sender and b.token = e.token and b.block = e.log_at >> 24
        and not exists (
        select 1 from erc20 l where l.log_at > e.log_at and l.log_at <= e.log_at | 16777215
            and l.token = e.token and (l.sender = e.recipient or l.recipient = e.recipient))) as recipient_balance,
    (select count(*) from touch_of o
     where o.address = e.sender and o.tx_at = (e.log_at & -16777216 | e.tx_index) and not exists (
        select 1 from erc20 f where f.log_at >= e.log_at & -16777216 and f.log_at < e.log_at
            and f.tx_index = e.tx_index and (f.sender = e.sender or f.recipient = e.sender)))
    + 2 * (select count(*) from touch_of o
     where o.address = e.recipient and e.recipient <> e.sender and o.tx_at = (e.log_at & -16777216 | e.tx_index)
        and not exists (
        select 1 from erc20 f where f.log_at >= e.log_at & -16777216 and f.log_at < e.log_at
            and f.tx_index = e.tx_index and (f.sender = e.recipient or f.recipient = e.recipient))) as touches
from erc20 e order by log_at;

-- What no ERC-20 transfer of the transaction says.
-- name: touch_rest
select o.address, o.tx_at >> 26 as block_group, o.tx_at from touch_of o where not exists (
    select 1 from erc20 e where e.log_at >= o.tx_at & -16777216 and e.log_at <= o.tx_at | 16777215
        and e.tx_index = o.tx_at & 16777215 and (e.sender = o.address or e.recipient = o.address)) order by address, block_group, tx_at;

-- name: held_token
select h.token, o.since, h.holder, substr(h.token_address, 1, 3) as token_start, h.baseline
from erc20_holder o
join address a on a.id = o.token
join erc20_holding h on h.holder = o.holder and h.token_address = a.address order by token, since, holder;

-- name: walk_of_native_of
select address, block_group, tx_at from native_of order by address, block_group, tx_at;

-- name: walk_of_touch_of
select address, block_group, tx_at from touch_of order by address, block_group, tx_at;

-- name: walk_of_erc20_in
select token, block_group, block from erc20_in order by token, block_group, block;

-- name: walk_of_erc20_of
select address, block_group, log_at from erc20_of order by address, block_group, log_at;

-- name: walk_of_erc20_holding
select holder, token_start, token_address from erc20_holding order by holder, token_start, token_address;
