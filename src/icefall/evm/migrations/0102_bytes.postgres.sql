-- Lists become indexes of the tables they list, balances values of the transfers that led to them, IDs and blocks of long
-- tables numbers of four bytes. Every changed table is written anew, so the server needs room for two of the largest. An
-- interrupted migration leaves the store as it was and begins again.

drop view full_tx_view, tx_view, erc20_view, erc721_view, erc1155_view, internal_view, deployment_view;

-- # Transactions

drop table tx_by_hash, native_of;
alter table tx alter column sender type int4, alter column recipient type int4, alter column kind type int4;
create index tx_prefix on tx (substr(hash, 1, 4));
create index tx_from on tx (sender, (+tx_at));
create index tx_to on tx (recipient, (+tx_at)) where recipient <> sender;

create view tx_by_hash as
select distinct substr(hash, 1, 4) as prefix, tx_at >> 24 as block from tx;

create view native_of as
select address, tx_at from (
    select sender as address, +tx_at as tx_at, true as is_new from tx
    union all
    select recipient, +tx_at, recipient <> sender from tx) as parties
where is_new;

-- # Token transfers and balances of ERC-20

alter table erc20 rename to erc20_before;
alter index erc20_pkey rename to erc20_before_pkey;
alter table erc20_balance rename to erc20_balance_before;
create table erc20 (
    log_at bigint primary key,
    tx_index int4 not null,
    token int4 not null,
    sender int4 not null,
    recipient int4 not null,
    value bytea not null,
    sender_balance bytea, -- of the token, after the block; null: another transfer of the block has it
    recipient_balance bytea
);

insert into erc20 (log_at, tx_index, token, sender, recipient, value, sender_balance, recipient_balance)
select e.log_at, e.tx_index, e.token, e.sender, e.recipient, e.value,
    (select b.balance from erc20_balance_before b
     where b.holder = e.sender and b.token = e.token and b.block = e.log_at >> 24 and not exists (
        select 1 from erc20_before l where l.log_at > e.log_at and l.log_at <= e.log_at | 16777215
            and l.token = e.token and (l.sender = e.sender or l.recipient = e.sender))) as sender_balance,
    (select b.balance from erc20_balance_before b
     where b.holder = e.recipient and e.recipient <> e.sender and b.token = e.token and b.block = e.log_at >> 24
        and not exists (
        select 1 from erc20_before l where l.log_at > e.log_at and l.log_at <= e.log_at | 16777215
            and l.token = e.token and (l.sender = e.recipient or l.recipient = e.recipient))) as recipient_balance
from erc20_before e order by log_at;
drop table erc20_before, erc20_balance_before, erc20_of, erc20_in;
create index erc20_from on erc20 (cast(sender as bigint), (+log_at));
create index erc20_to on erc20 (cast(recipient as bigint), (+log_at)) where recipient <> sender;
create index erc20_by_token on erc20 ((+token), (+log_at));
create index erc20_sent on erc20 (sender, token, cast(log_at >> 24 as integer)) where sender_balance is not null;
create index erc20_received on erc20 (recipient, token, cast(log_at >> 24 as integer)) where recipient_balance is not null;

create view erc20_of as
select address, log_at from (
    select cast(sender as bigint) as address, +log_at as log_at, true as is_new from erc20
    union all
    select cast(recipient as bigint), +log_at, recipient <> sender from erc20) as parties
where is_new;

create view erc20_in as
select +token as token, +log_at >> 24 as block, min(log_at & 16777215) as first_log, max(log_at & 16777215) as last_log
from erc20 group by +token, +log_at >> 24;

create view erc20_balance as
select holder, token, block, balance from (
    select sender as holder, token, cast(log_at >> 24 as integer) as block, sender_balance as balance from erc20
    union all
    select recipient, token, cast(log_at >> 24 as integer), recipient_balance from erc20) as after
where balance is not null;

alter table erc20_holding rename to erc20_holding_before;
alter index erc20_holding_pkey rename to erc20_holding_before_pkey;
alter table erc20_holder rename to erc20_holder_before;
create table erc20_holding (
    holder int4 not null,
    token_address bytea not null,
    token int4 not null,
    baseline bytea not null,
    since int4 not null, -- the block
    primary key (holder, token_address)
);

insert into erc20_holding (holder, token_address, token, baseline, since)
select h.holder, h.token_address, h.token, h.baseline, o.since
from erc20_holder_before o
join address a on a.id = o.token
join erc20_holding_before h on h.holder = o.holder and h.token_address = a.address
order by h.holder, h.token_address;
drop table erc20_holding_before, erc20_holder_before;
create index erc20_holding_since on erc20_holding (token, since);

create view erc20_holder as
select token, since, holder from erc20_holding;

alter table native_balance alter column address type int4, alter column block type int4;

-- # Views

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
    k.address as token_address, s.address as sender_address, r.address as recipient_address, e.token_id, cast(null as bytea) as value,
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
