-- Rollups, in the chain's own file: they commit with its blocks. Hours, days, weeks (from a Monday) and months are
-- numbered from 1970 (metrics/periods.py). Amounts are `uint` blobs (amounts.py), -1 for an hour means never.

-- A row says what the blocks of one period come to. Block 0 belongs to none; a period without blocks has no row.
-- active_day, in a row of any span: addresses seen in the period that had not been seen before on the same day; so the
-- sum over the hours of a day is the number of addresses of that day. In the same way the others, and senders_*.
-- *_total: since the chain's beginning, to the period's end.
-- Serves: every series, with one range of rows; rolling windows.
create table rollup (
    span integer not null, -- 0 hour, 1 day, 2 week, 3 month
    period integer not null,
    first_block integer not null,
    last_block integer not null,
    first_time integer not null,
    last_time integer not null,
    tx_count integer not null,
    gas_used blob not null,
    fees blob not null,
    price_sum blob not null,
    price_max blob not null,
    tps_max real not null,
    gps_max real not null,
    active_hour integer not null,
    active_day integer not null,
    active_week integer not null,
    active_month integer not null,
    senders_hour integer not null,
    senders_day integer not null,
    senders_week integer not null,
    senders_month integer not null,
    txs_total integer not null,
    addresses_total integer not null,
    contracts_total integer not null,
    deployers_total integer not null,
    primary key (span, period)
) without rowid;

-- The newest hour in which an address was seen, and in which it was on the sending side.
create table last_activity (
    address integer primary key,
    active integer not null,
    sent integer not null
);

-- What a run of blocks that ends an hour's part with `block` changed in last_activity: the way back. MessagePack lists of
-- addresses never seen before, and of (address, active, sent) as they were.
create table activity (
    hour integer not null,
    block integer not null,
    fresh blob not null,
    earlier blob not null,
    primary key (hour, block)
) without rowid;

-- Who created a contract, and the hour of the first one.
create table deployer (
    address integer primary key,
    hour integer not null
);
create index deployer_since on deployer (hour);

-- Gas prices paid in a block that has transactions. Serves: the part of an hour that a window or a rollback cuts off.
create table block_price (
    number integer primary key,
    price_sum blob not null,
    price_max blob not null
);
