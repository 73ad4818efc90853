-- The rows of exported tables of P and X, in pieces: by the numbers of blocks or transactions, or by the IDs of outputs.

-- name: p_last
select l.height, l.next_seq, b.block_type from p_ledger l join p_block b on b.height = l.height where l.id = 1;

-- name: p_block
select block_id, time from p_block where height = :height;

-- The height of a transaction, or of the next one if there is none of this number.
-- name: p_tx_height
select height from p_tx where seq >= :seq order by seq limit 1;

-- name: p_blocks
select height, block_id, time, block_type, tx_count, inner_size from p_block
where height >= :low and height < :high order by height;

-- name: p_transactions
select t.seq, t.txid, t.height, b.time, t.is_committed, t.bytes from p_tx t join p_block b on b.height = t.height
where t.seq >= :low and t.seq < :high order by t.seq;

-- What a transaction of type 20 paid: it names the staking transaction behind its version and type.
-- name: p_rewards
select r.height, b.time, r.txid, s.txid, p.subnet_id, p.node_id, p.is_delegator, u.kind, u.bytes, p.weight,
       p.start_time, p.end_time
from p_tx r
join p_block b on b.height = r.height
join p_tx s on s.txid = substr(r.bytes, 7, 32)
join p_staker p on p.seq = s.seq
join p_utxo u on u.reward_of = s.seq and u.created_seq = r.seq
where r.seq >= :low and r.seq < :high and r.type = 20 order by r.seq, u.position;

-- Outputs are never deleted. :end is the number behind the last transaction that is exported: what was made by then is
-- read, and what has become of it by then.
-- name: p_utxos
select u.utxo_id, u.bytes, c.height, u.created_time, u.kind,
       u.kind = 1 and (u.returned_seq is null or u.returned_seq >= :end),
       u.stake_start, u.stake_end, s.txid, s.height, case when u.spent_seq < :end then u.spent_time end
from p_utxo u
left join p_tx c on c.seq = u.created_seq
left join p_tx s on s.seq = u.spent_seq and u.spent_seq < :end
where u.utxo_id > :after and u.created_seq < :end order by u.utxo_id limit :limit;

-- name: p_stakers
select s.txid, t.height, b.time, s.subnet_id, s.node_id, s.is_delegator,
       case when s.state > 1 and s.height > :last then 1 else s.state end,
       s.start_time, s.end_time, s.weight, s.potential_reward, s.shares, s.validation_owner, s.delegation_owner, v.txid,
       e.txid
from p_staker s
join p_tx t on t.seq = s.seq
join p_block b on b.height = t.height
left join p_staker v on v.seq = s.validator_seq
left join p_tx e on e.seq = s.ended_seq and s.ended_seq < :end
where s.seq >= :low and s.seq < :high order by s.seq;

-- name: x_chain
select l.chain, l.height, l.next_seq, t.txid, l.chain_id
from ledger l join ledger_tx t on t.chain = l.chain and t.seq = 0 order by l.chain limit 1;

-- fragment: x_time
substr(b.container, cast(b.inner_at + 47 as int), 8)

-- name: x_block
select b.block_id, {x_time} from ledger_block b where b.chain = :chain and b.height = :height;

-- name: x_tx_height
select height from ledger_tx where chain = :chain and seq = :seq;

-- name: x_blocks
select b.height, b.block_id, {x_time}, substr(b.container, cast(b.inner_at + 1 as int), cast(b.inner_size as int))
from ledger_block b where b.chain = :chain and b.height >= :low and b.height < :high order by b.height;

-- name: x_transactions
select t.seq, t.txid, t.height, {x_time}, t.bytes
from ledger_tx t join ledger_block b on b.chain = t.chain and b.height = t.height
where t.chain = :chain and t.seq >= :low and t.seq < :high order by t.seq;

-- What another chain spent has no height of this one: it is read as it is now.
-- name: x_utxos
select utxo_id, destination, bytes, created_height, created_time,
       case when destination <> source or spent_height <= :last then spent_txid end,
       case when destination <> source or spent_height <= :last then spent_time end
from chain_output
where utxo_id > :after and source = :chain_id and created_height <= :last order by utxo_id limit :limit;
