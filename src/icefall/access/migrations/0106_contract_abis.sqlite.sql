alter table api_key add column is_admin integer not null default 0;

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
