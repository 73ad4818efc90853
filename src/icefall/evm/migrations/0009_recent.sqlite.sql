-- Tables that every transfer adds to at places all over them are in two parts: rows are inserted into `_recent`, and
-- moved to `_merged` in the order of their keys, many to a page (recent.py). A row is in one of them; the view is both.
-- What is inserted through a view, which is how whole stores are copied, goes to `_merged`.

alter table native_of rename to native_of_merged;
create table native_of_recent (
    address integer not null,
    tx_at integer not null,
    primary key (address, tx_at)
) without rowid;
create view native_of as
select address, tx_at from native_of_recent
union all
select address, tx_at from native_of_merged;
create trigger native_of_insert instead of insert on native_of begin
    insert into native_of_merged (address, tx_at) values (new.address, new.tx_at);
end;
create trigger native_of_delete instead of delete on native_of begin
    delete from native_of_recent where address = old.address and tx_at = old.tx_at;
    delete from native_of_merged where address = old.address and tx_at = old.tx_at;
end;

alter table touch_of rename to touch_of_merged;
create table touch_of_recent (
    address integer not null,
    tx_at integer not null,
    primary key (address, tx_at)
) without rowid;
create view touch_of as
select address, tx_at from touch_of_recent
union all
select address, tx_at from touch_of_merged;
create trigger touch_of_insert instead of insert on touch_of begin
    insert into touch_of_merged (address, tx_at) values (new.address, new.tx_at);
end;
create trigger touch_of_delete instead of delete on touch_of begin
    delete from touch_of_recent where address = old.address and tx_at = old.tx_at;
    delete from touch_of_merged where address = old.address and tx_at = old.tx_at;
end;

alter table erc20_of rename to erc20_of_merged;
create table erc20_of_recent (
    address integer not null,
    log_at integer not null,
    primary key (address, log_at)
) without rowid;
create view erc20_of as
select address, log_at from erc20_of_recent
union all
select address, log_at from erc20_of_merged;
create trigger erc20_of_insert instead of insert on erc20_of begin
    insert into erc20_of_merged (address, log_at) values (new.address, new.log_at);
end;
create trigger erc20_of_delete instead of delete on erc20_of begin
    delete from erc20_of_recent where address = old.address and log_at = old.log_at;
    delete from erc20_of_merged where address = old.address and log_at = old.log_at;
end;

alter table tx_by_hash rename to tx_by_hash_merged;
create table tx_by_hash_recent (
    prefix blob not null,
    tx_at integer not null,
    primary key (prefix, tx_at)
) without rowid;
create view tx_by_hash as
select prefix, tx_at from tx_by_hash_recent
union all
select prefix, tx_at from tx_by_hash_merged;
create trigger tx_by_hash_insert instead of insert on tx_by_hash begin
    insert into tx_by_hash_merged (prefix, tx_at) values (new.prefix, new.tx_at);
end;
create trigger tx_by_hash_delete instead of delete on tx_by_hash begin
    delete from tx_by_hash_recent where prefix = old.prefix and tx_at = old.tx_at;
    delete from tx_by_hash_merged where prefix = old.prefix and tx_at = old.tx_at;
end;

alter table native_balance rename to native_balance_merged;
create table native_balance_recent (
    address integer not null,
    block integer not null,
    balance blob not null,
    before blob,
    primary key (address, block)
) without rowid;
create view native_balance as
select address, block, balance, before from native_balance_recent
union all
select address, block, balance, before from native_balance_merged;
create trigger native_balance_insert instead of insert on native_balance begin
    insert into native_balance_merged (address, block, balance, before)
    values (new.address, new.block, new.balance, new.before);
end;
create trigger native_balance_delete instead of delete on native_balance begin
    delete from native_balance_recent where address = old.address and block = old.block;
    delete from native_balance_merged where address = old.address and block = old.block;
end;

alter table erc20_balance rename to erc20_balance_merged;
create table erc20_balance_recent (
    holder integer not null,
    token integer not null,
    block integer not null,
    balance blob not null,
    primary key (holder, token, block)
) without rowid;
create view erc20_balance as
select holder, token, block, balance from erc20_balance_recent
union all
select holder, token, block, balance from erc20_balance_merged;
create trigger erc20_balance_insert instead of insert on erc20_balance begin
    insert into erc20_balance_merged (holder, token, block, balance)
    values (new.holder, new.token, new.block, new.balance);
end;
create trigger erc20_balance_delete instead of delete on erc20_balance begin
    delete from erc20_balance_recent where holder = old.holder and token = old.token and block = old.block;
    delete from erc20_balance_merged where holder = old.holder and token = old.token and block = old.block;
end;

alter table erc20_holding rename to erc20_holding_merged;
create table erc20_holding_recent (
    holder integer not null,
    token_address blob not null,
    token integer not null,
    baseline blob not null,
    primary key (holder, token_address)
) without rowid;
create view erc20_holding as
select holder, token_address, token, baseline from erc20_holding_recent
union all
select holder, token_address, token, baseline from erc20_holding_merged;
create trigger erc20_holding_insert instead of insert on erc20_holding begin
    insert into erc20_holding_merged (holder, token_address, token, baseline)
    values (new.holder, new.token_address, new.token, new.baseline);
end;
create trigger erc20_holding_delete instead of delete on erc20_holding begin
    delete from erc20_holding_recent where holder = old.holder and token_address = old.token_address;
    delete from erc20_holding_merged where holder = old.holder and token_address = old.token_address;
end;

create trigger native_balance_update instead of update on native_balance begin
    update native_balance_recent set balance = new.balance where address = old.address and block = old.block;
    update native_balance_merged set balance = new.balance where address = old.address and block = old.block;
end;
