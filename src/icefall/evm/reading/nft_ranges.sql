-- Ranges of NFTs that one log moved (ERC-2309). An ID with a row in `nft_owner` is not its range's any more.

-- The range that begins last at or before an ID: of a trusted token no other can have it.
-- name: range_of_nft
select r.token, r.last_id, a.address, t.is_untrusted
from nft_range r
join address a on a.id = r.owner
left join token_trust t on t.token = r.token
where r.token = (select id from address where address = :token) and r.first_id <= :token_id
order by r.first_id desc limit 1;

-- Ranges of an untrusted token may overlap: any of them that begins earlier may have it.
-- name: any_range_of_nft
select 1 from nft_range
where token = (select id from address where address = :token) and first_id <= :token_id and last_id >= :token_id limit 1;

-- The ranges that an address was given, from the one on that reaches beyond an ID of a token.
-- name: ranges_of_owner
select r.token_address, r.first_id, r.last_id, r.token, t.is_untrusted
from nft_range r
left join token_trust t on t.token = r.token
where r.owner = (select id from address where address = :address)
    and (r.token_address, r.last_id) > (:token, :token_id) and r.token_address <= :last_token
    and coalesce(t.standards & 2 <> 0 or t.standards_since = 0, true)
order by r.token_address, r.last_id limit :limit;

-- name: ranges_of_contract
select r.token, r.first_id, r.last_id
from nft_range r
where r.token = (select id from address where address = :address) and r.first_id >= coalesce((
    select b.first_id from nft_range b
    where b.token = (select id from address where address = :address) and b.first_id <= :after
    order by b.first_id desc limit 1), x'')
order by r.first_id limit :limit;

-- postgres: ranges_of_contract
select r.token, r.first_id, r.last_id
from nft_range r
where r.token = (select id from address where address = :address) and r.first_id >= coalesce((
    select b.first_id from nft_range b
    where b.token = (select id from address where address = :address) and b.first_id <= :after
    order by b.first_id desc limit 1), ''::bytea)
order by r.first_id limit :limit;

-- Those of (token, ID) that have an owner of their own.
-- name: own_owner
select token, token_id from nft_owner where token = ? and token_id = ? limit 1;

-- postgres: own_owner
select distinct o.token, o.token_id from unnest(?, ?) as k(token, token_id)
join nft_owner o on o.token = k.token and o.token_id = k.token_id;
