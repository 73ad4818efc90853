-- The tables of the P-Chain, which is executed from its containers.

create table p_ledger (
    id bigint primary key check (id = 1),
    genesis_hash bytea not null,
    height bigint not null,
    block_id bytea not null,
    time bigint not null,
    next_seq bigint not null,
    next_position bigint not null,
    fee_capacity bigint not null,
    fee_excess bigint not null,
    l1_excess bigint not null,
    accrued_fees bigint not null
);
create table p_block (
    height bigint primary key,
    block_id bytea not null unique,
    block_type bigint not null,
    time bigint not null,
    tx_count bigint not null,
    inner_at bigint not null,
    inner_size bigint not null,
    container_id bytea not null,
    container bytea
);
create table p_tx (
    seq bigint primary key,
    txid bytea not null unique,
    height bigint not null,
    type bigint not null,
    is_committed bigint not null,
    bytes bytea not null
);
create table p_utxo (
    position bigint primary key,
    utxo_id bytea not null unique,
    bytes bytea not null,
    addresses bytea not null,
    asset_id bytea not null,
    amount bigint not null,
    state bigint not null,
    kind bigint not null,
    locktime bigint not null,
    stakeable_locktime bigint not null,
    created_seq bigint not null,
    created_time bigint not null,
    stake_start bigint,
    stake_end bigint,
    reward_of bigint,
    returned_seq bigint,
    returned_time bigint,
    spent_seq bigint,
    spent_time bigint
);
create index p_reward on p_utxo (reward_of) where reward_of is not null;
create table p_utxo_owner (
    address bytea,
    state bigint,
    position bigint,
    primary key (address, state, position)
);
create table p_address_tx (address bytea, seq bigint, primary key (address, seq));
create table p_staker (
    txid bytea primary key,
    subnet_id bytea not null,
    node_id bytea not null,
    state bigint not null,
    priority bigint not null,
    start_time bigint not null,
    end_time bigint not null,
    weight bigint not null,
    potential_reward bigint not null,
    delegatee_reward bigint not null,
    shares bigint not null,
    validation_owner bytea,
    delegation_owner bytea,
    public_key bytea,
    proof_of_possession bytea,
    height bigint not null
);
create index p_staker_by_state on p_staker (state, subnet_id, node_id, end_time, priority, txid);
create index p_staker_by_node on p_staker (node_id, subnet_id, end_time);
create table p_supply (subnet_id bytea primary key, supply bigint not null);
create table p_subnet (
    subnet_id bytea primary key,
    owner bytea not null,
    transformation_txid bytea not null,
    asset_id bytea not null,
    min_consumption_rate bigint not null,
    max_consumption_rate bigint not null,
    supply_cap bigint not null,
    min_validator_stake bigint not null,
    min_delegator_stake bigint not null,
    conversion_id bytea not null,
    manager_chain_id bytea not null,
    manager_address bytea not null,
    seq bigint not null
);
create table p_blockchain (
    chain_id bytea primary key,
    subnet_id bytea not null,
    name text not null,
    vm_id bytea not null
);
create index p_blockchain_of_subnet on p_blockchain (subnet_id);
create table p_l1_validator (
    validation_id bytea primary key,
    subnet_id bytea not null,
    node_id bytea not null,
    public_key bytea not null,
    weight bigint not null,
    start_time bigint not null,
    min_nonce bigint not null,
    end_accumulated_fee bigint not null,
    remaining_balance_owner bytea not null,
    deactivation_owner bytea not null,
    is_removed bigint not null,
    height bigint not null
);
create index p_l1_validator_of_subnet on p_l1_validator (subnet_id, is_removed, node_id);
create table p_weight_change (
    subnet_id bytea,
    height bigint,
    node_id bytea,
    weight bigint not null,
    public_key bytea not null,
    primary key (subnet_id, height, node_id)
);
create table p_validator_set (
    subnet_id bytea,
    height bigint,
    members bytea not null,
    primary key (subnet_id, height)
);
