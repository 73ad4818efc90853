-- The holders of a token in the order in which they first held it are a table of their own instead of an index: its rows
-- are a third of the size, and the rows of a batch are written in the order of its key.

drop index erc20_holder;
alter table erc20_holding rename to erc20_holding_before;

-- Tokens a holder was ever named with, in the order they are listed. baseline: balance before the first row, where the
-- index does not begin with the chain. Serves: ERC-20 balances of an address.
create table erc20_holding (
    holder integer not null,
    token_address blob not null,
    token integer not null,
    baseline blob not null,
    primary key (holder, token_address)
) without rowid;
insert into erc20_holding (holder, token_address, token, baseline)
select holder, token_address, token, baseline from erc20_holding_before order by holder, token_address;

-- The same by token, with the block that named the holder first. Serves: audits, and rollbacks.
create table erc20_holder (
    token integer not null,
    since integer not null,
    holder integer not null,
    primary key (token, since, holder)
) without rowid;
insert into erc20_holder (token, since, holder)
select token, since, holder from erc20_holding_before order by token, since, holder;
drop table erc20_holding_before;
