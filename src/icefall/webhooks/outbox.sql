-- The outbox of a chain, in its store: rows are written and changed with the blocks they are about.

-- name: newest_sequence
select coalesce(max(sequence), 0) from webhook_outbox;

-- name: put_event
insert into webhook_outbox (id, sequence, webhook, tx_at, block_hash, tx_hash, removals, is_removed, created, detail)
values (:id, :sequence, :webhook, :tx_at, :block_hash, :tx_hash, 0, 0, :created, :detail)
on conflict (id) do update set sequence = excluded.sequence, is_removed = 0;

-- name: events_above
select id from webhook_outbox where tx_at >= :low and is_removed = 0 order by sequence;

-- name: remove_event
update webhook_outbox set is_removed = 1, removals = removals + 1, sequence = :sequence where id = :id;

-- Never the newest row: its number says where the next one begins.
-- name: drop_old_events
delete from webhook_outbox
where created < :before and sequence < (select max(sequence) from webhook_outbox);

-- name: outbox_id
select value from meta where name = 'webhook_outbox';

-- name: put_outbox_id
insert into meta (name, value) values ('webhook_outbox', :value) on conflict (name) do nothing;

-- In the copy of a store that a backup makes.
-- name: renew_outbox_id
update meta set value = :value where name = 'webhook_outbox';

-- Serves: delivery.
-- name: events_after
select id, sequence, webhook, tx_at, block_hash, tx_hash, removals, is_removed from webhook_outbox
where sequence > :sequence order by sequence limit :count;

-- name: event
select is_removed, removals, tx_at, block_hash, tx_hash, detail from webhook_outbox where id = :id;

-- Serves: webhooks that start at a block that was stored before.
-- name: address_numbers
select id from address where address = ?;

-- postgres: address_numbers
select a.id from unnest(?) as k(address) join address a on a.address = k.address;

-- name: native_txs
select tx_at from native_of where address = :id and tx_at >= :low and tx_at < :high;

-- postgres: native_txs
select tx_at from native_of
where address = :id and block_group >= :low >> 26 and block_group <= :high >> 26 and tx_at >= :low and tx_at < :high;

-- name: touching_txs
select tx_at from touch_of where address = :id and tx_at >= :low and tx_at < :high;

-- postgres: touching_txs
select tx_at from touch_of
where address = :id and block_group >= :low >> 26 and block_group <= :high >> 26 and tx_at >= :low and tx_at < :high;

-- name: tx_hashes
select tx_at, hash from tx where tx_at >= :low and tx_at < :high;
