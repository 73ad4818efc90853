-- A row says: a transaction of P, X or C, or a block of P, is an event of a webhook, and a message about it is to be sent.
create table webhook_outbox (
    id text collate "C" primary key,
    sequence bigint not null unique,
    webhook text collate "C" not null,
    tx_at bigint not null,
    block_hash bytea not null,
    tx_hash bytea not null,
    removals bigint not null,
    is_removed bigint not null,
    created bigint not null,
    detail bytea not null
);
create index webhook_outbox_by_tx on webhook_outbox (tx_at);
