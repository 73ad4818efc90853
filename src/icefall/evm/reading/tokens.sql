-- Tokens of a chain, single NFTs and prices. A list is a walk along one index.

-- fragment: token
t.token, a.address, t.first_block, t.standards, t.kind, t.name, t.symbol, t.decimals,
    (select l.details from listed_token l where l.token_address = a.address);

-- Contracts that moved tokens, the newest first. Those of another standard are read too: the caller bounds the walk.
-- name: tokens
select {token}
from token t join address a on a.id = t.token
where (t.first_block, t.token) < (:block, :token) and t.standards <> 0
order by t.first_block desc, t.token desc limit :limit;

-- name: token_at
select {token}
from address a join token t on t.token = a.id
where a.address = :address and t.standards <> 0;

-- Two walks, by name and by symbol; a token found by both is there twice.
-- name: tokens_by_name
select {token}
from token t join address a on a.id = t.token
where t.name is not null and lower(t.name) >= :low and lower(t.name) < :high and t.standards <> 0
order by lower(t.name), t.token limit :limit;

-- postgres: tokens_by_name
select {token}
from token t join address a on a.id = t.token
where lower(t.name collate "C") >= :low and lower(t.name collate "C") < :high and t.standards <> 0
order by lower(t.name collate "C"), t.token limit :limit;

-- name: tokens_by_symbol
select {token}
from token t join address a on a.id = t.token
where t.symbol is not null and lower(t.symbol) >= :low and lower(t.symbol) < :high and t.standards <> 0
order by lower(t.symbol), t.token limit :limit;

-- postgres: tokens_by_symbol
select {token}
from token t join address a on a.id = t.token
where lower(t.symbol collate "C") >= :low and lower(t.symbol collate "C") < :high and t.standards <> 0
order by lower(t.symbol collate "C"), t.token limit :limit;

-- Tokens with the text anywhere in their name or symbol, once for each place where it occurs.
-- name: tokens_by_part
select {token}
from name_part p join token t on t.token = p.token join address a on a.id = t.token
where p.part >= :low and p.part < :high and t.standards <> 0
order by p.part, p.token limit :limit;

-- Addresses in a range, with what is known of them as contracts.
-- name: addresses_between
select a.address, t.standards, t.kind, t.name, t.symbol, t.decimals,
    (select l.details from listed_token l where l.token_address = a.address),
    coalesce((select c.has_code from code c where c.address = a.id order by c.block desc limit 1), 0) = 1
        or exists (select 1 from deployment d where d.address = a.id)
from address a left join token t on t.token = a.id
where a.address >= :low and a.address <= :high
order by a.address limit :limit;

-- name: nfts_of_contract
select n.token, n.token_id, exists (
    select 1 from nft_owner o where o.token = n.token and o.token_id = n.token_id) as has_owner
from nft n
where n.token = (select id from address where address = :address) and n.token_id > :after
order by n.token_id limit :limit;

-- name: nft
select n.token, n.token_id, exists (
    select 1 from nft_owner o where o.token = n.token and o.token_id = n.token_id) as has_owner
from nft n
where n.token = (select id from address where address = :address) and n.token_id = :token_id;

-- name: prices
select day, value from price
where token_address = :token_address and currency = :currency and day >= :first and day <= :last
order by day desc limit :limit;

-- A single contract. `has_code` is null for an address whose code was never read.
-- name: contract
select t.standards, t.kind, t.name, t.symbol, t.decimals,
    (select l.details from listed_token l where l.token_address = a.address),
    (select c.has_code from code c where c.address = a.id order by c.block desc limit 1)
from address a
left join token t on t.token = a.id
where a.address = :address;
