-- The store of API keys, budgets and usage, as PostgreSQL holds it. schema.sqlite.sql says more of each row and column.
-- Requests are numbered by who writes them, under the lock of `lock_usage`: a copied store then goes on where it was.

-- A row says: who sends the key with this hash is `name` and has the budget of `tier`.
create table api_key (
  hash bytea primary key,
  name text collate "C" not null,
  tier text not null,
  created bigint not null,
  revoked bigint,
  is_admin bigint not null default 0
);
create unique index api_key_by_name on api_key (name) where revoked is null;

-- A row says: this is our secret for `name`, random bytes made at the first start.
create table secret (
  name text collate "C" primary key,
  value bytea not null
);

-- A row says: in the minute and the day with these numbers (of UTC, counted from 1970) `caller` has spent this many
-- units of its budget.
create table budget_spent (
  caller text collate "C" primary key,
  minute bigint not null,
  minute_units bigint not null,
  day bigint not null,
  day_units bigint not null
);

-- A row says: on `day`, requests of `caller` to `path` about `chain` were answered with `status` so many times, for
-- so many units.
create table usage_day (
  day bigint not null,
  caller text collate "C" not null,
  path text collate "C" not null,
  chain text collate "C" not null,
  status bigint not null,
  calls bigint not null,
  units bigint not null,
  durations text not null,
  primary key (day, caller, path, chain, status)
);

-- A row says: the key named `caller` made this request.
create table request_log (
  id bigint primary key,
  at double precision not null,
  caller text collate "C" not null,
  path text not null,
  chain text not null,
  status bigint not null,
  units bigint not null,
  duration_ms double precision not null,
  peer text not null,
  host text not null,
  agent text not null
);
create index request_log_by_caller on request_log (caller, id);

-- A row says: this EVM chain is indexed, and was configured so.
create table chain_config (
  chain_id text collate "C" primary key,
  position bigint not null,
  config text not null
);

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
  settled_block bigint not null default -1,
  filter text not null default '',
  live_block bigint,
  filled_block bigint
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
create index webhook_message_waiting on webhook_message (webhook, next_at, number) where status = 'pending';
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

-- A row says: so many attempts or messages ended this way since the store was made; `seen_at` is when the process that
-- delivers was last at work, in Unix time.
create table webhook_counter (
  name text collate "C" primary key,
  value bigint not null
);

-- A row says: `owner` has ordered an export; its files are in a folder of this ID until it expires. Key: its ID, a UUID.
-- Serves: /v1/operations, and the process that writes the files.
create table export_job (
  id text collate "C" primary key,
  owner text collate "C" not null, -- the name of an API key; empty: callers on this machine
  type text not null,
  request text not null, -- a JSON object; the same request has the same text
  status text not null, -- running, completed, truncated, failed or cancelled
  message text not null,
  next_date text not null, -- of a truncated one: the first day that it does not hold
  state text not null, -- how far it is written, as a JSON object; empty: not begun
  rows bigint not null,
  bytes bigint not null, -- of its files
  file text not null, -- the name of the file to download; empty: there is none
  created double precision not null, -- Unix time, as the following
  updated double precision not null,
  turn double precision not null, -- when a process worked on it last
  runner text not null, -- the ID of the folder of exports it is written to; empty: not begun
  expires double precision -- null: it is running
);
create index export_job_by_owner on export_job (owner, status);
create index export_job_running on export_job (turn) where status = 'running';
create index export_job_by_end on export_job (expires) where expires is not null;

-- A row says: this is the interface of a contract, by which its calls, logs and errors are decoded.
create table contract_abi (
  chain_id text collate "C" not null,
  address bytea not null,
  abi text not null,
  origin text not null,
  added bigint not null,
  version bigint not null,
  primary key (chain_id, address)
);
create index contract_abi_by_version on contract_abi (version);
