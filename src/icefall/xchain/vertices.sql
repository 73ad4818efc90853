-- Vertices: what X's DAG consisted of before block 0. Each list is read by a range of its key.

-- name: put_vertex
insert into vertex (number, vertex_id, height, parents, size, is_parent) values (?, ?, ?, ?, ?, 0);

-- name: put_vertex_tx
insert into vertex_tx (number, seq)
select ?, t.seq from ledger l join ledger_tx t on t.chain = l.chain where l.chain_id = ? and t.txid = ?;

-- name: mark_parent
update vertex set is_parent = 1 where vertex_id = ? and is_parent = 0;

-- name: next_vertex
select coalesce(max(number) + 1, 0) from vertex;

-- name: number_of_vertex
select number from vertex where vertex_id = :vertex_id;

-- Vertices that no other one names as its parent: a whole DAG has one, the last.
-- name: childless
select vertex_id from vertex where is_parent = 0 order by number limit 2;

-- name: forget_vertices
delete from vertex;

-- name: forget_vertex_txs
delete from vertex_tx;

-- name: forget_vertex_containers
delete from container where series = :series;

-- name: is_accepted
select count(*) from ledger l join ledger_tx t on t.chain = l.chain where l.chain_id = :chain_id and t.txid = :txid;

-- fragment: vertex
select number, vertex_id, height, parents, size from vertex

-- name: vertices
{vertex} where number < :below order by number desc limit :limit;

-- name: vertices_at_down
{vertex} where height = :height and number > :low and number < :below order by number desc limit :limit;

-- name: vertices_at_up
{vertex} where height = :height and number > :low and number < :below order by number limit :limit;

-- name: vertex_by_id
{vertex} where vertex_id = :vertex_id;

-- name: txs_of_vertex
select v.number, t.txid from vertex_tx v join ledger l on l.chain_id = ?
join ledger_tx t on t.chain = l.chain and t.seq = v.seq where v.number = ?;

-- postgres: txs_of_vertex
select v.number, t.txid from unnest(?::bytea[], ?::bigint[]) wanted (chain_id, number)
join vertex_tx v on v.number = wanted.number join ledger l on l.chain_id = wanted.chain_id
join ledger_tx t on t.chain = l.chain and t.seq = v.seq;

-- The newest vertices that a transaction is in. Nothing bounds how many there are, so the rest is left out.
-- name: vertices_of_tx
select t.seq, v.vertex_id, v.height from vertex_tx t join vertex v on v.number = t.number
where t.seq = ? order by t.number desc limit 128;

-- postgres: vertices_of_tx
select wanted.seq, v.vertex_id, v.height from unnest(?::bigint[]) wanted (seq) cross join lateral (
    select number from vertex_tx where seq = wanted.seq order by number desc limit 128
) t join vertex v on v.number = t.number;
