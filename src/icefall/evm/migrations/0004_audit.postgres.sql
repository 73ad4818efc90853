-- As in 0004_audit.sqlite.sql, which says what a row means. There is no store from before it on PostgreSQL.
create table audit (
    block bigint not null primary key,
    credit bigint not null
);

create table nft_state_owner (
    owner bytea not null,
    token_address bytea not null,
    token_id bytea not null,
    token bigint not null,
    block bigint not null,
    primary key (owner, token_address, token_id)
);
create index nft_state_owner_of on nft_state_owner (token_address, token_id);
create index nft_state_owner_at on nft_state_owner (block);

alter table token add column silent_changes bigint not null default 0;
alter table token add column standards_since bigint not null default 0;
alter table token add column metadata_version bigint not null default 0;

create view token_trust as
select token, standards, standards_since,
    untrusted_since is not null or first_block > coalesce((select max(block) from audit), -1) as is_untrusted
from token;
