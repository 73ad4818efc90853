-- name: next_number
select coalesce(max(number) + 1, 0) from container where series = ?;

-- name: put_container
insert into container (series, number, container_id, accepted_ns, source, bytes) values (?, ?, ?, ?, ?, ?);

-- name: number_of
select number from container where series = :series and container_id = :container_id;

-- name: container_id_at
select container_id from container where series = :series and number = :number;

-- name: last_number
select max(number) from container where series = :series;

-- name: containers
select number, container_id, accepted_ns, bytes from container
where series = :series and number >= :start order by number limit :count;

-- name: block_containers
select c.number, c.container_id, c.accepted_ns, b.container
from container c join ledger l on l.chain_id = :chain_id
join ledger_block b on b.chain = l.chain and b.height = c.source
where c.series = :series and c.number >= :start order by c.number limit :count;

-- name: tx_containers
select c.number, c.container_id, c.accepted_ns, t.bytes
from container c join ledger l on l.chain_id = :chain_id
join ledger_tx t on t.chain = l.chain and t.seq = c.source
where c.series = :series and c.number >= :start order by c.number limit :count;

-- name: followed
select count, container_id, block_id, height from followed where chain_id = :chain_id;

-- name: put_followed
insert into followed (chain_id, count, container_id, block_id, height)
values (:chain_id, :count, :container_id, :block_id, :height)
on conflict (chain_id) do update set count = excluded.count, container_id = excluded.container_id,
                                     block_id = excluded.block_id, height = excluded.height;
