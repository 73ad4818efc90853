-- Ranges of NFTs that one log moves (ERC-2309). Those of blocks that are stored already stay unknown.
alter table erc721 add column last_id bytea;
create table nft_range (
    token bigint not null,
    first_id bytea not null,
    log_at bigint not null,
    last_id bytea not null,
    owner bigint not null,
    token_address bytea not null,
    moved bigint not null,
    primary key (token, first_id, log_at)
);
create index nft_range_of on nft_range (owner, token_address, last_id);
create index nft_range_at on nft_range (log_at);
drop view erc721_view;
create view erc721_view as
select cast(2 as bigint) as standard, e.log_at, cast(0 as bigint) as position, e.tx_index, b.hash as block_hash, b.time, t.hash as tx_hash,
    k.address as token_address, s.address as sender_address, r.address as recipient_address, e.token_id, e.last_id as value,
    e.token, e.sender, e.recipient
from erc721 e
join tx t on t.tx_at = (e.log_at & -16777216) | e.tx_index
join block b on b.number = e.log_at >> 24
join address k on k.id = e.token
join address s on s.id = e.sender
join address r on r.id = e.recipient;
