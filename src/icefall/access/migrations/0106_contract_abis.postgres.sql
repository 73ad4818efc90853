alter table api_key add column is_admin bigint not null default 0;

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
