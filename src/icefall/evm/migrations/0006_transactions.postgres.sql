-- As in 0006_transactions.sqlite.sql, which says what a row means.

drop view tx_view;
drop view erc20_view;
drop view erc721_view;
drop view erc1155_view;
drop view internal_view;
drop view deployment_view;

drop index tx_by_hash;
alter table tx rename to tx_before;

create table tx (
    tx_at bigint primary key,
    hash bytea not null,
    sender bigint not null,
    recipient bigint not null,
    kind bigint not null,
    amounts bytea not null,
    selector bytea not null,
    input bytea not null
);
insert into tx (tx_at, hash, sender, recipient, kind, amounts, selector, input)
select tx_at, hash, sender, recipient, kind, 
    value || nonce || gas_limit || gas_used || gas_price || coalesce(max_fee, '\xff'::bytea) || coalesce(max_priority_fee, '\xff'::bytea),
    selector, input
from tx_before order by tx_at;
drop table tx_before;

create table tx_by_hash (
    prefix bytea not null,
    tx_at bigint not null,
    primary key (prefix, tx_at)
);
insert into tx_by_hash (prefix, tx_at) select substr(hash, 1, 6), tx_at from tx order by 1, 2;

create view tx_view as
select t.tx_at, b.hash as block_hash, b.time, t.hash, s.address as sender_address, r.address as recipient_address,
    t.amounts, t.kind, t.selector, t.sender, t.recipient
from tx t
join block b on b.number = t.tx_at >> 24
join address s on s.id = t.sender
join address r on r.id = t.recipient;

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
