-- As in 0002_metrics.sqlite.sql, which says what a row means.

create table rollup (
    span bigint not null,
    period bigint not null,
    first_block bigint not null,
    last_block bigint not null,
    first_time bigint not null,
    last_time bigint not null,
    tx_count bigint not null,
    gas_used bytea not null,
    fees bytea not null,
    price_sum bytea not null,
    price_max bytea not null,
    tps_max double precision not null,
    gps_max double precision not null,
    active_hour bigint not null,
    active_day bigint not null,
    active_week bigint not null,
    active_month bigint not null,
    senders_hour bigint not null,
    senders_day bigint not null,
    senders_week bigint not null,
    senders_month bigint not null,
    txs_total bigint not null,
    addresses_total bigint not null,
    contracts_total bigint not null,
    deployers_total bigint not null,
    primary key (span, period)
);

create table last_activity (
    address bigint primary key,
    active bigint not null,
    sent bigint not null
);

create table activity (
    hour bigint not null,
    block bigint not null,
    fresh bytea not null,
    earlier bytea not null,
    primary key (hour, block)
);

create table deployer (
    address bigint primary key,
    hour bigint not null
);
create index deployer_since on deployer (hour);

create table block_price (
    number bigint primary key,
    price_sum bytea not null,
    price_max bytea not null
);
