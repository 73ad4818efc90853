-- Who receives the fees of a block, its size, and the fees that no one gets. Of blocks that are there already they stay
-- unknown: the upstream sends them with the block.

alter table block add column fee_recipient bytea;
alter table block add column size bigint;
alter table block add column fees_burned bytea;
