-- A row says: this EVM chain is indexed, and was configured so (a JSON object of its settings). Written by whoever indexes
-- it. Serves: workers without a config file of their own.
create table chain_config (
  chain_id text primary key,
  position integer not null,
  config text not null
) without rowid;

-- A row says: in this minute and day of UTC (counted from 1970) the caller was granted so many units. Only on a server:
-- with files one process keeps them in memory.
create table budget (
  caller text primary key,
  minute integer not null,
  minute_units integer not null,
  day integer not null,
  day_units integer not null
) without rowid;
