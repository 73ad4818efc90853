-- Which stored balances and owners to compare with the contracts, and what the comparisons found.

-- name: checkpoint
select block, credit from audit order by block desc limit 1;

-- name: put_checkpoint
insert into audit (block, credit, dropped_from) values (:block, :credit, :dropped_from)
on conflict (block) do update set credit = excluded.credit, dropped_from = excluded.dropped_from;

-- The block up to which every comparison was made that was due.
-- name: audited_to
select coalesce(
    (select dropped_from - 1 from audit where dropped_from >= 0 order by dropped_from limit 1),
    (select max(block) from audit), -1);

-- The first block after one of which not every comparison was made, and the checkpoint of its batch.
-- name: left_out
select dropped_from, block from audit where dropped_from > :after order by dropped_from limit 1;

-- name: put_left_out
update audit set dropped_from = :dropped_from where block = :block;

-- name: block_hash
select hash from block where number = :block;

-- name: blocks
select number, hash, next_address, touched from block where number between :first and :last order by number;

-- Position, token, holders and token ID of the blocks' transfers. Of an NFT the owner is compared, not who moved it.
-- name: moves_of_erc20
select log_at, token, sender, recipient, null from erc20
where log_at between :from_log and :to_log order by log_at limit :count;

-- name: moves_of_erc721
select log_at, token, null, null, token_id from erc721
where log_at between :from_log and :to_log order by log_at limit :count;

-- name: moves_of_{by_id}
select log_at, token, sender, recipient, token_id from {by_id}
where log_at between :from_log and :to_log order by log_at, position limit :count;

-- Only its rows say of which standards a contract was before it was deployed again: then all are looked at, which is -1.
-- name: token
select a.address, t.first_block, case when t.standards_since <> 0 then -1 else t.standards end, t.untrusted_since,
    coalesce(t.standards = t.layout_standard and t.layout_since = t.first_block, false), t.words_dropped_since
from token t join address a on a.id = t.token where t.token = :token;

-- name: tokens_first_seen
select first_block, token from token where first_block between :low and :high order by first_block, token limit :count;

-- name: tokens_between
select token, first_block from token
where token >= :low and token < :high and first_block <= :block order by token limit :count;

-- What may be compared of a token: holder, its address and stored balance, and the token ID; of an NFT its owner. The
-- first of its history, one from a position on, and one by its key.

-- name: erc20_oldest
select o.holder, null, a.address, coalesce(
    (select newest.balance from (
        select block, balance from erc20_balance where holder = o.holder and token = o.token and block <= :block
        order by block desc limit 1) newest),
    (select baseline from erc20_holding where holder = o.holder and token_address = :address))
from erc20_holder o join address a on a.id = o.holder
where o.token = :token and o.since <= :block order by o.since, o.holder limit :count;

-- name: erc20_from
select o.holder, null, a.address, coalesce(
    (select newest.balance from (
        select block, balance from erc20_balance where holder = o.holder and token = o.token and block <= :block
        order by block desc limit 1) newest),
    (select baseline from erc20_holding where holder = o.holder and token_address = :address))
from erc20_holder o join address a on a.id = o.holder
where o.token = :token and o.since <= :block and (o.since, o.holder) >= (:since, :holder)
order by o.since, o.holder limit 1;

-- name: erc20_by_key
select h.holder, null, a.address, coalesce(
    (select newest.balance from (
        select block, balance from erc20_balance where holder = h.holder and token = h.token and block <= :block
        order by block desc limit 1) newest), h.baseline)
from erc20_holding h join address a on a.id = h.holder
where h.holder = :holder and h.token_address = :address;

-- name: {by_id}_oldest
select h.holder, h.token_id, a.address, coalesce(
    (select balance from {by_id}_balance
     where holder = h.holder and token = h.token and token_id = h.token_id and block <= :block
     order by block desc limit 1), h.baseline)
from {by_id}_holding h join address a on a.id = h.holder
where h.token = :token and h.since <= :block order by h.since, h.holder, h.token_id limit :count;

-- name: {by_id}_from
select h.holder, h.token_id, a.address, coalesce(
    (select balance from {by_id}_balance
     where holder = h.holder and token = h.token and token_id = h.token_id and block <= :block
     order by block desc limit 1), h.baseline)
from {by_id}_holding h join address a on a.id = h.holder
where h.token = :token and h.since <= :block and (h.since, h.holder) >= (:since, :holder)
order by h.since, h.holder, h.token_id limit 1;

-- name: {by_id}_by_key
select h.holder, h.token_id, a.address, coalesce(
    (select balance from {by_id}_balance
     where holder = h.holder and token = h.token and token_id = h.token_id and block <= :block
     order by block desc limit 1), h.baseline)
from {by_id}_holding h join address a on a.id = h.holder
where h.holder = :holder and h.token_address = :address and h.token_id = :token_id;

-- name: erc721_oldest
select null, e.token_id, (
    select a.address from nft_owner o join address a on a.id = o.owner
    where o.token = e.token and o.token_id = e.token_id and o.block <= :block order by o.block desc limit 1), null
from erc721 e where e.token = :token and e.log_at <= :to_log order by e.log_at limit :count;

-- name: erc721_from
select null, e.token_id, (
    select a.address from nft_owner o join address a on a.id = o.owner
    where o.token = e.token and o.token_id = e.token_id and o.block <= :block order by o.block desc limit 1), null
from erc721 e where e.token = :token and e.log_at between :from_log and :to_log order by e.log_at limit 1;

-- name: erc721_by_key
select null, o.token_id, a.address, null from nft_owner o join address a on a.id = o.owner
where o.token = :token and o.token_id = :token_id and o.block <= :block order by o.block desc limit 1;

-- name: is_trusted
select 1 from token where token = :token and untrusted_since is null and differed_at is null;

-- name: mark_untrusted
update token set untrusted_since = :block
where token = :token and (untrusted_since is null or untrusted_since > :block);

-- What is compared at the newest block, or made up, depends on when blocks arrived: audits of blocks do not look at it.
-- name: mark_differing
update token set differed_at = :block where token = :token and (differed_at is null or differed_at > :block);

-- Owners that were found long before. A later one stays beside it: a rollback may take away either.
-- name: drop_older_state_owners
delete from nft_state_owner where token_address = :token_address and token_id = :token_id and block < :block;

-- name: put_state_owner
insert into nft_state_owner (owner, token_address, token_id, token, block)
values (:owner, :token_address, :token_id, :token, :block) on conflict (owner, token_address, token_id) do update
set block = excluded.block where nft_state_owner.block > excluded.block;

-- name: reread_token
update token set read_at = null, retry_at = 0, failures = 0, metadata_version = metadata_version + 1
where token = ? and read_at is not null;
