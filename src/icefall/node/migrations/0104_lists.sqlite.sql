-- Lists of the primary network: outputs with their history, assets, proposers, and the atomic side of C.

create table listed (chain_id blob primary key, next integer not null) without rowid;
create table chain_output (
    utxo_id blob,
    source blob,
    destination blob not null,
    bytes blob not null,
    created_height integer not null,
    created_time integer not null,
    spent_txid blob,
    spent_height integer,
    spent_time integer,
    primary key (utxo_id, source)
) without rowid;
create table chain_output_owner (
    chain_id blob,
    address blob,
    is_spent integer,
    created_time integer,
    utxo_id blob,
    amount integer not null,
    primary key (chain_id, address, is_spent, created_time, utxo_id)
) without rowid;
create index chain_output_by_amount on chain_output_owner (chain_id, address, is_spent, amount, utxo_id);
create table early_spent (
    utxo_id blob,
    source blob,
    txid blob not null,
    height integer not null,
    time integer not null,
    primary key (utxo_id, source)
) without rowid;
create table asset_tx (chain integer, asset blob, seq integer, primary key (chain, asset, seq)) without rowid;
create table proposed_block (chain_id blob, node_id blob, height integer, primary key (chain_id, node_id, height)) without rowid;
create table c_block (
    height integer primary key,
    block_id blob not null unique,
    time integer not null,
    number integer not null
);
create table c_tx (
    seq integer primary key,
    txid blob not null unique,
    height integer not null,
    bytes blob not null
);
create table c_address_tx (address blob, seq integer, primary key (address, seq)) without rowid;
