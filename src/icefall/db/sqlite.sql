-- What SQLite knows of the tables in a file.

-- A table in two parts is a view of them.
-- name: tables
select name from sqlite_master m
where type = 'table' and name not like 'sqlite_%' and name not like '%!_recent' escape '!' and name not like '%!_merged' escape '!'
    or type = 'view' and exists (select 1 from sqlite_master p where p.name = m.name || '_merged')
order by name;

-- Columns in their order, and the place of each in the primary key; 0: not in it.
-- name: columns
select c.name, c.pk
from (select ? as name) t,
    pragma_table_info(coalesce((select m.name from sqlite_master m where m.name = t.name || '_merged'), t.name)) c
order by c.cid;

-- The columns of the first unique constraint, of a table without a primary key.
-- name: unique_columns
select c.name from pragma_index_list(?) i, pragma_index_info(i.name) c
where i."unique" and i.name like '%_1' order by c.seqno;
