-- Tokens in an order, and their totals. Each list is a walk along one index.

-- fragment: token
t.token, a.address, t.first_block, t.standards, t.kind, t.name, t.symbol, t.decimals,
    (select l.details from listed_token l where l.token_address = a.address);

-- The totals of a token, one row for each of its standards.
-- name: totals
select token, standard, holders, tokens, transfers, supply from holder_total where token = ?;

-- postgres: totals
select h.token, h.standard, h.holders, h.tokens, h.transfers, h.supply
from unnest(?) as k(token) join holder_total h on h.token = k.token;

-- name: by_holders
select h.holders, h.standard, {token}
from holder_total h join token t on t.token = h.token join address a on a.id = t.token
where (h.holders, h.token, h.standard) < (:count, :token, :standard)
order by h.holders desc, h.token desc, h.standard desc limit :limit;

-- name: by_transfers
select h.transfers, h.standard, {token}
from holder_total h join token t on t.token = h.token join address a on a.id = t.token
where (h.transfers, h.token, h.standard) < (:count, :token, :standard)
order by h.transfers desc, h.token desc, h.standard desc limit :limit;

-- The tokens behind one of them, in the order of names: first those of the same name, then those of later ones.
-- name: with_same_name
select {token}
from token t join address a on a.id = t.token
where t.name is not null and lower(t.name) = (select lower(b.name) from token b where b.token = :token)
    and t.token > :token and t.standards <> 0
order by t.token limit :limit;

-- postgres: with_same_name
select {token}
from token t join address a on a.id = t.token
where t.name is not null and lower(t.name collate "C") = (
        select lower(b.name collate "C") from token b where b.token = :token)
    and t.token > :token and t.standards <> 0
order by t.token limit :limit;

-- name: with_later_name
select {token}
from token t join address a on a.id = t.token
where t.name is not null and lower(t.name) > coalesce((select lower(b.name) from token b where b.token = :token), '')
    and t.standards <> 0
order by lower(t.name), t.token limit :limit;

-- postgres: with_later_name
select {token}
from token t join address a on a.id = t.token
where t.name is not null and lower(t.name collate "C") > coalesce((
        select lower(b.name collate "C") from token b where b.token = :token), '')
    and t.standards <> 0
order by lower(t.name collate "C"), t.token limit :limit;

-- Tokens with a price now, and how much there is of each.
-- name: priced
select p.value, (select h.supply from holder_total h where h.token = t.token and h.standard = 1), {token}
from price p join address a on a.address = p.token_address join token t on t.token = a.id
where p.currency = :currency and p.day = -1
order by p.token_address limit :limit;

-- A token of the operator's list that has the name, which is in lower case. The oldest of that name are looked at.
-- name: listed_with_name
select lower(oldest.name), a.address
from (select t.token, t.name from token t where t.name is not null and lower(t.name) = ?
    order by t.token limit 1000) oldest
join address a on a.id = oldest.token join listed_token l on l.token_address = a.address
limit 1;

-- postgres: listed_with_name
select k.name, (
    select a.address
    from (select t.token from token t where t.name is not null and lower(t.name collate "C") = k.name
        order by t.token limit 1000) oldest
    join address a on a.id = oldest.token join listed_token l on l.token_address = a.address
    limit 1)
from unnest(?::text[]) as k(name);
