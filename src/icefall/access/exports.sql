-- Export jobs: ordered by callers, written by one process, deleted some time after they expired.

-- fragment: columns
id, owner, type, request, status, message, next_date, state, rows, bytes, file, created, updated, turn, runner, expires;

-- Before a job is added: what an owner may have is counted first. SQLite has one writer at a time anyway.
-- name: lock_exports
select 1;

-- postgres: lock_exports
select 1 from pg_advisory_xact_lock(7310002);

-- name: export_job
select {columns} from export_job where id = :id;

-- name: running_exports_of
select {columns} from export_job where owner = :owner and status = 'running' order by id;

-- name: count_running_exports
select count(*) from export_job where status = 'running';

-- name: export_bytes
select coalesce(sum(bytes), 0) from export_job;

-- name: add_export
insert into export_job ({columns})
values (:id, :owner, :type, :request, :status, :message, :next_date, :state, :rows, :bytes, :file, :created, :updated,
  :turn, :runner, :expires);

-- The job that has waited for longest, of the types that a process can write. One of another folder counts as lost when
-- nothing has worked on it for long.
-- name: next_export
select {columns} from export_job
where status = 'running' and type in (select value from json_each(:types))
  and (runner = '' or runner = :runner or turn < :lost) order by turn limit 1;

-- name: claim_export
update export_job set runner = :runner, turn = :now
where id = :id and status = 'running' and (runner = '' or runner = :runner or turn < :lost);

-- name: put_export_state
update export_job set state = :state, rows = :rows, bytes = :bytes, updated = :now, turn = :now
where id = :id and status = 'running' and runner = :runner;

-- By its owner, or by the folder that it is written to: not by one that has lost it to another meanwhile.
-- name: end_export
update export_job set status = :status, message = :message, next_date = :next_date, rows = :rows, bytes = :bytes,
  file = :file, updated = :now, expires = :expires
where id = :id and status = 'running' and (:is_owner = 1 or runner = :runner);

-- A finished one whose files the owner wants to be gone.
-- name: expire_export
update export_job set expires = :now, updated = :now where id = :id and status <> 'running' and expires > :now;

-- Serves: the removal of files.
-- name: expired_exports
select id from export_job where expires <= :now and (bytes > 0 or file <> '') order by expires limit :count;

-- name: empty_export
update export_job set bytes = 0, file = '' where id = :id;

-- name: drop_old_exports
delete from export_job where expires < :before;
