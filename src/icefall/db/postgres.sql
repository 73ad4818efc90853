-- What the engine for PostgreSQL asks of the server itself, and the one table it keeps in each schema.

-- name: server
select current_setting('server_version_num')::bigint, pg_backend_pid();

-- Another text for every server, and each time one is started.
-- name: server_process
select pg_postmaster_start_time()::text;

-- name: session
select pg_backend_pid();

-- name: try_lock
select pg_try_advisory_lock(:key);

-- name: unlock
select pg_advisory_unlock_all();

-- name: lock_migrations
select pg_advisory_xact_lock(:key);

-- For the transaction of a migration: it may write a table of any size anew.
-- name: lift_time_limit
set local statement_timeout = 0;

-- Who holds the lock of a writer: its address and the name it gave.
-- name: holder
select coalesce(host(a.client_addr), 'this machine'), a.application_name
from pg_locks l join pg_stat_activity a on a.pid = l.pid
where l.locktype = 'advisory' and l.granted and l.database = (select oid from pg_database where datname = current_database())
  and l.objsubid = 1 and l.classid::bigint = (:key >> 32) & 4294967295 and l.objid::bigint = :key & 4294967295;

-- name: tables_of_schema
select count(*), count(*) filter (where relname = 'schema_version') from pg_class
where relnamespace = to_regnamespace(:schema) and relkind in ('r', 'p', 'v');

-- Stores of development versions have several rows.
-- name: schema_version
select max(number) from schema_version;

-- A row, the only one, is the number of the store's schema (migrate.py). `commits`: another number after every commit of
-- the store's only writer; null if it never had one.
-- name: create_schema_version
create table schema_version (number bigint not null primary key, commits bigint);

-- Above every number of a schema that had this name before, or of commits that a server has lost: no writer commits a
-- million times a second.
-- name: begin_commits
update schema_version set commits = greatest(commits + 1, (extract(epoch from now()) * 1000000)::bigint) returning commits;

-- It changes nothing if another writer has begun since the commit before.
-- name: count_commit
update schema_version set commits = commits + 1 where commits = :expected;

-- name: commits
select commits from schema_version;

-- name: put_schema_version
insert into schema_version (number) values (:number);

-- name: change_schema_version
update schema_version set number = :number;

-- How far a server is in the log of changes (db/replicas.py): the identity of the cluster, when the server was started,
-- whether it is a standby, its position, and the time since the last commit that a standby has replayed. Every role may
-- ask for all of it.
-- name: position
select (select system_identifier::text from pg_control_system()), pg_postmaster_start_time()::text, pg_is_in_recovery(),
  (coalesce(case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_lsn() end, '0/0')
    - '0/0'::pg_lsn)::bigint,
  case when pg_is_in_recovery() then extract(epoch from clock_timestamp() - pg_last_xact_replay_timestamp())::float8 end,
  (select count(*) from pg_extension where extname = 'citus');

-- name: citus
select count(*) from pg_extension where extname = 'citus';

-- name: citus_is_coordinator
select citus_is_coordinator();

-- name: citus_modify_one_after_the_other
set local citus.multi_shard_modify_mode to 'sequential';

-- The node of Citus that holds a schema, if it is spread at all.
-- name: citus_node
select n.nodename || ':' || n.nodeport
from public.citus_schemas s
join pg_dist_partition p on p.colocationid = s.colocation_id
join pg_dist_shard h on h.logicalrelid = p.logicalrelid
join pg_dist_placement l on l.shardid = h.shardid
join pg_dist_node n on n.groupid = l.groupid and n.noderole = 'primary'
where s.schema_name = to_regnamespace(:schema) limit 1;

-- The node that holds a schema, as any node knows it.
-- name: citus_place
select n.nodename, n.nodeport
from pg_dist_partition p
join pg_dist_shard h on h.logicalrelid = p.logicalrelid
join pg_dist_placement l on l.shardid = h.shardid
join pg_dist_node n on n.groupid = l.groupid and n.noderole = 'primary'
where p.logicalrelid = to_regclass(:schema || '.schema_version');

-- The tables of a schema with the shard that is theirs, its name at the node that has it, and that node.
-- name: citus_shards
select c.relname::text, h.shardid, shard_name(h.logicalrelid, h.shardid)::text, l.groupid, n.nodename::text, n.nodeport
from pg_dist_partition p
join pg_class c on c.oid = p.logicalrelid
join pg_dist_shard h on h.logicalrelid = p.logicalrelid
join pg_dist_placement l on l.shardid = h.shardid
join pg_dist_node n on n.groupid = l.groupid and n.noderole = 'primary'
where c.relnamespace = to_regnamespace(:schema);

-- name: citus_views
select relname::text, pg_get_viewdef(oid) from pg_class
where relnamespace = to_regnamespace(:schema) and relkind = 'v' order by oid;

-- `commits` at the node that holds the schema; no row after it was moved.
-- name: citus_commits_there
select commits from {table}
where exists (select 1 from pg_dist_placement where shardid = {shard} and groupid = {group});

-- name: citus_size
select coalesce(sum(citus_total_relation_size(oid)), 0)::bigint from pg_class
where relnamespace = to_regnamespace(:schema) and relkind = 'r';

-- name: schema_size
select coalesce(sum(pg_total_relation_size(oid)), 0)::bigint from pg_class
where relnamespace = to_regnamespace(:schema) and relkind = 'r';

-- name: schemas
select nspname from pg_namespace where starts_with(nspname, :prefix) order by nspname;

-- name: copy
copy {table} ({columns}) from stdin (format binary);

-- name: columns_copied
select {columns} from {table} limit 0;

-- A query for many params at once, which `read_each` puts into it.
-- name: of_each
select k.number, found.* from unnest(/* arrays */) with ordinality as k(/* names */, number)
cross join lateral (/* query */) as found;
