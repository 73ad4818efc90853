-- The rows of the views, table by table: one key, or a list of them, and no join. For stores on Citus (flat.py).

-- name: address_id
select id from address where address = :address;

-- name: erc20_of
select log_at from erc20_of where address = :id and log_at >= :low and log_at < :high order by log_at desc limit :limit;

-- name: erc721_of
select log_at from erc721_of where address = :id and log_at >= :low and log_at < :high order by log_at desc limit :limit;

-- name: erc1155_of
select log_at from erc1155_of where address = :id and log_at >= :low and log_at < :high order by log_at desc limit :limit;

-- name: native_of
select tx_at from native_of where address = :id and tx_at >= :low and tx_at < :high order by tx_at desc limit :limit;

-- name: erc20
select log_at, 0, tx_index, null, value, token, sender, recipient from erc20
where log_at in (select value from json_each(:positions));

-- name: erc721
select log_at, 0, tx_index, token_id, null, token, sender, recipient from erc721
where log_at in (select value from json_each(:positions));

-- Of each log the rows of its batch below a position: a batch may have tens of thousands, a page needs `limit` of all.
-- name: erc1155
select log_at, position, tx_index, token_id, value, token, sender, recipient from erc1155
where log_at in (select value from json_each(:positions)) and position < :inside;

-- postgres: erc1155
select log_at, position, tx_index, token_id, value, token, sender, recipient from erc1155
where log_at = any(:positions) and position < :inside order by log_at desc, position desc limit :limit;

-- name: txs
select tx_at, hash, amounts, kind, selector, sender, recipient from tx where tx_at in (select value from json_each(:positions));

-- name: tx_hashes
select tx_at, hash from tx where tx_at in (select value from json_each(:positions));

-- name: blocks
select number, hash, time from block where number in (select value from json_each(:numbers));

-- name: addresses
select id, address from address where id in (select value from json_each(:ids));
