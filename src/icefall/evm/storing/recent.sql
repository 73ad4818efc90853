-- The parts of a table that is in two (db/schema_file.py). What is in braces is filled in by recent.py.

-- name: count
select count(*) from {table}_recent;

-- The last key of the next `rows` ones behind a key, and the last one of all.
-- name: last_of_step
select {key} from {table}_recent where ({key}) > ({key_marks}) order by {key} limit 1 offset ?;

-- name: last
select {key} from {table}_recent order by {key_descending} limit 1;

-- name: copy_step
insert into {table}_merged ({columns})
select {columns} from {table}_recent where ({key}) > ({key_marks}) and ({key}) <= ({key_marks}) order by {key};

-- name: drop_step
delete from {table}_recent where ({key}) > ({key_marks}) and ({key}) <= ({key_marks});

-- name: clear
delete from {table}_recent;
