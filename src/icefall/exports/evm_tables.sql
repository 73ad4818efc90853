-- The rows of exported tables, in pieces. Tables in the order of the chain are read from the position :low up to :high,
-- or from block to block; the others by the numbers of addresses, and of their rows those up to the block :last.

-- name: blocks
select number, hash, parent_hash, time, tx_count, base_fee, gas_used, gas_limit, gas_cost, fees_spent, fee_recipient,
    size, fees_burned
from block where number >= :low >> 24 and number < :high >> 24 and number >= 0 order by number;

-- name: transactions
select * from full_tx_view where tx_at >= :low and tx_at < :high order by tx_at;

-- name: logs
select l.log_at, b.hash, b.time, t.hash, l.address, l.topic0, l.topics, l.data
from log l
join block b on b.number = l.log_at >> 24
join tx t on t.tx_at = (l.log_at & -16777216) | l.tx_index
where l.log_at >= :low and l.log_at < :high order by l.log_at;

-- name: message_events
select e.log_at, b.time, t.hash, e.kind, e.message_id, e.messenger, e.peer, e.sender, e.recipient, e.party, e.data
from messenger_event e
join block b on b.number = e.log_at >> 24
join tx t on t.tx_at = (e.log_at & -16777216) | e.tx_index
where e.log_at >= :low and e.log_at < :high order by e.log_at;

-- name: {standard}_transfers
select * from {standard}_view where log_at >= :low and log_at < :high order by log_at, position;

-- name: internal_transactions
select tx_at, frame, block_hash, time, tx_hash, kind, sender_address, recipient_address, value, gas_limit, gas_used,
    is_reverted
from internal_view where tx_at >= :low and tx_at < :high order by tx_at, frame;

-- name: contracts
select d.address, d.tx_at, b.time, d.tx_hash, d.sender_address, d.creator_address
from deployment_view d
join block b on b.number = d.tx_at >> 24
where d.tx_at >= :low and d.tx_at < :high order by d.tx_at, d.frame;

-- name: native_balance_changes
select n.block, b.time, a.address, n.balance
from native_balance n
join address a on a.id = n.address
join block b on b.number = n.block
where n.address >= :low and n.address < :high and n.block >= :first and n.block <= :last
order by n.address, n.block;

-- name: token_balance_changes
select e.block, b.time, k.address, a.address, e.balance
from erc20_balance e
join address a on a.id = e.holder
join address k on k.id = e.token
join block b on b.number = e.block
where e.holder >= :low and e.holder < :high and e.block >= :first and e.block <= :last
order by e.holder, e.token, e.block;

-- name: {by_id}_balance_changes
select e.block, b.time, k.address, e.token_id, a.address, e.balance
from {by_id}_balance e
join address a on a.id = e.holder
join address k on k.id = e.token
join block b on b.number = e.block
where e.holder >= :low and e.holder < :high and e.block >= :first and e.block <= :last
order by e.holder, e.token, e.token_id, e.block;

-- name: nft_owner_changes
select n.block, b.time, k.address, n.token_id, a.address
from nft_owner n
join address a on a.id = n.owner
join address k on k.id = n.token
join block b on b.number = n.block
where n.token >= :low and n.token < :high and n.block >= :first and n.block <= :last
order by n.token, n.token_id, n.block;

-- name: tokens
select a.address, t.first_block, t.standards, t.name, t.symbol, t.decimals, t.untrusted_since is null and t.differed_at is null
from token t
join address a on a.id = t.token
where t.token >= :low and t.token < :high and t.first_block >= :first and t.first_block <= :last
order by t.token;

-- One more than the highest number of an address.
-- name: addresses_end
select coalesce(max(id), 0) + 1 from address;

-- name: lowest
select number from block where number >= 0 order by number limit 1;

-- name: tip
select number from block where number >= 0 order by number desc limit 1;

-- name: block
select hash, time from block where number = :number;

-- name: first_block_since
select number from block where number > :after and number <= :last and time >= :time order by number limit 1;

-- name: meta
select value from meta where name = :name;
