-- Holdings of an address are found by the first bytes of a token's address, which is not stored with them any more, and holders of a token by their key. The
-- table is written anew, so the server needs room for two of it. An interrupted migration leaves the store as it was and
-- begins again.

drop view erc20_holder;
alter table erc20_holding rename to holding_before;
alter index erc20_holding_pkey rename to holding_before_pkey;
drop index erc20_holding_since;
create table held_token (
    token int4 not null,
    since int4 not null, -- the block
    holder int4 not null,
    token_start bytea not null, -- the first three bytes of its address
    baseline bytea not null,
    primary key (token, since, holder)
);

insert into held_token (token, since, holder, token_start, baseline)
select token, since, holder, substr(token_address, 1, 3), baseline from holding_before order by token, since, holder;
drop table holding_before;
create index held_token_of on held_token (holder, token_start);

create view erc20_holding as
select h.holder, h.token_start, a.address as token_address, h.token, h.baseline, h.since
from held_token h
join address a on a.id = h.token and substr(a.address, 1, 3) = h.token_start;

create view erc20_holder as
select token, since, holder from held_token;
