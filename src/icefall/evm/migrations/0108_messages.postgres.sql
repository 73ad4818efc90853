-- A row is an event of a messenger contract (ICM, Teleporter).
create table messenger_event (
    log_at bigint primary key,
    tx_index bigint not null,
    kind bigint not null,
    message_id bytea not null,
    messenger bytea not null,
    peer bytea not null,
    party bytea not null,
    sender bytea not null,
    recipient bytea not null,
    data bytea not null
);
create index messenger_event_of on messenger_event (message_id, kind, log_at);
create index messenger_event_newest on messenger_event (kind, log_at);
create index messenger_event_peer on messenger_event (kind, peer, log_at);
create index messenger_event_from on messenger_event (kind, sender, log_at);
create index messenger_event_to on messenger_event (kind, recipient, log_at);

-- A row counts the messages that were sent or received in a period, by the other chain.
create table message_count (
    size bigint not null,
    start bigint not null,
    kind bigint not null,
    peer bytea not null,
    messages bigint not null,
    txs bigint not null,
    primary key (size, start, kind, peer)
);
