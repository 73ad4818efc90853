-- The tables of the P-Chain, which is executed from its containers.

create table p_ledger (
    id integer primary key check (id = 1),
    genesis_hash blob not null,
    height integer not null,
    block_id blob not null,
    time integer not null,
    next_seq integer not null,
    next_position integer not null,
    fee_capacity integer not null,
    fee_excess integer not null,
    l1_excess integer not null,
    accrued_fees integer not null
);
create table p_block (
    height integer primary key,
    block_id blob not null unique,
    block_type integer not null,
    time integer not null,
    tx_count integer not null,
    inner_at integer not null,
    inner_size integer not null,
    container_id blob not null,
    container blob
);
create table p_tx (
    seq integer primary key,
    txid blob not null unique,
    height integer not null,
    type integer not null,
    is_committed integer not null,
    bytes blob not null
);
create table p_utxo (
    position integer primary key,
    utxo_id blob not null unique,
    bytes blob not null,
    addresses blob not null,
    asset_id blob not null,
    amount integer not null,
    state integer not null,
    kind integer not null,
    locktime integer not null,
    stakeable_locktime integer not null,
    created_seq integer not null,
    created_time integer not null,
    stake_start integer,
    stake_end integer,
    reward_of integer,
    returned_seq integer,
    returned_time integer,
    spent_seq integer,
    spent_time integer
);
create index p_reward on p_utxo (reward_of) where reward_of is not null;
create table p_utxo_owner (
    address blob,
    state integer,
    position integer,
    primary key (address, state, position)
) without rowid;
create table p_address_tx (address blob, seq integer, primary key (address, seq)) without rowid;
create table p_staker (
    txid blob primary key,
    subnet_id blob not null,
    node_id blob not null,
    state integer not null,
    priority integer not null,
    start_time integer not null,
    end_time integer not null,
    weight integer not null,
    potential_reward integer not null,
    delegatee_reward integer not null,
    shares integer not null,
    validation_owner blob,
    delegation_owner blob,
    public_key blob,
    proof_of_possession blob,
    height integer not null
) without rowid;
create index p_staker_by_state on p_staker (state, subnet_id, node_id, end_time, priority, txid);
create index p_staker_by_node on p_staker (node_id, subnet_id, end_time);
create table p_supply (subnet_id blob primary key, supply integer not null) without rowid;
create table p_subnet (
    subnet_id blob primary key,
    owner blob not null,
    transformation_txid blob not null,
    asset_id blob not null,
    min_consumption_rate integer not null,
    max_consumption_rate integer not null,
    supply_cap integer not null,
    min_validator_stake integer not null,
    min_delegator_stake integer not null,
    conversion_id blob not null,
    manager_chain_id blob not null,
    manager_address blob not null,
    seq integer not null
) without rowid;
create table p_blockchain (
    chain_id blob primary key,
    subnet_id blob not null,
    name text not null,
    vm_id blob not null
) without rowid;
create index p_blockchain_of_subnet on p_blockchain (subnet_id);
create table p_l1_validator (
    validation_id blob primary key,
    subnet_id blob not null,
    node_id blob not null,
    public_key blob not null,
    weight integer not null,
    start_time integer not null,
    min_nonce integer not null,
    end_accumulated_fee integer not null,
    remaining_balance_owner blob not null,
    deactivation_owner blob not null,
    is_removed integer not null,
    height integer not null
) without rowid;
create index p_l1_validator_of_subnet on p_l1_validator (subnet_id, is_removed, node_id);
create table p_weight_change (
    subnet_id blob,
    height integer,
    node_id blob,
    weight integer not null,
    public_key blob not null,
    primary key (subnet_id, height, node_id)
) without rowid;
create table p_validator_set (
    subnet_id blob,
    height integer,
    members blob not null,
    primary key (subnet_id, height)
) without rowid;
