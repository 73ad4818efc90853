-- As in 0001_chain.sqlite.sql, which says what a row means, with the names of 0003: no older store is on PostgreSQL.
-- Amounts are `uint` bytes (amounts.py) here too: smaller and faster than numeric (docs/decisions/0019-postgresql.md).

create table meta (
    name text collate "C" not null primary key,
    value text not null
);

create table address (
    id bigint primary key,
    address bytea not null unique
);

create table block (
    number bigint primary key,
    hash bytea not null unique,
    parent_hash bytea not null,
    time bigint not null,
    tx_count bigint not null,
    base_fee bytea not null,
    gas_used bytea not null,
    gas_limit bytea not null,
    gas_cost bytea not null,
    fees_spent bytea not null,
    cumulative_txs bigint not null,
    next_address bigint not null,
    touched bytea not null
);

create table tx (
    tx_at bigint primary key,
    hash bytea not null,
    sender bigint not null,
    recipient bigint not null,
    value bytea not null,
    nonce bytea not null,
    gas_limit bytea not null,
    gas_used bytea not null,
    gas_price bytea not null,
    max_fee bytea,
    max_priority_fee bytea,
    kind bigint not null,
    selector bytea not null,
    input bytea not null
);
create index tx_by_hash on tx (substr(hash, 1, 6));

create table native_of (
    address bigint not null,
    tx_at bigint not null,
    primary key (address, tx_at)
);

create table touch_of (
    address bigint not null,
    tx_at bigint not null,
    primary key (address, tx_at)
);

create table erc20 (
    log_at bigint primary key,
    tx_index bigint not null,
    token bigint not null,
    sender bigint not null,
    recipient bigint not null,
    value bytea not null
);
create index erc20_in on erc20 (token, log_at);
create table erc20_of (
    address bigint not null,
    log_at bigint not null,
    primary key (address, log_at)
);

create table erc721 (
    log_at bigint primary key,
    tx_index bigint not null,
    token bigint not null,
    sender bigint not null,
    recipient bigint not null,
    token_id bytea not null
);
create index erc721_in on erc721 (token, log_at);
create table erc721_of (
    address bigint not null,
    log_at bigint not null,
    primary key (address, log_at)
);

create table erc1155 (
    log_at bigint not null,
    position bigint not null,
    tx_index bigint not null,
    token bigint not null,
    sender bigint not null,
    recipient bigint not null,
    token_id bytea not null,
    value bytea not null,
    primary key (log_at, position)
);
create index erc1155_in on erc1155 (token, log_at, position);
create table erc1155_of (
    address bigint not null,
    log_at bigint not null,
    primary key (address, log_at)
);

create table internal (
    tx_at bigint not null,
    frame bigint not null,
    kind text not null,
    sender bigint not null,
    recipient bigint,
    value bytea not null,
    gas_limit bytea not null,
    gas_used bytea not null,
    is_reverted bigint not null,
    primary key (tx_at, frame)
);
create table internal_of (
    address bigint not null,
    tx_at bigint not null,
    frame bigint not null,
    primary key (address, tx_at, frame)
);

create table deployment (
    address bigint not null,
    tx_at bigint not null,
    frame bigint not null,
    creator bigint not null,
    primary key (address, tx_at, frame)
);
create index deployment_at on deployment (tx_at, frame);

create table deployed_by (
    address bigint not null,
    tx_at bigint not null,
    frame bigint not null,
    primary key (address, tx_at, frame)
);

create table message (
    tx_at bigint primary key,
    message_id bytea not null,
    peer_blockchain_id bytea not null,
    is_source bigint not null
);

create table native_balance (
    address bigint not null,
    block bigint not null,
    balance bytea not null,
    before bytea,
    primary key (address, block)
);

create table erc20_balance (
    holder bigint not null,
    token bigint not null,
    block bigint not null,
    balance bytea not null,
    primary key (holder, token, block)
);

create table erc20_holding (
    holder bigint not null,
    token_address bytea not null,
    token bigint not null,
    since bigint not null,
    baseline bytea not null,
    primary key (holder, token_address)
);
create index erc20_holder on erc20_holding (token, since, holder);

create table erc1155_balance (
    holder bigint not null,
    token bigint not null,
    token_id bytea not null,
    block bigint not null,
    balance bytea not null,
    primary key (holder, token, token_id, block)
);
create table erc1155_holding (
    holder bigint not null,
    token_address bytea not null,
    token_id bytea not null,
    token bigint not null,
    since bigint not null,
    baseline bytea not null,
    primary key (holder, token_address, token_id)
);
create index erc1155_holder on erc1155_holding (token, since, holder, token_id);

create table nft_owner (
    token bigint not null,
    token_id bytea not null,
    block bigint not null,
    owner bigint not null,
    before bigint,
    primary key (token, token_id, block)
);

create table nft_held (
    owner bigint not null,
    token_address bytea not null,
    token_id bytea not null,
    token bigint not null,
    primary key (owner, token_address, token_id)
);

create table code (
    address bigint not null,
    block bigint not null,
    has_code bigint not null,
    primary key (address, block)
);

create table token (
    token bigint primary key,
    first_block bigint not null,
    standards bigint not null default 0,
    kind text,
    untrusted_since bigint,
    name text,
    symbol text,
    decimals bigint,
    read_at bigint,
    retry_at bigint not null default 0,
    failures bigint not null default 0
);
create index token_to_read on token (retry_at) where read_at is null;
create index token_since on token (first_block);

create table nft (
    token bigint not null,
    token_id bytea not null,
    first_block bigint not null,
    token_uri text not null default '',
    status text not null default 'UNINDEXED',
    read_at bigint,
    retry_at bigint default 0,
    failures bigint not null default 0,
    metadata text not null default '{}',
    primary key (token, token_id)
);
create index nft_to_read on nft (retry_at) where retry_at is not null;
create index nft_to_read_of on nft (token, retry_at, token_id) where retry_at is not null;

create table price (
    token_address bytea not null,
    currency text collate "C" not null,
    day bigint not null,
    value text not null,
    primary key (token_address, currency, day)
);

create table reputation (
    token_address bytea not null primary key,
    reputation text not null
);
