-- What addresses hold, at any block: "from this block on" rows, the newest at or before it counts. The
-- balances of untrusted tokens are read from state instead.

-- One row: whether native balances are stored at all, and the balance if the store knows it.
-- name: native
select
    coalesce((select value from meta where name = 'has_diffs'), '1'),
    coalesce(
        (select newest.balance from (
            select block, balance from native_balance
            where address = (select id from address where address = :address) and block <= :block
            order by block desc limit 1) newest),
        (select oldest.before from (
            select block, before from native_balance
            where address = (select id from address where address = :address) order by block limit 1) oldest));

-- name: block_hash
select hash from block where number = :block;

-- name: tip
select number, hash from block where number >= 0 order by number desc limit 1;

-- The balances of a holding, in one part of their table, up to a block.
-- fragment: in_part
b.holder = h.holder and b.token = h.token and b.block <= :block;

-- The newest row is in the small part of the table, unless the large one has a newer row: to merge both parts for each
-- token costs more. What is known of the tokens is read by itself (erc20_candidates.py).
-- name: erc20
select h.token_address, h.token, coalesce(
    (select b.balance from erc20_balance_recent b
        where {in_part} and b.block > coalesce(
            (select b.block from erc20_balance_merged b where {in_part} order by b.block desc limit 1), -1)
        order by b.block desc limit 1),
    (select b.balance from erc20_balance_merged b where {in_part} order by b.block desc limit 1),
    h.baseline)
from erc20_holding h
where h.holder = (select id from address where address = :address) and h.token_address > :after
order by h.token_address limit :limit;

-- With what is known of the tokens. Found by the first bytes of the address, and then put in order.
-- postgres: erc20
select h.token_address, h.token, h.is_untrusted, coalesce(
    (select newest.balance from (
        select b.block, b.balance from erc20_balance b
        where b.holder = h.holder and b.token = h.token and b.block <= :block
        order by b.block desc limit 1) newest), h.baseline), p.reputation
from (
    select h.holder, h.token, a.address as token_address, h.baseline, t.is_untrusted
    from held_token h
    join address a on a.id = h.token
    left join token_trust t on t.token = h.token
    where h.holder = (select id from address where address = :address)
        and h.token_start >= substr(:after, 1, 3) and a.address > :after
        and coalesce(t.standards & 1 <> 0 or :block < t.standards_since or t.standards_since = 0, true)
    order by h.token_start
    fetch first :limit rows with ties) h
left join reputation p on p.token_address = h.token_address
order by h.token_address limit :limit;

-- What is known of tokens, whether they moved or not.
-- name: erc20_tokens
select a.id, t.is_untrusted, t.standards, t.standards_since, p.reputation
from address a
left join token_trust t on t.token = a.id
left join reputation p on p.token_address = a.address
where a.id in (select value from json_each(:tokens));

-- name: erc20_in
select h.token_address, h.token, t.is_untrusted, coalesce(
    (select newest.balance from (
        select b.block, b.balance from erc20_balance b
        where b.holder = h.holder and b.token = h.token and b.block <= :block
        order by b.block desc limit 1) newest), h.baseline), p.reputation
from erc20_holding h
left join token_trust t on t.token = h.token
left join reputation p on p.token_address = h.token_address
where h.holder = (select id from address where address = :address) and h.token_address = :token;

-- A contract that the address never received a token of; null where nothing is known.
-- name: never_held
select (select id from address where address = :token), (select reputation from reputation where token_address = :token),
    (select standards from token where token = (select id from address where address = :token));

-- A row if the contract moved tokens with IDs and nothing else: no ERC-20.
-- name: nfts_only
select 1 from token where token = (select id from address where address = :token) and standards <> 0 and standards & 1 = 0;

-- name: {by_id}
select h.token_address, h.token_id, h.token, t.is_untrusted, coalesce(
    (select b.balance from {by_id}_balance b
     where b.holder = h.holder and b.token = h.token and b.token_id = h.token_id and b.block <= :block
     order by b.block desc limit 1), h.baseline)
from {by_id}_holding h
left join token_trust t on t.token = h.token
where h.holder = (select id from address where address = :address)
    and (h.token_address, h.token_id) > (:token, :token_id) and h.token_address <= :last_token
    and coalesce(t.standards & {number} <> 0 or :block < t.standards_since or t.standards_since = 0, true)
order by h.token_address, h.token_id limit :limit;

-- name: nfts
select h.token_address, h.token_id, h.token, t.is_untrusted
from nft_held h
left join token_trust t on t.token = h.token
where h.owner = (select id from address where address = :address)
    and (h.token_address, h.token_id) > (:token, :token_id) and h.token_address <= :last_token
    and coalesce(t.standards & 2 <> 0 or t.standards_since = 0, true)
order by h.token_address, h.token_id limit :limit;

-- What audits found for an owner that no log names.
-- name: nfts_by_state
select h.token_address, h.token_id, h.token, t.is_untrusted
from nft_state_owner h
left join token_trust t on t.token = h.token
where h.owner = :address
    and (h.token_address, h.token_id) > (:token, :token_id) and h.token_address <= :last_token
    and coalesce(t.standards & 2 <> 0 or t.standards_since = 0, true)
order by h.token_address, h.token_id limit :limit;

-- Of each (token address, token ID).
-- name: nft_owner
select k.address, o.token_id, a.address, t.is_untrusted
from address k
join nft_owner o on o.token = k.id
join address a on a.id = o.owner
left join token_trust t on t.token = o.token
where k.address = ? and o.token_id = ?
order by o.block desc limit 1;

-- postgres: nft_owner
select distinct on (k.address, k.token_id) k.address, k.token_id, a.address, t.is_untrusted
from unnest(?, ?) as k(address, token_id)
join address i on i.address = k.address
join nft_owner o on o.token = i.id and o.token_id = k.token_id
join address a on a.id = o.owner
left join token_trust t on t.token = o.token
order by k.address, k.token_id, o.block desc;

-- How balances changed. A list is a walk along the key of its table.

-- name: native_changes
select n.block, b.time, n.balance from native_balance n join block b on b.number = n.block
where n.address = (select id from address where address = :address) and n.block >= :low and n.block < :high
order by n.block desc limit :limit;

-- name: erc20_changes
select n.block, b.time, n.balance from erc20_balance n join block b on b.number = n.block
where n.holder = (select id from address where address = :address)
    and n.token = (select id from address where address = :token) and n.block >= :low and n.block < :high
order by n.block desc limit :limit;

-- name: is_holder
select t.token is null or t.is_untrusted from erc20_holding h left join token_trust t on t.token = h.token
where h.holder = (select id from address where address = :address) and h.token_address = :token;

-- Periods of the metrics: the first and the last one with a block.
-- name: periods
select (select min(period) from rollup where span = :span), (select max(period) from rollup where span = :span);

-- name: last_block_of_period
select last_block from rollup where span = :span and period <= :period order by period desc limit 1;
