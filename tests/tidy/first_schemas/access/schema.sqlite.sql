-- The store of API keys, budgets and usage, as SQLite holds it. schema.postgres.sql is the same for PostgreSQL.

-- A row says: who sends the key with this hash is `name` and has the budget of `tier`. The key itself is stored nowhere.
-- Revoked rows stay, so that who sends such a key learns that it was revoked. Key: the hash; a name belongs to one key
-- that is not revoked. Serves: every call with a key, and `icefall keys`.
create table api_key (
  hash blob primary key,
  name text not null,
  tier text not null,
  created integer not null, -- Unix time
  revoked integer -- Unix time; null: it is valid
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
