-- What an upstream sees of the validators of the primary network. Written once a minute, read with their lists.

-- name: put_observed
insert into observed_node (node_id, time, uptime, is_connected, version, benched) values (?, ?, ?, ?, ?, ?)
on conflict (node_id) do update set time = excluded.time, uptime = excluded.uptime,
    is_connected = excluded.is_connected, version = excluded.version, benched = excluded.benched;

-- name: forget_observed
delete from observed_node where time < :before;

-- name: observed_of
select o.node_id, o.time, o.uptime, o.is_connected, o.version, o.benched from observed_node o where o.node_id = ?;

-- postgres: observed_of
select o.node_id, o.time, o.uptime, o.is_connected, o.version, o.benched from observed_node o where o.node_id = any(?);

-- The validators of a subnet, one row each, whose version is known.
-- name: versions
select o.version, s.weight, s.delegator_weight from observed_node o join p_staker s on s.node_id = o.node_id
where s.is_delegator = 0 and s.state = 1 and s.subnet_id = :subnet_id and o.time >= :since and o.version <> '';
