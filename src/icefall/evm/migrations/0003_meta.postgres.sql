-- The views of 0003_meta.sqlite.sql. Its new names are those of 0001 here.

-- Rows as the API returns them: addresses instead of their IDs, with the block and transaction they belong to. Each is a
-- walk along the keys of its table; lists join them to the index they walk.
create view tx_view as
select t.tx_at, b.hash as block_hash, b.time, t.hash, s.address as sender_address, r.address as recipient_address,
    t.value, t.nonce, t.gas_limit, t.gas_used, t.gas_price, t.max_fee, t.max_priority_fee, t.kind, t.selector,
    t.sender, t.recipient
from tx t
join block b on b.number = t.tx_at >> 24
join address s on s.id = t.sender
join address r on r.id = t.recipient;

-- Transfers of the three standards have the same columns; `standard` is as in token.standards.
create view erc20_view as
select cast(1 as bigint) as standard, e.log_at, cast(0 as bigint) as position, e.tx_index, b.hash as block_hash, b.time, t.hash as tx_hash,
    k.address as token_address, s.address as sender_address, r.address as recipient_address, cast(null as bytea) as token_id, e.value,
    e.token, e.sender, e.recipient
from erc20 e
join tx t on t.tx_at = (e.log_at & -16777216) | e.tx_index
join block b on b.number = e.log_at >> 24
join address k on k.id = e.token
join address s on s.id = e.sender
join address r on r.id = e.recipient;

create view erc721_view as
select cast(2 as bigint) as standard, e.log_at, cast(0 as bigint) as position, e.tx_index, b.hash as block_hash, b.time, t.hash as tx_hash,
    k.address as token_address, s.address as sender_address, r.address as recipient_address, e.token_id, cast(null as bytea) as value,
    e.token, e.sender, e.recipient
from erc721 e
join tx t on t.tx_at = (e.log_at & -16777216) | e.tx_index
join block b on b.number = e.log_at >> 24
join address k on k.id = e.token
join address s on s.id = e.sender
join address r on r.id = e.recipient;

create view erc1155_view as
select cast(4 as bigint) as standard, e.log_at, e.position, e.tx_index, b.hash as block_hash, b.time, t.hash as tx_hash,
    k.address as token_address, s.address as sender_address, r.address as recipient_address, e.token_id, e.value,
    e.token, e.sender, e.recipient
from erc1155 e
join tx t on t.tx_at = (e.log_at & -16777216) | e.tx_index
join block b on b.number = e.log_at >> 24
join address k on k.id = e.token
join address s on s.id = e.sender
join address r on r.id = e.recipient;

create view internal_view as
select i.tx_at, i.frame, b.hash as block_hash, b.time, t.hash as tx_hash, i.kind, s.address as sender_address,
    r.address as recipient_address, i.value, i.gas_limit, i.gas_used, i.is_reverted, i.sender, i.recipient
from internal i
join tx t on t.tx_at = i.tx_at
join block b on b.number = i.tx_at >> 24
join address s on s.id = i.sender
left join address r on r.id = i.recipient;

create view deployment_view as
select a.address, d.tx_at, d.frame, c.address as creator_address, t.hash as tx_hash, s.address as sender_address
from deployment d
join address a on a.id = d.address
join tx t on t.tx_at = d.tx_at
join address c on c.id = d.creator
join address s on s.id = t.sender;
