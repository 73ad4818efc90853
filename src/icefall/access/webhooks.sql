-- Webhooks, their secrets, and the messages to be sent. The API and `icefall webhooks` write the first two, the process
-- that delivers writes the rest, and the indexer of a chain writes where a webhook starts.

-- fragment: columns
id, owner, event_type, chain_id, url, name, description, status, reason, include_internal_txs, include_logs, signatures,
confirmations, ordered, start_block, created, filter, live_block

-- fragment: next_version
(select coalesce(max(version), 0) + 1 from webhook)

-- Before any webhook is changed: versions must become visible in their order. SQLite has one writer at a time anyway.
-- name: lock_webhooks
select 1;

-- postgres: lock_webhooks
select 1 from pg_advisory_xact_lock(7310001);

-- name: add_webhook
insert into webhook ({columns}, version)
values (:id, :owner, :event_type, :chain_id, :url, :name, :description, :status, :reason, :include_internal_txs,
  :include_logs, :signatures, :confirmations, :ordered, :start_block, :created, :filter, :live_block, {next_version});

-- name: webhook
select {columns} from webhook where id = :id;

-- Serves: /v1/webhooks, newest first. An empty status stands for both.
-- name: webhooks_of
select {columns} from webhook
where owner = :owner and (:status = '' or status = :status) and (created, id) < (:created, :id)
order by created desc, id desc limit :count;

-- Serves: delivery, and icefall webhooks list.
-- name: all_webhooks
select {columns} from webhook order by created, id;

-- name: any_webhook
select 1 from webhook limit 1;

-- Serves: the counters and the health check.
-- name: count_webhooks
select count(*), count(case when status = 'active' then 1 end) from webhook;

-- name: active_webhooks_of
select count(*) from webhook where owner = :owner and status = 'active';

-- name: put_webhook
update webhook set url = :url, name = :name, description = :description, status = :status, reason = :reason,
  include_internal_txs = :include_internal_txs, include_logs = :include_logs, version = {next_version}
where id = :id;

-- Serves: icefall keys revoke, in the same transaction.
-- name: switch_off_webhooks_of
update webhook set status = 'inactive', reason = :reason, version = {next_version}
where owner = :owner and status = 'active';

-- name: bump_webhook
update webhook set version = {next_version} where id = :id;

-- Serves: the indexer, before each batch of blocks.
-- name: newest_version
select coalesce(max(version), 0) from webhook where chain_id = :chain_id;

-- All addresses of a webhook in one value, in hex: a thousand webhooks with a hundred thousand of them are read in a
-- tenth of a second.
-- name: changed_webhooks
select {columns}, version, (
  select group_concat(hex(address)) from webhook_address where webhook = webhook.id and webhook.status = 'active'
) from webhook where chain_id = :chain_id and version > :version;

-- postgres: changed_webhooks
select {columns}, version, (
  select string_agg(encode(address, 'hex'), ',') from webhook_address
  where webhook = webhook.id and webhook.status = 'active'
) from webhook where chain_id = :chain_id and version > :version;

-- name: put_start
update webhook set start_block = coalesce(start_block, :start_block), live_block = :start_block
where id = :id and (live_block is null or live_block < :start_block);

-- Serves: the indexer, for webhooks that start at a block that was stored before.
-- name: unfilled_webhook
select {columns}, coalesce(filled_block, start_block) from webhook
where chain_id = :chain_id and status = 'active' and start_block < live_block
  and coalesce(filled_block, start_block) < live_block
order by created, id limit 1;

-- name: put_filled
update webhook set filled_block = :block where id = :id and coalesce(filled_block, start_block) < :block;

-- name: webhook_addresses
select address from webhook_address where webhook = :webhook and address > :after order by address limit :count;

-- name: count_webhook_addresses
select count(*) from webhook_address where webhook = :webhook;

-- name: add_webhook_address
insert into webhook_address (webhook, address) values (:webhook, :address) on conflict (webhook, address) do nothing;

-- name: drop_webhook_address
delete from webhook_address where webhook = :webhook and address = :address;

-- name: webhook_secrets
select number, value, expires from webhook_secret where owner = :owner order by number desc;

-- name: any_webhook_secret
select value from webhook_secret order by owner, number limit 1;

-- name: add_webhook_secret
insert into webhook_secret (owner, number, value) values (:owner, :number, :value);

-- name: expire_webhook_secrets
update webhook_secret set expires = :expires where owner = :owner and expires is null;

-- name: drop_webhook_secrets
delete from webhook_secret where owner = :owner and expires < :now;

-- name: webhook_cursor_read
select outbox, sequence from webhook_cursor where chain_id = :chain_id;

-- Locked until the transaction ends: one process reads the outbox of a chain at a time.
-- name: webhook_cursor
select outbox, sequence, number from webhook_cursor where chain_id = :chain_id;

-- postgres: webhook_cursor
select outbox, sequence, number from webhook_cursor where chain_id = :chain_id for update;

-- name: add_webhook_cursor
insert into webhook_cursor (chain_id, outbox, sequence, number) values (:chain_id, '', 0, 0)
on conflict (chain_id) do nothing;

-- name: put_webhook_cursor
update webhook_cursor set outbox = :outbox, sequence = :sequence, number = :number where chain_id = :chain_id;

-- fragment: message
id, event, webhook, number, kind, status, chain_id, block, tx_hash, created, attempts, next_at, done_at, body

-- name: add_message
insert into webhook_message ({message})
values (:id, :event, :webhook, :number, :kind, :status, :chain_id, :block, :tx_hash, :created, :attempts, :next_at,
  :done_at, :body)
on conflict (id) do nothing;

-- name: message
select {message} from webhook_message where id = :id;

-- Serves: delivery. The active webhooks that have something to send: one seek for each, however many messages wait.
-- name: due_webhooks
select {columns} from webhook
where status = 'active' and exists (
  select 1 from webhook_message
  where webhook_message.webhook = webhook.id and webhook_message.status = 'pending' and next_at <= :now
);

-- Serves: delivery. Only messages about activity wait for their block to be confirmed.
-- name: due_messages
select {message} from webhook_message
where webhook = :webhook and status = 'pending' and next_at <= :now and (kind <> 'activity' or block <= :confirmed)
order by next_at, number limit :count;

-- Serves: delivery in order.
-- name: oldest_message
select {message} from webhook_message where webhook = :webhook and status = 'pending' order by number limit 1;

-- An attempt begins: no other process tries the message until it counts as lost.
-- name: claim_message
update webhook_message set attempts = attempts + 1, next_at = :until
where id = :id and status = 'pending' and attempts = :attempts and next_at = :next_at;

-- name: put_body
update webhook_message set body = :body where id = :id and body is null and status = 'pending';

-- name: finish_attempt
update webhook_message set status = :status, next_at = :next_at, done_at = :done_at
where id = :id and attempts = :attempts and status = 'pending';

-- Its block was rolled back. One that was taken is dropped too: it is not sent again.
-- name: drop_message
update webhook_message set status = 'dropped', done_at = :now where id = :id and status <> 'dropped';

-- The same for one that no attempt was made to send.
-- name: drop_unsent
update webhook_message set status = 'dropped', done_at = :now where id = :id and status = 'pending' and body is null;

-- A message that takes another one back waits until no attempt to send that one can be open any more.
-- name: release_removal
update webhook_message set next_at = :now
where webhook = :webhook and status = 'pending' and next_at = :until and kind = 'removed' and event = :event;

-- name: postpone_message
update webhook_message set attempts = attempts - 1, next_at = :next_at where id = :id and attempts = :attempts;

-- Messages that were dropped are about blocks that were rolled back: they are not sent again.
-- fragment: sent_again
status = 'pending', attempts = 0, next_at = :now, done_at = null

-- name: replay_message
update webhook_message set {sent_again}
where id = :id and webhook = :webhook and status in ('delivered', 'failed') and body is not null;

-- The newest ones of a range, if there are more than `count`.
-- name: replay_range
update webhook_message set {sent_again}
where id in (
  select id from webhook_message
  where webhook = :webhook and status in ('delivered', 'failed') and body is not null
    and created >= :first and created < :last and block >= :low and block < :high
  order by number desc limit :count
);

-- Serves: a webhook that is active again: what failed while it was off is tried anew.
-- name: resume_messages
update webhook_message set {sent_again}
where webhook = :webhook and status = 'failed' and created >= :since and body is not null;

-- name: add_attempt
insert into webhook_attempt (message, number, at, code, duration_ms, error)
values (:message, coalesce((select max(number) from webhook_attempt where message = :message), 0) + 1, :at, :code,
  :duration_ms, :error);

-- name: attempts_of
select number, at, code, duration_ms, error from webhook_attempt where message = :message order by number;

-- Serves: the list of messages of a webhook, newest first. An empty status stands for all.
-- name: messages_before
select {message} from webhook_message
where webhook = :webhook and number < :before and (:status = '' or status = :status)
  and created >= :first and created < :last and block >= :low and block < :high
order by number desc limit :count;

-- Serves: icefall webhooks list.
-- name: message_counts
select webhook, status, count(*), min(created) from webhook_message group by webhook, status;

-- name: pending_of
select count(*) from webhook_message where webhook = :webhook and status = 'pending';

-- Serves: the number of messages of a webhook by status, from an index alone.
-- name: message_counts_of
select status, count(*) from webhook_message where webhook = :webhook group by status;

-- Serves: how long messages of a webhook wait.
-- name: oldest_pending_of
select created from webhook_message where webhook = :webhook and status = 'pending' order by number limit 1;

-- name: settled_by_webhook
select webhook, max(block) from webhook_message where done_at < :before group by webhook;

-- name: put_settled
update webhook set settled_block = :block where id = :webhook and settled_block < :block;

-- name: settled_block
select settled_block from webhook where id = :webhook;

-- name: drop_old_attempts
delete from webhook_attempt
where message in (select id from webhook_message where done_at < :before order by done_at limit :count);

-- name: drop_old_messages
delete from webhook_message
where id in (select id from webhook_message where done_at < :before order by done_at limit :count);

-- Serves: webhooks that are inactive for long, whose messages no receiver will take any more.
-- name: expire_messages
update webhook_message set status = 'failed', done_at = :now where status = 'pending' and created < :before;

-- Serves: the counters and the health check.
-- name: pending_messages
select count(*), min(created) from webhook_message where status = 'pending';

-- name: webhook_counters
select name, value from webhook_counter;

-- name: add_to_counter
insert into webhook_counter (name, value) values (:name, :value)
on conflict (name) do update set value = webhook_counter.value + excluded.value;

-- name: put_counter
insert into webhook_counter (name, value) values (:name, :value)
on conflict (name) do update set value = excluded.value;
