-- A row says: a transaction of P, X or C, or a block of P, is an event of a webhook, and a message about it is to be sent.
-- It is written with its block. Rows are deleted after some days. Key: the ID, made from the webhook, block, transaction
-- and sub-event. Serves: delivery, which reads rows in the order of `sequence`.
create table webhook_outbox (
    id text primary key,
    sequence integer not null unique, -- grows with every row that is written or changed
    webhook text not null,
    tx_at integer not null, -- block and index of the transaction
    block_hash blob not null,
    tx_hash blob not null, -- empty: the block itself, by its time
    removals integer not null, -- as in the store of an EVM chain; always 0 here
    is_removed integer not null, -- as above
    created integer not null, -- Unix time
    detail blob not null -- what it is about: webhooks/primary_matching.py
) without rowid;
create index webhook_outbox_by_tx on webhook_outbox (tx_at);
