-- That a transfer of an ERC-20 token concerns its sender or its recipient, who did not take part in the transaction
-- itself, is a mark of the transfer, and no row of `touch_of` any more. The table of transfers is written anew, so the
-- server needs room for two of it. An interrupted migration leaves the store as it was and begins again.

drop view full_tx_view, erc20_view, erc20_of, erc20_in, erc20_balance;
alter table touch_of rename to touch_of_before;
alter index touch_of_pkey rename to touch_of_before_pkey;
alter table erc20 rename to erc20_before;
alter index erc20_pkey rename to erc20_before_pkey;
create table erc20 (
    log_at bigint primary key,
    tx_index int4 not null,
    token int4 not null,
    sender int4 not null,
    recipient int4 not null,
    value bytea not null,
    sender_balance bytea, -- of the token, after the block; null: another transfer of the block has it
    recipient_balance bytea,
    touches int2 not null default 0 -- 1: `touch_of` has the sender with this transfer's transaction, 2: the recipient, 3: both
);

insert into erc20 (log_at, tx_index, token, sender, recipient, value, sender_balance, recipient_balance, touches)
select e.log_at, e.tx_index, e.token, e.sender, e.recipient, e.value, e.sender_balance, e.recipient_balance,
    (select count(*) from touch_of_before o
     where o.address = e.sender and o.tx_at = (e.log_at & -16777216 | e.tx_index) and not exists (
        select 1 from erc20_before f where f.log_at >= e.log_at & -16777216 and f.log_at < e.log_at
            and f.tx_index = e.tx_index and (f.sender = e.sender or f.recipient = e.sender)))
    + 2 * (select count(*) from touch_of_before o
     where o.address = e.recipient and e.recipient <> e.sender and o.tx_at = (e.log_at & -16777216 | e.tx_index)
        and not exists (
        select 1 from erc20_before f where f.log_at >= e.log_at & -16777216 and f.log_at < e.log_at
            and f.tx_index = e.tx_index and (f.sender = e.recipient or f.recipient = e.recipient)))
from erc20_before e order by log_at;
create table touch_rest (
    address int4 not null,
    tx_at bigint not null,
    primary key (address, tx_at)
);

insert into touch_rest (address, tx_at)
select o.address, o.tx_at from touch_of_before o where not exists (
    select 1 from erc20_before e where e.log_at >= o.tx_at & -16777216 and e.log_at <= o.tx_at | 16777215
        and e.tx_index = o.tx_at & 16777215 and (e.sender = o.address or e.recipient = o.address))
order by address, tx_at;
drop table erc20_before, touch_of_before;
create index erc20_from on erc20 (cast(sender as bigint), (+log_at));
create index erc20_to on erc20 (cast(recipient as bigint), (+log_at)) where recipient <> sender;
create index erc20_by_token on erc20 ((+token), (+log_at));
create index erc20_sent on erc20 (sender, token, cast(log_at >> 24 as integer)) where sender_balance is not null;
create index erc20_received on erc20 (recipient, token, cast(log_at >> 24 as integer)) where recipient_balance is not null;
create index erc20_touch_from on erc20 (sender, (log_at & -16777216 | tx_index)) where touches & 1 <> 0;
create index erc20_touch_to on erc20 (recipient, (log_at & -16777216 | tx_index)) where touches & 2 <> 0;

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
    select recipient, token, cast(log_at >> 24 as integer), recipient_balance from erc20
    union all
    select holder, token, block, balance from slot_change) as after
where balance is not null;

create view touch_of as
select address, tx_at from (
    select sender as address, log_at & -16777216 | tx_index as tx_at, touches & 1 <> 0 as is_touch from erc20
    union all
    select recipient, log_at & -16777216 | tx_index, touches & 2 <> 0 from erc20
    union all
    select address, tx_at, true from touch_rest) as touched
where is_touch;

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
