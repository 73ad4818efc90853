-- A fact about this data directory, such as the network it is bound to.
create table fact (name text primary key, value text not null) without rowid;

-- A row says: /ext/<alias> is another name of /ext/<endpoint>. `place` keeps the order in which they were given.
create table endpoint_alias (alias text primary key, endpoint text not null, place integer not null) without rowid;

-- A row says: `alias` names the chain with this ID, wherever an ID may stand.
create table chain_alias (alias text primary key, chain_id blob not null, place integer not null) without rowid;

-- A row says: an administrator set these levels; they hold in every process and after a restart.
create table logger_level (logger text primary key, log_level text not null, display_level text not null) without rowid;

-- A row is the last result of one check: `answer` is the JSON object as it is sent, `tags` a JSON list (empty: global).
-- `stored_ns` is when we wrote it: results that grow old tell of an engine, or a disk, that hangs.
create table health_result (
    kind text not null, name text not null, tags text not null, passed integer not null, answer blob not null,
    stored_ns integer not null,
    primary key (kind, name)
) without rowid;

-- A row says: loadVMs met this plugin; `failure` is empty when it loaded. `aliases` is a JSON list.
create table vm_plugin (vm_id text primary key, aliases text not null, failure text not null) without rowid;

-- The database check writes here and reads it back.
create table probe (id integer primary key check (id = 1), value integer not null);
