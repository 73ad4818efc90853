-- Raw logs and calls, where they are stored.

-- A row at least, as long as the block is there: from which block on logs are stored, and the logs.
-- name: logs_of_tx
select m.value, l.log_at, l.address, l.topic0, l.topics, l.data
from block b
left join meta m on m.name = 'logs_from'
left join log l on l.log_at > :after and l.log_at < :high and l.tx_index = :tx_index
where b.number = :number and b.hash = :hash
order by l.log_at limit :limit;

-- name: logs_of
select l.log_at, l.address, l.topic0, l.topics, l.data, l.tx_index, b.hash, b.time, t.hash
from log l
join block b on b.number = l.log_at >> 24
join tx t on t.tx_at = (l.log_at & -16777216) | l.tx_index
where l.address = :address and l.log_at >= :low and l.log_at < :high
order by l.log_at desc limit :limit;

-- name: logs_with_topic
select l.log_at, l.address, l.topic0, l.topics, l.data, l.tx_index, b.hash, b.time, t.hash
from log l
join block b on b.number = l.log_at >> 24
join tx t on t.tx_at = (l.log_at & -16777216) | l.tx_index
where l.address = :address and l.topic0 = :topic0 and l.log_at >= :low and l.log_at < :high
order by l.log_at desc limit :limit;

-- name: calls
select m.value, c.calls
from block b
left join meta m on m.name = 'calls_from'
left join call_tree c on c.tx_at = :tx_at
where b.number = :number and b.hash = :hash;

-- name: meta
select value from meta where name = :name;

-- name: block
select hash, time from block where number = :number;

-- name: tip
select number from block where number >= 0 order by number desc limit 1;
