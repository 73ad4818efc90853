-- ABIs of contracts. `icefall abi` and the API write them; every worker reads what has changed.

-- Before any ABI is changed: versions must become visible in their order. SQLite has one writer at a time anyway.
-- name: lock_abis
select 1;

-- postgres: lock_abis
select 1 from pg_advisory_xact_lock(7310002);

-- name: count_abis
select count(*) from contract_abi where abi <> '';

-- name: newest_abi
select coalesce(max(version), 0) from contract_abi;

-- name: put_abi
insert into contract_abi (chain_id, address, abi, origin, added, version)
values (:chain_id, :address, :abi, :origin, :added, :version)
on conflict (chain_id, address) do update set abi = excluded.abi, origin = excluded.origin, added = excluded.added,
  version = excluded.version;

-- Serves: a removal, of which the newest one stays so that workers see it.
-- name: drop_removed_abis
delete from contract_abi where abi = '' and version < :version;

-- name: abi_of
select abi from contract_abi where chain_id = :chain_id and address = :address and abi <> '';

-- Serves: icefall abi list.
-- name: listed_abis
select chain_id, address, origin, added, length(abi) from contract_abi
where abi <> '' order by chain_id, address;

-- Serves: workers, once a second.
-- name: changed_abis
select chain_id, address, abi, version from contract_abi where version > :version order by version limit :count;
