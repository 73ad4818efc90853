-- The store of the node, as SQLite holds it: its own settings and health, the asset chain that it executes, and the
-- containers of the chains that it follows. schema.postgres.sql is the same for PostgreSQL.
--
-- `chain` is the number that table `ledger` gives a chain. `position` grows with every row, so newest first is by
-- `position` downwards. Times that end in `_ns` are of our own clock, in nanoseconds since 1970.

-- # The node itself

-- A row is a named value of this data directory, such as the network it is bound to. Key: the name. Serves: the start of
-- the node.
create table meta (name text primary key, value text not null) without rowid;

-- A row says: /ext/<alias> is another name of /ext/<endpoint>. Key: the alias. Serves: routing, and admin.alias.
create table endpoint_alias (alias text primary key, endpoint text not null, position integer not null) without rowid;

-- A row says: `alias` names the chain with this ID, wherever an ID may stand. Key: the alias. Serves: every call that
-- names a chain, and admin.getChainAliases.
create table chain_alias (alias text primary key, chain_id blob not null, position integer not null) without rowid;

-- A row says: an administrator set these levels; they hold in every process and after a restart. Key: the logger.
-- Serves: admin.getLoggerLevel, and the start of a process.
create table logger_level (logger text primary key, log_level text not null, display_level text not null) without rowid;

-- A row is the last result of one health check. Results that grow old tell of an engine, or a disk, that hangs. Key: the
-- report and the name of the check. Serves: health.health, health.readiness and health.liveness.
create table health_result (
    report text not null,
    name text not null,
    tags text not null, -- a JSON list; empty: global
    passed integer not null,
    answer blob not null, -- the JSON object as it is sent
    stored_ns integer not null, -- when we wrote the row
    primary key (report, name)
) without rowid;

-- A row says: admin.loadVMs met this plugin. Key: the ID of the VM. Serves: admin.loadVMs and info.getVMs.
create table vm_plugin (
    vm_id text primary key,
    aliases text not null, -- a JSON list
    failure text not null -- empty: it was loaded
) without rowid;

-- A row, the only one, is what the check of the database wrote last and reads back. Key: 1. Serves: health.health.
create table probe (id integer primary key check (id = 1), value integer not null);

-- # The asset chain

-- A row is an asset chain that is executed here: how far it has come, and the next free numbers. It changes with every
-- block. Key: the chain, and its ID. Serves: avm.getHeight, and the start of the node.
create table ledger (
    chain integer primary key,
    chain_id blob not null unique,
    genesis_hash blob not null,
    genesis_txs integer not null,
    height integer not null,
    next_seq integer not null,
    next_position integer not null
);

-- A row says: the block with this ID was accepted at `height`, in this container. Key: the chain and the height, the ID
-- of the block, or that of the container. Serves: avm.getBlock, avm.getBlockByHeight, and the index of containers.
create table ledger_block (
    chain integer not null,
    height integer not null,
    block_id blob not null,
    container_id blob not null,
    accepted_ns integer not null,
    inner_at integer not null, -- where the block's own bytes begin in the container, from 0
    inner_size integer not null, -- and how many they are
    container blob not null,
    unique (chain, height), unique (chain, block_id), unique (chain, container_id)
);

-- A row is an accepted transaction. Key: the chain and the transaction's ID, or its number in the order of acceptance,
-- which begins with the assets of the genesis. Serves: avm.getTx, avm.getTxStatus, and the index of transactions.
create table ledger_tx (
    chain integer not null,
    seq integer not null,
    txid blob not null,
    height integer not null,
    bytes blob not null,
    unique (chain, txid), unique (chain, seq)
);

-- A row is an unspent output, in the bytes that are sent. Key: the position, and the chain with the output's ID. Serves:
-- avm.getUTXOs, avm.getBalance, avm.getAllBalances, and the execution of transactions.
create table utxo (
    position integer primary key,
    chain integer not null,
    utxo_id blob not null,
    bytes blob not null,
    unique (chain, utxo_id)
);

-- A row says: this address is among the owners of the unspent output at `position`. Key: all columns. Serves:
-- avm.getUTXOs, avm.getBalance and avm.getAllBalances, with one seek per output returned.
create table utxo_owner (chain integer, address blob, position integer, primary key (chain, address, position)) without rowid;

-- A row says: `source` has exported this output to `destination`, and it is not imported yet. Key: both chains, and
-- the position, which counts what one chain has exported to the other, or the output's ID. Serves: avm.getUTXOs with a
-- source chain, and imports.
create table atomic_utxo (
    destination blob not null,
    source blob not null,
    position integer not null,
    utxo_id blob not null,
    bytes blob not null,
    primary key (destination, source, position), unique (destination, source, utxo_id)
) without rowid;

-- A row is the next position of what `source` exports to `destination`. Key: both chains. Serves: exports.
create table atomic_count (
    destination blob,
    source blob,
    next_position integer not null,
    primary key (destination, source)
) without rowid;

-- A row says: this address is among the owners of the exported output at `position`. Key: all columns. Serves:
-- avm.getUTXOs with a source chain.
create table atomic_owner (
    destination blob,
    source blob,
    address blob,
    position integer,
    primary key (destination, source, address, position)
) without rowid;

-- A row says: `destination` took this output before we saw it put there; putting it deletes the row. Key: all columns.
-- Serves: exports.
create table atomic_taken (
    destination blob,
    source blob,
    utxo_id blob,
    primary key (destination, source, utxo_id)
) without rowid;

-- A row says: transaction `seq` gave this address, or took from it, some of `asset`. Key: all columns. Serves:
-- avm.getAddressTxs, newest first, of all assets, and through the index of one.
create table address_tx (
    chain integer,
    address blob,
    seq integer,
    asset blob,
    primary key (chain, address, seq, asset)
) without rowid;
create index address_asset_tx on address_tx (chain, address, asset, seq);

-- A row says: this transaction was refused, and why. Only the last 64 are kept. Key: the position, and the chain with the
-- transaction's ID. Serves: avm.getTxStatus.
create table refused_tx (
    position integer primary key autoincrement,
    chain integer not null,
    txid blob not null,
    reason text not null,
    unique (chain, txid)
);

-- # Containers

-- A row says: this was the `number`-th container (from 0) that this node accepted into the series. Key: the series and
-- the number, or the container's ID. Serves: the index of containers.
create table container (
    series integer not null,
    number integer not null,
    container_id blob not null,
    accepted_ns integer not null,
    source integer, -- of the asset chain: the height of the block or the seq of the transaction that holds the bytes
    bytes blob, -- null where `source` tells them
    unique (series, number), unique (series, container_id)
);

-- A row says how far we have followed a chain that is not executed here, and with what it ended. Key: the chain's ID.
-- Serves: the heights of these chains, and the start of the node.
create table followed (
    chain_id blob primary key,
    count integer not null,
    container_id blob not null,
    block_id blob not null,
    height integer not null
) without rowid;

-- # The P-Chain

-- Numbers of 64 bits without a sign (amounts, weights, locktimes) are stored as signed ones of the same bits.

-- A row, the only one, says how far the P-Chain is executed, and holds its numbers that change with every block. Key: 1.
-- Serves: platform.getHeight, getTimestamp, getFeeState, getValidatorFeeState, and the start of the node.
create table p_ledger (
    id integer primary key check (id = 1),
    genesis_hash blob not null,
    height integer not null,
    block_id blob not null,
    time integer not null, -- the chain time, in Unix seconds
    next_seq integer not null,
    next_position integer not null,
    fee_capacity integer not null, -- gas that may be used now
    fee_excess integer not null,
    l1_excess integer not null,
    accrued_fees integer not null, -- what an L1 validator that was always active has paid, in nAVAX
    burned integer not null default 0, -- AVAX that transactions burned, in nAVAX
    rewards_paid integer not null default 0, -- AVAX that was paid as rewards
    l1_fees integer not null default 0 -- what L1 validators have paid, without what was paid back to them
);

-- A row is an executed block. Key: the height, or its ID. Serves: platform.getBlock and getBlockByHeight.
create table p_block (
    height integer primary key,
    block_id blob not null unique,
    block_type integer not null,
    time integer not null, -- the chain time after it
    tx_count integer not null,
    inner_at integer not null, -- where the block's own bytes begin in the container, from 0
    inner_size integer not null, -- and how many they are
    container_id blob not null,
    container blob, -- null where the index of containers holds it
    supply integer, -- of AVAX after it; null: an older release executed it
    active_l1 integer,
    accrued_fees integer
);

-- A row is an accepted transaction, one that was proposed and aborted included. Key: its number in the order of
-- acceptance, or its ID. Serves: platform.getTx and getTxStatus.
create table p_tx (
    seq integer primary key,
    txid blob not null unique,
    height integer not null,
    type integer not null,
    is_committed integer not null,
    bytes blob not null
);

-- A row is an output that was ever made, spent ones and stakes included. `position` orders what became spendable: a
-- stake that ends gets a new one. Key: the position, or the output's ID. Serves: platform.getUTXOs, getBalance, getStake
-- and getRewardUTXOs, and the execution of transactions.
create table p_utxo (
    position integer primary key,
    utxo_id blob not null unique,
    bytes blob not null, -- as it is sent
    addresses blob not null, -- of its owners, 20 bytes each
    asset_id blob not null,
    amount integer not null,
    state integer not null, -- 0: unspent, 1: staked, 2: spent
    kind integer not null, -- 0: of a sender, 1: a stake, rewards of 2: a validator, 3: a delegator, 4: for delegations
    locktime integer not null,
    stakeable_locktime integer not null, -- until when it can only be staked; 0: never
    created_seq integer not null, -- the transaction that made it (of a reward: the one that paid it); -1: the genesis
    created_time integer not null, -- the chain time then
    stake_start integer,
    stake_end integer,
    reward_of integer, -- of a reward: the staking transaction
    returned_seq integer, -- of a stake: the transaction that ended it
    returned_time integer,
    spent_seq integer,
    spent_time integer,
    made integer not null default 0 -- orders outputs by when they were made: the first position
);
create index p_reward on p_utxo (reward_of) where reward_of is not null;
create index p_utxo_locked on p_utxo (asset_id, stakeable_locktime, locktime, amount)
    where state < 2 and (locktime <> 0 or stakeable_locktime <> 0);

-- A row says: this address is among the owners of the output at `position`, which is in `state`. Key: the address, the
-- state, and `made` of the output.
-- Serves: platform.getUTXOs, getBalance and getStake, and lists of outputs, with one seek per output returned.
create table p_utxo_owner (
    address blob,
    state integer,
    made integer,
    position integer not null,
    amount integer not null, -- of the output, less 2^63, so that it sorts as a signed number
    primary key (address, state, made)
) without rowid;
create index p_utxo_spendable on p_utxo_owner (address, position) where state = 0;
create index p_utxo_by_amount on p_utxo_owner (address, state, amount, made);

-- A row says: transaction `seq` took from this address, gave to it, or stakes for it: it gets the reward. Key: all
-- columns. Serves: lists of an address.
create table p_address_tx (address blob, seq integer, primary key (address, seq)) without rowid;

-- A row is a period of staking: a validator or delegator of the primary network or of a subnet. Key: the staking
-- transaction. Serves: platform.getCurrentValidators and getTotalStake, and the start of the node.
create table p_staker (
    txid blob primary key,
    subnet_id blob not null,
    node_id blob not null,
    state integer not null, -- 0: pending, 1: current, 2: ended and rewarded, 3: ended without, 4: removed
    priority integer not null, -- who comes first at the same second
    start_time integer not null,
    end_time integer not null,
    weight integer not null,
    potential_reward integer not null,
    delegatee_reward integer not null, -- what a validator has earned from delegators
    shares integer not null, -- what it takes of their rewards, in millionths
    validation_owner blob, -- packed owners; of a delegator: its own
    delegation_owner blob,
    public_key blob,
    proof_of_possession blob,
    height integer not null, -- the block of the last change of `state`
    seq integer not null default 0, -- the number of the staking transaction
    is_delegator integer not null default 0,
    validator_seq integer, -- of a delegator: the number of its validator's transaction
    ended_seq integer, -- the transaction that ended it, if one did
    delegator_count integer not null default 0, -- of a validator: its delegations now, as text where they can be large
    delegator_weight text not null default '0',
    delegator_fees text not null default '0', -- its share of their potential rewards
    ever_count integer not null default 0, -- all delegations of its period
    ever_weight text not null default '0',
    prepaid text not null default '0', -- what it was paid when delegations ended, as it was before Cortina
    capacity integer not null default 0 -- how much more may be delegated to it, on the primary network
) without rowid;
create index p_staker_by_state on p_staker (state, subnet_id, node_id, end_time, priority, txid);
create index p_staker_by_node on p_staker (node_id, subnet_id, end_time);
create unique index p_staker_by_seq on p_staker (seq);
create index p_staker_listed on p_staker (is_delegator, state, seq);
create index p_staker_of_subnet on p_staker (subnet_id, is_delegator, state, seq);
create index p_staker_of_node on p_staker (node_id, is_delegator, state, seq);
create index p_validator_by_end on p_staker (subnet_id, end_time, seq) where is_delegator = 0 and state = 1;
create index p_validator_by_fee on p_staker (subnet_id, shares, seq) where is_delegator = 0 and state = 1;
create index p_validator_by_capacity on p_staker (subnet_id, capacity, seq) where is_delegator = 0 and state = 1;

-- A row says: this address gets a reward of the staking period `seq`, as `role` says. Key: all columns. Serves:
-- delegators and pending rewards of an address, with one seek per row returned.
create table p_stake_owner (
    address blob,
    role integer, -- 0: the validator's own reward, 1: the delegator's, 2: the validator's share of a delegation's
    state integer, -- of the staking period
    seq integer,
    primary key (address, role, state, seq)
) without rowid;
create index p_stake_owner_by_seq on p_stake_owner (seq);

-- A row says: the output at `position` is a reward that was paid to this address, or for this node. Key: all columns.
-- Serves: paid rewards, with one seek per row returned.
create table p_reward_of (
    owner blob,
    is_node integer,
    position integer,
    primary key (owner, is_node, position)
) without rowid;

-- A row is what was staked in a subnet after the last block of a day with a change; the empty subnet stands for all. Key:
-- the subnet and the day (Unix time in days). Serves: network details, shares of validators, and metrics of staking.
create table p_stake_day (
    subnet_id blob,
    day integer,
    validators integer not null,
    delegators integer not null,
    validator_weight text not null, -- sums can exceed 64 bits
    delegator_weight text not null,
    reward text not null, -- the potential rewards of all of them
    primary key (subnet_id, day)
) without rowid;

-- A row is how much of its asset a subnet, or the primary network, has. Key: the subnet. Serves:
-- platform.getCurrentSupply, and rewards.
create table p_supply (subnet_id blob primary key, supply integer not null) without rowid;

-- A row is a subnet: who controls it, what made it elastic, what made it an L1. Key: its ID. Serves: platform.getSubnet,
-- getSubnets, getStakingAssetID and getMinStake.
create table p_subnet (
    subnet_id blob primary key,
    owner blob not null, -- packed owners
    transformation_txid blob not null, -- empty: it is not elastic
    asset_id blob not null,
    min_consumption_rate integer not null,
    max_consumption_rate integer not null,
    supply_cap integer not null,
    min_validator_stake integer not null,
    min_delegator_stake integer not null,
    conversion_id blob not null, -- empty: it is no L1
    manager_chain_id blob not null,
    manager_address blob not null,
    seq integer not null, -- of the transaction that created it
    conversion_txid blob not null default x'' -- the transaction that made it an L1
) without rowid;
create index p_subnet_by_seq on p_subnet (seq);

-- A row is a blockchain. Key: its ID, which is that of the transaction that created it. Serves: platform.getBlockchains,
-- validates and validatedBy.
create table p_blockchain (
    chain_id blob primary key,
    subnet_id blob not null,
    name text not null,
    vm_id blob not null,
    seq integer not null default 0, -- of the transaction that created it
    evm_chain_id integer -- what its genesis says, if it is that of an EVM chain
) without rowid;
create index p_blockchain_of_subnet on p_blockchain (subnet_id);
create index p_blockchain_by_seq on p_blockchain (seq);

-- A row is a validator of an L1, also after its removal. Key: its validation ID. Serves: platform.getL1Validator and
-- getCurrentValidators of an L1, and the start of the node.
create table p_l1_validator (
    validation_id blob primary key,
    subnet_id blob not null,
    node_id blob not null,
    public_key blob not null,
    weight integer not null,
    start_time integer not null,
    min_nonce integer not null,
    end_accumulated_fee integer not null, -- its balance ends where accrued fees reach this; 0: inactive
    remaining_balance_owner blob not null, -- packed threshold and addresses
    deactivation_owner blob not null,
    is_removed integer not null,
    height integer not null, -- the block of the last change
    status integer not null default 0, -- 0: active, 1: inactive, 2: removed
    inactive_since integer not null default 0, -- the last second for which it paid before it was active now; 0: none
    proof_of_possession blob not null default x'' -- of its key; empty: a release that did not store it added it
) without rowid;
create index p_l1_validator_of_subnet on p_l1_validator (subnet_id, is_removed, node_id);
create index p_l1_validator_listed on p_l1_validator (status, start_time, validation_id);
create index p_l1_validator_by_status on p_l1_validator (subnet_id, status, start_time, validation_id);
create index p_l1_validator_of_node on p_l1_validator (node_id, status, start_time, validation_id);

-- A row is what transaction `seq` did to a validator of an L1. Key: both. Serves: transactions, and those of a validator.
create table p_l1_move (
    seq integer,
    validation_id blob,
    weight integer not null, -- after it; 0: it was removed
    balance integer not null, -- after it, in nAVAX
    change text not null, -- of the balance, paid back or lost ones below zero
    primary key (seq, validation_id)
) without rowid;
create index p_l1_move_of on p_l1_move (validation_id, seq);

-- A row is what L1 validators have paid after a day on which one of them began or ceased to pay: `paid` until the
-- chain's accrued fees were `since`, and each of the `active` ones pays what they grow by. `scope` says whose it is: of
-- all (0, the key is empty), of a subnet (1), of a node (2), of a validation (3). `paying` are those that paid that day.
-- Key: the scope, its key and the day (Unix time in days). Serves: fees of L1 validators by day.
create table p_l1_fee_day (
    scope integer,
    key blob,
    day integer,
    active integer not null,
    paying integer not null,
    paid text not null,
    since integer not null,
    primary key (scope, key, day)
) without rowid;

-- A row is what the chain had accrued at the end of a day with active L1 validators: what one pays that always was
-- active. Key: the day. Serves: fees of L1 validators by day.
create table p_accrued_day (day integer primary key, accrued integer not null);

-- A row says: after block `height` this node has this weight and key in the set of the subnet; weight 0: it is not in it
-- any more. Key: all but weight and public key. Serves: platform.getValidatorsAt and getAllValidatorsAt.
create table p_weight_change (
    subnet_id blob,
    height integer,
    node_id blob,
    weight integer not null,
    public_key blob not null, -- empty: none
    primary key (subnet_id, height, node_id)
) without rowid;

-- A row is a whole validator set after block `height`, so that a set is read from here on and not from the genesis. Key:
-- the subnet and the height. Serves: platform.getValidatorsAt and getAllValidatorsAt.
create table p_validator_set (
    subnet_id blob,
    height integer,
    members blob not null, -- node ID, weight and public key of each
    primary key (subnet_id, height)
) without rowid;

-- A row is what an upstream saw of a validator of the primary network. Rows are deleted after an hour. Key: the node ID.
-- Serves: uptime, version and health of validators, and stake by version.
create table observed_node (
    node_id blob primary key,
    time integer not null, -- Unix time of the answer
    uptime integer not null, -- in ten-thousandths of a percent
    is_connected integer not null,
    version text not null, -- of its program; empty: not known
    benched text not null -- letters of the chains about which it is sent no requests
) without rowid;

-- # Lists of the primary network

-- A row is how far a chain is in the lists below: X by the number of its next transaction, P by the height of its next
-- block, C by the number of its next container. Key: the chain's ID. Serves: the filling of these lists, and the
-- supply of AVAX.
create table listed (
    chain_id blob primary key,
    next integer not null,
    burned text -- AVAX that the listed transactions of X, or atomic ones of C, have burned, in nAVAX; null: not known
) without rowid;

-- A row is an output that X ever made, or that any of X, P and C ever exported. Key: its ID, and the chain that made it.
-- Serves: transactions, UTXOs and balances of X, C and the shared memory under /v1/networks.
create table chain_output (
    utxo_id blob,
    source blob, -- the chain that made it
    destination blob not null, -- the chain on which it can be spent: another one if it was exported
    bytes blob not null, -- as it is sent
    created_height integer not null,
    created_time integer not null, -- of its block; of what came before block 1 of X, that of block 0
    spent_txid blob,
    spent_height integer,
    spent_time integer,
    primary key (utxo_id, source)
) without rowid;

-- A row says: this address is among the owners of an output that was made on `chain` or exported to it. Key: all but the
-- amount. Serves: UTXOs and balances under /v1/networks, with one seek per output returned.
create table chain_output_owner (
    chain_id blob,
    address blob,
    is_spent integer,
    created_time integer,
    utxo_id blob,
    amount integer not null, -- less 2 to the 63rd, so that it sorts as a signed number
    primary key (chain_id, address, is_spent, created_time, utxo_id)
) without rowid;
create index chain_output_by_amount on chain_output_owner (chain_id, address, is_spent, amount, utxo_id);

-- A row says: this output was spent before we saw it made; making it deletes the row. Key: as in chain_output. Serves: the
-- filling of chain_output.
create table early_spent (
    utxo_id blob,
    source blob,
    txid blob not null,
    height integer not null,
    time integer not null,
    primary key (utxo_id, source)
) without rowid;

-- A row says: transaction `seq` of an asset chain consumed or made some of `asset`. Key: all columns. Serves: the
-- transactions of an asset.
create table asset_tx (chain integer, asset blob, seq integer, primary key (chain, asset, seq)) without rowid;

-- A row is a vertex of X's DAG, from before block 0. Key: its position in the index of the upstream that it was read
-- from, or its ID. Serves: vertices under /v1/networks.
create table vertex (
    number integer primary key,
    vertex_id blob not null unique,
    height integer not null,
    parents blob not null, -- their IDs, 32 bytes each
    size integer not null, -- in bytes
    is_parent integer not null -- whether a stored vertex names it as its parent
);
create index vertex_by_height on vertex (height, number);
create index vertex_childless on vertex (number) where is_parent = 0;

-- A row says: transaction `seq` of X is in vertex `number`. Key: both. Serves: the transactions of a vertex, and the
-- vertices of a transaction.
create table vertex_tx (number integer, seq integer, primary key (number, seq)) without rowid;
create index vertex_tx_by_seq on vertex_tx (seq, number);

-- A row says: this node proposed the block of the chain at `height`. Key: all columns. Serves: the blocks of a node.
create table proposed_block (chain_id blob, node_id blob, height integer, primary key (chain_id, node_id, height)) without rowid;

-- A row is a block of the C-Chain. Key: its height, or its hash. Serves: blocks of C by hash and by time.
create table c_block (
    height integer primary key,
    block_id blob not null unique,
    time integer not null,
    number integer not null -- of its container in the index
);

-- A row is an atomic transaction of the C-Chain. Key: its number in the order of acceptance, or its ID. Serves:
-- transactions of C under /v1/networks.
create table c_tx (
    seq integer primary key,
    txid blob not null unique,
    height integer not null,
    bytes blob not null
);

-- A row says: atomic transaction `seq` took from this address, or gave to it; accounts of the C-Chain are such addresses
-- too. Key: all columns. Serves: the transactions of an address.
create table c_address_tx (address blob, seq integer, primary key (address, seq)) without rowid;

-- # Webhooks

-- A row says: a transaction of P, X or C, or a block of P, is an event of a webhook, and a message about it is to be sent.
-- It is written with its block. Rows are deleted after some days. Key: the ID, made from the webhook, block, transaction
-- and sub-event. Serves: delivery, which reads rows in the order of `sequence`.
create table webhook_outbox (
    id text primary key,
    sequence integer not null unique, -- grows with every row that is written or changed
    webhook text not null,
    tx_at integer not null, -- block and index of the transaction
    block_hash blob not null,
    tx_hash blob not null, -- empty: the block itself, by its time
    removals integer not null, -- as in the store of an EVM chain; always 0 here
    is_removed integer not null, -- as above
    created integer not null, -- Unix time
    detail blob not null -- what it is about: webhooks/primary_matching.py
) without rowid;
create index webhook_outbox_by_tx on webhook_outbox (tx_at);
