-- As in 0001_node.sqlite.sql, which says what a row means, with the names of 0004: no older store is on PostgreSQL.
create table meta (name text collate "C" primary key, value text not null);

create table endpoint_alias (alias text collate "C" primary key, endpoint text not null, position bigint not null);

create table chain_alias (alias text collate "C" primary key, chain_id bytea not null, position bigint not null);

create table logger_level (logger text collate "C" primary key, log_level text not null, display_level text not null);

create table health_result (
    kind text collate "C" not null, name text collate "C" not null, tags text not null, passed bigint not null,
    answer bytea not null, stored_ns bigint not null,
    primary key (kind, name)
);

create table vm_plugin (vm_id text collate "C" primary key, aliases text not null, failure text not null);

create table probe (id bigint primary key check (id = 1), value bigint not null);
