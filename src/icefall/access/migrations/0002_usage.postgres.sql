-- As in 0002_usage.sqlite.sql, which says what a row means. Requests are numbered by who writes them, under the lock of
-- `lock_usage`: a copied store then goes on where it was.
create table budget_spent (
  caller text collate "C" primary key,
  minute bigint not null,
  minute_units bigint not null,
  day bigint not null,
  day_units bigint not null
);

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
