-- The native balance of a sender is in its last transaction of a block, and no row of its own any more: a row costs 28
-- bytes besides its values, and its key once more. The hash stands behind the numbers, which need no padding then. The
-- table of transactions is written anew, so the server needs room for two of it. An interrupted migration leaves the
-- store as it was and begins again.

drop view full_tx_view;
drop view tx_by_hash;
drop view native_of;
drop view erc20_view;
drop view erc721_view;
drop view erc1155_view;
drop view internal_view;
drop view deployment_view;
drop view tx_view;
alter table tx rename to tx_before;
alter index tx_pkey rename to tx_before_pkey;
alter table native_balance rename to native_before;
alter index native_balance_pkey rename to native_before_pkey;
create table tx (
    tx_at bigint primary key,
    sender int4 not null,
    recipient int4 not null,
    kind int4 not null,
    hash bytea not null,
    amounts bytea not null,
    selector bytea not null,
    input bytea not null,
    sender_balance bytea not null default '' -- after the block; empty: a later transaction of the block has it, or none
);

insert into tx (tx_at, sender, recipient, kind, hash, amounts, selector, input, sender_balance)
select t.tx_at, t.sender, t.recipient, t.kind, t.hash, t.amounts, t.selector, t.input, coalesce((
    select n.balance from native_before n
    where n.address = t.sender and n.block = cast(t.tx_at >> 24 as integer) and n.before is null and not exists (
        select 1 from tx_before l where l.tx_at > t.tx_at and l.tx_at <= t.tx_at | 16777215 and l.sender = t.sender)), '')
from tx_before t order by t.tx_at;
create table native_rest (
    address int4 not null,
    block int4 not null,
    balance bytea not null,
    before bytea,
    primary key (address, block)
);

insert into native_rest (address, block, balance, before)
select n.address, n.block, n.balance, n.before from native_before n
where n.before is not null or not exists (
    select 1 from tx_before t where t.sender = n.address
        and t.tx_at >= cast(n.block as bigint) << 24 and t.tx_at <= cast(n.block as bigint) << 24 | 16777215)
order by n.address, n.block;
drop table tx_before;
drop table native_before;
create index tx_prefix on tx (substr(hash, 1, 4));
create index tx_from on tx (sender, (cast(+tx_at >> 26 as integer)));
create index tx_to on tx (recipient, (cast(+tx_at >> 26 as integer))) where recipient <> sender;
create index tx_balance on tx ((+sender), (cast(tx_at >> 24 as integer))) where sender_balance <> '';

create view tx_by_hash as
select distinct substr(hash, 1, 4) as prefix, tx_at >> 24 as block from tx;

create view native_of as
select address, block_group, tx_at from (
    select sender as address, cast(+tx_at >> 26 as integer) as block_group, +tx_at as tx_at, true as is_new from tx
    union all
    select recipient, cast(+tx_at >> 26 as integer), +tx_at, recipient <> sender from tx) as parties
where is_new;

create view native_balance as
select address, block, balance, before from (
    select +sender as address, cast(tx_at >> 24 as integer) as block, sender_balance as balance,
        cast(null as bytea) as before, sender_balance <> '' as is_known
    from tx
    union all
    select address, block, balance, before, true from native_rest) as parts
where is_known;

create view tx_view as
select t.tx_at, b.hash as block_hash, b.time, t.hash, s.address as sender_address, r.address as recipient_address,
    t.amounts, t.kind, t.selector, t.sender, t.recipient
from tx t
join block b on b.number = t.tx_at >> 24
join address s on s.id = t.sender
join address r on r.id = t.recipient;

create view full_tx_view as
select v.tx_at, v.block_hash, v.time, v.hash, v.sender_address, v.recipient_address, v.amounts, v.kind, v.selector,
    v.sender, v.recipient, t.input, b.base_fee, s.address as transfer_sender, r.address as transfer_recipient,
    e.value as transfer_value
from tx t
join tx_view v on v.tx_at = t.tx_at
join block b on b.number = t.tx_at >> 24
left join erc20 e on e.log_at = case when substr(t.input, 1, 2) = '\x0000'::bytea then (
    select min(log_at) from erc20
    where log_at between t.tx_at & -16777216 and t.tx_at | 16777215 and tx_index = t.tx_at & 16777215) end
left join address s on s.id = e.sender
left join address r on r.id = e.recipient;

create view erc20_view as
select cast(1 as bigint) as standard, e.log_at, cast(0 as bigint) as position, e.tx_index, b.hash as block_hash, b.time, t.hash as tx_hash,
    k.address as token_address, s.address as sender_address, r.address as recipient_address, cast(null as bytea) as token_id, e.value,
    e.token, e.sender, e.recipient
from erc20 e
join tx t on t.tx_at = (e.log_at & -16777216) | e.tx_index
join block b on b.number = e.log_at >> 24
join address k on k.id = e.token
join address s on s.id = e.sender
join address r on r.id = e.recipient;

create view erc721_view as
select cast(2 as bigint) as standard, e.log_at, cast(0 as bigint) as position, e.tx_index, b.hash as block_hash, b.time, t.hash as tx_hash,
    k.address as token_address, s.address as sender_address, r.address as recipient_address, e.token_id, e.last_id as value,
    e.token, e.sender, e.recipient
from erc721 e
join tx t on t.tx_at = (e.log_at & -16777216) | e.tx_index
join block b on b.number = e.log_at >> 24
join address k on k.id = e.token
join address s on s.id = e.sender
join address r on r.id = e.recipient;

create view erc1155_view as
select cast(4 as bigint) as standard, e.log_at, e.position, e.tx_index, b.hash as block_hash, b.time, t.hash as tx_hash,
    k.address as token_address, s.address as sender_address, r.address as recipient_address, e.token_id, e.value,
    e.token, e.sender, e.recipient
from erc1155 e
join tx t on t.tx_at = (e.log_at & -16777216) | e.tx_index
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
