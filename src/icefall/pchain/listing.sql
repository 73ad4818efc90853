-- Lists of the P-Chain: blocks, transactions and outputs, each read by a range of its key.

-- fragment: block
select b.height, b.block_id, b.time, coalesce(b.container, c.bytes), b.inner_at, b.inner_size, b.supply, b.active_l1,
b.accrued_fees from p_block b
left join container c on c.series = 2 and c.container_id = b.container_id

-- name: blocks
{block} where b.height >= :low and b.height < :below order by b.height desc limit :limit;

-- name: block_by_id
{block} where b.block_id = :block_id;

-- name: block_of
{block} where b.height = ?;

-- postgres: block_of
{block} where b.height = any(?);

-- name: block_time
select time from p_block where height = :height;

-- Imports and exports that Banff proposals carry besides what they propose.
-- name: moves_in_proposals
select t.bytes, t.height, b.time from p_tx t join p_block b on b.height = t.height
where t.type in (17, 18) and b.block_type = 29 and t.height < :below order by t.seq;

-- The time of a transaction, or of the next one if there is none of this number.
-- name: tx_time
select b.time from p_tx t join p_block b on b.height = t.height where t.seq >= :seq order by t.seq limit 1;

-- name: tx_count
select next_seq from p_ledger where id = 1;

-- fragment: tx
select t.seq, t.txid, t.height, t.type, t.is_committed, t.bytes, b.block_id, b.time
from p_tx t join p_block b on b.height = t.height

-- name: txs_down
{tx} where t.seq >= :low and t.seq < :below order by t.seq desc limit :limit;

-- name: txs_up
{tx} where t.seq >= :low and t.seq < :below order by t.seq limit :limit;

-- name: txs_of_address_down
{tx} join p_address_tx a on a.seq = t.seq
where a.address = :address and a.seq >= :low and a.seq < :below order by a.seq desc limit :limit;

-- name: txs_of_address_up
{tx} join p_address_tx a on a.seq = t.seq
where a.address = :address and a.seq >= :low and a.seq < :below order by a.seq limit :limit;

-- name: txs_of_l1_down
{tx} join p_l1_move m on m.seq = t.seq
where m.validation_id = :validation_id and m.seq >= :low and m.seq < :below order by m.seq desc limit :limit;

-- name: txs_of_l1_up
{tx} join p_l1_move m on m.seq = t.seq
where m.validation_id = :validation_id and m.seq >= :low and m.seq < :below order by m.seq limit :limit;

-- Whether P had validators of L1s when it was executed by a release that did not store what transactions did to them.
-- name: l1_moves_missing
select 1 from meta where name = 'p_l1_moves_missing';

-- fragment: l1_move
select m.seq, m.validation_id, v.node_id, v.subnet_id, m.weight, m.balance, m.change from p_l1_move m
join p_l1_validator v on v.validation_id = m.validation_id

-- name: l1_moves_of
{l1_move} where m.seq = ?;

-- postgres: l1_moves_of
{l1_move} where m.seq = any(?);

-- name: tx_of
{tx} where t.txid = ?;

-- postgres: tx_of
{tx} where t.txid = any(?);

-- fragment: utxo_columns
u.position, u.utxo_id, u.bytes, u.state, u.kind, u.created_seq, u.created_time, u.stake_start, u.stake_end,
u.returned_seq, u.spent_time, c.height, s.txid, s.height, u.made

-- fragment: utxo_joins
left join p_tx c on c.seq = u.created_seq left join p_tx s on s.seq = u.spent_seq

-- name: utxo_of
select {utxo_columns} from p_utxo u {utxo_joins} where u.utxo_id = ?;

-- postgres: utxo_of
select {utxo_columns} from p_utxo u {utxo_joins} where u.utxo_id = any(?);

-- name: rewards_of
select {utxo_columns} from p_utxo u {utxo_joins} where u.reward_of = :seq order by u.position;

-- fragment: owned
from p_utxo_owner o join p_utxo u on u.position = o.position {utxo_joins}
where o.address = :address and o.state = :state

-- name: utxos_down
select {utxo_columns} {owned} and o.made < :below order by o.made desc limit :limit;

-- name: utxos_up
select {utxo_columns} {owned} and o.made > :above order by o.made limit :limit;

-- name: utxos_by_amount_down
select {utxo_columns} {owned} and (o.amount, o.made) < (:amount, :below) order by o.amount desc, o.made desc
limit :limit;

-- name: utxos_by_amount_up
select {utxo_columns} {owned} and (o.amount, o.made) > (:amount, :above) order by o.amount, o.made limit :limit;

-- name: owns
select 1 from p_utxo_owner where address = :address limit 1;

-- name: amounts
select u.made, u.asset_id, u.amount, u.locktime, u.stakeable_locktime, u.created_time, u.stake_start, u.stake_end,
u.returned_time, u.spent_time, u.addresses, u.bytes from p_utxo_owner o join p_utxo u on u.position = o.position
where o.address = :address and o.state = :state and o.made > :above order by o.made limit :limit;

-- name: txid_at
select txid from p_tx where seq = :seq;

-- name: staker_of
select txid, state, subnet_id, node_id, weight, start_time, end_time, potential_reward, priority, shares, height
from p_staker where txid = ?;

-- postgres: staker_of
select txid, state, subnet_id, node_id, weight, start_time, end_time, potential_reward, priority, shares, height
from p_staker where txid = any(?);

-- Serves: events of webhooks about balances.
-- name: utxo_history
select amount, locktime, stakeable_locktime, stake_start, stake_end, created_seq, returned_seq, spent_seq from p_utxo
where utxo_id = :utxo_id;
