-- What lists of validators, delegators, rewards, subnets and chains read, and sums over stakers and fees. A P-Chain that
-- was executed before has the numbers of its transactions; its sums would begin with the next block, so the operations
-- that need them refuse, and name the way out: to follow the network in a new data directory.

alter table p_ledger add column burned bigint not null default 0;
alter table p_ledger add column rewards_paid bigint not null default 0;
alter table p_ledger add column l1_fees bigint not null default 0;
alter table p_staker add column seq bigint not null default 0;
alter table p_staker add column is_delegator bigint not null default 0;
alter table p_staker add column validator_seq bigint;
alter table p_staker add column ended_seq bigint;
alter table p_staker add column delegator_count bigint not null default 0;
alter table p_staker add column delegator_weight text not null default '0';
alter table p_staker add column delegator_fees text not null default '0';
alter table p_staker add column ever_count bigint not null default 0;
alter table p_staker add column ever_weight text not null default '0';
alter table p_staker add column prepaid text not null default '0';
alter table p_staker add column capacity bigint not null default 0;
alter table p_subnet add column conversion_txid bytea not null default '';
alter table p_blockchain add column seq bigint not null default 0;
alter table p_blockchain add column evm_chain_id bigint;
alter table p_l1_validator add column status bigint not null default 0;
create table p_stake_owner (
    address bytea,
    role bigint,
    state bigint,
    seq bigint,
    primary key (address, role, state, seq)
);
create index p_stake_owner_by_seq on p_stake_owner (seq);
create table p_reward_of (
    owner bytea,
    is_node bigint,
    position bigint,
    primary key (owner, is_node, position)
);
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
update p_staker set seq = (select t.seq from p_tx t where t.txid = p_staker.txid),
    is_delegator = case when priority in (1, 3, 5, 8, 10) then 1 else 0 end;
update p_blockchain set seq = (select t.seq from p_tx t where t.txid = p_blockchain.chain_id);
update p_l1_validator set status = case when is_removed = 1 then 2 when end_accumulated_fee = 0 then 1 else 0 end;
create unique index p_staker_by_seq on p_staker (seq);
create index p_staker_listed on p_staker (is_delegator, state, seq);
create index p_staker_of_subnet on p_staker (subnet_id, is_delegator, state, seq);
create index p_staker_of_node on p_staker (node_id, is_delegator, state, seq);
create index p_validator_by_end on p_staker (subnet_id, end_time, seq) where is_delegator = 0 and state = 1;
create index p_validator_by_fee on p_staker (subnet_id, shares, seq) where is_delegator = 0 and state = 1;
create index p_validator_by_capacity on p_staker (subnet_id, capacity, seq) where is_delegator = 0 and state = 1;
create index p_l1_validator_listed on p_l1_validator (status, start_time, validation_id);
create index p_l1_validator_by_status on p_l1_validator (subnet_id, status, start_time, validation_id);
create index p_l1_validator_of_node on p_l1_validator (node_id, status, start_time, validation_id);
create index p_utxo_locked on p_utxo (asset_id, stakeable_locktime, locktime, amount)
    where state < 2 and (locktime <> 0 or stakeable_locktime <> 0);
create index p_subnet_by_seq on p_subnet (seq);
create index p_blockchain_by_seq on p_blockchain (seq);

insert into meta (name, value) select 'p_sums_missing', '1' from p_ledger;
