-- Webhooks may start at a block that was stored before they were created.
alter table webhook add column live_block bigint;
alter table webhook add column filled_block bigint;
update webhook set live_block = start_block;
