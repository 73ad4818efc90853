-- Sums by day: of stakers, and of the fees of L1 validators.

-- name: stake_extent
select (select min(day) from p_stake_day where subnet_id = :subnet_id), time from p_ledger where id = 1;

-- The sums that hold on the first day, and those of later days with a change.
-- name: stake_days
select day, validators, validator_weight, delegators, delegator_weight from p_stake_day
where subnet_id = :subnet_id and day <= :last and day >= coalesce(
    (select max(day) from p_stake_day where subnet_id = :subnet_id and day <= :first), :first)
order by day;

-- name: fee_extent
select (select min(day) from p_l1_fee_day where scope = :scope and key = :key), time from p_ledger where id = 1;

-- The same, each with what the chain has accrued now.
-- name: fee_days
select f.day, f.active, f.paying, f.paid, f.since, l.accrued_fees
from p_l1_fee_day f join p_ledger l on l.id = 1
where f.scope = :scope and f.key = :key and f.day <= :last and f.day >= coalesce(
    (select max(day) from p_l1_fee_day where scope = :scope and key = :key and day <= :first), :first)
order by f.day;

-- name: accrued_days
select day, accrued from p_accrued_day where day >= :first and day <= :last;

-- Whether L1 validators paid fees before a release that has sums of them.
-- name: fees_missing
select 1 from meta where name = 'p_l1_fees_missing';

-- Validators of a subnet in one state, with the time of the transaction that made them stake.
-- name: staking
select s.seq, s.validation_owner, b.time
from p_staker s join p_tx t on t.seq = s.seq join p_block b on b.height = t.height
where s.subnet_id = :subnet_id and s.is_delegator = 0 and s.state = :state and s.seq >= :low and s.seq < :below
order by s.seq desc limit :limit;
