-- A row is an event of a messenger contract (ICM, Teleporter). A message was sent (1) or received (2), a received one was
-- executed (3) or failed (4), its receipt came back (5), or its fee was raised (6). Of a message that was sent again the
-- first sending counts. Addresses are not numbers: most are of another chain, and older blocks are filled in later. Key:
-- the position of the log. Serves: messages by ID and, newest first, by chain, sender and recipient.
create table messenger_event (
    log_at integer primary key,
    tx_index integer not null,
    kind integer not null,
    message_id blob not null,
    messenger blob not null,
    peer blob not null, -- blockchain ID of the other chain; empty: kind 6
    party blob not null, -- who delivered the message (2) or is rewarded (5); else empty
    sender blob not null, -- of the message, on its source; empty but for kinds 1 and 2
    recipient blob not null, -- the same on its destination
    data blob not null -- of the log, with runs of zeros packed (`pack_data`); empty for kinds 3 and 4
);
create index messenger_event_of on messenger_event (message_id, kind);
create index messenger_event_newest on messenger_event (kind);
create index messenger_event_peer on messenger_event (kind, peer);
create index messenger_event_from on messenger_event (kind, sender);
create index messenger_event_to on messenger_event (kind, recipient);

-- A row counts the messages that were sent or received in a period, by the other chain. The kind is 1 for those that were
-- sent, 2 for those that were received. A message counts once, where it was sent first; a transaction once, for the first of its messages. Key: the length of the period in
-- seconds (0: all time), its start, the kind and the other chain. Serves: counts of messages over time.
create table message_count (
    size integer not null,
    start integer not null,
    kind integer not null,
    peer blob not null,
    messages integer not null,
    txs integer not null,
    primary key (size, start, kind, peer)
) without rowid;
