-- The view of a table in two parts (schema_file.py), and what writes through it. What is in braces is filled in.

-- name: view
create view {table} as
select {columns} from {table}_recent
union all
select {columns} from {table}_merged;

-- What is inserted through the view, which is how whole stores are copied, goes to the large part.
-- name: insert_trigger
create trigger {table}_insert instead of insert on {table} begin
    insert into {table}_merged ({columns}) values ({new_columns});
end;

-- name: delete_trigger
create trigger {table}_delete instead of delete on {table} begin
    delete from {table}_recent where {is_old};
    delete from {table}_merged where {is_old};
end;
