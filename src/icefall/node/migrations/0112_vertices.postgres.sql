-- The vertices of X's DAG. They are fetched from an upstream, where one has them.

create table vertex (
    number bigint primary key,
    vertex_id bytea not null unique,
    height bigint not null,
    parents bytea not null,
    size bigint not null,
    is_parent bigint not null
);
create index vertex_by_height on vertex (height, number);
create index vertex_childless on vertex (number) where is_parent = 0;

create table vertex_tx (number bigint, seq bigint, primary key (number, seq));
create index vertex_tx_by_seq on vertex_tx (seq, number);
