-- Lists of the primary network: outputs with their history, assets, proposers, and the atomic side of C.

create table listed (chain_id bytea primary key, next bigint not null);
create table chain_output (
    utxo_id bytea,
    source bytea,
    destination bytea not null,
    bytes bytea not null,
    created_height bigint not null,
    created_time bigint not null,
    spent_txid bytea,
    spent_height bigint,
    spent_time bigint,
    primary key (utxo_id, source)
);
create table chain_output_owner (
    chain_id bytea,
    address bytea,
    is_spent bigint,
    created_time bigint,
    utxo_id bytea,
    amount bigint not null,
    primary key (chain_id, address, is_spent, created_time, utxo_id)
);
create index chain_output_by_amount on chain_output_owner (chain_id, address, is_spent, amount, utxo_id);
create table early_spent (
    utxo_id bytea,
    source bytea,
    txid bytea not null,
    height bigint not null,
    time bigint not null,
    primary key (utxo_id, source)
);
create table asset_tx (chain bigint, asset bytea, seq bigint, primary key (chain, asset, seq));
create table proposed_block (chain_id bytea, node_id bytea, height bigint, primary key (chain_id, node_id, height));
create table c_block (
    height bigint primary key,
    block_id bytea not null unique,
    time bigint not null,
    number bigint not null
);
create table c_tx (
    seq bigint primary key,
    txid bytea not null unique,
    height bigint not null,
    bytes bytea not null
);
create table c_address_tx (address bytea, seq bigint, primary key (address, seq));
