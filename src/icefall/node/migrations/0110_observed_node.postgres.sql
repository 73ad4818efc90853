-- What an upstream sees of validators. There is nothing to fill it with before the first answer.

create table observed_node (
    node_id bytea primary key,
    time bigint not null,
    uptime bigint not null,
    is_connected bigint not null,
    version text not null,
    benched text not null
);
