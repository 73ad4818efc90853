-- The store of the node, as PostgreSQL holds it. schema.sqlite.sql says more of each row and column.

-- # The node itself

-- A row is a named value of this data directory, such as the network it is bound to.
create table meta (name text collate "C" primary key, value text not null);

-- A row says: /ext/<alias> is another name of /ext/<endpoint>.
create table endpoint_alias (alias text collate "C" primary key, endpoint text not null, position bigint not null);

-- A row says: `alias` names the chain with this ID, wherever an ID may stand.
create table chain_alias (alias text collate "C" primary key, chain_id bytea not null, position bigint not null);

-- A row says: an administrator set these levels; they hold in every process and after a restart.
create table logger_level (logger text collate "C" primary key, log_level text not null, display_level text not null);

-- A row is the last result of one health check.
create table health_result (
    report text collate "C" not null,
    name text collate "C" not null,
    tags text not null,
    passed bigint not null,
    answer bytea not null,
    stored_ns bigint not null,
    primary key (report, name)
);

-- A row says: admin.loadVMs met this plugin.
create table vm_plugin (
    vm_id text collate "C" primary key,
    aliases text not null,
    failure text not null
);

-- A row, the only one, is what the check of the database wrote last and reads back.
create table probe (id bigint primary key check (id = 1), value bigint not null);

-- # The asset chain

-- A row is an asset chain that is executed here: how far it has come, and the next free numbers.
create table ledger (
    chain bigint primary key,
    chain_id bytea not null unique,
    genesis_hash bytea not null,
    genesis_txs bigint not null,
    height bigint not null,
    next_seq bigint not null,
    next_position bigint not null
);

-- A row says: the block with this ID was accepted at `height`, in this container.
create table ledger_block (
    chain bigint not null,
    height bigint not null,
    block_id bytea not null,
    container_id bytea not null,
    accepted_ns bigint not null,
    inner_at bigint not null,
    inner_size bigint not null,
    container bytea not null,
    primary key (chain, height), unique (chain, block_id), unique (chain, container_id)
);

-- A row is an accepted transaction.
create table ledger_tx (
    chain bigint not null,
    seq bigint not null,
    txid bytea not null,
    height bigint not null,
    bytes bytea not null,
    primary key (chain, seq), unique (chain, txid)
);

-- A row is an unspent output, in the bytes that are sent.
create table utxo (
    position bigint primary key,
    chain bigint not null,
    utxo_id bytea not null,
    bytes bytea not null,
    unique (chain, utxo_id)
);

-- A row says: this address is among the owners of the unspent output at `position`.
create table utxo_owner (chain bigint, address bytea, position bigint, primary key (chain, address, position));

-- A row says: `source` has exported this output to `destination`, and it is not imported yet.
create table atomic_utxo (
    destination bytea not null,
    source bytea not null,
    position bigint not null,
    utxo_id bytea not null,
    bytes bytea not null,
    primary key (destination, source, position), unique (destination, source, utxo_id)
);

-- A row is the next position of what `source` exports to `destination`.
create table atomic_count (
    destination bytea,
    source bytea,
    next_position bigint not null,
    primary key (destination, source)
);

-- A row says: this address is among the owners of the exported output at `position`.
create table atomic_owner (
    destination bytea,
    source bytea,
    address bytea,
    position bigint,
    primary key (destination, source, address, position)
);

-- A row says: `destination` took this output before we saw it put there; putting it deletes the row.
create table atomic_taken (
    destination bytea,
    source bytea,
    utxo_id bytea,
    primary key (destination, source, utxo_id)
);

-- A row says: transaction `seq` gave this address, or took from it, some of `asset`.
create table address_tx (
    chain bigint,
    address bytea,
    seq bigint,
    asset bytea,
    primary key (chain, address, seq, asset)
);
create index address_asset_tx on address_tx (chain, address, asset, seq);

-- A row says: this transaction was refused, and why.
create table refused_tx (
    position bigint primary key,
    chain bigint not null,
    txid bytea not null,
    reason text not null,
    unique (chain, txid)
);

-- # Containers

-- A row says: this was the `number`-th container (from 0) that this node accepted into the series.
create table container (
    series bigint not null,
    number bigint not null,
    container_id bytea not null,
    accepted_ns bigint not null,
    source bigint,
    bytes bytea,
    primary key (series, number), unique (series, container_id)
);

-- A row says how far we have followed a chain that is not executed here, and with what it ended.
create table followed (
    chain_id bytea primary key,
    count bigint not null,
    container_id bytea not null,
    block_id bytea not null,
    height bigint not null
);

-- # The P-Chain

-- A row, the only one, says how far the P-Chain is executed, and holds its numbers that change with every block.
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
    accrued_fees bigint not null,
    burned bigint not null default 0,
    rewards_paid bigint not null default 0,
    l1_fees bigint not null default 0
);

-- A row is an executed block.
create table p_block (
    height bigint primary key,
    block_id bytea not null unique,
    block_type bigint not null,
    time bigint not null,
    tx_count bigint not null,
    inner_at bigint not null,
    inner_size bigint not null,
    container_id bytea not null,
    container bytea,
    supply bigint,
    active_l1 bigint,
    accrued_fees bigint
);

-- A row is an accepted transaction, one that was proposed and aborted included.
create table p_tx (
    seq bigint primary key,
    txid bytea not null unique,
    height bigint not null,
    type bigint not null,
    is_committed bigint not null,
    bytes bytea not null
);

-- A row is an output that was ever made, spent ones and stakes included.
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
    spent_time bigint,
    made bigint not null default 0
);
create index p_reward on p_utxo (reward_of) where reward_of is not null;
create index p_utxo_locked on p_utxo (asset_id, stakeable_locktime, locktime, amount)
    where state < 2 and (locktime <> 0 or stakeable_locktime <> 0);

-- A row says: this address is among the owners of the output at `position`, which is in `state`.
create table p_utxo_owner (
    address bytea,
    state bigint,
    made bigint,
    position bigint not null,
    amount bigint not null,
    primary key (address, state, made)
);
create index p_utxo_spendable on p_utxo_owner (address, position) where state = 0;
create index p_utxo_by_amount on p_utxo_owner (address, state, amount, made);

-- A row says: transaction `seq` took from this address, gave to it, or stakes for it: it gets the reward.
create table p_address_tx (address bytea, seq bigint, primary key (address, seq));

-- A row is a period of staking: a validator or delegator of the primary network or of a subnet.
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
    height bigint not null,
    seq bigint not null default 0,
    is_delegator bigint not null default 0,
    validator_seq bigint,
    ended_seq bigint,
    delegator_count bigint not null default 0,
    delegator_weight text not null default '0',
    delegator_fees text not null default '0',
    ever_count bigint not null default 0,
    ever_weight text not null default '0',
    prepaid text not null default '0',
    capacity bigint not null default 0
);
create index p_staker_by_state on p_staker (state, subnet_id, node_id, end_time, priority, txid);
create index p_staker_by_node on p_staker (node_id, subnet_id, end_time);
create unique index p_staker_by_seq on p_staker (seq);
create index p_staker_listed on p_staker (is_delegator, state, seq);
create index p_staker_of_subnet on p_staker (subnet_id, is_delegator, state, seq);
create index p_staker_of_node on p_staker (node_id, is_delegator, state, seq);
create index p_validator_by_end on p_staker (subnet_id, end_time, seq) where is_delegator = 0 and state = 1;
create index p_validator_by_fee on p_staker (subnet_id, shares, seq) where is_delegator = 0 and state = 1;
create index p_validator_by_capacity on p_staker (subnet_id, capacity, seq) where is_delegator = 0 and state = 1;

-- A row says: this address gets a reward of the staking period `seq`, as `role` says.
create table p_stake_owner (
    address bytea,
    role bigint,
    state bigint,
    seq bigint,
    primary key (address, role, state, seq)
);
create index p_stake_owner_by_seq on p_stake_owner (seq);

-- A row says: the output at `position` is a reward that was paid to this address, or for this node.
create table p_reward_of (
    owner bytea,
    is_node bigint,
    position bigint,
    primary key (owner, is_node, position)
);

-- A row is what was staked in a subnet after the last block of a day with a change; the empty subnet stands for all.
create table p_stake_day (
    subnet_id bytea,
    day bigint,
    validators bigint not null,
    delegators bigint not null,
    validator_weight text not null,
    delegator_weight text not null,
    reward text not null,
    primary key (subnet_id, day)
);

-- A row is how much of its asset a subnet, or the primary network, has.
create table p_supply (subnet_id bytea primary key, supply bigint not null);

-- A row is a subnet: who controls it, what made it elastic, what made it an L1.
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
    seq bigint not null,
    conversion_txid bytea not null default ''
);
create index p_subnet_by_seq on p_subnet (seq);

-- A row is a blockchain.
create table p_blockchain (
    chain_id bytea primary key,
    subnet_id bytea not null,
    name text not null,
    vm_id bytea not null,
    seq bigint not null default 0,
    evm_chain_id bigint
);
create index p_blockchain_of_subnet on p_blockchain (subnet_id);
create index p_blockchain_by_seq on p_blockchain (seq);

-- A row is a validator of an L1, also after its removal.
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
    height bigint not null,
    status bigint not null default 0,
    inactive_since bigint not null default 0,
    proof_of_possession bytea not null default ''
);
create index p_l1_validator_of_subnet on p_l1_validator (subnet_id, is_removed, node_id);
create index p_l1_validator_listed on p_l1_validator (status, start_time, validation_id);
create index p_l1_validator_by_status on p_l1_validator (subnet_id, status, start_time, validation_id);
create index p_l1_validator_of_node on p_l1_validator (node_id, status, start_time, validation_id);

-- A row is what transaction `seq` did to a validator of an L1.
create table p_l1_move (
    seq bigint,
    validation_id bytea,
    weight bigint not null,
    balance bigint not null,
    change text not null,
    primary key (seq, validation_id)
);
create index p_l1_move_of on p_l1_move (validation_id, seq);

-- A row is what L1 validators have paid after a day on which one of them began or ceased to pay: `paid` until the
-- chain's accrued fees were `since`, and each of the `active` ones pays what they grow by. `scope` says whose it is: of
-- all (0, the key is empty), of a subnet (1), of a node (2), of a validation (3). `paying` are those that paid that day.
create table p_l1_fee_day (
    scope bigint,
    key bytea,
    day bigint,
    active bigint not null,
    paying bigint not null,
    paid text not null,
    since bigint not null,
    primary key (scope, key, day)
);

-- A row is what the chain had accrued at the end of a day with active L1 validators: what one pays that always was
-- active.
create table p_accrued_day (day bigint primary key, accrued bigint not null);

-- A row says: after block `height` this node has this weight and key in the set of the subnet; weight 0: it is not in it any more.
create table p_weight_change (
    subnet_id bytea,
    height bigint,
    node_id bytea,
    weight bigint not null,
    public_key bytea not null,
    primary key (subnet_id, height, node_id)
);

-- A row is a whole validator set after block `height`, so that a set is read from here on and not from the genesis.
create table p_validator_set (
    subnet_id bytea,
    height bigint,
    members bytea not null,
    primary key (subnet_id, height)
);

-- A row is what an upstream saw of a validator of the primary network. Rows are deleted after an hour. Key: the node ID.
-- Serves: uptime, version and health of validators, and stake by version.
create table observed_node (
    node_id bytea primary key,
    time bigint not null, -- Unix time of the answer
    uptime bigint not null, -- in ten-thousandths of a percent
    is_connected bigint not null,
    version text not null, -- of its program; empty: not known
    benched text not null -- letters of the chains about which it is sent no requests
);

-- # Lists of the primary network

-- A row is how far a chain is in the lists below: X by the number of its next transaction, P by the height of its
-- next block, C by the number of its next container.
create table listed (chain_id bytea primary key, next bigint not null, burned text);

-- A row is an output that X ever made, or that any of X, P and C ever exported.
create table chain_output (
    utxo_id bytea,
    source bytea,
    destination bytea not null,
    bytes bytea not null,
    created_height bigint not null,
    created_time bigint not null,
    spent_txid bytea,
    spent_height bigint,
    spent_time bigint,
    primary key (utxo_id, source)
);

-- A row says: this address is among the owners of an output that was made on `chain` or exported to it.
create table chain_output_owner (
    chain_id bytea,
    address bytea,
    is_spent bigint,
    created_time bigint,
    utxo_id bytea,
    amount bigint not null,
    primary key (chain_id, address, is_spent, created_time, utxo_id)
);
create index chain_output_by_amount on chain_output_owner (chain_id, address, is_spent, amount, utxo_id);

-- A row says: this output was spent before we saw it made; making it deletes the row.
create table early_spent (
    utxo_id bytea,
    source bytea,
    txid bytea not null,
    height bigint not null,
    time bigint not null,
    primary key (utxo_id, source)
);

-- A row says: transaction `seq` of an asset chain consumed or made some of `asset`.
create table asset_tx (chain bigint, asset bytea, seq bigint, primary key (chain, asset, seq));

-- A row is a vertex of X's DAG, from before block 0. Key: its position in the index of the upstream that it was read
-- from, or its ID. Serves: vertices under /v1/networks.
create table vertex (
    number bigint primary key,
    vertex_id bytea not null unique,
    height bigint not null,
    parents bytea not null, -- their IDs, 32 bytes each
    size bigint not null, -- in bytes
    is_parent bigint not null -- whether a stored vertex names it as its parent
);
create index vertex_by_height on vertex (height, number);
create index vertex_childless on vertex (number) where is_parent = 0;

-- A row says: transaction `seq` of X is in vertex `number`. Key: both. Serves: the transactions of a vertex, and the
-- vertices of a transaction.
create table vertex_tx (number bigint, seq bigint, primary key (number, seq));
create index vertex_tx_by_seq on vertex_tx (seq, number);

-- A row says: this node proposed the block of the chain at `height`.
create table proposed_block (chain_id bytea, node_id bytea, height bigint, primary key (chain_id, node_id, height));

-- A row is a block of the C-Chain.
create table c_block (
    height bigint primary key,
    block_id bytea not null unique,
    time bigint not null,
    number bigint not null
);

-- A row is an atomic transaction of the C-Chain.
create table c_tx (
    seq bigint primary key,
    txid bytea not null unique,
    height bigint not null,
    bytes bytea not null
);

-- A row says: atomic transaction `seq` took from this address, or gave to it; accounts of the C-Chain are such
-- addresses too.
create table c_address_tx (address bytea, seq bigint, primary key (address, seq));

-- # Webhooks

-- A row says: a transaction of P, X or C, or a block of P, is an event of a webhook, and a message about it is to be sent.
create table webhook_outbox (
    id text collate "C" primary key,
    sequence bigint not null unique,
    webhook text collate "C" not null,
    tx_at bigint not null,
    block_hash bytea not null,
    tx_hash bytea not null,
    removals bigint not null,
    is_removed bigint not null,
    created bigint not null,
    detail bytea not null
);
create index webhook_outbox_by_tx on webhook_outbox (tx_at);
