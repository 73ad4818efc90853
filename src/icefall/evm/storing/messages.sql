-- Events of messengers, and how many messages there are.

-- The first event of a kind and a message, which is the one that counts.
-- name: first_of
select e.kind, e.message_id, e.log_at, e.peer, b.time from messenger_event e
join block b on b.number = e.log_at >> 24
where e.log_at = (select min(i.log_at) from messenger_event i where i.kind = ? and i.message_id = ?);

-- postgres: first_of
select e.kind, e.message_id, e.log_at, e.peer, b.time from unnest(?, ?) as k(kind, message_id)
cross join lateral (
    select i.kind, i.message_id, i.log_at, i.peer from messenger_event i
    where i.message_id = k.message_id and i.kind = k.kind order by i.log_at limit 1) as e
join block b on b.number = e.log_at >> 24;

-- name: events_above
select e.log_at, e.tx_index, e.kind, e.message_id, e.peer, b.time from messenger_event e
join block b on b.number = e.log_at >> 24
where e.log_at >= :from_log and e.kind <= 2 order by e.log_at;

-- name: put_count
insert into message_count (size, start, kind, peer, messages, txs) values (?, ?, ?, ?, ?, ?)
on conflict (size, start, kind, peer) do update set
    messages = message_count.messages + excluded.messages, txs = message_count.txs + excluded.txs;

-- name: drop_empty_count
delete from message_count where size = ? and start = ? and kind = ? and peer = ? and messages = 0 and txs = 0;

-- Blocks below this number lack their events. It is there while they are filled in.
-- name: missing_below
select value from meta where name = 'messages_missing_below';

-- name: put_missing_below
insert into meta (name, value) values ('messages_missing_below', :value)
on conflict (name) do update set value = excluded.value;

-- name: drop_missing_below
delete from meta where name = 'messages_missing_below';

-- The messengers whose events are stored.
-- name: messengers
select value from meta where name = 'messengers';

-- name: put_messengers
insert into meta (name, value) values ('messengers', :value) on conflict (name) do update set value = excluded.value;

-- name: drop_events
delete from messenger_event;

-- name: drop_counts
delete from message_count;

-- name: drop_messages
delete from message;

-- name: bounds
select min(number), max(number) from block;

-- name: put_message
insert into message (tx_at, message_id, peer_blockchain_id, is_source) values (?, ?, ?, ?) on conflict (tx_at) do nothing;

-- name: tx_hash
select t.hash, b.hash from tx t join block b on b.number = t.tx_at >> 24 where t.tx_at = :tx_at;

-- name: block_times
select number, time from block where number = ?;

-- postgres: block_times
select b.number, b.time from unnest(?) as k(number) join block b on b.number = k.number;

-- name: logs_from
select value from meta where name = 'logs_from';

-- name: logs_of
select log_at, tx_index, topic0, topics, data from log
where address = :address and log_at >= :low and log_at < :high order by log_at;
