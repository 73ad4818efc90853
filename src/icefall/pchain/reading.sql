-- What workers read of the P-Chain.

-- name: ledger
select height, block_id, time, fee_capacity, fee_excess, l1_excess, accrued_fees, burned, rewards_paid, l1_fees
from p_ledger where id = 1;

-- fragment: block
select substr(coalesce(b.container, c.bytes), cast(b.inner_at + 1 as int), cast(b.inner_size as int)) from p_block b
left join container c on c.series = 2 and c.container_id = b.container_id

-- name: block_at
{block} where b.height = :height;

-- name: block
{block} where b.block_id = :block_id;

-- name: tx
select bytes, is_committed, height from p_tx where txid = :txid;

-- name: utxos_of_address
select u.position, u.utxo_id, u.bytes from p_utxo_owner o join p_utxo u on u.position = o.position
where o.address = :address and o.state = 0 and o.position < :below order by o.position desc limit :limit;

-- name: stakes
select u.bytes, s.priority, s.start_time, s.end_time, s.txid from p_utxo_owner o
join p_utxo u on u.position = o.position join p_tx t on t.seq = u.created_seq join p_staker s on s.txid = t.txid
where o.address = :address and o.state = 1;

-- name: utxo_position
select o.position from p_utxo u join p_utxo_owner o on o.state = u.state and o.position = u.position
where u.utxo_id = :utxo_id and u.state = 0 and o.address = :address;

-- name: atomic_of_address
select u.position, u.utxo_id, u.bytes from atomic_owner o
join atomic_utxo u on u.destination = o.destination and u.source = o.source and u.position = o.position
where o.destination = :destination and o.source = :source and o.address = :address and o.position < :below
order by o.position desc limit :limit;

-- name: atomic_position
select u.position from atomic_utxo u join atomic_owner o
on o.destination = u.destination and o.source = u.source and o.position = u.position
where u.destination = :destination and u.source = :source and u.utxo_id = :utxo_id and o.address = :address;

-- name: reward_utxos
select u.bytes from p_tx t join p_utxo u on u.reward_of = t.seq where t.txid = :txid order by u.position;

-- fragment: subnet_columns
subnet_id, owner, seq, transformation_txid, asset_id, min_consumption_rate, max_consumption_rate, supply_cap,
min_validator_stake, min_delegator_stake, conversion_id, manager_chain_id, manager_address, conversion_txid

-- name: subnet
select {subnet_columns} from p_subnet where subnet_id = :subnet_id;

-- name: subnets
select {subnet_columns} from p_subnet order by seq;

-- name: supply
select supply from p_supply where subnet_id = :subnet_id;

-- name: blockchains
select chain_id, subnet_id, name, vm_id, seq, evm_chain_id from p_blockchain order by seq;

-- name: blockchain
select chain_id, subnet_id, name, vm_id, seq, evm_chain_id from p_blockchain where chain_id = :chain_id;

-- name: blockchains_of
select chain_id, subnet_id, name, vm_id, seq, evm_chain_id from p_blockchain where subnet_id = :subnet_id order by seq;

-- fragment: staker_columns
txid, subnet_id, node_id, weight, start_time, end_time, potential_reward, priority, shares, validation_owner,
delegation_owner, public_key, proof_of_possession, seq, validator_seq, delegatee_reward

-- name: validators
select {staker_columns} from p_staker
where state = 1 and subnet_id = :subnet_id and priority in (7, 9, 11) order by end_time, priority, txid;

-- name: stakers_of_node
select {staker_columns} from p_staker
where state = 1 and subnet_id = :subnet_id and node_id = :node_id order by end_time, priority, txid;

-- Weights are 64-bit numbers without sign, and a sum of them has more bits than either engine has: the two halves of
-- each are summed.
-- name: delegations
select node_id, count(*), cast(sum((weight >> 32) & 4294967295) as bigint), cast(sum(weight & 4294967295) as bigint)
from p_staker
where state = 1 and subnet_id = :subnet_id and priority in (8, 10) group by node_id;

-- fragment: l1_columns
validation_id, subnet_id, node_id, public_key, weight, start_time, min_nonce, end_accumulated_fee,
remaining_balance_owner, deactivation_owner, inactive_since, proof_of_possession

-- name: l1_validators
select {l1_columns} from p_l1_validator where subnet_id = :subnet_id and is_removed = 0 order by node_id;

-- name: l1_validator
select {l1_columns} from p_l1_validator where validation_id = :validation_id and is_removed = 0;

-- name: validator_set
select height, members from p_validator_set where subnet_id = :subnet_id and height <= :height
order by height desc limit 1;

-- name: weight_changes
select node_id, weight, public_key from p_weight_change
where subnet_id = :subnet_id and height > :above and height <= :height order by height;

-- name: subnets_with_validators
select distinct subnet_id from p_weight_change where height <= :height;
