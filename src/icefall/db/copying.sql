-- Whole tables. What is in braces is filled in with names of the tables and columns of our own migrations.

-- name: put
insert into {table} ({columns}) values ({marks});

-- name: count
select count(*) from {table};

-- name: last_key
select {key} from {table} order by {key_descending} limit 1;

-- name: first_rows
select {columns} from {source} order by {order} limit {page};

-- name: rows_behind
select {columns} from {source} where ({key}) > ({key_marks}) order by {order} limit {page};
