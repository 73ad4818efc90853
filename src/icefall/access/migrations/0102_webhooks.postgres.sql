-- A row says: `owner` wants messages about the activity of the webhook's addresses on a chain, sent to `url`.
create table webhook (
  id text collate "C" primary key,
  owner text collate "C" not null,
  event_type text not null,
  chain_id text collate "C" not null,
  url text not null,
  name text not null,
  description text not null,
  status text not null,
  reason text not null,
  include_internal_txs bigint not null,
  include_logs bigint not null,
  signatures text not null,
  confirmations bigint not null,
  ordered bigint not null,
  start_block bigint,
  created bigint not null,
  version bigint not null,
  settled_block bigint not null default -1
);
create index webhook_by_owner on webhook (owner, created, id);
create index webhook_by_chain on webhook (chain_id, version);

-- A row says: the webhook is about this address.
create table webhook_address (
  webhook text collate "C" not null,
  address bytea not null,
  primary key (webhook, address)
);

-- A row says: messages to `owner` are signed with this secret, which is encrypted with the key of the installation,
-- until it expires.
create table webhook_secret (
  owner text collate "C" not null,
  number bigint not null,
  value bytea not null,
  expires double precision,
  primary key (owner, number)
);

-- A row says: this message is to be sent, or was.
create table webhook_message (
  id text collate "C" primary key,
  event text collate "C" not null,
  webhook text collate "C" not null,
  number bigint not null,
  kind text not null,
  status text collate "C" not null,
  chain_id text not null,
  block bigint not null,
  tx_hash bytea not null,
  created double precision not null,
  attempts bigint not null,
  next_at double precision not null,
  done_at double precision,
  body bytea
);
create index webhook_message_by_webhook on webhook_message (webhook, status, number);
create index webhook_message_due on webhook_message (next_at, webhook) where status = 'pending';
create index webhook_message_by_number on webhook_message (webhook, number);
create index webhook_message_by_end on webhook_message (done_at) where done_at is not null;

-- A row says: this attempt to send a message ended so.
create table webhook_attempt (
  message text collate "C" not null,
  number bigint not null,
  at double precision not null,
  code bigint not null,
  duration_ms double precision not null,
  error text not null,
  primary key (message, number)
);

-- A row says: the outbox of this chain was read up to `sequence`.
create table webhook_cursor (
  chain_id text collate "C" primary key,
  outbox text not null,
  sequence bigint not null,
  number bigint not null
);

-- A row says: so many attempts or messages ended this way since the store was made, or when delivery was last at work.
create table webhook_counter (
  name text collate "C" primary key,
  value bigint not null
);
