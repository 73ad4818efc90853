-- Audits run in a loop of their own. A row says: every block up to this one was audited, and this many comparisons were
-- left of the budget. A rollback deletes the rows above the ancestor.
create table audit (
    block integer not null primary key,
    credit integer not null
) without rowid;
insert into audit (block, credit)
select cast(value as integer), 1500 from meta where name = 'audited_to' and cast(value as integer) >= 0;
delete from meta where name = 'audited_to';

-- ERC-721 tokens whose owner by the contract's state is another than by its logs, found by an audit at `block`.
-- Serves: balances:listErc721 of an owner that no log names.
create table nft_state_owner (
    owner blob not null,
    token_address blob not null,
    token_id blob not null,
    token integer not null,
    block integer not null,
    primary key (owner, token_address, token_id)
) without rowid;
create index nft_state_owner_of on nft_state_owner (token_address, token_id);
create index nft_state_owner_at on nft_state_owner (block);

-- How often its storage changed without a log that explains it; and the block of its latest deployment, if the contract was
-- deployed again after its first transfer: `standards` counts transfers from there on.
alter table token add column silent_changes integer not null default 0;
alter table token add column standards_since integer not null default 0;
-- Raised whenever name, symbol and decimals may have changed: what was read before that does not count.
alter table token add column metadata_version integer not null default 0;

drop view token_trust;
-- Whether a token's stored balances can be trusted: its logs agreed with its state at every audit, and there was one
-- since its first transfer. The balances of an untrusted token are read from state.
-- Serves: lists of balances and owners.
create view token_trust as
select token, standards, standards_since, untrusted_since is not null or first_block > coalesce((select max(block) from audit), -1) as is_untrusted
from token;

-- The zero address lists what contracts credit to it: every token ever burned is a candidate, read from state.
insert into erc20_holding (holder, token_address, token, since, baseline)
select o.address, k.address, e.token, min(o.log_at >> 24), x'00'
from erc20_of o
join erc20 e on e.log_at = o.log_at and e.recipient = o.address
join address k on k.id = e.token
where o.address = (select id from address where address = zeroblob(20))
group by e.token on conflict (holder, token_address) do nothing;
insert into erc1155_holding (holder, token_address, token_id, token, since, baseline)
select o.address, k.address, e.token_id, e.token, min(o.log_at >> 24), x'00'
from erc1155_of o
join erc1155 e on e.log_at = o.log_at and e.recipient = o.address
join address k on k.id = e.token
where o.address = (select id from address where address = zeroblob(20))
group by e.token, e.token_id on conflict (holder, token_address, token_id) do nothing;
