-- A row says: a transaction of a stored block is an event of a webhook, and a message about it is to be sent. It is written
-- with its block. If that is rolled back, the row stays and says so. Rows are deleted after some days. Key: the ID, made
-- from the webhook, block and transaction. Serves: delivery, which reads rows in the order of `sequence`.
create table webhook_outbox (
    id text primary key,
    sequence integer not null unique, -- grows with every row that is written or changed
    webhook text not null,
    tx_at integer not null, -- block and index of the transaction
    block_hash blob not null,
    tx_hash blob not null,
    removals integer not null, -- how often its block was rolled back
    is_removed integer not null, -- 1: its block is not part of the chain now
    created integer not null, -- Unix time
    detail blob not null -- what the other rows of the transaction do not say: webhooks/matching.py
) without rowid;
create index webhook_outbox_by_tx on webhook_outbox (tx_at);
