-- Search by any part of a token's name.

create table name_part (
    token integer not null,
    part text not null,
    primary key (token, part)
) without rowid;

insert into name_part (token, part)
with recursive place(at) as (select 1 union all select at + 1 from place where at < 64)
select token, substr(lower(name), at, 24) from token cross join place where name is not null and at < length(name)
union
select token, substr(lower(symbol), at, 24) from token cross join place where symbol is not null and at < length(symbol);

create index token_by_part on name_part (part, token);
