-- Ranges of NFTs that one log moves (ERC-2309). Those of blocks that are stored already stay unknown.
alter table erc721 add column last_id blob;
create table nft_range (
    token integer not null,
    first_id blob not null,
    log_at integer not null,
    last_id blob not null,
    owner integer not null,
    token_address blob not null,
    moved integer not null,
    primary key (token, first_id, log_at)
) without rowid;
create index nft_range_of on nft_range (owner, token_address, last_id);
create index nft_range_at on nft_range (log_at);
drop view erc721_view;
create view erc721_view as
select 2 as standard, e.log_at, 0 as position, e.tx_index, b.hash as block_hash, b.time, t.hash as tx_hash,
    k.address as token_address, s.address as sender_address, r.address as recipient_address, e.token_id,
    e.last_id as value, e.token, e.sender, e.recipient
from erc721 e
join tx t on t.tx_at = (e.log_at & ~0xffffff) | e.tx_index
join block b on b.number = e.log_at >> 24
join address k on k.id = e.token
join address s on s.id = e.sender
join address r on r.id = e.recipient;
