-- Serves: every request with a key.
-- name: key_by_hash
select name, tier, revoked from api_key where hash = :hash;

-- Serves: icefall keys list; active keys first, each group by name and age.
-- name: all_keys
select name, tier, created, revoked from api_key order by revoked is not null, name, created;

-- name: active_key
select 1 from api_key where name = :name and revoked is null;

-- name: add_key
insert into api_key (hash, name, tier, created) values (:hash, :name, :tier, :created);

-- name: revoke_key
update api_key set revoked = :revoked where name = :name and revoked is null;

-- Serves: workers, once at start.
-- name: secret
select value from secret where name = :name;

-- Serves: the first start; a second process keeps the existing secret.
-- name: add_secret
insert into secret (name, value) values (:name, :value) on conflict (name) do nothing;

-- Serves: workers, once at start.
-- name: chain_configs
select chain_id, config from chain_config order by position, chain_id;

-- name: put_chain_config
insert into chain_config (chain_id, position, config) values (:chain_id, :position, :config)
on conflict (chain_id) do update set position = excluded.position, config = excluded.config;

-- Serves: leases of budgets on a server. The row of a caller is locked until its lease is stored.
-- name: open_budget
insert into budget (caller, minute, minute_units, day, day_units) values (:caller, :minute, 0, :day, 0)
on conflict (caller) do nothing;

-- name: budget
select minute, minute_units, day, day_units from budget where caller = :caller;

-- postgres: budget
select minute, minute_units, day, day_units from budget where caller = :caller for update;

-- name: put_budget
update budget set minute = :minute, minute_units = :minute_units, day = :day, day_units = :day_units
where caller = :caller;

-- name: drop_old_budgets
delete from budget where day < :day;
