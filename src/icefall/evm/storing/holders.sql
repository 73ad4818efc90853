-- Who holds a token, counted from its transfers. The zero address is no holder.

-- name: meta
select value from meta where name = :name;

-- name: put_meta
insert into meta (name, value) values (:name, :value) on conflict (name) do update set value = excluded.value;

-- name: tip
select number from block order by number desc limit 1;

-- name: zero_address
select id from address where address = x'0000000000000000000000000000000000000000';

-- The first transfer of a standard that so many others come before, counted from a position.
-- name: move_after_{standard}
select log_at from {standard} where log_at >= :low order by log_at limit 1 offset :moves;

-- The pairs that transfers of a range name: standard, token, holder.
-- name: moved_{standard}
select {number}, token, sender from {standard} where log_at >= :low and log_at < :high
union select {number}, token, recipient from {standard} where log_at >= :low and log_at < :high;

-- The pairs whose balance storage changed without a log.
-- name: changed_slots
select coalesce(t.layout_standard, 1), s.token, s.holder from slot_change s left join token t on t.token = s.token
where s.block >= :low >> 24 and s.block < :high >> 24;

-- The owners that the NFTs of such transfers had before the range, or null: a transfer may name another sender.
-- name: owners_before
select 2, e.token, (
    select o.owner from nft_owner o where o.token = e.token and o.token_id = e.token_id and o.block < :low >> 24
    order by o.block desc limit 1)
from erc721 e where e.log_at >= :low and e.log_at < :high;

-- How many IDs of each token moved for the first time in a range.
-- name: new_ids_of_{by_id}
select e.token, count(distinct e.token_id) from {by_id} e
join nft n on n.token = e.token and n.token_id = e.token_id
where e.log_at >= :low and e.log_at < :high and n.first_block >= :low_block and n.first_block < :high_block
group by e.token;

-- How many transfers each token had in a range.
-- name: transfers_of_{standard}
select token, count(*) from {standard} where log_at >= :low and log_at < :high group by token;

-- The balance of each (token, holder); null for one that logs only name, without a transfer.
-- name: erc20_held
select k.token, k.holder, (
    select coalesce((select newest.balance from (
            select b.block, b.balance from erc20_balance b where b.holder = h.holder and b.token = h.token
            order by b.block desc limit 1) newest), nullif(h.baseline, x'00'))
    from erc20_holding h where h.holder = k.holder and h.token_address = (select address from address where id = k.token))
from (select ? as token, ? as holder) k;

-- postgres: erc20_held
select k.token, k.holder, (
    select coalesce((select b.balance from erc20_balance b where b.holder = h.holder and b.token = h.token
        order by b.block desc limit 1), nullif(h.baseline, x'00'))
    from erc20_holding h where h.holder = k.holder and h.token_address = (select address from address where id = k.token))
from unnest(?, ?) as k(token, holder);

-- How many NFTs each (token, holder) has.
-- name: erc721_held
select k.token, k.holder, (
    select count(*) from nft_held
    where owner = k.holder and token_address = (select address from address where id = k.token))
from (select ? as token, ? as holder) k;

-- postgres: erc721_held
select k.token, k.holder, (
    select count(*) from nft_held
    where owner = k.holder and token_address = (select address from address where id = k.token))
from unnest(?, ?) as k(token, holder);

-- The ranges of NFTs that each (token, holder) was given, and how many IDs of each have an owner of their own since.
-- name: ranges_held
select token, owner, first_id, last_id, moved from nft_range
where token_address = (select address from address where id = ?) and owner = ?;

-- postgres: ranges_held
select r.token, r.owner, r.first_id, r.last_id, r.moved
from unnest(?, ?) as k(token, holder)
join address a on a.id = k.token
join nft_range r on r.owner = k.holder and r.token_address = a.address;

-- How many IDs each (token, holder) has some of.
-- name: {by_id}_held
select k.token, k.holder, (
    select count(*) from {by_id}_holding h
    where h.holder = k.holder and h.token_address = (select address from address where id = k.token)
        and coalesce((select b.balance from {by_id}_balance b where b.holder = h.holder and b.token = h.token
            and b.token_id = h.token_id order by b.block desc limit 1), h.baseline) <> x'00')
from (select ? as token, ? as holder) k;

-- postgres: {by_id}_held
select k.token, k.holder, (
    select count(*) from {by_id}_holding h
    where h.holder = k.holder and h.token_address = (select address from address where id = k.token)
        and coalesce((select b.balance from {by_id}_balance b where b.holder = h.holder and b.token = h.token
            and b.token_id = h.token_id order by b.block desc limit 1), h.baseline) <> x'00')
from unnest(?, ?) as k(token, holder);

-- The rows that there are for each (standard, token, holder).
-- name: holder
select standard, token, holder, balance from holder where standard = ? and token = ? and holder = ?;

-- The row of this holder, or of the next one: in this form only the key gives the order. While a table is new, the
-- server takes the index by balance for as good, and would walk through all holders of the token.
-- postgres: holder
select k.standard, k.token, k.holder, (
    select case when n.holder = k.holder then n.balance end from (
        select h.holder, h.balance from holder h
        where h.token = k.token and h.standard = k.standard and h.holder >= k.holder order by h.holder limit 1) n)
from unnest(?, ?, ?) as k(standard, token, holder);

-- name: put_holder
insert into holder (standard, token, holder, balance) values (?, ?, ?, ?)
on conflict (token, standard, holder) do update set balance = excluded.balance;

-- postgres: put_holder
insert into holder (standard, token, holder, balance)
select * from unnest(?::bigint[], ?::bigint[], ?::bigint[], ?::bytea[])
on conflict (token, standard, holder) do update set balance = excluded.balance;

-- name: drop_holder
delete from holder where standard = ? and token = ? and holder = ?;

-- name: supply
select token, standard, supply from holder_total where token = ? and standard = ?;

-- postgres: supply
select k.token, k.standard, (select t.supply from holder_total t where t.token = k.token and t.standard = k.standard)
from unnest(?, ?) as k(token, standard);

-- name: add_total
insert into holder_total (token, standard, holders, tokens, transfers, supply) values (?, ?, ?, ?, ?, ?)
on conflict (token, standard) do update set holders = holder_total.holders + excluded.holders,
    tokens = holder_total.tokens + excluded.tokens, transfers = holder_total.transfers + excluded.transfers,
    supply = excluded.supply;

-- name: drop_empty_total
delete from holder_total where token = ? and standard = ? and holders = 0 and tokens = 0 and transfers = 0;
