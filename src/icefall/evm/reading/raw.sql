-- Raw logs and calls, where they are stored.

-- name: logs_of_tx
select log_at, address, topic0, topics, data from log
where log_at > :after and log_at < :high and tx_index = :tx_index order by log_at limit :limit;

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
select calls from call_tree where tx_at = :tx_at;

-- name: meta
select value from meta where name = :name;

-- name: block
select hash, time from block where number = :number;

-- name: tip
select number from block where number >= 0 order by number desc limit 1;
