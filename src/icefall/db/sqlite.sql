-- What SQLite knows of the tables in a file.

-- name: tables
select name from sqlite_master where type = 'table' and name not like 'sqlite_%' order by name;

-- Columns in their order, and the place of each in the primary key; 0: not in it.
-- name: columns
select name, pk from pragma_table_info(?) order by cid;

-- The columns of the first unique constraint, of a table without a primary key.
-- name: unique_columns
select c.name from pragma_index_list(?) i, pragma_index_info(i.name) c
where i."unique" and i.name like '%_1' order by c.seqno;
