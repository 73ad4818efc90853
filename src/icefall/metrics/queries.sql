-- Statements of the writer (store.py) and the reader of rollups.

-- name: put_rollup
insert or replace into rollup values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- postgres: put_rollup
insert into rollup values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
on conflict (span, period) do update set first_block = excluded.first_block, last_block = excluded.last_block,
    first_time = excluded.first_time, last_time = excluded.last_time, tx_count = excluded.tx_count,
    gas_used = excluded.gas_used, fees = excluded.fees, price_sum = excluded.price_sum, price_max = excluded.price_max,
    tps_max = excluded.tps_max, gps_max = excluded.gps_max, active_hour = excluded.active_hour,
    active_day = excluded.active_day, active_week = excluded.active_week, active_month = excluded.active_month,
    senders_hour = excluded.senders_hour, senders_day = excluded.senders_day, senders_week = excluded.senders_week,
    senders_month = excluded.senders_month, txs_total = excluded.txs_total,
    addresses_total = excluded.addresses_total, contracts_total = excluded.contracts_total,
    deployers_total = excluded.deployers_total;

-- name: rollup_at
select * from rollup where span = :span and period = :period;

-- name: newest_rollup
select * from rollup where span = :span order by period desc limit 1;

-- The newest period of a span before another.
-- name: rollup_before
select * from rollup where span = :span and period < :period order by period desc limit 1;

-- name: rollups_between
select * from rollup where span = :span and period between :first and :last order by period;

-- The rows of a page and the newest one before them.
-- name: rollups_of_page
select * from rollup
where span = :span and period <= :last
  and period >= coalesce((select max(period) from rollup where span = :span and period < :first), :first)
order by period;

-- name: extent
select (select min(period) from rollup where span = :span), (select max(period) from rollup where span = :span);

-- name: every_rollup
select * from rollup where span = :span order by period;

-- name: put_last_rollup_time
insert into meta (name, value) values ('metrics_ran', :at) on conflict (name) do update set value = excluded.value;

-- name: last_rollup_time
select value from meta where name = 'metrics_ran';

-- The addresses of a list that were seen before.
-- name: last_activity
select l.address, l.active, l.sent from json_each(:addresses) given cross join last_activity l on l.address = given.value;

-- postgres: last_activity
select address, active, sent from last_activity where address = any(:addresses);

-- name: newest_active
select coalesce(max(address), 0) from last_activity;

-- name: put_last_activity
insert into last_activity (address, active, sent) values (?, ?, ?)
on conflict (address) do update set active = excluded.active, sent = excluded.sent;

-- postgres: put_last_activity
insert into last_activity (address, active, sent) select * from unnest(?::bigint[], ?::bigint[], ?::bigint[])
on conflict (address) do update set active = excluded.active, sent = excluded.sent;

-- name: put_activity
insert into activity (hour, block, fresh, earlier) values (?, ?, ?, ?);

-- name: deployers
select address from deployer where address in (select value from json_each(:addresses));

-- name: put_deployer
insert into deployer (address, hour) values (?, ?);

-- name: put_block_price
insert into block_price (number, price_sum, price_max) values (?, ?, ?);

-- name: cumulative_txs
select cumulative_txs from block where number = :number;

-- The hour that contains a block, searched from the newest: the cost is that of the hours to roll back.
-- name: hour_of_block
select * from rollup where span = 0 and first_block <= :block order by period desc limit 1;

-- name: activity_from
select fresh, earlier from activity where hour >= :hour order by hour desc, block desc;

-- name: drop_last_activity
delete from last_activity where address = ?;

-- name: drop_activity
delete from activity where hour >= :hour;

-- name: drop_deployers
delete from deployer where hour >= :hour;

-- name: drop_block_prices
delete from block_price where number > :block;

-- name: drop_rollups
delete from rollup where span = :span and period >= :period;

-- name: blocks_between
select b.number, b.time, b.tx_count, b.gas_used, b.fees_spent, p.price_sum, p.price_max
from block b left join block_price p on p.number = b.number
where b.number between :first and :last order by b.number;

-- Addresses seen in a range of blocks, by position; a transaction that creates a contract has no recipient.
-- name: senders_of_txs
select distinct sender from tx where tx_at >= :first and tx_at < :end;

-- name: recipients_of_txs
select distinct recipient from tx where tx_at >= :first and tx_at < :end and kind & 3 <> :creation;

-- name: senders_of_{standard}
select distinct sender from {standard} where log_at >= :first and log_at < :end;

-- name: recipients_of_{standard}
select distinct recipient from {standard} where log_at >= :first and log_at < :end;

-- name: creators_between
select creator from deployment where tx_at >= :first and tx_at < :end order by tx_at, frame;

-- name: address_id
select id from address where address = :address;
