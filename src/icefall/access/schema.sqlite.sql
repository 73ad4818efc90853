-- The store of API keys, budgets and usage, as SQLite holds it. schema.postgres.sql is the same for PostgreSQL.

-- A row says: who sends the key with this hash is `name` and has the budget of `tier`. The key itself is stored nowhere.
-- Revoked rows stay, so that who sends such a key learns that it was revoked. Key: the hash; a name belongs to one key
-- that is not revoked. Serves: every call with a key, and `icefall keys`.
create table api_key (
  hash blob primary key,
  name text not null,
  tier text not null,
  created integer not null, -- Unix time
  revoked integer, -- Unix time; null: it is valid
  is_admin integer not null default 0 -- 1: it may change what all callers see, such as the ABIs of contracts
) without rowid;
create unique index api_key_by_name on api_key (name) where revoked is null;

-- A row says: this is our secret for `name`, random bytes made at the first start. Key: the name. Serves: the signature
-- of page tokens.
create table secret (
  name text primary key,
  value blob not null
) without rowid;

-- A row says: in the minute and the day with these numbers (of UTC, counted from 1970) `caller` has spent this many units
-- of its budget. Key: the caller. Serves: the owner of the budgets, when it starts.
create table budget_spent (
  caller text primary key,
  minute integer not null,
  minute_units integer not null,
  day integer not null,
  day_units integer not null
) without rowid;

-- A row says: on `day`, requests of `caller` to `path` about `chain` were answered with `status` so many times, for so many
-- units. Key: the day and what is counted. Serves: the reports of usage, and `icefall status`.
create table usage_day (
  day integer not null,
  caller text not null, -- the name of a key; empty: without a key
  path text not null, -- as the endpoint table writes it
  chain text not null, -- empty: none
  status integer not null,
  calls integer not null,
  units integer not null,
  durations text not null, -- how many took how long, as a JSON list; access/usage.py says which number is which time
  primary key (day, caller, path, chain, status)
) without rowid;

-- A row says: the key named `caller` made this request. Rows are deleted after some days. Key: a number in the order of
-- time. Serves: the request log of a key.
create table request_log (
  id integer primary key,
  at real not null, -- Unix time
  caller text not null,
  path text not null,
  chain text not null,
  status integer not null,
  units integer not null,
  duration_ms real not null,
  peer text not null,
  host text not null,
  agent text not null
);
create index request_log_by_caller on request_log (caller, id);

-- A row says: this EVM chain is indexed, and was configured so. Whoever indexes it writes the row. Key: the chain's ID.
-- Serves: workers without a config file of their own.
create table chain_config (
  chain_id text primary key,
  position integer not null,
  config text not null -- a JSON object of its settings
) without rowid;

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
  settled_block integer not null default -1, -- what was to be sent up to this block has ended, and may be deleted
  filter text not null default '', -- of webhooks of the primary network: which keys and sub-events, as JSON
  live_block integer, -- the first block that was matched when it was stored; null until then
  filled_block integer -- blocks before it, from the first one on, were matched later; null: none were
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
create index webhook_message_waiting on webhook_message (webhook, next_at, number) where status = 'pending';
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

-- A row says: `owner` has ordered an export; its files are in a folder of this ID until it expires. Key: its ID, a UUID.
-- Serves: /v1/operations, and the process that writes the files.
create table export_job (
  id text primary key,
  owner text not null, -- the name of an API key; empty: callers on this machine
  type text not null,
  request text not null, -- a JSON object; the same request has the same text
  status text not null, -- running, completed, truncated, failed or cancelled
  message text not null,
  next_date text not null, -- of a truncated one: the first day that it does not hold
  state text not null, -- how far it is written, as a JSON object; empty: not begun
  rows integer not null,
  bytes integer not null, -- of its files
  file text not null, -- the name of the file to download; empty: there is none
  created real not null, -- Unix time, as the following
  updated real not null,
  turn real not null, -- when a process worked on it last
  runner text not null, -- the ID of the folder of exports it is written to; empty: not begun
  expires real -- null: it is running
) without rowid;
create index export_job_by_owner on export_job (owner, status);
create index export_job_running on export_job (turn) where status = 'running';
create index export_job_by_end on export_job (expires) where expires is not null;

-- A row says: this is the interface of a contract, by which its calls, logs and errors are decoded. A removed one stays as a
-- row without text, so that workers see the change. Key: the chain's ID and the address. Serves: decoding, and `icefall abi`.
create table contract_abi (
  chain_id text not null,
  address blob not null,
  abi text not null, -- a JSON list of declarations; empty: it was removed
  origin text not null, -- the name of the API key that added it; empty: the command line
  added integer not null, -- Unix time
  version integer not null, -- grows with every change of any ABI, so that workers read only what has changed
  primary key (chain_id, address)
) without rowid;
create index contract_abi_by_version on contract_abi (version);
