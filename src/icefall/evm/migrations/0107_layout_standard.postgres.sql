-- The standard of a layout: a contract of several is trusted by its storage for none.

alter table token add column layout_standard bigint;
update token set layout_standard = 1 where layout_since is not null;

-- Their keys did not tell the slots of a struct or an array apart.
delete from unclaimed_slot;

drop view token_trust;
create view token_trust as
select token, standards, standards_since,
    untrusted_since is not null or (
        not coalesce(layout_since = first_block and standards = layout_standard, false)
        and first_block > coalesce((select max(block) from audit), -1)
    ) as is_untrusted,
    case when untrusted_since is not null then 'logs'
        when layout_since = first_block and standards = layout_standard then 'storage'
        when first_block > coalesce((select max(block) from audit), -1) then 'logs' else 'audited' end as balance_source
from token;
