-- How many messages a chain sent and received, by period and by the other chain.

-- name: newest_start
select max(start) from message_count where size = :size and start < :before;

-- name: counts_between
select start, kind, peer, messages from message_count
where size = :size and start >= :first and start < :end order by start, kind, peer;

-- Hours to the first midnight, and days from then on.
-- name: counts_since
select kind, peer, sum(messages) from (
    select kind, peer, messages from message_count where size = 3600 and start >= :first and start < :midnight
    union all
    select kind, peer, messages from message_count where size = 86400 and start >= :midnight) as counted
group by kind, peer order by kind, peer;

-- name: counts_of_all
select kind, peer, messages, txs from message_count where size = 0 and start = 0 order by kind, peer;
