-- As in 0002_sharing.sqlite.sql, which says what a row means.
create table chain_config (
  chain_id text collate "C" primary key,
  position bigint not null,
  config text not null
);

create table budget (
  caller text collate "C" primary key,
  minute bigint not null,
  minute_units bigint not null,
  day bigint not null,
  day_units bigint not null
);
