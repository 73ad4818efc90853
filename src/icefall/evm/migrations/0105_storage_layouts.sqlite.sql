-- Balances of tokens whose storage layout is proven on their code.

alter table token add column layout blob;
alter table token add column layout_since integer;
create index token_layout_since on token (layout_since) where layout_since is not null;

create table slot (
    token integer not null,
    key blob not null,
    holder integer not null,
    token_id blob not null, -- empty: the token has no IDs
    primary key (token, key)
) without rowid;

create table unclaimed_slot (
    token integer not null,
    key blob not null,
    block integer not null,
    word blob not null,
    primary key (token, key, block)
) without rowid;

create index unclaimed_slot_at on unclaimed_slot (block);

create table slot_change (
    block integer not null,
    token integer not null,
    holder integer not null,
    token_id blob not null, -- empty: the token has no IDs
    primary key (block, token, holder, token_id)
) without rowid;

drop view token_trust;
create view token_trust as
select token, standards, standards_since,
    untrusted_since is not null or (
        coalesce(layout_since, -1) <> first_block and first_block > coalesce((select max(block) from audit), -1)
    ) as is_untrusted,
    case when untrusted_since is not null then 'logs' when layout_since = first_block then 'storage'
        when first_block > coalesce((select max(block) from audit), -1) then 'logs' else 'audited' end as balance_source
from token;
