-- Raw logs and calls. Blocks from the meta value `logs_from` (`calls_from`) on have theirs in the store.

-- name: mark
select value from meta where name = :name;

-- name: put_mark
insert into meta (name, value) values (:name, :value) on conflict (name) do update set value = excluded.value;

-- name: drop_mark
delete from meta where name = :name;

-- name: bounds
select min(number), max(number) from block;

-- name: hashes
select number, hash from block where number >= :first and number < :end order by number;

-- name: put_log
insert into log (log_at, tx_index, address, topic0, topics, data) values (?, ?, ?, ?, ?, ?);

-- name: put_calls
insert into call_tree (tx_at, calls) values (?, ?);

-- name: drop_logs
delete from log where log_at >= :low and log_at < :high;

-- name: drop_calls
delete from call_tree where tx_at >= :low and tx_at < :high;

-- name: drop_some_logs
delete from log where log_at in (select log_at from log order by log_at limit :limit);

-- name: drop_some_calls
delete from call_tree where tx_at in (select tx_at from call_tree order by tx_at limit :limit);
