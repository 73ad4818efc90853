-- A row says: this EVM chain is indexed, and was configured so (a JSON object of its settings). Written by whoever indexes
-- it. Serves: workers without a config file of their own.
create table chain_config (
  chain_id text primary key,
  position integer not null,
  config text not null
) without rowid;
