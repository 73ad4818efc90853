-- A row says: in the minute and the day with these numbers (of UTC, counted from 1970) `caller` has spent this many
-- units of its budget. The owner of the budgets reads them when it starts.
create table budget_spent (
  caller text primary key,
  minute integer not null,
  minute_units integer not null,
  day integer not null,
  day_units integer not null
) without rowid;

-- A row says: on `day`, requests of the key named `caller` (empty: without a key) to `path` (as the endpoint table writes
-- it) about `chain` (empty: none) were answered with `status` so many times, for so many units. `durations` counts them by
-- how long they took, as a JSON list; access/usage.py says which number is which time.
create table usage_day (
  day integer not null,
  caller text not null,
  path text not null,
  chain text not null,
  status integer not null,
  calls integer not null,
  units integer not null,
  durations text not null,
  primary key (day, caller, path, chain, status)
) without rowid;

-- A row says: the key named `caller` made this request at `at` (Unix time). Rows are deleted after some days.
create table request_log (
  id integer primary key,
  at real not null,
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
