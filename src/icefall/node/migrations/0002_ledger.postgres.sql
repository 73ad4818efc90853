-- As in 0002_ledger.sqlite.sql, which says what a row means, with the names of 0004.
create table ledger (
    chain bigint primary key, chain_id bytea not null unique,
    genesis_hash bytea not null, genesis_txs bigint not null,
    height bigint not null, next_seq bigint not null, next_position bigint not null
);

create table ledger_block (
    chain bigint not null, height bigint not null, block_id bytea not null, container_id bytea not null,
    accepted_ns bigint not null, inner_at bigint not null, inner_size bigint not null, container bytea not null,
    primary key (chain, height), unique (chain, block_id), unique (chain, container_id)
);

create table ledger_tx (
    chain bigint not null, seq bigint not null, txid bytea not null, height bigint not null, bytes bytea not null,
    primary key (chain, seq), unique (chain, txid)
);

create table utxo (position bigint primary key, chain bigint not null, utxo_id bytea not null,
                   bytes bytea not null, unique (chain, utxo_id));

create table utxo_owner (chain bigint, address bytea, position bigint, primary key (chain, address, position));

create table atomic_utxo (
    destination bytea not null, source bytea not null, position bigint not null, utxo_id bytea not null,
    bytes bytea not null,
    primary key (destination, source, position), unique (destination, source, utxo_id)
);

create table atomic_count (destination bytea, source bytea, next_position bigint not null,
                           primary key (destination, source));

create table atomic_owner (destination bytea, source bytea, address bytea, position bigint,
                           primary key (destination, source, address, position));

create table atomic_taken (destination bytea, source bytea, utxo_id bytea,
                           primary key (destination, source, utxo_id));

create table address_tx (chain bigint, address bytea, seq bigint, asset bytea,
                         primary key (chain, address, seq, asset));
create index address_asset_tx on address_tx (chain, address, asset, seq);

create table refused_tx (position bigint primary key, chain bigint not null,
                         txid bytea not null, reason text not null, unique (chain, txid));
