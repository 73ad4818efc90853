-- As in 0001_access.sqlite.sql, which says what a row means.
create table api_key (
  hash bytea primary key,
  name text collate "C" not null,
  tier text not null,
  created bigint not null,
  revoked bigint
);
create unique index api_key_by_name on api_key (name) where revoked is null;

create table secret (
  name text collate "C" primary key,
  value bytea not null
);
