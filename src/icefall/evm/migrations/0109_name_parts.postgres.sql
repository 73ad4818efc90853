-- Search by any part of a token's name.

create table name_part (
    token bigint not null,
    part text collate "C" not null,
    primary key (token, part)
);

insert into name_part (token, part)
select token, substr(lower(name collate "C"), at, 24) from token cross join generate_series(1, 64) as place(at)
where name is not null and at < length(name)
union
select token, substr(lower(symbol collate "C"), at, 24) from token cross join generate_series(1, 64) as place(at)
where symbol is not null and at < length(symbol);

create index token_by_part on name_part (part, token);
