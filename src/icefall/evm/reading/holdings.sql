-- Holdings over time, for lists of addresses.

-- The owners of the NFTs of a token, in the order of its IDs and then of blocks.
-- name: owners
select o.token_id, o.block, o.owner, o.before from nft_owner o
where o.token = (select id from address where address = :address)
    and (o.token_id, o.block) > (:token_id, :block) order by o.token_id, o.block limit :limit;

-- name: has_ranges
select 1 from nft_range where token = (select id from address where address = :address) limit 1;

-- name: addresses
select id, address from address where id = ?;

-- postgres: addresses
select a.id, a.address from unnest(?) as k(id) join address a on a.id = k.id;
