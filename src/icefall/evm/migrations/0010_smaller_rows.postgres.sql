-- As in 0010_smaller_rows.sqlite.sql, which says what a row means.

create table erc20_in_blocks (
    token bigint not null,
    block bigint not null,
    first_log bigint not null,
    last_log bigint not null,
    primary key (token, block)
);
insert into erc20_in_blocks (token, block, first_log, last_log)
select token, log_at >> 24, min(log_at & 16777215), max(log_at & 16777215) from erc20
group by token, log_at >> 24 order by token, log_at >> 24;
drop index erc20_in;
alter table erc20_in_blocks rename to erc20_in;
alter index erc20_in_blocks_pkey rename to erc20_in_pkey;

alter table tx_by_hash rename to tx_by_hash_before;
alter index tx_by_hash_pkey rename to tx_by_hash_before_pkey;
create table tx_by_hash (
    prefix bytea not null,
    block bigint not null,
    primary key (prefix, block)
);
insert into tx_by_hash (prefix, block)
select distinct substr(prefix, 1, 4), tx_at >> 24 from tx_by_hash_before order by 1, 2;
drop table tx_by_hash_before;

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
