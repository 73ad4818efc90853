-- The stored rows of a range of blocks, with the columns of the inserts in writes.sql, in the same order.

-- name: tx
select tx_at, hash, sender, recipient, value, nonce, gas_limit, gas_used, gas_price, max_fee, max_priority_fee, kind,
    selector, input
from tx where tx_at between :from_at and :to_at order by tx_at;

-- name: erc20
select log_at, tx_index, token, sender, recipient, value from erc20 where log_at between :from_at and :to_at;

-- name: erc721
select log_at, tx_index, token, sender, recipient, token_id from erc721 where log_at between :from_at and :to_at;

-- name: erc1155
select log_at, position, tx_index, token, sender, recipient, token_id, value
from erc1155 where log_at between :from_at and :to_at;

-- name: internal
select tx_at, frame, kind, sender, recipient, value, gas_limit, gas_used, is_reverted
from internal where tx_at between :from_at and :to_at;

-- name: deployment
select address, tx_at, frame, creator from deployment where tx_at between :from_at and :to_at;

-- name: message
select tx_at, message_id, peer_blockchain_id, is_source from message where tx_at between :from_at and :to_at;

-- name: code_before
select has_code from code where address = :address and block <= :block order by block desc limit 1;

-- name: native_at
select balance from native_balance where address = :address and block <= :block order by block desc limit 1;

-- name: bounds
select min(number), max(number) from block;
