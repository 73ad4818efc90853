-- A row says: this was the `number`-th container (from 0) that this node accepted into the series, at `accepted_ns`.
-- The asset chain's bytes are in its own tables already: there `source` is the height of the block or the seq of the
-- transaction, and `bytes` is null.
create table container (
    series integer not null, number integer not null, container_id blob not null, accepted_ns integer not null,
    source integer, bytes blob, unique (series, number), unique (series, container_id)
);

-- A row says how far we have followed a chain that is not executed here, and with what it ended.
create table followed (
    chain_id blob primary key, count integer not null, container_id blob not null, block_id blob not null,
    height integer not null
) without rowid;
