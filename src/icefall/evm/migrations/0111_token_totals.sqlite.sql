-- Totals of tokens: transfers and supply. Holders are counted again in the background, with both.

alter table holder_total add column transfers integer not null default 0;
alter table holder_total add column supply blob not null default x'00';
delete from holder_total;
delete from holder;
delete from meta where name = 'holders_to';
create index token_by_holders on holder_total (holders, token, standard);
create index token_by_transfers on holder_total (transfers, token, standard);
create index price_now on price (currency, token_address) where day = -1;
drop index token_by_name;
create index token_by_name on token (lower(name), token) where name is not null;
