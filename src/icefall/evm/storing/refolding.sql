-- Balances of ERC-20 tokens of blocks that were stored before the token's layout was known (refolding.py).

-- Tokens with a layout that is newer than their first transfer, and where they were deployed. One that was deployed twice
-- is left out: its storage may have been cleared, which no diff shows.
-- name: old_tokens
select t.token, a.address, t.first_block, t.layout_since, t.layout,
    (select min(d.tx_at) from deployment d where d.address = t.token)
from token t join address a on a.id = t.token
where t.layout_since > 0 and t.layout_since > t.first_block and t.layout_since <= :newest and t.layout_standard = 1
    and t.standards = 1 and t.standards_since = 0
    and (select count(*) from deployment d where d.address = t.token) <= 1
order by t.token;

-- Tokens of which it was never asked where they store their balances.
-- name: unasked_tokens
select t.token, a.address from token t join address a on a.id = t.token
where t.layout is null and t.standards = 1 and t.token > :after order by t.token limit :limit;

-- name: first_block
select first_block from token where token = :token;

-- name: newest_balance
select coalesce(
    (select balance from (
        select block, balance from erc20_balance b where b.holder = :holder and b.token = :token
        order by block desc limit 1) newest),
    (select baseline from erc20_holding h where h.holder = :holder and h.token_address = :address));

-- name: busy_blocks
select number, hash from block where number >= :first and number < :end and tx_count > 0 order by number;

-- name: parties
select distinct token, sender, recipient from erc20 where log_at >= :low and log_at < :high;

-- name: holders_after
select h.since, h.holder, a.address from erc20_holder h join address a on a.id = h.holder
where h.token = :token and (h.since, h.holder) > (:since, :holder) order by h.since, h.holder limit :limit;

-- name: newest_holders
select h.holder, a.address from erc20_holder h join address a on a.id = h.holder
where h.token = :token order by h.since desc, h.holder desc limit :limit;

-- The balances of each (holder, token) in blocks from a first to before an end.
-- name: balances_between
select b.holder, b.token, b.block, b.balance from erc20_balance b
where b.holder = ? and b.token = ? and b.block >= ? and b.block < ?;

-- postgres: balances_between
select b.holder, b.token, b.block, b.balance from unnest(?, ?, ?, ?) as k(holder, token, first, past)
join lateral (
    select b.holder, b.token, b.block, b.balance from erc20_balance b
    where b.holder = k.holder and b.token = k.token and b.block >= k.first and b.block < k.past) b on true;

-- The newest balance of each (holder, token, token address) before a block, and the one before the first row.
-- name: balance_before
select k.holder, k.token,
    (select balance from (
        select block, balance from erc20_balance b
        where b.holder = k.holder and b.token = k.token and b.block < k.block order by block desc limit 1) newest),
    (select baseline from erc20_holding h where h.holder = k.holder and h.token_address = k.address)
from (select ? as holder, ? as token, ? as address, ? as block) k;

-- postgres: balance_before
select k.holder, k.token,
    (select balance from erc20_balance b where b.holder = k.holder and b.token = k.token and b.block < k.block
        order by block desc limit 1),
    (select baseline from erc20_holding h where h.holder = k.holder and h.token_address = k.address)
from unnest(?, ?, ?, ?) as k(holder, token, address, block);

-- name: drop_balance_at
delete from erc20_balance where holder = :holder and token = :token and block = :low >> 24 and :high > :low;

-- postgres: drop_balance_at
update erc20 set sender_balance = case when sender = :holder then null else sender_balance end,
    recipient_balance = case when recipient = :holder then null else recipient_balance end
where log_at >= :low and log_at < :high and +token = :token and (+sender = :holder or +recipient = :holder);

-- name: drop_slot_change_at
delete from slot_change where block = ? and token = ? and holder = ? and token_id = ?;

-- name: restate_baseline
update erc20_holding_recent set baseline = ? where holder = ? and token_address = ?;

-- postgres: restate_baseline
update held_token h set baseline = k.baseline
from (select ?::bytea as baseline, ?::bigint as holder, ?::bytea as address) k
join address a on a.address = k.address
where h.holder = k.holder and h.token_start = substr(k.address, 1, 3) and +h.token = a.id;

-- name: restate_merged_baseline
update erc20_holding_merged set baseline = ? where holder = ? and token_address = ?;

-- postgres: restate_merged_baseline

-- name: finish_token
update token set layout = :layout, layout_since = first_block, untrusted_since = null, differed_at = null
where token = :token;

-- name: put_unclaimed_word
insert into unclaimed_slot (token, key, block, word) values (?, ?, ?, ?) on conflict do nothing;

-- name: put_meta
insert into meta (name, value) values (:name, :value) on conflict (name) do update set value = excluded.value;
