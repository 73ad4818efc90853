-- The store of the node, as PostgreSQL holds it. schema.sqlite.sql says more of each row and column.

-- # The node itself

-- A row is a named value of this data directory, such as the network it is bound to.
create table meta (name text collate "C" primary key, value text not null);

-- A row says: /ext/<alias> is another name of /ext/<endpoint>.
create table endpoint_alias (alias text collate "C" primary key, endpoint text not null, position bigint not null);

-- A row says: `alias` names the chain with this ID, wherever an ID may stand.
create table chain_alias (alias text collate "C" primary key, chain_id bytea not null, position bigint not null);

-- A row says: an administrator set these levels; they hold in every process and after a restart.
create table logger_level (logger text collate "C" primary key, log_level text not null, display_level text not null);

-- A row is the last result of one health check.
create table health_result (
    report text collate "C" not null,
    name text collate "C" not null,
    tags text not null,
    passed bigint not null,
    answer bytea not null,
    stored_ns bigint not null,
    primary key (report, name)
);

-- A row says: admin.loadVMs met this plugin.
create table vm_plugin (
    vm_id text collate "C" primary key,
    aliases text not null,
    failure text not null
);

-- A row, the only one, is what the check of the database wrote last and reads back.
create table probe (id bigint primary key check (id = 1), value bigint not null);

-- # The asset chain

-- A row is an asset chain that is executed here: how far it has come, and the next free numbers.
create table ledger (
    chain bigint primary key,
    chain_id bytea not null unique,
    genesis_hash bytea not null,
    genesis_txs bigint not null,
    height bigint not null,
    next_seq bigint not null,
    next_position bigint not null
);

-- A row says: the block with this ID was accepted at `height`, in this container.
create table ledger_block (
    chain bigint not null,
    height bigint not null,
    block_id bytea not null,
    container_id bytea not null,
    accepted_ns bigint not null,
    inner_at bigint not null,
    inner_size bigint not null,
    container bytea not null,
    primary key (chain, height), unique (chain, block_id), unique (chain, container_id)
);

-- A row is an accepted transaction.
create table ledger_tx (
    chain bigint not null,
    seq bigint not null,
    txid bytea not null,
    height bigint not null,
    bytes bytea not null,
    primary key (chain, seq), unique (chain, txid)
);

-- A row is an unspent output, in the bytes that are sent.
create table utxo (
    position bigint primary key,
    chain bigint not null,
    utxo_id bytea not null,
    bytes bytea not null,
    unique (chain, utxo_id)
);

-- A row says: this address is among the owners of the unspent output at `position`.
create table utxo_owner (chain bigint, address bytea, position bigint, primary key (chain, address, position));

-- A row says: `source` has exported this output to `destination`, and it is not imported yet.
create table atomic_utxo (
    destination bytea not null,
    source bytea not null,
    position bigint not null,
    utxo_id bytea not null,
    bytes bytea not null,
    primary key (destination, source, position), unique (destination, source, utxo_id)
);

-- A row is the next position of what `source` exports to `destination`.
create table atomic_count (
    destination bytea,
    source bytea,
    next_position bigint not null,
    primary key (destination, source)
);

-- A row says: this address is among the owners of the exported output at `position`.
create table atomic_owner (
    destination bytea,
    source bytea,
    address bytea,
    position bigint,
    primary key (destination, source, address, position)
);

-- A row says: `destination` took this output before we saw it put there; putting it deletes the row.
create table atomic_taken (
    destination bytea,
    source bytea,
    utxo_id bytea,
    primary key (destination, source, utxo_id)
);

-- A row says: transaction `seq` gave this address, or took from it, some of `asset`.
create table address_tx (
    chain bigint,
    address bytea,
    seq bigint,
    asset bytea,
    primary key (chain, address, seq, asset)
);
create index address_asset_tx on address_tx (chain, address, asset, seq);

-- A row says: this transaction was refused, and why.
create table refused_tx (
    position bigint primary key,
    chain bigint not null,
    txid bytea not null,
    reason text not null,
    unique (chain, txid)
);

-- # Containers

-- A row says: this was the `number`-th container (from 0) that this node accepted into the series.
create table container (
    series bigint not null,
    number bigint not null,
    container_id bytea not null,
    accepted_ns bigint not null,
    source bigint,
    bytes bytea,
    primary key (series, number), unique (series, container_id)
);

-- A row says how far we have followed a chain that is not executed here, and with what it ended.
create table followed (
    chain_id bytea primary key,
    count bigint not null,
    container_id bytea not null,
    block_id bytea not null,
    height bigint not null
);
