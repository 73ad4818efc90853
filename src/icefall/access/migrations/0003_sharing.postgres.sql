-- As in 0003_sharing.sqlite.sql, which says what a row means.
create table chain_config (
  chain_id text collate "C" primary key,
  position bigint not null,
  config text not null
);
