-- A token is called audited once every comparison was made that was due up to its first block.

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
        when first_block > coalesce(
            (select dropped_from - 1 from audit where dropped_from >= 0 order by dropped_from limit 1),
            (select max(block) from audit), -1) then 'logs' else 'audited' end as balance_source
from token;
