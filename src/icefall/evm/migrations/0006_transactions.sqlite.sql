-- Writing a transaction costs half: fewer columns, and its hash is found through a table instead of an index, because
-- the rows of a batch can be written into a table in the order of its key.

drop view tx_view;
drop view erc20_view;
drop view erc721_view;
drop view erc1155_view;
drop view internal_view;
drop view deployment_view;

drop index tx_by_hash;
alter table tx rename to tx_before;

-- amounts: `uint`s one after another (amounts.py): value, nonce, gas limit, gas used, gas price, maximum fee, maximum
-- priority fee. The last two are absent where the type of the transaction has none.
create table tx (
    tx_at integer primary key,
    hash blob not null,
    sender integer not null,
    recipient integer not null,
    kind integer not null, -- type, status and call type (writing.py)
    amounts blob not null,
    selector blob not null,
    input blob not null -- what follows the selector, zero runs packed (amounts.py); last, so that lists do not read it
);
insert into tx (tx_at, hash, sender, recipient, kind, amounts, selector, input)
select tx_at, hash, sender, recipient, kind, cast(
    value || nonce || gas_limit || gas_used || gas_price || coalesce(max_fee, x'ff') || coalesce(max_priority_fee, x'ff') as blob),
    selector, input
from tx_before order by tx_at;
drop table tx_before;

-- Transactions by the first six bytes of their hash. Serves: a transaction by its hash.
create table tx_by_hash (
    prefix blob not null,
    tx_at integer not null,
    primary key (prefix, tx_at)
) without rowid;
insert into tx_by_hash (prefix, tx_at) select substr(hash, 1, 6), tx_at from tx order by 1, 2;

create view tx_view as
select t.tx_at, b.hash as block_hash, b.time, t.hash, s.address as sender_address, r.address as recipient_address,
    t.amounts, t.kind, t.selector, t.sender, t.recipient
from tx t
join block b on b.number = t.tx_at >> 24
join address s on s.id = t.sender
join address r on r.id = t.recipient;

create view erc20_view as
select 1 as standard, e.log_at, 0 as position, e.tx_index, b.hash as block_hash, b.time, t.hash as tx_hash,
    k.address as token_address, s.address as sender_address, r.address as recipient_address, null as token_id, e.value,
    e.token, e.sender, e.recipient
from erc20 e
join tx t on t.tx_at = (e.log_at & ~0xffffff) | e.tx_index
join block b on b.number = e.log_at >> 24
join address k on k.id = e.token
join address s on s.id = e.sender
join address r on r.id = e.recipient;

create view erc721_view as
select 2 as standard, e.log_at, 0 as position, e.tx_index, b.hash as block_hash, b.time, t.hash as tx_hash,
    k.address as token_address, s.address as sender_address, r.address as recipient_address, e.token_id, null as value,
    e.token, e.sender, e.recipient
from erc721 e
join tx t on t.tx_at = (e.log_at & ~0xffffff) | e.tx_index
join block b on b.number = e.log_at >> 24
join address k on k.id = e.token
join address s on s.id = e.sender
join address r on r.id = e.recipient;

create view erc1155_view as
select 4 as standard, e.log_at, e.position, e.tx_index, b.hash as block_hash, b.time, t.hash as tx_hash,
    k.address as token_address, s.address as sender_address, r.address as recipient_address, e.token_id, e.value,
    e.token, e.sender, e.recipient
from erc1155 e
join tx t on t.tx_at = (e.log_at & ~0xffffff) | e.tx_index
join block b on b.number = e.log_at >> 24
join address k on k.id = e.token
join address s on s.id = e.sender
join address r on r.id = e.recipient;

create view internal_view as
select i.tx_at, i.frame, b.hash as block_hash, b.time, t.hash as tx_hash, i.kind, s.address as sender_address,
    r.address as recipient_address, i.value, i.gas_limit, i.gas_used, i.is_reverted, i.sender, i.recipient
from internal i
join tx t on t.tx_at = i.tx_at
join block b on b.number = i.tx_at >> 24
join address s on s.id = i.sender
left join address r on r.id = i.recipient;

create view deployment_view as
select a.address, d.tx_at, d.frame, c.address as creator_address, t.hash as tx_hash, s.address as sender_address
from deployment d
join address a on a.id = d.address
join tx t on t.tx_at = d.tx_at
join address c on c.id = d.creator
join address s on s.id = t.sender;
