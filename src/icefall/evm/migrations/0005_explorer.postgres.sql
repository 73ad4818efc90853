-- As in 0005_explorer.sqlite.sql, which says what a row means.

-- In the collation "C", `lower` changes ASCII letters only, as that of SQLite does.
create index token_by_name on token (lower(name collate "C")) where name is not null;
create index token_by_symbol on token (lower(symbol collate "C")) where symbol is not null;

create table log (
    log_at bigint primary key,
    tx_index bigint not null,
    address bytea not null,
    topic0 bytea not null,
    topics bytea not null,
    data bytea not null
);
create index log_of on log (address, log_at);
create index log_with_topic on log (address, topic0, log_at);

create table call_tree (
    tx_at bigint primary key,
    calls bytea not null
);

create table holder (
    token bigint not null,
    standard bigint not null,
    holder bigint not null,
    balance bytea not null,
    primary key (token, standard, holder)
);
create index holder_by_balance on holder (token, standard, balance, holder);

create table holder_total (
    token bigint not null,
    standard bigint not null,
    holders bigint not null,
    tokens bigint not null,
    primary key (token, standard)
);
