-- What a batch of blocks writes. Rows are made in deriving/packing.py and folding.py, by the column lists here and, of
-- transfers, in standards.py. A variant without a text is of a table that is a view in PostgreSQL.

-- name: meta
select value from meta where name = :name;

-- name: put_meta
insert into meta (name, value) values (:name, :value) on conflict (name) do update set value = excluded.value;

-- name: tip
select number, hash, time, cumulative_txs from block order by number desc limit 1;

-- name: block_hash
select hash from block where number = :number;

-- name: newest_tx
select tx_at from tx order by tx_at desc limit 1;

-- name: parent_hash
select parent_hash from block where number = :number;

-- name: lowest_block
select number from block order by number limit 1;

-- name: address_id
select id from address where address = ?;

-- name: address_ids
select address, id from address where address = ?;

-- postgres: address_ids
select address, id from address where address = any(?);

-- name: next_address
select coalesce(max(id), 0) + 1 from address;

-- name: put_address
insert into address (id, address) values (?, ?);

-- name: put_block
insert into block (number, hash, parent_hash, time, tx_count, base_fee, gas_used, gas_limit, gas_cost, fees_spent,
    cumulative_txs, next_address, touched, fee_recipient, size, fees_burned)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: put_tx
insert into tx (tx_at, hash, sender, recipient, kind, amounts, selector, input) values (?, ?, ?, ?, ?, ?, ?, ?);

-- postgres: put_tx
insert into tx (tx_at, hash, sender, recipient, kind, amounts, selector, input, sender_balance)
values (?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: put_tx_by_hash
insert into tx_by_hash_recent (prefix, block) values (?, ?);

-- postgres: put_tx_by_hash

-- name: put_native_of
insert into native_of_recent (address, tx_at) values (?, ?);

-- postgres: put_native_of

-- name: put_touch_of
insert into touch_of_recent (address, tx_at) values (?, ?);

-- postgres: put_touch_of
insert into touch_rest (address, block_group, tx_at) values (?, ?, ?);

-- name: put_{standard}
insert into {standard} ({columns}) values ({marks});

-- postgres: put_erc20
insert into erc20 (log_at, tx_index, token, sender, recipient, value, sender_balance, recipient_balance, touches)
values (?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: put_erc20_in
insert into erc20_in (token, block, first_log, last_log) values (?, ?, ?, ?);

-- postgres: put_erc20_in

-- name: put_erc20_of
insert into erc20_of_recent (address, log_at) values (?, ?);

-- postgres: put_erc20_of

-- name: put_{with_ids}_of
insert into {with_ids}_of (address, log_at) values (?, ?);

-- name: put_internal
insert into internal (tx_at, frame, kind, sender, recipient, value, gas_limit, gas_used, is_reverted)
values (?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: put_internal_of
insert into internal_of (address, tx_at, frame) values (?, ?, ?);

-- name: put_deployment
insert into deployment (address, tx_at, frame, creator) values (?, ?, ?, ?);

-- name: put_deployed_by
insert into deployed_by (address, tx_at, frame) values (?, ?, ?);

-- name: put_message
insert into message (tx_at, message_id, peer_blockchain_id, is_source) values (?, ?, ?, ?);

-- name: put_messenger_event
insert into messenger_event (log_at, tx_index, kind, message_id, messenger, peer, party, sender, recipient, data)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: put_code
insert into code (address, block, has_code) values (?, ?, ?)
on conflict (address, block) do update set has_code = excluded.has_code;

-- postgres: put_code
insert into code (address, block, has_code) select * from unnest(?::bigint[], ?::bigint[], ?::bigint[])
on conflict (address, block) do update set has_code = excluded.has_code;

-- name: newest_code
select has_code from code where address = ? order by block desc limit 1;

-- name: newest_native
select balance, block from native_balance where address = (select id from address where address = :address)
order by block desc limit 1;

-- name: put_native_balance
insert into native_balance_recent (address, block, balance, before) values (?, ?, ?, ?)
on conflict (address, block) do update set balance = excluded.balance;

-- postgres: put_native_balance
insert into native_rest (address, block, balance, before) values (?, ?, ?, ?);

-- The pairs of address and block that have a row.
-- name: stored_native
select address, block from native_balance where address = ? and block = ?;

-- postgres: stored_native
select n.address, n.block from unnest(?, ?) as k(id, block)
join native_balance n on n.address = k.id and n.block = k.block;

-- name: restate_native
update native_balance set balance = ? where address = ? and block = ?;

-- postgres: restate_native
with k as (select ?::bytea as balance, ?::bigint as address, ?::bigint as block),
rest as (update native_rest n set balance = k.balance from k where n.address = k.address and n.block = k.block)
update tx t set sender_balance = k.balance from k
where +t.sender = k.address and cast(t.tx_at >> 24 as integer) = k.block and t.sender_balance <> '';

-- The newest balance of each (holder, token, token address), else the one before the index; null for a pair never seen.
-- name: known_erc20
select k.holder, k.token, coalesce(
    (select balance from (
        select block, balance from erc20_balance b where b.holder = k.holder and b.token = k.token
        order by block desc limit 1) newest),
    (select baseline from erc20_holding h where h.holder = k.holder and h.token_address = k.address))
from (select ? as holder, ? as token, ? as address) k;

-- postgres: known_erc20
select k.holder, k.token, coalesce(
    (select balance from erc20_balance b where b.holder = k.holder and b.token = k.token order by block desc limit 1),
    (select baseline from held_token h where h.holder = k.holder and +h.token = k.token
        and h.token_start = substr(k.address, 1, 3)))
from unnest(?, ?, ?) as k(holder, token, address);

-- name: held_erc20
select 1 from erc20_holding
where holder = (select id from address where address = :holder) and token_address = :token;

-- name: held_{by_id}
select 1 from {by_id}_holding
where holder = (select id from address where address = :holder) and token_address = :token and token_id = :token_id;

-- name: named_nft
select 1 from nft_owner
where token = (select id from address where address = :token) and token_id = :token_id limit 1;

-- name: put_erc20_balance
insert into erc20_balance_recent (holder, token, block, balance) values (?, ?, ?, ?);

-- postgres: put_erc20_balance

-- name: put_erc20_holding
insert into erc20_holding_recent (holder, token_address, token, baseline) values (?, ?, ?, ?);

-- postgres: put_erc20_holding
insert into held_token (token, since, holder, token_start, baseline) values (?, ?, ?, ?, ?);

-- name: put_erc20_holder
insert into erc20_holder (token, since, holder) values (?, ?, ?);

-- postgres: put_erc20_holder

-- The same for each (holder, token, token address, token ID).
-- name: known_{by_id}
select k.holder, k.token, k.token_id, coalesce(
    (select balance from {by_id}_balance b
        where b.holder = k.holder and b.token = k.token and b.token_id = k.token_id order by block desc limit 1),
    (select baseline from {by_id}_holding h
        where h.holder = k.holder and h.token_address = k.address and h.token_id = k.token_id))
from (select ? as holder, ? as token, ? as address, ? as token_id) k;

-- postgres: known_{by_id}
select k.holder, k.token, k.token_id, coalesce(
    (select balance from {by_id}_balance b
     where b.holder = k.holder and b.token = k.token and b.token_id = k.token_id order by block desc limit 1),
    (select baseline from {by_id}_holding h
     where h.holder = k.holder and h.token_address = k.address and h.token_id = k.token_id))
from unnest(?, ?, ?, ?) as k(holder, token, address, token_id);

-- name: put_{by_id}_balance
insert into {by_id}_balance (holder, token, token_id, block, balance) values (?, ?, ?, ?, ?);

-- name: put_{by_id}_holding
insert into {by_id}_holding (holder, token_address, token_id, token, since, baseline) values (?, ?, ?, ?, ?, ?);

-- name: newest_owner
select token, token_id, owner from nft_owner where token = ? and token_id = ? order by block desc limit 1;

-- postgres: newest_owner
select distinct on (o.token, o.token_id) o.token, o.token_id, o.owner
from unnest(?, ?) as k(token, token_id) join nft_owner o on o.token = k.token and o.token_id = k.token_id
order by o.token, o.token_id, o.block desc;

-- name: put_nft_owner
insert into nft_owner (token, token_id, block, owner, before) values (?, ?, ?, ?, ?);

-- The tokens that have ranges of NFTs.
-- name: ranged_tokens
select token from nft_range where token = ? limit 1;

-- postgres: ranged_tokens
select distinct token from nft_range where token = any(?);

-- The range of a token that begins last at or before an ID. Ranges of a trusted token do not overlap: no other can have it.
-- name: range_before
select first_id, log_at, last_id, owner from nft_range where token = ? and first_id <= ? order by first_id desc limit 1;

-- name: owner_between
select 1 from nft_owner where token = ? and token_id >= ? and token_id <= ? limit 1;

-- name: put_nft_range
insert into nft_range (token, first_id, log_at, last_id, owner, token_address, moved) values (?, ?, ?, ?, ?, ?, ?);

-- name: add_moved
update nft_range set moved = moved + ? where token = ? and first_id = ? and log_at = ?;

-- name: drop_held
delete from nft_held where owner = ? and token_address = ? and token_id = ?;

-- postgres: drop_held
delete from nft_held h using (select * from unnest(?::bigint[], ?::bytea[], ?::bytea[])) as k(owner, address, id)
where h.owner = k.owner and h.token_address = k.address and h.token_id = k.id;

-- name: put_held
insert into nft_held (owner, token_address, token_id, token) values (?, ?, ?, ?)
on conflict (owner, token_address, token_id) do nothing;

-- postgres: put_held
insert into nft_held (owner, token_address, token_id, token)
select * from unnest(?::bigint[], ?::bytea[], ?::bytea[], ?::bigint[])
on conflict (owner, token_address, token_id) do nothing;

-- name: put_token
insert into token (token, first_block, standards) values (?, ?, ?)
on conflict (token) do update set standards = token.standards | excluded.standards
where token.standards | excluded.standards <> token.standards;

-- postgres: put_token
insert into token (token, first_block, standards) select * from unnest(?::bigint[], ?::bigint[], ?::bigint[])
on conflict (token) do update set standards = token.standards | excluded.standards
where token.standards | excluded.standards <> token.standards;

-- name: restart_token
update token set standards = 0, kind = null where token = ?;

-- name: put_standards_since
update token set standards_since = ? where token = ?;

-- The contracts that moved tokens, and how often the storage of each changed without a log.
-- name: known_tokens
select token, silent_changes from token where token = ?;

-- postgres: known_tokens
select token, silent_changes from token where token = any(?);

-- name: put_unlogged_changes
update token set silent_changes = ? where token = ?;

-- Name, symbol and decimals are read again.
-- name: reread_token
update token set read_at = null, retry_at = 0, failures = 0, metadata_version = metadata_version + 1 where token = ?;

-- The same, but not within a minute of the last time: variables of some contracts change in every block.
-- name: reread_token_later
update token set read_at = null, retry_at = case when read_at is null then retry_at else read_at + 60 end,
    metadata_version = metadata_version + 1
where token = ?;

-- name: put_probed_standard
insert into token (token, first_block, kind) values (?, ?, ?)
on conflict (token) do update set kind = excluded.kind;

-- Where tokens store their balances.

-- name: layout
select layout from token where token = (select id from address where address = :address) and layout is not null;

-- name: put_layout
update token set layout = :layout, layout_standard = :standard,
    layout_since = case when :since = -1 then layout_since else :since end
where token = :token;

-- name: put_earlier_layout
insert into earlier_layout (token, block, layout, layout_since, layout_standard)
select token, :block, layout, layout_since, layout_standard from token where token = :token and layout_since is not null
on conflict (token, block) do nothing;

-- name: put_slot
insert into slot (token, key, holder, token_id) values (?, ?, ?, ?) on conflict (token, key) do nothing;

-- postgres: put_slot
insert into slot (token, key, holder, token_id)
select * from unnest(?::bigint[], ?::bytea[], ?::bigint[], ?::bytea[]) on conflict (token, key) do nothing;

-- The holder of each (token, beginning of a slot's key), and its address.
-- name: slot_holders
select s.token, s.key, s.holder, a.address from slot s join address a on a.id = s.holder where s.token = ? and s.key = ?;

-- postgres: slot_holders
select s.token, s.key, s.holder, a.address from unnest(?, ?) as k(token, key)
join slot s on s.token = k.token and s.key = k.key join address a on a.id = s.holder;

-- What each (token, beginning of a slot's key) is about: the holder, null of an NFT, and the token ID.
-- name: slot_keys
select s.token, s.key, a.address, s.token_id from slot s left join address a on a.id = s.holder
where s.token = ? and s.key = ?;

-- postgres: slot_keys
select s.token, s.key, a.address, s.token_id from unnest(?, ?) as k(token, key)
join slot s on s.token = k.token and s.key = k.key left join address a on a.id = s.holder;

-- name: put_unclaimed_slot
insert into unclaimed_slot (token, key, block, word) values (?, ?, ?, ?);

-- What the slot held before its first word, which is stored after this.
-- name: put_unclaimed_start
insert into unclaimed_slot (token, key, block, word)
select n.* from (select ? as token, ? as key, ? as block, ? as word) n
where not exists (select 1 from unclaimed_slot u where u.token = n.token and u.key = n.key);

-- postgres: put_unclaimed_start
insert into unclaimed_slot (token, key, block, word) select n.*
from unnest(?::bigint[], ?::bytea[], ?::bigint[], ?::bytea[]) as n(token, key, block, word)
where not exists (select 1 from unclaimed_slot u where u.token = n.token and u.key = n.key);

-- name: layouts_since
select token, layout_since from token where token = ? and layout_since is not null;

-- postgres: layouts_since
select token, layout_since from token where token = any(?) and layout_since is not null;

-- The tokens with words whose holder is not known, and whether some were dropped.
-- name: tokens_with_unclaimed
select t.token, t.words_dropped_since is not null from token t
where t.token = ? and exists (select 1 from unclaimed_slot u where u.token = t.token);

-- postgres: tokens_with_unclaimed
select t.token, t.words_dropped_since is not null from token t
where t.token = any(?) and exists (select 1 from unclaimed_slot u where u.token = t.token);

-- name: unclaimed_words
select token, key, block, word from unclaimed_slot where token = ? and key = ? order by block;

-- postgres: unclaimed_words
select u.token, u.key, u.block, u.word from unnest(?, ?) as k(token, key)
join unclaimed_slot u on u.token = k.token and u.key = k.key order by u.token, u.key, u.block;

-- name: unclaimed_count
select count(*) from (select 1 from unclaimed_slot where token = :token limit :most) as counted;

-- name: unclaimed_words_of
select case when t.words_dropped_since is not null then :most + 1 else (
    select count(*) from (select 1 from unclaimed_slot u where u.token = t.token limit :most) as counted) end
from token t where t.token = (select id from address where address = :address);

-- name: put_words_dropped
update token set words_dropped_since = :block
where token = :token and coalesce(words_dropped_since, :block + 1) > :block;

-- name: put_slot_change
insert into slot_change (block, token, holder, token_id, balance) values (?, ?, ?, ?, ?);

-- name: probed_standard
select kind from token where token = ?;

-- name: mark_untrusted
update token set untrusted_since = :block where token = :token and untrusted_since is null;

-- name: put_nft
insert into nft (token, token_id, first_block) values (?, ?, ?) on conflict (token, token_id) do nothing;

-- name: reread_nfts
update nft set retry_at = 0, failures = 0 where token = ? and token_id between ? and ? and (retry_at is null or retry_at <> 0);

