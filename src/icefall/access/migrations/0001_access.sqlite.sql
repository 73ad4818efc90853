-- A row says: who sends the key with this hash is `name` and has the budget of `tier`, since `created` (Unix seconds)
-- and until `revoked`, if that is set. The key itself is stored nowhere. Revoked rows stay, so that their keys are told
-- that they were revoked.
create table api_key (
  hash blob primary key,
  name text not null,
  tier text not null,
  created integer not null,
  revoked integer
) without rowid;

-- A name belongs to one living key; a revoked one's name can be given again.
create unique index api_key_by_name on api_key (name) where revoked is null;

-- A row says: this is our secret for `name`, random bytes made at the first start.
create table secret (
  name text primary key,
  value blob not null
) without rowid;
