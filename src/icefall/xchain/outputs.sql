-- The outputs of X and of the shared memory with their history, and what else lists of the primary network are read by.

-- name: listed
select next from listed where chain_id = :chain_id;

-- name: burned
select burned from listed where chain_id = :chain_id;

-- name: put_listed
insert into listed (chain_id, next, burned) values (:chain_id, :next, :burned)
on conflict (chain_id) do update set next = excluded.next, burned = excluded.burned;

-- The asset in which fees are paid, which is the first of the genesis.
-- name: fee_asset
select txid from ledger_tx where chain = (select min(chain) from ledger) and seq = 0;

-- name: put_output
insert into chain_output (utxo_id, source, destination, bytes, created_height, created_time, spent_txid, spent_height,
                          spent_time)
values (?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: put_owner
insert into chain_output_owner (chain_id, address, is_spent, created_time, utxo_id, amount) values (?, ?, ?, ?, ?, ?);

-- name: spend_output
update chain_output set spent_txid = :txid, spent_height = :height, spent_time = :time
where utxo_id = :utxo_id and source = :source returning destination, bytes, created_time;

-- name: spend_owner
update chain_output_owner set is_spent = 1
where chain_id = ? and address = ? and is_spent = 0 and created_time = ? and utxo_id = ?;

-- name: put_early_spent
insert into early_spent (utxo_id, source, txid, height, time) values (:utxo_id, :source, :txid, :height, :time);

-- name: early_spent
select 1 from early_spent where utxo_id = :utxo_id and source = :source;

-- name: take_early_spent
delete from early_spent where utxo_id = :utxo_id and source = :source returning txid, height, time;

-- An owner of an output that a transaction of C, P or X imported.
-- name: put_core_import_owner
insert into c_address_tx (address, seq) select ?, seq from c_tx where txid = ? on conflict (address, seq) do nothing;

-- name: put_platform_import_owner
insert into p_address_tx (address, seq) select ?, seq from p_tx where txid = ? on conflict (address, seq) do nothing;

-- name: put_asset_chain_import_owner
insert into address_tx (chain, address, seq, asset)
select t.chain, ?, t.seq, ? from ledger_tx t where t.txid = ? and t.chain = (select chain from ledger where chain_id = ?)
on conflict (chain, address, seq, asset) do nothing;

-- name: put_asset_tx
insert into asset_tx (chain, asset, seq) values (?, ?, ?);

-- name: put_proposed
insert into proposed_block (chain_id, node_id, height) values (?, ?, ?);

-- Transactions of X that are not in the lists yet, with their blocks.
-- name: unlisted
select t.seq, t.bytes, t.height from ledger_tx t join ledger l on l.chain = t.chain
where l.chain_id = :chain_id and t.seq >= :next order by t.seq limit :limit;

-- name: block_of
select b.container, substr(b.container, cast(b.inner_at + 47 as int), 8) from ledger_block b
join ledger l on l.chain = b.chain where l.chain_id = :chain_id and b.height = :height;

-- name: number
select chain from ledger where chain_id = :chain_id;

-- fragment: output_columns
u.utxo_id, u.source, u.destination, u.bytes, u.created_height, u.created_time, u.spent_txid, u.spent_height, u.spent_time

-- name: output_of
select {output_columns} from chain_output u where u.utxo_id = ?;

-- postgres: output_of
select {output_columns} from chain_output u where u.utxo_id = any(?);

-- fragment: owned
from chain_output_owner o join chain_output u
on u.utxo_id = o.utxo_id and (u.source = o.chain_id or u.destination = o.chain_id)
where o.chain_id = :chain_id and o.address = :address and o.is_spent = :is_spent

-- name: outputs_down
select {output_columns}, o.amount {owned} and (o.created_time, o.utxo_id) < (:at, :utxo_id)
order by o.created_time desc, o.utxo_id desc limit :limit;

-- name: outputs_up
select {output_columns}, o.amount {owned} and (o.created_time, o.utxo_id) > (:at, :utxo_id)
order by o.created_time, o.utxo_id limit :limit;

-- name: outputs_by_amount_down
select {output_columns}, o.amount {owned} and (o.amount, o.utxo_id) < (:at, :utxo_id)
order by o.amount desc, o.utxo_id desc limit :limit;

-- name: outputs_by_amount_up
select {output_columns}, o.amount {owned} and (o.amount, o.utxo_id) > (:at, :utxo_id)
order by o.amount, o.utxo_id limit :limit;

-- name: owns_on
select 1 from chain_output_owner where chain_id = :chain_id and address = :address limit 1;

-- name: proposed_down
select height from proposed_block
where chain_id = :chain_id and node_id = :node_id and height >= :low and height < :below order by height desc limit :limit;

-- Chains that have more stored than is in the lists.
-- name: incomplete
select l.chain_id from ledger l left join listed d on d.chain_id = l.chain_id
where l.chain_id = :x_chain_id and l.next_seq > coalesce(d.next, 0)
union all
select f.chain_id from followed f left join listed d on d.chain_id = f.chain_id
where f.chain_id = :c_chain_id and f.count > coalesce(d.next, 0)
union all
select :p_chain_id from p_ledger p left join listed d on d.chain_id = :p_chain_id
where p.height >= coalesce(d.next, 1);
