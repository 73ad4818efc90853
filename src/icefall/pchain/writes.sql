-- What the engine writes and reads of the P-Chain while it executes blocks.

-- name: ledger
select genesis_hash, height, block_id, time, next_seq, next_position, fee_capacity, fee_excess, l1_excess, accrued_fees,
       burned, rewards_paid, l1_fees
from p_ledger where id = 1;

-- name: genesis
select l.genesis_hash, b.block_id from p_ledger l join p_block b on b.height = 0 where l.id = 1;

-- name: put_ledger
insert into p_ledger (id, genesis_hash, height, block_id, time, next_seq, next_position, fee_capacity, fee_excess,
                      l1_excess, accrued_fees, burned, rewards_paid, l1_fees)
values (1, :genesis_hash, :height, :block_id, :time, :next_seq, :next_position, :fee_capacity, :fee_excess, :l1_excess,
        :accrued_fees, :burned, :rewards_paid, :l1_fees);

-- name: advance_ledger
update p_ledger set height = :height, block_id = :block_id, time = :time, next_seq = :next_seq,
                    next_position = :next_position, fee_capacity = :fee_capacity, fee_excess = :fee_excess,
                    l1_excess = :l1_excess, accrued_fees = :accrued_fees, burned = :burned,
                    rewards_paid = :rewards_paid, l1_fees = :l1_fees
where id = 1 and height = :height_before;

-- name: put_block
insert into p_block (height, block_id, block_type, time, tx_count, inner_at, inner_size, container_id, container, supply,
                     active_l1, accrued_fees)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- The same advance of time may be proposed again after it was aborted: it has its newest place, and its old number is
-- that of no transaction.
-- name: put_tx
insert into p_tx (seq, txid, height, type, is_committed, bytes) values (?, ?, ?, ?, ?, ?)
on conflict (txid) do update set seq = excluded.seq, height = excluded.height, is_committed = excluded.is_committed;

-- name: put_utxo
insert into p_utxo (position, utxo_id, bytes, addresses, asset_id, amount, state, kind, locktime, stakeable_locktime,
                    created_seq, created_time, stake_start, stake_end, reward_of, returned_seq, returned_time,
                    spent_seq, spent_time, made)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: spend_utxo
update p_utxo set state = 2, spent_seq = ?, spent_time = ? where position = ?;

-- name: change_utxo
update p_utxo set position = ?, state = ?, returned_seq = ?, returned_time = ?, spent_seq = ?, spent_time = ?
where position = ?;

-- name: put_owner
insert into p_utxo_owner (address, state, made, position, amount) values (?, ?, ?, ?, ?);

-- name: change_owner
update p_utxo_owner set state = ?, position = ? where address = ? and state = ? and made = ?;

-- name: put_address_tx
insert into p_address_tx (address, seq) values (?, ?);

-- name: put_staker
insert into p_staker (txid, subnet_id, node_id, state, priority, start_time, end_time, weight, potential_reward,
                      delegatee_reward, shares, validation_owner, delegation_owner, public_key, proof_of_possession,
                      height, seq, is_delegator, validator_seq, ended_seq, delegator_count, delegator_weight,
                      delegator_fees, ever_count, ever_weight, prepaid, capacity)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, '0', '0', 0, '0', '0', 0)
on conflict (txid) do update set state = excluded.state, priority = excluded.priority,
                                 start_time = excluded.start_time, potential_reward = excluded.potential_reward,
                                 height = excluded.height, validator_seq = excluded.validator_seq,
                                 ended_seq = excluded.ended_seq;

-- name: put_delegations
update p_staker set delegator_count = ?, delegator_weight = ?, delegator_fees = ?, ever_count = ?, ever_weight = ?,
                    prepaid = ?, capacity = ? where txid = ?;

-- name: change_stake_owner
update p_stake_owner set state = ? where seq = ? and state < 2;

-- name: put_stake_owner
insert into p_stake_owner (address, role, state, seq) values (?, ?, ?, ?);

-- name: put_reward_of
insert into p_reward_of (owner, is_node, position) values (?, ?, ?);

-- name: put_stake_day
insert into p_stake_day (subnet_id, day, validators, delegators, validator_weight, delegator_weight, reward)
values (?, ?, ?, ?, ?, ?, ?)
on conflict (subnet_id, day) do update set
    validators = excluded.validators, delegators = excluded.delegators, validator_weight = excluded.validator_weight,
    delegator_weight = excluded.delegator_weight, reward = excluded.reward;

-- name: any_stake_day
select 1 from p_stake_day limit 1;

-- name: delegations
select txid, delegator_count, delegator_weight, delegator_fees, ever_count, ever_weight, prepaid, capacity
from p_staker where state = 1 and is_delegator = 0;

-- name: put_delegatee_reward
update p_staker set delegatee_reward = ? where txid = ?;

-- name: put_supply
insert into p_supply (subnet_id, supply) values (?, ?) on conflict (subnet_id) do update set supply = excluded.supply;

-- name: put_subnet
insert into p_subnet (subnet_id, owner, transformation_txid, asset_id, min_consumption_rate, max_consumption_rate,
                      supply_cap, min_validator_stake, min_delegator_stake, conversion_id, manager_chain_id,
                      manager_address, seq, conversion_txid)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
on conflict (subnet_id) do update set
    owner = excluded.owner, transformation_txid = excluded.transformation_txid, asset_id = excluded.asset_id,
    min_consumption_rate = excluded.min_consumption_rate, max_consumption_rate = excluded.max_consumption_rate,
    supply_cap = excluded.supply_cap, min_validator_stake = excluded.min_validator_stake,
    min_delegator_stake = excluded.min_delegator_stake, conversion_id = excluded.conversion_id,
    manager_chain_id = excluded.manager_chain_id, manager_address = excluded.manager_address,
    conversion_txid = excluded.conversion_txid;

-- name: put_blockchain
insert into p_blockchain (chain_id, subnet_id, name, vm_id, seq, evm_chain_id) values (?, ?, ?, ?, ?, ?);

-- name: put_l1_move
insert into p_l1_move (seq, validation_id, weight, balance, change) values (?, ?, ?, ?, ?);

-- name: clear_l1_move
delete from p_l1_move;

-- name: put_l1_validator
insert into p_l1_validator (validation_id, subnet_id, node_id, public_key, weight, start_time, min_nonce,
                            end_accumulated_fee, remaining_balance_owner, deactivation_owner, is_removed, height,
                            status, inactive_since, proof_of_possession)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
on conflict (validation_id) do update set weight = excluded.weight, min_nonce = excluded.min_nonce,
                                          end_accumulated_fee = excluded.end_accumulated_fee,
                                          is_removed = excluded.is_removed, height = excluded.height,
                                          status = excluded.status, inactive_since = excluded.inactive_since;

-- name: put_fee_sum
insert into p_l1_fee_day (scope, key, day, active, paying, paid, since) values (?, ?, ?, ?, ?, ?, ?)
on conflict (scope, key, day) do update set active = excluded.active, paying = excluded.paying, paid = excluded.paid,
                                            since = excluded.since;

-- name: put_accrued_day
insert into p_accrued_day (day, accrued) values (?, ?);

-- name: fee_sum
select day, active, paying, paid, since from p_l1_fee_day where scope = :scope and key = :key order by day desc limit 1;

-- name: put_weight_change
insert into p_weight_change (subnet_id, height, node_id, weight, public_key) values (?, ?, ?, ?, ?);

-- name: put_validator_set
insert into p_validator_set (subnet_id, height, members) values (?, ?, ?);

-- name: utxo
select position, utxo_id, bytes, addresses, asset_id, amount, state, made from p_utxo where utxo_id = :utxo_id;

-- name: tx
select seq, height, is_committed, bytes from p_tx where txid = :txid;

-- name: subnet
select owner, seq, transformation_txid, asset_id, min_consumption_rate, max_consumption_rate, supply_cap,
       min_validator_stake, min_delegator_stake, conversion_id, manager_chain_id, manager_address, conversion_txid
from p_subnet where subnet_id = :subnet_id;

-- name: stakers
select txid, subnet_id, node_id, weight, start_time, end_time, potential_reward, priority, shares, validation_owner,
       delegation_owner, public_key, proof_of_possession, seq, validator_seq, delegatee_reward
from p_staker where state < 2;

-- name: supplies
select subnet_id, supply from p_supply;

-- name: l1_validators
select validation_id, subnet_id, node_id, public_key, weight, start_time, min_nonce, end_accumulated_fee,
       remaining_balance_owner, deactivation_owner, inactive_since, proof_of_possession
from p_l1_validator where is_removed = 0;

-- name: changes_since_snapshot
select c.subnet_id, count(*) from p_weight_change c
where c.height > coalesce((select max(s.height) from p_validator_set s where s.subnet_id = c.subnet_id), -1)
group by c.subnet_id;

-- name: last_block
select substr(coalesce(b.container, c.bytes), cast(b.inner_at + 1 as int), cast(b.inner_size as int))
from p_block b left join container c on c.series = 2 and c.container_id = b.container_id
where b.height = :height;

-- name: clear_ledger
delete from p_ledger;

-- name: clear_block
delete from p_block;

-- name: clear_tx
delete from p_tx;

-- name: clear_utxo
delete from p_utxo;

-- name: clear_utxo_owner
delete from p_utxo_owner;

-- name: clear_address_tx
delete from p_address_tx;

-- name: clear_staker
delete from p_staker;

-- name: clear_stake_owner
delete from p_stake_owner;

-- name: clear_reward_of
delete from p_reward_of;

-- name: clear_stake_day
delete from p_stake_day;

-- name: clear_supply
delete from p_supply;

-- name: clear_subnet
delete from p_subnet;

-- name: clear_blockchain
delete from p_blockchain;

-- name: clear_l1_validator
delete from p_l1_validator;

-- name: clear_fee_sum
delete from p_l1_fee_day;

-- name: clear_accrued_day
delete from p_accrued_day;

-- name: clear_weight_change
delete from p_weight_change;

-- name: clear_validator_set
delete from p_validator_set;
