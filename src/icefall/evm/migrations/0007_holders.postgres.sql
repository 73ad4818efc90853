-- As in 0007_holders.sqlite.sql, which says what a row means.

drop index erc20_holder;
alter table erc20_holding rename to erc20_holding_before;

create table erc20_holding (
    holder bigint not null,
    token_address bytea not null,
    token bigint not null,
    baseline bytea not null,
    primary key (holder, token_address)
);
insert into erc20_holding (holder, token_address, token, baseline)
select holder, token_address, token, baseline from erc20_holding_before order by holder, token_address;

create table erc20_holder (
    token bigint not null,
    since bigint not null,
    holder bigint not null,
    primary key (token, since, holder)
);
insert into erc20_holder (token, since, holder)
select token, since, holder from erc20_holding_before order by token, since, holder;
drop table erc20_holding_before;
