-- Serves: every request with a key.
-- name: key_by_hash
select name, tier, revoked, is_admin from api_key where hash = :hash;

-- Serves: icefall keys list; active keys first, each group by name and age.
-- name: all_keys
select name, tier, created, revoked, is_admin from api_key order by revoked is not null, name, created;

-- name: active_key
select 1 from api_key where name = :name and revoked is null;

-- name: add_key
insert into api_key (hash, name, tier, created, is_admin) values (:hash, :name, :tier, :created, :is_admin);

-- name: revoke_key
update api_key set revoked = :revoked where name = :name and revoked is null;

-- Serves: workers, once at start.
-- name: secret
select value from secret where name = :name;

-- Serves: the first start; a second process keeps the existing secret.
-- name: add_secret
insert into secret (name, value) values (:name, :value) on conflict (name) do nothing;

-- Serves: the owner of the budgets, when it starts.
-- name: spent_of_day
select caller, minute, minute_units, day, day_units from budget_spent where day = :day;

-- name: put_spent
insert into budget_spent (caller, minute, minute_units, day, day_units)
values (:caller, :minute, :minute_units, :day, :day_units)
on conflict (caller) do update set minute = excluded.minute, minute_units = excluded.minute_units,
  day = excluded.day, day_units = excluded.day_units;

-- name: drop_spent
delete from budget_spent where day < :day;

-- Serves: lock_usage, which needs a row of a table that the role of a reader may update. Its day never comes, so it is
-- neither read as a budget nor dropped.
-- name: open_usage_lock
insert into budget_spent (caller, minute, minute_units, day, day_units)
values ('lock of usage', 0, 0, 9223372036854775807, 0) on conflict (caller) do nothing;

-- Before usage is read to be written again: several machines may do so with one server.
-- name: lock_usage
select 1 from budget_spent where caller = 'lock of usage';

-- postgres: lock_usage
select 1 from budget_spent where caller = 'lock of usage' for update;

-- name: usage_row
select calls, units, durations from usage_day
where day = :day and caller = :caller and path = :path and chain = :chain and status = :status;

-- name: put_usage
insert into usage_day (day, caller, path, chain, status, calls, units, durations)
values (:day, :caller, :path, :chain, :status, :calls, :units, :durations)
on conflict (day, caller, path, chain, status) do update
set calls = excluded.calls, units = excluded.units, durations = excluded.durations;

-- name: drop_usage
delete from usage_day where day < :day;

-- Serves: /v1/apiUsageMetrics and icefall status.
-- name: usage_between
select day, caller, path, chain, status, calls, units, durations from usage_day
where day >= :first and day <= :last order by day;

-- name: add_request
insert into request_log (at, caller, path, chain, status, units, duration_ms, peer, host, agent)
values (:at, :caller, :path, :chain, :status, :units, :duration_ms, :peer, :host, :agent);

-- postgres: add_request
insert into request_log (id, at, caller, path, chain, status, units, duration_ms, peer, host, agent)
select coalesce(max(id), 0) + 1, :at, :caller, :path, :chain, :status, :units, :duration_ms, :peer, :host, :agent
from request_log;

-- name: drop_requests
delete from request_log where at < :before or id <= (select max(id) from request_log) - :rows_max;

-- Serves: /v1/apiLogs, newest first. An empty caller stands for all.
-- name: requests_before
select id, at, caller, path, chain, status, units, duration_ms, peer, host, agent from request_log
where (:caller = '' or caller = :caller) and id < :before and at >= :first and at <= :last
  and (:path = '' or path = :path) and (:chain = '' or chain = :chain) and (:status = 0 or status = :status)
order by id desc limit :count;

-- Serves: workers, once at start.
-- name: chain_configs
select chain_id, config from chain_config order by position, chain_id;

-- name: put_chain_config
insert into chain_config (chain_id, position, config) values (:chain_id, :position, :config)
on conflict (chain_id) do update set position = excluded.position, config = excluded.config;

-- name: drop_chain_config
delete from chain_config where chain_id = :chain_id;

-- Serves: leases of budgets on a server. The row of a caller is locked until its lease is stored.
-- name: open_spent
insert into budget_spent (caller, minute, minute_units, day, day_units) values (:caller, :minute, 0, :day, 0)
on conflict (caller) do nothing;

-- name: spent
select caller, minute, minute_units, day, day_units from budget_spent where caller = :caller;

-- postgres: spent
select caller, minute, minute_units, day, day_units from budget_spent where caller = :caller for update;
