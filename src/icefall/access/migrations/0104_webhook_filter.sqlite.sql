-- Webhooks of the primary network: which keys and sub-events they are about, as JSON.
alter table webhook add column filter text not null default '';
