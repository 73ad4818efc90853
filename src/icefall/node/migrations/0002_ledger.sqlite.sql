-- A row is an asset chain kept in this store: how far it has come, and the next free numbers. Moves with every block.
create table ledger (
    chain integer primary key, chain_id blob not null unique, genesis_hash blob not null, genesis_txs integer not null,
    height integer not null, next_seq integer not null, next_place integer not null
);

-- A row says: the block with this ID was accepted at `height`, in this container, at `accepted_ns` of our clock.
-- The block's own bytes are `inner_size` bytes of the container from `inner_at` (0-based) on.
create table ledger_block (
    chain integer not null, height integer not null, block_id blob not null, container_id blob not null,
    accepted_ns integer not null, inner_at integer not null, inner_size integer not null, container blob not null,
    unique (chain, height), unique (chain, block_id), unique (chain, container_id)
);

-- A row is an accepted transaction. `seq` counts them in the order of acceptance, genesis assets first.
create table ledger_tx (
    chain integer not null, seq integer not null, txid blob not null, height integer not null, bytes blob not null,
    unique (chain, txid), unique (chain, seq)
);

-- A row is an unspent output, in the bytes that are sent. `place` grows with every output ever made, so newest first
-- is by `place` downwards.
create table utxo (place integer primary key, chain integer not null, utxo_id blob not null,
                   bytes blob not null, unique (chain, utxo_id));

-- A row says: this address is among the owners of the unspent output at `place`.
-- Serves: getUTXOs, getBalance, getAllBalances, with one seek per output returned.
create table utxo_owner (chain integer, address blob, place integer, primary key (chain, address, place)) without rowid;

-- A row says: `source` has exported this output to `destination`, and nobody has imported it yet. `place` counts what
-- one chain has exported to another, so newest first is by `place` downwards.
create table atomic_utxo (
    destination blob not null, source blob not null, place integer not null, utxo_id blob not null, bytes blob not null,
    primary key (destination, source, place), unique (destination, source, utxo_id)
) without rowid;

create table atomic_count (destination blob, source blob, next_place integer not null,
                           primary key (destination, source)) without rowid;

create table atomic_owner (destination blob, source blob, address blob, place integer,
                           primary key (destination, source, address, place)) without rowid;

-- A row says: `destination` took this output before we saw it put there; putting it cancels the row.
create table atomic_taken (destination blob, source blob, utxo_id blob,
                           primary key (destination, source, utxo_id)) without rowid;

-- A row says: transaction `seq` gave this address, or took from it, some of `asset`.
-- Serves: getAddressTxs, newest first, of all assets or one.
create table address_tx (chain integer, address blob, seq integer, asset blob,
                         primary key (chain, address, seq, asset)) without rowid;
create index address_asset_tx on address_tx (chain, address, asset, seq);

-- A row says: this transaction was refused, and why. Only the last 64 are kept.
create table refused_tx (place integer primary key autoincrement, chain integer not null, txid blob not null,
                         reason text not null, unique (chain, txid));
