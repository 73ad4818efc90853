-- Messages between chains, as one chain knows them: the events of its messengers.

-- fragment: listed
select e.log_at, e.kind, e.message_id, e.peer, e.sender, e.recipient, b.time from messenger_event e
join block b on b.number = e.log_at >> 24

-- name: newest
{listed}
where e.kind = :kind and e.log_at < :before order by e.log_at desc limit :limit;

-- name: newest_with_peer
{listed}
where e.kind = :kind and e.peer = :value and e.log_at < :before order by e.log_at desc limit :limit;

-- name: newest_with_sender
{listed}
where e.kind = :kind and e.sender = :value and e.log_at < :before order by e.log_at desc limit :limit;

-- name: newest_with_recipient
{listed}
where e.kind = :kind and e.recipient = :value and e.log_at < :before order by e.log_at desc limit :limit;

-- The events that count of a message: the first of each kind, and the last of those that raise its fee.
-- name: events_of
with wanted(message_id) as (select ?)
select e.kind, e.message_id, e.log_at, e.messenger, e.peer, e.party, e.data, b.time, t.hash, t.amounts
from messenger_event e
join tx t on t.tx_at = (e.log_at & -16777216) | e.tx_index
join block b on b.number = e.log_at >> 24
where e.log_at in (
    (select min(i.log_at) from messenger_event i where i.message_id = (select message_id from wanted) and i.kind = 1),
    (select min(i.log_at) from messenger_event i where i.message_id = (select message_id from wanted) and i.kind = 2),
    (select min(i.log_at) from messenger_event i where i.message_id = (select message_id from wanted) and i.kind = 3),
    (select min(i.log_at) from messenger_event i where i.message_id = (select message_id from wanted) and i.kind = 4),
    (select min(i.log_at) from messenger_event i where i.message_id = (select message_id from wanted) and i.kind = 5),
    (select max(i.log_at) from messenger_event i where i.message_id = (select message_id from wanted) and i.kind = 6));

-- postgres: events_of
select e.kind, e.message_id, e.log_at, e.messenger, e.peer, e.party, e.data, b.time, t.hash, t.amounts
from unnest(?) as k(message_id)
cross join (values (1), (2), (3), (4), (5), (6)) as n(kind)
cross join lateral (
    select case when n.kind = 6
        then (select max(i.log_at) from messenger_event i where i.message_id = k.message_id and i.kind = n.kind)
        else (select min(i.log_at) from messenger_event i where i.message_id = k.message_id and i.kind = n.kind)
        end as log_at) as f
join messenger_event e on e.log_at = f.log_at
join tx t on t.tx_at = (e.log_at & -16777216) | e.tx_index
join block b on b.number = e.log_at >> 24;

-- name: token_ids
select address, id from address where address = ?;

-- postgres: token_ids
select a.address, a.id from unnest(?) as k(address) join address a on a.address = k.address;
