-- How balances changed. A list is a walk along the key of its table.

-- name: native_changes
select n.block, b.time, n.balance from native_balance n join block b on b.number = n.block
where n.address = (select id from address where address = :address) and n.block >= :low and n.block < :high
order by n.block desc limit :limit;

-- name: erc20_changes
select n.block, b.time, n.balance from erc20_balance n join block b on b.number = n.block
where n.holder = (select id from address where address = :address)
    and n.token = (select id from address where address = :token) and n.block >= :low and n.block < :high
order by n.block desc limit :limit;

-- name: is_holder
select t.token is null or t.is_untrusted from erc20_holding h left join token_trust t on t.token = h.token
where h.holder = (select id from address where address = :address) and h.token_address = :token;

-- Periods of the metrics: the first and the last one with a block.
-- name: periods
select (select min(period) from rollup where span = :span), (select max(period) from rollup where span = :span);

-- name: last_block_of_period
select last_block from rollup where span = :span and period <= :period order by period desc limit 1;
