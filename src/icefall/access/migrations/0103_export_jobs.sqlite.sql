-- A row says: `owner` has ordered an export; its files are in a folder of this ID until it expires. Key: its ID, a UUID.
-- Serves: /v1/operations, and the process that writes the files.
create table export_job (
  id text primary key,
  owner text not null, -- the name of an API key; empty: callers on this machine
  type text not null,
  request text not null, -- a JSON object; the same request has the same text
  status text not null, -- running, completed, truncated, failed or cancelled
  message text not null,
  next_date text not null, -- of a truncated one: the first day that it does not hold
  state text not null, -- how far it is written, as a JSON object; empty: not begun
  rows integer not null,
  bytes integer not null, -- of its files
  file text not null, -- the name of the file to download; empty: there is none
  created real not null, -- Unix time, as the following
  updated real not null,
  turn real not null, -- when a process worked on it last
  runner text not null, -- the ID of the folder of exports it is written to; empty: not begun
  expires real -- null: it is running
) without rowid;
create index export_job_by_owner on export_job (owner, status);
create index export_job_running on export_job (turn) where status = 'running';
create index export_job_by_end on export_job (expires) where expires is not null;
