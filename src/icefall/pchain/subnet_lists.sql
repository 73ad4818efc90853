-- Lists of subnets, blockchains and validators of L1s, each read by a range of its key.

-- fragment: subnet
select s.subnet_id, s.owner, s.seq, s.transformation_txid, s.asset_id, s.min_consumption_rate, s.max_consumption_rate,
       s.supply_cap, s.min_validator_stake, s.min_delegator_stake, s.conversion_id, s.manager_chain_id,
       s.manager_address, s.conversion_txid, t.height, b.time
from p_subnet s join p_tx t on t.seq = s.seq join p_block b on b.height = t.height

-- name: subnets_down
{subnet} where s.seq >= :low and s.seq < :below order by s.seq desc limit :limit;

-- name: subnets_up
{subnet} where s.seq >= :low and s.seq < :below order by s.seq limit :limit;

-- name: subnet
{subnet} where s.subnet_id = :subnet_id;

-- fragment: chain
select c.chain_id, c.subnet_id, c.name, c.vm_id, c.seq, c.evm_chain_id, t.height, b.time
from p_blockchain c join p_tx t on t.seq = c.seq join p_block b on b.height = t.height

-- name: chains_down
{chain} where c.seq >= :low and c.seq < :below order by c.seq desc limit :limit;

-- name: chains_up
{chain} where c.seq >= :low and c.seq < :below order by c.seq limit :limit;

-- name: chain
{chain} where c.chain_id = :chain_id;

-- name: chains_of
{chain} where c.subnet_id = ? order by c.seq;

-- postgres: chains_of
{chain} where c.subnet_id = any(?) order by c.seq;

-- fragment: l1
select validation_id, subnet_id, node_id, public_key, weight, start_time, min_nonce, end_accumulated_fee,
       remaining_balance_owner, deactivation_owner, inactive_since, proof_of_possession, status from p_l1_validator

-- name: l1_listed
{l1} where status = :status and (start_time, validation_id) < (:start, :validation_id)
order by start_time desc, validation_id desc limit :limit;

-- name: l1_of_subnet
{l1} where subnet_id = :key and status = :status and (start_time, validation_id) < (:start, :validation_id)
order by start_time desc, validation_id desc limit :limit;

-- name: l1_of_node
{l1} where node_id = :key and status = :status and (start_time, validation_id) < (:start, :validation_id)
order by start_time desc, validation_id desc limit :limit;

-- name: l1_validation
{l1} where validation_id = :validation_id;

-- Whether P was executed by a release that had no sums of stakers, rewards and fees.
-- name: sums_missing
select 1 from meta where name = 'p_sums_missing';
