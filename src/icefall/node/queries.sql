-- name: meta
select value from meta where name = :name;

-- name: put_meta
insert into meta (name, value) values (:name, :value) on conflict (name) do update set value = excluded.value;

-- name: endpoint_of_alias
select endpoint from endpoint_alias where alias = :alias;

-- name: endpoint_alias_count
select count(*) from endpoint_alias;

-- name: put_endpoint_alias
insert into endpoint_alias (alias, endpoint, position)
select :alias, :endpoint, coalesce(max(position), 0) + 1 from endpoint_alias;

-- name: chain_of_alias
select chain_id from chain_alias where alias = :alias;

-- name: aliases_of_chain
select alias from chain_alias where chain_id = :chain_id order by position;

-- name: put_chain_alias
insert into chain_alias (alias, chain_id, position)
select :alias, :chain_id, coalesce(max(position), 0) + 1 from chain_alias;

-- name: logger_levels
select logger, log_level, display_level from logger_level order by logger;

-- name: put_logger_level
insert into logger_level (logger, log_level, display_level) values (:logger, :log_level, :display_level)
on conflict (logger) do update set log_level = excluded.log_level, display_level = excluded.display_level;

-- name: health_results
select name, tags, passed, answer, stored_ns from health_result where report = :report order by name;

-- name: put_health_result
insert into health_result (report, name, tags, passed, answer, stored_ns)
values (:report, :name, :tags, :passed, :answer, :stored_ns)
on conflict (report, name) do update set tags = excluded.tags, passed = excluded.passed, answer = excluded.answer,
                                       stored_ns = excluded.stored_ns;

-- name: clear_health_results
delete from health_result;

-- name: vm_plugins
select vm_id, aliases, failure from vm_plugin order by vm_id;

-- name: put_vm_plugin
insert into vm_plugin (vm_id, aliases, failure) values (:vm_id, :aliases, :failure)
on conflict (vm_id) do update set aliases = excluded.aliases, failure = excluded.failure;

-- name: put_probe
insert into probe (id, value) values (1, :value) on conflict (id) do update set value = excluded.value;

-- name: probe
select value from probe where id = 1;
