-- A row says: `owner` wants messages about the activity of the webhook's addresses on a chain, sent to `url`. A webhook is
-- never deleted, only inactive. Key: its ID, a UUID. Serves: /v1/webhooks, the indexer of the chain, and delivery.
create table webhook (
  id text primary key,
  owner text not null, -- the name of an API key; empty: callers on this machine
  event_type text not null,
  chain_id text not null,
  url text not null,
  name text not null,
  description text not null,
  status text not null, -- active or inactive
  reason text not null, -- why it was switched off by us; else empty
  include_internal_txs integer not null,
  include_logs integer not null,
  signatures text not null, -- first topics, as a JSON list of hex; empty list: any
  confirmations integer not null, -- blocks behind the upstream's tip before a message is sent
  ordered integer not null, -- 1: a message is sent only after the one before was taken
  start_block integer, -- the first block that is matched; null until the indexer has seen the webhook
  created integer not null, -- Unix time in milliseconds
  version integer not null, -- grows with every change of any webhook, so that the indexer reads only what has changed
  settled_block integer not null default -1 -- what was to be sent up to this block has ended, and may be deleted
) without rowid;
create index webhook_by_owner on webhook (owner, created, id);
create index webhook_by_chain on webhook (chain_id, version);

-- A row says: the webhook is about this address. Key: both. Serves: matching, and the list of addresses.
create table webhook_address (
  webhook text not null,
  address blob not null,
  primary key (webhook, address)
) without rowid;

-- A row says: messages to `owner` are signed with this secret, which is encrypted with the key of the installation, until
-- it expires. Key: the owner and a number that grows. Serves: signatures; two of them overlap after a rotation.
create table webhook_secret (
  owner text not null,
  number integer not null,
  value blob not null,
  expires real, -- Unix time; null: it is the newest one
  primary key (owner, number)
) without rowid;

-- A row says: this message is to be sent, or was. Delivered ones stay for some days, so that a chain that is indexed again
-- sends nothing twice. Key: the ID of the message, a UUID. Serves: delivery, and the list of messages of a webhook.
create table webhook_message (
  id text primary key,
  event text not null, -- the ID of the event in the chain's outbox; empty: a test
  webhook text not null,
  number integer not null, -- in the order of events
  kind text not null, -- activity, removed or test
  status text not null, -- pending, delivered, failed or dropped
  chain_id text not null,
  block integer not null,
  tx_hash blob not null,
  created real not null, -- Unix time, as the following
  attempts integer not null,
  next_at real not null, -- when it may be tried next; while an attempt is made, when that counts as lost
  done_at real, -- when it was delivered, given up or dropped
  body blob -- what is sent, from the first attempt on
) without rowid;
create index webhook_message_by_webhook on webhook_message (webhook, status, number);
create index webhook_message_due on webhook_message (next_at, webhook) where status = 'pending';
create index webhook_message_by_number on webhook_message (webhook, number);
create index webhook_message_by_end on webhook_message (done_at) where done_at is not null;

-- A row says: this attempt to send a message ended so. Key: the message and the number of the attempt. Serves: the list of
-- messages of a webhook.
create table webhook_attempt (
  message text not null,
  number integer not null,
  at real not null, -- Unix time
  code integer not null, -- HTTP status; 0: there was no answer
  duration_ms real not null,
  error text not null, -- empty: it was taken
  primary key (message, number)
) without rowid;

-- A row says: the outbox of this chain was read up to `sequence`. Key: the chain's ID. Serves: delivery.
create table webhook_cursor (
  chain_id text primary key,
  outbox text not null, -- the ID of the outbox: a chain that is indexed anew has another
  sequence integer not null,
  number integer not null -- of the newest message
) without rowid;

-- A row says: so many attempts or messages ended this way since the store was made; `seen_at` is when the process that
-- delivers was last at work, in Unix time. Key: the name. Serves: counters for Prometheus, and the health check.
create table webhook_counter (
  name text primary key,
  value integer not null
) without rowid;
