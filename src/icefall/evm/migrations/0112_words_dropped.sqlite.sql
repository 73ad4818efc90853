-- A token of which a changed word was dropped is no longer known by its storage.

alter table token add column words_dropped_since integer;
create index token_words_dropped on token (words_dropped_since) where words_dropped_since is not null;
update token set words_dropped_since = (select max(u.block) from unclaimed_slot u where u.token = token.token)
where token in (select token from unclaimed_slot group by token having count(*) >= 65536);

drop view token_trust;
create view token_trust as
select token, standards, standards_since,
    untrusted_since is not null or (
        not coalesce(
            layout_since = first_block and standards = layout_standard and words_dropped_since is null, false)
        and first_block > coalesce((select max(block) from audit), -1)
    ) as is_untrusted,
    case when untrusted_since is not null then 'logs'
        when layout_since = first_block and standards = layout_standard and words_dropped_since is null then 'storage'
        when first_block > coalesce((select max(block) from audit), -1) then 'logs' else 'audited' end as balance_source
from token;
