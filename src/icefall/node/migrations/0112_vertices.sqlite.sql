-- The vertices of X's DAG. They are fetched from an upstream, where one has them.

create table vertex (
    number integer primary key,
    vertex_id blob not null unique,
    height integer not null,
    parents blob not null,
    size integer not null,
    is_parent integer not null
);
create index vertex_by_height on vertex (height, number);
create index vertex_childless on vertex (number) where is_parent = 0;

create table vertex_tx (number integer, seq integer, primary key (number, seq)) without rowid;
create index vertex_tx_by_seq on vertex_tx (seq, number);
