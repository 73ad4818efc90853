-- A transfer takes a fifth less room. What a row of `tx`, `block` and `activity` holds is packed more tightly from here on;
-- rows that are stored stay as they are, and both forms are read (amounts.py, call_data.py, tx_kind.py, journal.py,
-- metrics/activity.py).

-- In which blocks a token moved, and its first and last log there: its transfers are those of the token between them.
-- An index by token had an entry for every transfer; it is read once more. Serves: transfers of a token.
create table erc20_in_blocks (
    token integer not null,
    block integer not null,
    first_log integer not null, -- index in the block
    last_log integer not null,
    primary key (token, block)
) without rowid;
insert into erc20_in_blocks (token, block, first_log, last_log)
select token, log_at >> 24, log_at & 16777215, log_at & 16777215 from erc20
where true order by token, log_at -- as in the index: `group by` would sort all transfers in a temporary file
on conflict (token, block) do update set last_log = excluded.last_log;
drop index erc20_in;
alter table erc20_in_blocks rename to erc20_in;

-- In which block a transaction is, by the first four bytes of its hash. Serves: a transaction by its hash.
drop view tx_by_hash; -- with its triggers
alter table tx_by_hash_recent rename to tx_by_hash_recent_before;
alter table tx_by_hash_merged rename to tx_by_hash_merged_before;
create table tx_by_hash_merged (
    prefix blob not null,
    block integer not null,
    primary key (prefix, block)
) without rowid;
insert or ignore into tx_by_hash_merged (prefix, block)
select substr(prefix, 1, 4), tx_at >> 24 from tx_by_hash_merged_before order by prefix, tx_at;
insert or ignore into tx_by_hash_merged (prefix, block)
select substr(prefix, 1, 4), tx_at >> 24 from tx_by_hash_recent_before order by prefix, tx_at;
drop table tx_by_hash_merged_before;
drop table tx_by_hash_recent_before;
create table tx_by_hash_recent (
    prefix blob not null,
    block integer not null,
    primary key (prefix, block)
) without rowid;
create view tx_by_hash as
select prefix, block from tx_by_hash_recent
union all
select prefix, block from tx_by_hash_merged;
create trigger tx_by_hash_insert instead of insert on tx_by_hash begin
    insert into tx_by_hash_merged (prefix, block) values (new.prefix, new.block);
end;
create trigger tx_by_hash_delete instead of delete on tx_by_hash begin
    delete from tx_by_hash_recent where prefix = old.prefix and block = old.block;
    delete from tx_by_hash_merged where prefix = old.prefix and block = old.block;
end;

-- A transaction whole, with its first ERC-20 transfer where its call data repeats that (call_data.py says how it begins
-- then). Serves: a transaction by its hash, and by its position.
create view full_tx_view as
select v.tx_at, v.block_hash, v.time, v.hash, v.sender_address, v.recipient_address, v.amounts, v.kind, v.selector,
    v.sender, v.recipient, t.input, b.base_fee, s.address as transfer_sender, r.address as transfer_recipient,
    e.value as transfer_value
from tx t
join tx_view v on v.tx_at = t.tx_at
join block b on b.number = t.tx_at >> 24
left join erc20 e on e.log_at = case when substr(t.input, 1, 2) = x'0000' then (
    select min(log_at) from erc20
    where log_at between t.tx_at & -16777216 and t.tx_at | 16777215 and tx_index = t.tx_at & 16777215) end
left join address s on s.id = e.sender
left join address r on r.id = e.recipient;
