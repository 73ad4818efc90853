-- Webhooks may start at a block that was stored before they were created.
alter table webhook add column live_block integer;
alter table webhook add column filled_block integer;
update webhook set live_block = start_block;
