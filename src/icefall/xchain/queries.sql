-- name: ledger
select chain, genesis_hash, genesis_txs, height, next_seq, next_position from ledger where chain_id = :chain_id;

-- name: put_ledger
insert into ledger (chain, chain_id, genesis_hash, genesis_txs, height, next_seq, next_position)
select coalesce(max(chain), 0) + 1, :chain_id, :genesis_hash, :genesis_txs, -1, 0, 0 from ledger;

-- name: advance_ledger
update ledger set height = :height, next_seq = :next_seq, next_position = :next_position where chain = :chain and height = :height - 1;

-- name: advance_before_blocks
update ledger set next_seq = :next_seq, next_position = :next_position
where chain = :chain and height = 0 and next_seq = :seq_before;

-- name: put_block
insert into ledger_block (chain, height, block_id, container_id, accepted_ns, inner_at, inner_size, container)
values (:chain, :height, :block_id, :container_id, :accepted_ns, :inner_at, :inner_size, :container);

-- name: height
select height from ledger where chain = :chain;

-- name: block_by_height
select substr(container, cast(inner_at + 1 as int), cast(inner_size as int)) from ledger_block where chain = :chain and height = :height;

-- name: block_by_id
select substr(container, cast(inner_at + 1 as int), cast(inner_size as int)) from ledger_block where chain = :chain and block_id = :block_id;

-- name: block_by_container_id
select substr(container, cast(inner_at + 1 as int), cast(inner_size as int)) from ledger_block where chain = :chain and container_id = :container_id;

-- name: container_id_at
select container_id from ledger_block where chain = :chain and height = :height;

-- name: last_container
select container from ledger_block where chain = :chain order by height desc limit 1;

-- name: put_tx
insert into ledger_tx (chain, seq, txid, height, bytes) values (:chain, :seq, :txid, :height, :bytes);

-- name: tx
select bytes from ledger_tx where chain = :chain and txid = :txid;

-- name: has_tx
select 1 from ledger_tx where chain = :chain and txid = :txid;

-- name: tx_at
select seq, txid, height from ledger_tx where chain = :chain and seq = :seq;

-- name: put_utxo
insert into utxo (position, chain, utxo_id, bytes) values (?, ?, ?, ?);

-- name: put_utxo_owner
insert into utxo_owner (chain, address, position) values (?, ?, ?);

-- name: take_utxo
delete from utxo where chain = ? and utxo_id = ? returning position;

-- name: take_utxo_owner
delete from utxo_owner where chain = ? and address = ? and position = ?;

-- name: utxo
select bytes from utxo where chain = :chain and utxo_id = :utxo_id;

-- name: utxo_position
select u.position from utxo u join utxo_owner o on o.chain = u.chain and o.position = u.position
where u.chain = :chain and u.utxo_id = :utxo_id and o.address = :address;

-- name: utxos_of_address
select u.position, u.utxo_id, u.bytes from utxo_owner o join utxo u on u.position = o.position
where o.chain = :chain and o.address = :address and o.position < :below order by o.position desc limit :limit;

-- name: next_atomic_position
insert into atomic_count (destination, source, next_position) values (:destination, :source, 1)
on conflict (destination, source) do update set next_position = atomic_count.next_position + 1 returning next_position;

-- name: put_atomic
insert into atomic_utxo (destination, source, position, utxo_id, bytes)
values (:destination, :source, :position, :utxo_id, :bytes);

-- name: put_atomic_owner
insert into atomic_owner (destination, source, address, position) values (:destination, :source, :address, :position);

-- name: take_atomic
delete from atomic_utxo where destination = :destination and source = :source and utxo_id = :utxo_id
returning position, bytes;

-- name: take_atomic_owner
delete from atomic_owner
where destination = :destination and source = :source and address = :address and position = :position;

-- name: put_taken
insert into atomic_taken (destination, source, utxo_id) values (:destination, :source, :utxo_id);

-- name: cancel_taken
delete from atomic_taken where destination = :destination and source = :source and utxo_id = :utxo_id;

-- name: atomic
select bytes from atomic_utxo where destination = :destination and source = :source and utxo_id = :utxo_id;

-- name: atomic_position
select u.position from atomic_utxo u
join atomic_owner o on o.destination = u.destination and o.source = u.source and o.position = u.position
where u.destination = :destination and u.source = :source and u.utxo_id = :utxo_id and o.address = :address;

-- name: atomic_of_address
select u.position, u.utxo_id, u.bytes from atomic_owner o
join atomic_utxo u on u.destination = o.destination and u.source = o.source and u.position = o.position
where o.destination = :destination and o.source = :source and o.address = :address and o.position < :below
order by o.position desc limit :limit;

-- name: put_address_tx
insert into address_tx (chain, address, seq, asset) values (?, ?, ?, ?);

-- name: txs_of_address
select t.seq, t.txid, t.height from (
    select distinct seq from address_tx where chain = :chain and address = :address and seq < :below
    order by seq desc limit :limit
) found join ledger_tx t on t.chain = :chain and t.seq = found.seq order by t.seq desc;

-- name: txs_of_address_asset
select t.seq, t.txid, t.height from (
    select seq from address_tx where chain = :chain and address = :address and asset = :asset and seq < :below
    order by seq desc limit :limit
) found join ledger_tx t on t.chain = :chain and t.seq = found.seq order by t.seq desc;

-- name: put_refused
insert into refused_tx (position, chain, txid, reason)
select coalesce(max(position), 0) + 1, :chain, :txid, :reason from refused_tx where true
on conflict (chain, txid) do update set reason = excluded.reason;

-- name: trim_refused
delete from refused_tx where chain = :chain and position <= (
    select position from refused_tx where chain = :chain order by position desc limit 1 offset :keep);

-- name: refused
select reason from refused_tx where chain = :chain and txid = :txid;
