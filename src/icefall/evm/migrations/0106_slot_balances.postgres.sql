-- Balances of ERC-20 tokens that no transfer tells. No token had a layout here before.

drop view erc20_balance;

alter table slot_change
    alter column block type int4, alter column token type int4, alter column holder type int4, add column balance bytea;
create index slot_change_of on slot_change (holder, token, block) where balance is not null;

create view erc20_balance as
select holder, token, block, balance from (
    select sender as holder, token, cast(log_at >> 24 as integer) as block, sender_balance as balance from erc20
    union all
    select recipient, token, cast(log_at >> 24 as integer), recipient_balance from erc20
    union all
    select holder, token, block, balance from slot_change) as after
where balance is not null;
