drop index webhook_message_due;
create index webhook_message_waiting on webhook_message (webhook, next_at, number) where status = 'pending';
