-- Lists of an address and of a token are found by groups of four blocks, half as long as a position; rows of the same group
-- share an entry. A query sorts the rows of its page by itself. No index says any more which transfers touch an address: they are among its transfers.
-- Indexes are made anew, so the server needs room for both forms of the largest. An interrupted migration leaves the
-- store as it was and begins again.

drop view native_of, erc20_of, erc20_in, touch_of;
drop index tx_from;
drop index tx_to;
drop index erc20_from;
drop index erc20_to;
drop index erc20_by_token;
drop index erc20_touch_from;
drop index erc20_touch_to;
alter table touch_rest rename to touch_rest_before;
alter index touch_rest_pkey rename to touch_rest_before_pkey;
create table touch_rest (
    address int4 not null,
    block_group int4 not null,
    tx_at bigint not null,
    primary key (address, block_group, tx_at)
);

insert into touch_rest (address, block_group, tx_at)
select address, cast(tx_at >> 26 as integer), tx_at from touch_rest_before order by address, tx_at;
drop table touch_rest_before;
create index tx_from on tx (sender, (cast(+tx_at >> 26 as integer)));
create index tx_to on tx (recipient, (cast(+tx_at >> 26 as integer))) where recipient <> sender;
create index erc20_from on erc20 ((+sender), (cast(+log_at >> 26 as integer)));
create index erc20_to on erc20 ((+recipient), (cast(+log_at >> 26 as integer))) where recipient <> sender;
create index erc20_by_token on erc20 ((+token), (cast(+log_at >> 26 as integer)));

create view native_of as
select address, block_group, tx_at from (
    select sender as address, cast(+tx_at >> 26 as integer) as block_group, +tx_at as tx_at, true as is_new from tx
    union all
    select recipient, cast(+tx_at >> 26 as integer), +tx_at, recipient <> sender from tx) as parties
where is_new;

create view erc20_of as
select address, block_group, log_at, tx_index from (
    select +sender as address, cast(+log_at >> 26 as integer) as block_group, +log_at as log_at, tx_index, true as is_new
    from erc20
    union all
    select +recipient, cast(+log_at >> 26 as integer), +log_at, tx_index, recipient <> sender from erc20) as parties
where is_new;

create view erc20_in as
select +token as token, cast(+log_at >> 26 as integer) as block_group, +log_at >> 24 as block,
    min(log_at & 16777215) as first_log, max(log_at & 16777215) as last_log
from erc20 group by +token, cast(+log_at >> 26 as integer), +log_at >> 24;

create view touch_of as
select address, block_group, tx_at from (
    select +sender as address, cast(+log_at >> 26 as integer) as block_group, +log_at & -16777216 | tx_index as tx_at,
        touches & 1 <> 0 as is_touch
    from erc20
    union all
    select +recipient, cast(+log_at >> 26 as integer), +log_at & -16777216 | tx_index,
        touches & 2 <> 0 and recipient <> sender
    from erc20
    union all
    select address, block_group, tx_at, true from touch_rest) as touched
where is_touch;
