-- What an upstream sees of validators. There is nothing to fill it with before the first answer.

create table observed_node (
    node_id blob primary key,
    time integer not null,
    uptime integer not null,
    is_connected integer not null,
    version text not null,
    benched text not null
) without rowid;
