-- Transfers, internal transactions and deployments. A list is a walk along one index, joined by key.

-- name: erc20_of
select e.log_at, e.tx_index, b.hash, b.time, t.hash, k.address, s.address, r.address, e.value,
    e.token, e.sender, e.recipient
from erc20_of o
join erc20 e on e.log_at = o.log_at
join tx t on t.tx_at = (e.log_at & ~0xffffff) | e.tx_index
join block b on b.number = e.log_at >> 24
join address k on k.id = e.token
join address s on s.id = e.sender
join address r on r.id = e.recipient
where o.address = (select id from address where address = :address) and o.log_at >= :low and o.log_at < :high
order by o.log_at desc limit :limit;

-- name: erc20_of_page
select e.log_at, e.tx_index, b.hash, b.time, t.hash, k.address, s.address, r.address, e.value,
    e.token, e.sender, e.recipient
from erc20_of o
join erc20 e on e.log_at = o.log_at
join tx t on t.tx_at = (e.log_at & ~0xffffff) | e.tx_index
join block b on b.number = e.log_at >> 24
join address k on k.id = e.token
join address s on s.id = e.sender
join address r on r.id = e.recipient
where o.address = (select id from address where address = :address) and o.log_at >= :low and o.log_at < :high
order by o.log_at limit :limit;

-- Of one transaction: the logs of its block are looked through.
-- name: erc20_of_tx
select e.log_at, e.tx_index, b.hash, b.time, t.hash, k.address, s.address, r.address, e.value,
    e.token, e.sender, e.recipient
from erc20 e
join tx t on t.tx_at = (e.log_at & ~0xffffff) | e.tx_index
join block b on b.number = e.log_at >> 24
join address k on k.id = e.token
join address s on s.id = e.sender
join address r on r.id = e.recipient
where e.log_at >= :low and e.log_at < :high and e.tx_index = :tx_index
order by e.log_at;

-- name: erc721_of
select e.log_at, e.tx_index, b.hash, b.time, t.hash, k.address, s.address, r.address, e.token_id,
    e.token, e.sender, e.recipient
from erc721_of o
join erc721 e on e.log_at = o.log_at
join tx t on t.tx_at = (e.log_at & ~0xffffff) | e.tx_index
join block b on b.number = e.log_at >> 24
join address k on k.id = e.token
join address s on s.id = e.sender
join address r on r.id = e.recipient
where o.address = (select id from address where address = :address) and o.log_at >= :low and o.log_at < :high
order by o.log_at desc limit :limit;

-- name: erc721_of_page
select e.log_at, e.tx_index, b.hash, b.time, t.hash, k.address, s.address, r.address, e.token_id,
    e.token, e.sender, e.recipient
from erc721_of o
join erc721 e on e.log_at = o.log_at
join tx t on t.tx_at = (e.log_at & ~0xffffff) | e.tx_index
join block b on b.number = e.log_at >> 24
join address k on k.id = e.token
join address s on s.id = e.sender
join address r on r.id = e.recipient
where o.address = (select id from address where address = :address) and o.log_at >= :low and o.log_at < :high
order by o.log_at limit :limit;

-- Of one transaction: the logs of its block are looked through.
-- name: erc721_of_tx
select e.log_at, e.tx_index, b.hash, b.time, t.hash, k.address, s.address, r.address, e.token_id,
    e.token, e.sender, e.recipient
from erc721 e
join tx t on t.tx_at = (e.log_at & ~0xffffff) | e.tx_index
join block b on b.number = e.log_at >> 24
join address k on k.id = e.token
join address s on s.id = e.sender
join address r on r.id = e.recipient
where e.log_at >= :low and e.log_at < :high and e.tx_index = :tx_index
order by e.log_at;

-- name: erc1155_of
select e.log_at, e.position, e.tx_index, b.hash, b.time, t.hash, k.address, s.address, r.address, e.token_id, e.value,
    e.token, e.sender, e.recipient
from erc1155_of o
join erc1155 e on e.log_at = o.log_at
join tx t on t.tx_at = (e.log_at & ~0xffffff) | e.tx_index
join block b on b.number = e.log_at >> 24
join address k on k.id = e.token
join address s on s.id = e.sender
join address r on r.id = e.recipient
where o.address = (select id from address where address = :address) and o.log_at >= :low and o.log_at < :high
order by o.log_at desc, e.position desc limit :limit;

-- The rest of a batch that a page ended in.
-- name: erc1155_rest
select e.log_at, e.position, e.tx_index, b.hash, b.time, t.hash, k.address, s.address, r.address, e.token_id, e.value,
    e.token, e.sender, e.recipient
from erc1155_of o
join erc1155 e on e.log_at = o.log_at
join tx t on t.tx_at = (e.log_at & ~0xffffff) | e.tx_index
join block b on b.number = e.log_at >> 24
join address k on k.id = e.token
join address s on s.id = e.sender
join address r on r.id = e.recipient
where o.address = (select id from address where address = :address) and o.log_at = :high and e.position < :inside
order by e.position desc limit :limit;

-- name: erc1155_of_page
select e.log_at, e.position, e.tx_index, b.hash, b.time, t.hash, k.address, s.address, r.address, e.token_id, e.value,
    e.token, e.sender, e.recipient
from erc1155_of o
join erc1155 e on e.log_at = o.log_at
join tx t on t.tx_at = (e.log_at & ~0xffffff) | e.tx_index
join block b on b.number = e.log_at >> 24
join address k on k.id = e.token
join address s on s.id = e.sender
join address r on r.id = e.recipient
where o.address = (select id from address where address = :address) and o.log_at >= :low and o.log_at < :high
order by o.log_at, e.position limit :limit;

-- Of one transaction: the logs of its block are looked through.
-- name: erc1155_of_tx
select e.log_at, e.position, e.tx_index, b.hash, b.time, t.hash, k.address, s.address, r.address, e.token_id, e.value,
    e.token, e.sender, e.recipient
from erc1155 e
join tx t on t.tx_at = (e.log_at & ~0xffffff) | e.tx_index
join block b on b.number = e.log_at >> 24
join address k on k.id = e.token
join address s on s.id = e.sender
join address r on r.id = e.recipient
where e.log_at >= :low and e.log_at < :high and e.tx_index = :tx_index
order by e.log_at, e.position;

-- Three lists that never share a log, merged. 1, 2 and 4: the standard, as in token.standards.
-- name: in_token
select e.log_at, 0, 1, e.tx_index, b.hash, b.time, t.hash, k.address, s.address, r.address,
    e.value, null, e.token, e.sender, e.recipient
from erc20 e
join tx t on t.tx_at = (e.log_at & ~0xffffff) | e.tx_index
join block b on b.number = e.log_at >> 24
join address k on k.id = e.token
join address s on s.id = e.sender
join address r on r.id = e.recipient
where e.token = (select id from address where address = :address) and e.log_at >= :low and e.log_at < :high
union all
select e.log_at, 0, 2, e.tx_index, b.hash, b.time, t.hash, k.address, s.address, r.address,
    e.token_id, null, e.token, e.sender, e.recipient
from erc721 e
join tx t on t.tx_at = (e.log_at & ~0xffffff) | e.tx_index
join block b on b.number = e.log_at >> 24
join address k on k.id = e.token
join address s on s.id = e.sender
join address r on r.id = e.recipient
where e.token = (select id from address where address = :address) and e.log_at >= :low and e.log_at < :high
union all
select e.log_at, e.position, 4, e.tx_index, b.hash, b.time, t.hash, k.address, s.address, r.address,
    e.token_id, e.value, e.token, e.sender, e.recipient
from erc1155 e
join tx t on t.tx_at = (e.log_at & ~0xffffff) | e.tx_index
join block b on b.number = e.log_at >> 24
join address k on k.id = e.token
join address s on s.id = e.sender
join address r on r.id = e.recipient
where e.token = (select id from address where address = :address) and e.log_at >= :low
    and (e.log_at, e.position) < (:high, :inside)
order by 1 desc, 2 desc limit :limit;

-- name: internals_of
select i.tx_at, i.frame, b.hash, b.time, t.hash, i.kind, s.address, r.address, i.value, i.gas_limit, i.gas_used,
    i.is_reverted, i.sender, i.recipient
from internal_of o
join internal i on i.tx_at = o.tx_at and i.frame = o.frame
join tx t on t.tx_at = i.tx_at
join block b on b.number = i.tx_at >> 24
join address s on s.id = i.sender
left join address r on r.id = i.recipient
where o.address = (select id from address where address = :address) and o.tx_at >= :low
    and (o.tx_at, o.frame) < (:high, :inside)
order by o.tx_at desc, o.frame desc limit :limit;

-- name: internals_of_page
select i.tx_at, i.frame, b.hash, b.time, t.hash, i.kind, s.address, r.address, i.value, i.gas_limit, i.gas_used,
    i.is_reverted, i.sender, i.recipient
from internal_of o
join internal i on i.tx_at = o.tx_at and i.frame = o.frame
join tx t on t.tx_at = i.tx_at
join block b on b.number = i.tx_at >> 24
join address s on s.id = i.sender
left join address r on r.id = i.recipient
where o.address = (select id from address where address = :address) and o.tx_at >= :first_tx and o.tx_at <= :last_tx
order by o.tx_at, o.frame limit :limit;

-- name: internals_of_tx
select i.tx_at, i.frame, b.hash, b.time, t.hash, i.kind, s.address, r.address, i.value, i.gas_limit, i.gas_used,
    i.is_reverted, i.sender, i.recipient
from internal i
join tx t on t.tx_at = i.tx_at
join block b on b.number = i.tx_at >> 24
join address s on s.id = i.sender
left join address r on r.id = i.recipient
where i.tx_at = :tx_at
order by i.frame;

-- name: deployment
select a.address, d.tx_at, d.frame, c.address, t.hash, s.address
from address a
join deployment d on d.address = a.id
join tx t on t.tx_at = d.tx_at
join address c on c.id = d.creator
join address s on s.id = t.sender
where a.address = :address
order by d.tx_at desc, d.frame desc limit 1;

-- name: deployed_by
select a.address, d.tx_at, d.frame, c.address, t.hash, s.address
from deployed_by o
join deployment d on d.tx_at = o.tx_at and d.frame = o.frame
join address a on a.id = d.address
join tx t on t.tx_at = d.tx_at
join address c on c.id = d.creator
join address s on s.id = t.sender
where o.address = (select id from address where address = :address) and o.tx_at >= :low
    and (o.tx_at, o.frame) < (:high, :inside)
order by o.tx_at desc, o.frame desc limit :limit;

-- name: message
select message_id, peer_blockchain_id, is_source from message where tx_at = :tx_at;
