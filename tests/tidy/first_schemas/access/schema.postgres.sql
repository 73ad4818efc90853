-- The store of API keys, budgets and usage, as PostgreSQL holds it. schema.sqlite.sql says more of each row and column.
-- Requests are numbered by who writes them, under the lock of `lock_usage`: a copied store then goes on where it was.

-- A row says: who sends the key with this hash is `name` and has the budget of `tier`.
create table api_key (
  hash bytea primary key,
  name text collate "C" not null,
  tier text not null,
  created bigint not null,
  revoked bigint
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
