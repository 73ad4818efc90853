-- As in 0003_index.sqlite.sql, which says what a row means.
create table container (
    series bigint not null, number bigint not null, container_id bytea not null, accepted_ns bigint not null,
    source bigint, bytes bytea, primary key (series, number), unique (series, container_id)
);

create table followed (
    chain_id bytea primary key, count bigint not null, container_id bytea not null, block_id bytea not null,
    height bigint not null
);
