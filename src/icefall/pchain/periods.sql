-- Lists of staking periods and of rewards, each read by a range of its key, in one state at a time.

-- fragment: period
select s.txid, s.subnet_id, s.node_id, s.state, s.start_time, s.end_time, s.weight, s.potential_reward,
       s.delegatee_reward, coalesce(v.shares, s.shares), s.validation_owner, s.delegation_owner, s.public_key,
       s.proof_of_possession, s.seq, s.is_delegator, s.delegator_count, s.delegator_weight, s.delegator_fees,
       s.ever_count, s.ever_weight, s.prepaid, s.capacity, e.txid, b.time, v.delegation_owner

-- fragment: period_joins
left join p_staker v on v.seq = s.validator_seq left join p_tx e on e.seq = s.ended_seq
left join p_block b on b.height = e.height

-- name: listed_down
{period} from p_staker s {period_joins}
where s.is_delegator = :is_delegator and s.state = :state and s.seq >= :low and s.seq < :below
order by s.seq desc limit :limit;

-- name: listed_up
{period} from p_staker s {period_joins}
where s.is_delegator = :is_delegator and s.state = :state and s.seq >= :low and s.seq < :below
order by s.seq limit :limit;

-- name: of_subnet_down
{period} from p_staker s {period_joins}
where s.subnet_id = :key and s.is_delegator = :is_delegator and s.state = :state and s.seq >= :low and s.seq < :below
order by s.seq desc limit :limit;

-- name: of_subnet_up
{period} from p_staker s {period_joins}
where s.subnet_id = :key and s.is_delegator = :is_delegator and s.state = :state and s.seq >= :low and s.seq < :below
order by s.seq limit :limit;

-- name: of_node_down
{period} from p_staker s {period_joins}
where s.node_id = :key and s.is_delegator = :is_delegator and s.state = :state and s.seq >= :low and s.seq < :below
order by s.seq desc limit :limit;

-- name: of_node_up
{period} from p_staker s {period_joins}
where s.node_id = :key and s.is_delegator = :is_delegator and s.state = :state and s.seq >= :low and s.seq < :below
order by s.seq limit :limit;

-- name: of_owner_down
{period} from p_stake_owner o join p_staker s on s.seq = o.seq {period_joins}
where o.address = :key and o.role = :role and o.state = :state and o.seq >= :low and o.seq < :below
order by o.seq desc limit :limit;

-- name: of_owner_up
{period} from p_stake_owner o join p_staker s on s.seq = o.seq {period_joins}
where o.address = :key and o.role = :role and o.state = :state and o.seq >= :low and o.seq < :below
order by o.seq limit :limit;

-- name: by_end_down
{period} from p_staker s {period_joins} where s.is_delegator = 0 and s.state = 1 and s.subnet_id = :key
and (s.end_time, s.seq) < (:value, :seq) order by s.end_time desc, s.seq desc limit :limit;

-- name: by_end_up
{period} from p_staker s {period_joins} where s.is_delegator = 0 and s.state = 1 and s.subnet_id = :key
and (s.end_time, s.seq) > (:value, :seq) order by s.end_time, s.seq limit :limit;

-- name: by_fee_down
{period} from p_staker s {period_joins} where s.is_delegator = 0 and s.state = 1 and s.subnet_id = :key
and (s.shares, s.seq) < (:value, :seq) order by s.shares desc, s.seq desc limit :limit;

-- name: by_fee_up
{period} from p_staker s {period_joins} where s.is_delegator = 0 and s.state = 1 and s.subnet_id = :key
and (s.shares, s.seq) > (:value, :seq) order by s.shares, s.seq limit :limit;

-- name: by_capacity_down
{period} from p_staker s {period_joins} where s.is_delegator = 0 and s.state = 1 and s.subnet_id = :key
and (s.capacity, s.seq) < (:value, :seq) order by s.capacity desc, s.seq desc limit :limit;

-- name: by_capacity_up
{period} from p_staker s {period_joins} where s.is_delegator = 0 and s.state = 1 and s.subnet_id = :key
and (s.capacity, s.seq) > (:value, :seq) order by s.capacity, s.seq limit :limit;

-- The rewards that were paid to an address, or for a node.
-- name: rewards_down
select u.position, u.utxo_id, u.bytes, u.kind, s.txid, s.node_id, s.weight, s.start_time, s.end_time, t.txid, s.subnet_id
from p_reward_of o join p_utxo u on u.position = o.position join p_staker s on s.seq = u.reward_of
join p_tx t on t.seq = u.created_seq
where o.owner = :owner and o.is_node = :is_node and o.position >= :low and o.position < :below
order by o.position desc limit :limit;

-- name: rewards_up
select u.position, u.utxo_id, u.bytes, u.kind, s.txid, s.node_id, s.weight, s.start_time, s.end_time, t.txid, s.subnet_id
from p_reward_of o join p_utxo u on u.position = o.position join p_staker s on s.seq = u.reward_of
join p_tx t on t.seq = u.created_seq
where o.owner = :owner and o.is_node = :is_node and o.position >= :low and o.position < :below
order by o.position limit :limit;

-- The sums after the last block.
-- name: stake_total
select validators, validator_weight, delegators, delegator_weight, reward from p_stake_day
where subnet_id = :subnet_id order by day desc limit 1;

-- What is locked still at some time; the amount and both times are stored as signed numbers.
-- name: locked
select amount, locktime, stakeable_locktime from p_utxo
where state < 2 and (locktime <> 0 or stakeable_locktime <> 0) and asset_id = :asset_id;
