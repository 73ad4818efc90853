-- What the explorer's endpoints need.

-- Serves: search of a token by the beginning of its name or symbol.
create index token_by_name on token (lower(name)) where name is not null;
create index token_by_symbol on token (lower(symbol)) where symbol is not null;

-- Raw logs, of the blocks from meta `logs_from` on; only with `store_logs`. The address is not interned: those of logs
-- may be stored long after their block, and IDs are given in chain order. topic0 empty: a log without topics.
-- topics: those after the first, one after another. data: zero runs packed (amounts.py).
-- Serves: logs of a transaction; logs of a contract, all or with a first topic.
create table log (
    log_at integer primary key,
    tx_index integer not null,
    address blob not null,
    topic0 blob not null,
    topics blob not null,
    data blob not null
);
create index log_of on log (address, log_at);
create index log_with_topic on log (address, topic0, log_at);

-- All calls of a transaction, compressed (call_trees.py), of the blocks from meta `calls_from` on; only with
-- `store_traces`. Serves: call tree and revert reason of a transaction.
create table call_tree (
    tx_at integer primary key,
    calls blob not null
);

-- What the holders of a token hold, counted in the background from its transfers up to meta `holders_to`. Holders that no
-- longer hold any have a row too. standard: 1 ERC-20, balance as in erc20_balance; 2 NFTs, balance = number of IDs held.
-- Serves: holders by balance, and in the order of their IDs.
create table holder (
    token integer not null,
    standard integer not null,
    holder integer not null,
    balance blob not null,
    primary key (token, standard, holder)
) without rowid;
create index holder_by_balance on holder (token, standard, balance, holder);

-- holders: rows of `holder` with a balance. tokens: NFTs that exist, of ERC-1155 those that ever moved; 0 for ERC-20.
create table holder_total (
    token integer not null,
    standard integer not null,
    holders integer not null,
    tokens integer not null,
    primary key (token, standard)
) without rowid;
