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
