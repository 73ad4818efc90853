-- The store of the node, as SQLite holds it: its own settings and health, the asset chain that it executes, and the
-- containers of the chains that it follows. schema.postgres.sql is the same for PostgreSQL.
--
-- `chain` is the number that table `ledger` gives a chain. `position` grows with every row, so newest first is by
-- `position` downwards. Times that end in `_ns` are of our own clock, in nanoseconds since 1970.

-- # The node itself

-- A row is a named value of this data directory, such as the network it is bound to. Key: the name. Serves: the start of
-- the node.
create table meta (name text primary key, value text not null) without rowid;

-- A row says: /ext/<alias> is another name of /ext/<endpoint>. Key: the alias. Serves: routing, and admin.alias.
create table endpoint_alias (alias text primary key, endpoint text not null, position integer not null) without rowid;

-- A row says: `alias` names the chain with this ID, wherever an ID may stand. Key: the alias. Serves: every call that
-- names a chain, and admin.getChainAliases.
create table chain_alias (alias text primary key, chain_id blob not null, position integer not null) without rowid;

-- A row says: an administrator set these levels; they hold in every process and after a restart. Key: the logger.
-- Serves: admin.getLoggerLevel, and the start of a process.
create table logger_level (logger text primary key, log_level text not null, display_level text not null) without rowid;

-- A row is the last result of one health check. Results that grow old tell of an engine, or a disk, that hangs. Key: the
-- kind and the name of the check. Serves: health.health, health.readiness and health.liveness.
create table health_result (
    kind text not null,
    name text not null,
    tags text not null, -- a JSON list; empty: global
    passed integer not null,
    answer blob not null, -- the JSON object as it is sent
    stored_ns integer not null, -- when we wrote the row
    primary key (kind, name)
) without rowid;

-- A row says: admin.loadVMs met this plugin. Key: the ID of the VM. Serves: admin.loadVMs and info.getVMs.
create table vm_plugin (
    vm_id text primary key,
    aliases text not null, -- a JSON list
    failure text not null -- empty: it was loaded
) without rowid;

-- A row, the only one, is what the check of the database wrote last and reads back. Key: 1. Serves: health.health.
create table probe (id integer primary key check (id = 1), value integer not null);

-- # The asset chain

-- A row is an asset chain that is executed here: how far it has come, and the next free numbers. It changes with every
-- block. Key: the chain, and its ID. Serves: avm.getHeight, and the start of the node.
create table ledger (
    chain integer primary key,
    chain_id blob not null unique,
    genesis_hash blob not null,
    genesis_txs integer not null,
    height integer not null,
    next_seq integer not null,
    next_position integer not null
);

-- A row says: the block with this ID was accepted at `height`, in this container. Key: the chain and the height, the ID
-- of the block, or that of the container. Serves: avm.getBlock, avm.getBlockByHeight, and the index of containers.
create table ledger_block (
    chain integer not null,
    height integer not null,
    block_id blob not null,
    container_id blob not null,
    accepted_ns integer not null,
    inner_at integer not null, -- where the block's own bytes begin in the container, from 0
    inner_size integer not null, -- and how many they are
    container blob not null,
    unique (chain, height), unique (chain, block_id), unique (chain, container_id)
);

-- A row is an accepted transaction. Key: the chain and the transaction's ID, or its number in the order of acceptance,
-- which begins with the assets of the genesis. Serves: avm.getTx, avm.getTxStatus, and the index of transactions.
create table ledger_tx (
    chain integer not null,
    seq integer not null,
    txid blob not null,
    height integer not null,
    bytes blob not null,
    unique (chain, txid), unique (chain, seq)
);

-- A row is an unspent output, in the bytes that are sent. Key: the position, and the chain with the output's ID. Serves:
-- avm.getUTXOs, avm.getBalance, avm.getAllBalances, and the execution of transactions.
create table utxo (
    position integer primary key,
    chain integer not null,
    utxo_id blob not null,
    bytes blob not null,
    unique (chain, utxo_id)
);

-- A row says: this address is among the owners of the unspent output at `position`. Key: all columns. Serves:
-- avm.getUTXOs, avm.getBalance and avm.getAllBalances, with one seek per output returned.
create table utxo_owner (chain integer, address blob, position integer, primary key (chain, address, position)) without rowid;

-- A row says: `source` has exported this output to `destination`, and it is not imported yet. Key: both chains, and
-- the position, which counts what one chain has exported to the other, or the output's ID. Serves: avm.getUTXOs with a
-- source chain, and imports.
create table atomic_utxo (
    destination blob not null,
    source blob not null,
    position integer not null,
    utxo_id blob not null,
    bytes blob not null,
    primary key (destination, source, position), unique (destination, source, utxo_id)
) without rowid;

-- A row is the next position of what `source` exports to `destination`. Key: both chains. Serves: exports.
create table atomic_count (
    destination blob,
    source blob,
    next_position integer not null,
    primary key (destination, source)
) without rowid;

-- A row says: this address is among the owners of the exported output at `position`. Key: all columns. Serves:
-- avm.getUTXOs with a source chain.
create table atomic_owner (
    destination blob,
    source blob,
    address blob,
    position integer,
    primary key (destination, source, address, position)
) without rowid;

-- A row says: `destination` took this output before we saw it put there; putting it deletes the row. Key: all columns.
-- Serves: exports.
create table atomic_taken (
    destination blob,
    source blob,
    utxo_id blob,
    primary key (destination, source, utxo_id)
) without rowid;

-- A row says: transaction `seq` gave this address, or took from it, some of `asset`. Key: all columns. Serves:
-- avm.getAddressTxs, newest first, of all assets, and through the index of one.
create table address_tx (
    chain integer,
    address blob,
    seq integer,
    asset blob,
    primary key (chain, address, seq, asset)
) without rowid;
create index address_asset_tx on address_tx (chain, address, asset, seq);

-- A row says: this transaction was refused, and why. Only the last 64 are kept. Key: the position, and the chain with the
-- transaction's ID. Serves: avm.getTxStatus.
create table refused_tx (
    position integer primary key autoincrement,
    chain integer not null,
    txid blob not null,
    reason text not null,
    unique (chain, txid)
);

-- # Containers

-- A row says: this was the `number`-th container (from 0) that this node accepted into the series. Key: the series and
-- the number, or the container's ID. Serves: the index of containers.
create table container (
    series integer not null,
    number integer not null,
    container_id blob not null,
    accepted_ns integer not null,
    source integer, -- of the asset chain: the height of the block or the seq of the transaction that holds the bytes
    bytes blob, -- null where `source` tells them
    unique (series, number), unique (series, container_id)
);

-- A row says how far we have followed a chain that is not executed here, and with what it ended. Key: the chain's ID.
-- Serves: the heights of these chains, and the start of the node.
create table followed (
    chain_id blob primary key,
    count integer not null,
    container_id blob not null,
    block_id blob not null,
    height integer not null
) without rowid;
