-- What shows that a token is untrusted, the end of a proof and what audits left out are rolled back with their block.

alter table token add column differed_at bigint;
create index token_untrusted on token (untrusted_since) where untrusted_since is not null;
create index token_differed on token (differed_at) where differed_at is not null;

alter table audit add column dropped_from bigint;
create index audit_dropped on audit (dropped_from) where dropped_from is not null;
update audit set dropped_from = (select cast(value as bigint) from meta where name = 'audits_dropped_from')
where block = (select max(block) from audit);
delete from meta where name = 'audits_dropped_from';

create table earlier_layout (
    token bigint not null,
    block bigint not null,
    layout bytea not null,
    layout_since bigint not null,
    layout_standard bigint not null,
    primary key (token, block)
);
create index earlier_layout_at on earlier_layout (block);

-- Layouts that were proven although the diffs of some blocks are missing.
update token set layout = null, layout_since = null, layout_standard = null
where layout is not null and exists (select 1 from meta where name = 'has_diffs' and value = '0');

drop view token_trust;
create view token_trust as
select token, standards, standards_since,
    untrusted_since is not null or differed_at is not null or (
        not coalesce(
            layout_since = first_block and standards = layout_standard and words_dropped_since is null, false)
        and first_block > coalesce((select max(block) from audit), -1)
    ) as is_untrusted,
    case when untrusted_since is not null or differed_at is not null then 'logs'
        when layout_since = first_block and standards = layout_standard and words_dropped_since is null then 'storage'
        when first_block > coalesce((select max(block) from audit), -1) then 'logs' else 'audited' end as balance_source
from token;
