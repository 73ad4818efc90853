-- Holdings over time, for lists of addresses.

-- The owners of the NFTs of a token, in the order of its IDs and then of blocks.
-- name: owners
select o.token_id, o.block, o.owner, o.before from nft_owner o
where o.token = (select id from address where address = :address)
    and (o.token_id, o.block) > (:token_id, :block) order by o.token_id, o.block limit :limit;

-- All transfers of a token, in the order of the chain.
-- name: moves
select e.log_at, e.sender, e.recipient, e.token_id, e.last_id from erc721 e
where e.token = (select id from address where address = :address) and e.log_at > :after
order by e.log_at limit :limit;

-- Who had an amount of which ID of a token, former holders too. The token has one address, which is part of the key and
-- so of the order.
-- name: holdings_of_{by_id}
select h.since, h.holder, h.token_id, h.baseline from {by_id}_holding h
where h.token = (select id from address where address = :address)
    and (h.since, h.holder, h.token_id) > (:since, :holder, :token_id)
order by h.since, h.holder, h.token_address, h.token_id limit :limit;

-- The balances of an ID in the blocks up to the last one in question.
-- name: balances_of_{by_id}
select b.block, b.balance from {by_id}_balance b
where b.holder = :holder and b.token = (select id from address where address = :address)
    and b.token_id = :token_id and b.block > :after and b.block < :end order by b.block limit :limit;

-- name: has_ranges
select 1 from nft_range where token = (select id from address where address = :address) limit 1;

-- name: addresses
select id, address from address where id = ?;

-- postgres: addresses
select a.id, a.address from unnest(?) as k(id) join address a on a.id = k.id;
