-- Balances of tokens whose storage layout is proven on their code.

alter table token add column layout bytea;
alter table token add column layout_since bigint;
create index token_layout_since on token (layout_since) where layout_since is not null;

create table slot (
    token bigint not null,
    key bytea not null,
    holder bigint not null,
    token_id bytea not null,
    primary key (token, key)
);

create table unclaimed_slot (
    token bigint not null,
    key bytea not null,
    block bigint not null,
    word bytea not null,
    primary key (token, key, block)
);

create index unclaimed_slot_at on unclaimed_slot (block);

create table slot_change (
    block bigint not null,
    token bigint not null,
    holder bigint not null,
    token_id bytea not null,
    primary key (block, token, holder, token_id)
);

drop view token_trust;
create view token_trust as
select token, standards, standards_since,
    untrusted_since is not null or (
        coalesce(layout_since, -1) <> first_block and first_block > coalesce((select max(block) from audit), -1)
    ) as is_untrusted,
    case when untrusted_since is not null then 'logs' when layout_since = first_block then 'storage'
        when first_block > coalesce((select max(block) from audit), -1) then 'logs' else 'audited' end as balance_source
from token;
