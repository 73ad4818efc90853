-- The stored rows of a range of blocks, with the columns of the inserts in writes.sql, in the same order.

-- name: tx
select tx_at, hash, sender, recipient, kind, amounts, selector, input from tx where tx_at between :from_at and :to_at order by tx_at;

-- name: {standard}
select {columns} from {standard} where log_at between :from_at and :to_at;

-- name: erc20_in
select distinct i.token, i.block, i.first_log, i.last_log
from erc20 e join erc20_in i on i.token = e.token and i.block = e.log_at >> 24
where e.log_at between :from_at and :to_at;

-- postgres: erc20_in
select token, log_at >> 24, min(log_at & 16777215), max(log_at & 16777215)
from erc20 where log_at between :from_at and :to_at group by token, log_at >> 24;

-- name: internal
select tx_at, frame, kind, sender, recipient, value, gas_limit, gas_used, is_reverted
from internal where tx_at between :from_at and :to_at;

-- name: deployment
select address, tx_at, frame, creator from deployment where tx_at between :from_at and :to_at;

-- name: message
select tx_at, message_id, peer_blockchain_id, is_source from message where tx_at between :from_at and :to_at;

-- name: messenger_event
select log_at, tx_index, kind, message_id, messenger, peer, party, sender, recipient, data
from messenger_event where log_at between :from_at and :to_at;

-- name: code_before
select has_code from code where address = :address and block <= :block order by block desc limit 1;

-- name: native_at
select balance, block from native_balance where address = :address and block <= :block order by block desc limit 1;

-- name: bounds
select min(number), max(number) from block;

-- From here on: what is stored of a block's state, page by page. The first columns are the cursor of the next page.

-- name: address_count
select coalesce(max(id), 0) + 1 from address;

-- name: tokens
select t.token, a.address, u.is_untrusted, t.read_at is not null, t.name, t.symbol, t.decimals
from token t join token_trust u on u.token = t.token join address a on a.id = t.token
where t.token > :after and t.first_block <= :block order by t.token limit :count;

-- name: erc20_page
select o.since, o.holder, a.address, coalesce(
    (select newest.balance from (
        select block, balance from erc20_balance where holder = o.holder and token = o.token and block <= :block
        order by block desc limit 1) newest),
    (select baseline from erc20_holding
     where holder = o.holder and token_address = (select address from address where id = o.token)))
from erc20_holder o join address a on a.id = o.holder
where o.token = :token and o.since <= :block and (o.since, o.holder) > (:since, :holder)
order by o.since, o.holder limit :count;

-- name: {by_id}_page
select h.since, h.holder, h.token_id, a.address, coalesce(
    (select balance from {by_id}_balance
     where holder = h.holder and token = h.token and token_id = h.token_id and block <= :block
     order by block desc limit 1), h.baseline)
from {by_id}_holding h join address a on a.id = h.holder
where h.token = :token and h.since <= :block and (h.since, h.holder, h.token_id) > (:since, :holder, :token_id)
order by h.since, h.holder, h.token_id limit :count;

-- name: erc721_page
select o.token_id, a.address
from nft_owner o join address a on a.id = o.owner
where o.token = :token and o.token_id > :token_id and o.block = (
    select max(block) from nft_owner where token = o.token and token_id = o.token_id and block <= :block)
order by o.token_id limit :count;

-- The first row of each address says what it had before.
-- name: native_page
select a.id, a.address, coalesce(
    (select newest.balance from (
        select block, balance from native_balance where address = a.id and block <= :block
        order by block desc limit 1) newest),
    (select oldest.before from (select block, before from native_balance where address = a.id order by block limit 1) oldest))
from address a
where a.id > :address and exists (select 1 from native_balance where address = a.id)
order by a.id limit :count;
