-- A rollback deletes rows above an ancestor. Lists by address are found through the rows they list; changes that no row
-- shows are in the journal of the blocks. A variant without a text is of a table that is a view in PostgreSQL.
-- Its cost must not depend on the length of the chain. SQLite seeks each row of `in (select ...)`, but not those of a
-- union in the same place; and it takes an index for `distinct`, and reads all of it, unless the column has a plus.

-- name: journal
select number, touched, next_address from block where number > :ancestor;

-- name: journal_of
select touched from block where number = :number;

-- name: put_journal
update block set touched = :touched where number = :number;

-- name: moved_nfts
select distinct +e.token, e.token_id, a.address from erc721 e join address a on a.id = e.token where e.log_at >= :from_log;

-- The ranges of NFTs that blocks above the ancestor moved, and the metadata that was asked for of single IDs in them.
-- name: moved_ranges
select token, first_id, last_id from nft_range where log_at >= :from_log;

-- name: drop_nfts_of_range
delete from nft where token = ? and token_id >= ? and token_id <= ? and first_block > ?;

-- name: drop_nft_range
delete from nft_range where log_at >= :from_log;

-- The ID has no owner of its own any more.
-- name: lower_moved
update nft_range set moved = moved - 1 where token = :token and last_id >= :token_id and first_id = (
    select r.first_id from nft_range r where r.token = :token and r.first_id <= :token_id
    order by r.first_id desc limit 1);

-- name: owner_now
select owner from nft_owner where token = ? and token_id = ? order by block desc limit 1;

-- name: drop_nft_owner
delete from nft_owner where token = ? and token_id = ? and block > ?;

-- name: drop_{standard}_of
delete from {standard}_of where (address, log_at) in (
    select address, log_at from (
        select sender as address, log_at from {standard} where log_at >= :from_log
        union all select recipient, log_at from {standard} where log_at >= :from_log) as rolled_back);

-- postgres: drop_erc20_of

-- name: drop_erc20_in
delete from erc20_in where (token, block) in (select token, log_at >> 24 from erc20 where log_at >= :from_log);

-- postgres: drop_erc20_in

-- name: drop_internal_of
delete from internal_of where (address, tx_at, frame) in (
    select address, tx_at, frame from (
        select sender as address, tx_at, frame from internal where tx_at >= :from_tx
        union all select recipient, tx_at, frame from internal where tx_at >= :from_tx and recipient is not null
    ) as rolled_back);

-- name: drop_tx_by_hash
delete from tx_by_hash where (prefix, block) in (select substr(hash, 1, 4), tx_at >> 24 from tx where tx_at >= :from_tx);

-- postgres: drop_tx_by_hash

-- name: drop_native_of
delete from native_of where (address, tx_at) in (
    select address, tx_at from (
        select sender as address, tx_at from tx where tx_at >= :from_tx
        union all select recipient, tx_at from tx where tx_at >= :from_tx) as rolled_back);

-- postgres: drop_native_of

-- name: drop_touches_of_{standard}
delete from touch_of where (address, tx_at) in (
    select address, tx_at from (
        select sender as address, (log_at & -16777216) | tx_index as tx_at from {standard} where log_at >= :from_log
        union all select recipient, (log_at & -16777216) | tx_index from {standard} where log_at >= :from_log
    ) as rolled_back);

-- A transfer of an ERC-20 token tells itself whether it touches its sender and its recipient.
-- postgres: drop_touches_of_erc20

-- postgres: drop_touches_of_{with_ids}
delete from touch_rest where (address, block_group, tx_at) in (
    select address, cast(tx_at >> 26 as integer), tx_at from (
        select sender as address, (log_at & -16777216) | tx_index as tx_at from {with_ids} where log_at >= :from_log
        union all select recipient, (log_at & -16777216) | tx_index from {with_ids} where log_at >= :from_log
    ) as rolled_back);

-- name: drop_touches_of_internal
delete from touch_of where (address, tx_at) in (
    select address, tx_at from (
        select sender as address, tx_at from internal where tx_at >= :from_tx
        union all select recipient, tx_at from internal where tx_at >= :from_tx and recipient is not null
    ) as rolled_back);

-- postgres: drop_touches_of_internal
delete from touch_rest where (address, block_group, tx_at) in (
    select address, cast(tx_at >> 26 as integer), tx_at from (
        select sender as address, tx_at from internal where tx_at >= :from_tx
        union all select recipient, tx_at from internal where tx_at >= :from_tx and recipient is not null
    ) as rolled_back);

-- name: drop_erc20_balance
delete from erc20_balance where (holder, token, block) in (
    select holder, token, block from (
        select sender as holder, token, log_at >> 24 as block from erc20 where log_at >= :from_log
        union all select recipient, token, log_at >> 24 from erc20 where log_at >= :from_log) as rolled_back);

-- postgres: drop_erc20_balance

-- Balances that storage changed without a log.
-- name: drop_erc20_slot_balance
delete from erc20_balance where (holder, token, block) in (
    select holder, token, block from slot_change where block > :ancestor);

-- postgres: drop_erc20_slot_balance

-- name: drop_{by_id}_slot_balance
delete from {by_id}_balance where (holder, token, token_id, block) in (
    select holder, token, token_id, block from slot_change where block > :ancestor);

-- The NFTs of which storage said another owner than logs.
-- name: changed_nfts
select distinct +s.token, s.token_id, a.address from slot_change s
join token t on t.token = s.token join address a on a.id = s.token
where s.block > :ancestor and t.layout_standard = 2;

-- The layout of an NFT's token, if blocks above the ancestor named the ID first: it may have got a history.
-- name: layout_of_new_nft
select t.layout from nft n join token t on t.token = n.token
where n.token = ? and n.token_id = ? and n.first_block > ? and t.layout_since is not null and t.layout_standard = 2;

-- name: new_id_holders_of_{by_id}
select h.token, h.holder, h.token_id, a.address, t.layout from {by_id}_holding h
join token t on t.token = h.token join address a on a.id = h.holder
where h.token = :token and h.since > :ancestor and t.layout_since is not null and t.layout_standard = {number};

-- name: drop_{by_id}_history
delete from {by_id}_balance where holder = ? and token = ? and token_id = ?;

-- name: drop_slot_change
delete from slot_change where block > :ancestor;

-- name: drop_unclaimed_slot
delete from unclaimed_slot where block > :ancestor;

-- The holders of a token that blocks above the ancestor named first, where its layout is known: they may have got a
-- history from words whose holder was not known, and is not known again.
-- name: new_slot_holders
select o.token, o.holder, a.address, t.layout from erc20_holder o
join token t on t.token = o.token join address a on a.id = o.holder
where o.token = :token and o.since > :ancestor and t.layout_since is not null and t.layout_standard = 1;

-- name: drop_slot
delete from slot where token = ? and key = ?;

-- name: drop_erc20_history
delete from erc20_balance where holder = ? and token = ?;

-- postgres: drop_erc20_history

-- The balances before the ancestor that such a holder was given.
-- name: drop_slot_history
delete from slot_change where token = :token and holder = :holder and block in (
    select block from unclaimed_slot where token = :token and key = :key);

-- name: drop_layout
update token set layout = null, layout_since = null, layout_standard = null where layout_since > :ancestor;

-- The proofs that ended above the ancestor, the newest end first.
-- name: ended_layouts
select layout, layout_since, layout_standard, token from earlier_layout where block > :ancestor order by block desc;

-- name: restore_layout
update token set layout = ?, layout_since = ?, layout_standard = ? where token = ?;

-- name: drop_earlier_layout
delete from earlier_layout where block > :ancestor;

-- name: restore_words
update token set words_dropped_since = null where words_dropped_since > :ancestor;

-- name: restore_trust
update token set untrusted_since = null where untrusted_since > :ancestor;

-- name: restore_trust_at_newest
update token set differed_at = null where differed_at > :ancestor;

-- The tokens that a standard's transfers above the ancestor moved.
-- name: moved_{standard}
select distinct +token from {standard} where log_at >= :from_log;

-- The holders of a token that blocks above the ancestor named first.
-- name: drop_erc20_holding
delete from erc20_holding where (holder, token_address) in (
    select o.holder, a.address from erc20_holder o join address a on a.id = o.token where o.token = ? and o.since > ?);

-- postgres: drop_erc20_holding
delete from held_token where token = ? and since > ?;

-- name: drop_erc20_holder
delete from erc20_holder where token = ? and since > ?;

-- postgres: drop_erc20_holder

-- name: drop_{by_id}_balance
delete from {by_id}_balance where (holder, token, token_id, block) in (
    select holder, token, token_id, block from (
        select sender as holder, token, token_id, log_at >> 24 as block from {by_id} where log_at >= :from_log
        union all select recipient, token, token_id, log_at >> 24 from {by_id} where log_at >= :from_log) as rolled_back);

-- name: moved_holdings_of_{by_id}
select distinct e.sender, a.address, e.token_id from {by_id} e join address a on a.id = e.token where e.log_at >= :from_log
union
select distinct e.recipient, a.address, e.token_id from {by_id} e join address a on a.id = e.token
where e.log_at >= :from_log;

-- name: drop_{by_id}_holding
delete from {by_id}_holding where holder = ? and token_address = ? and token_id = ? and since > ?;

-- name: drop_nfts_of_{with_ids}
delete from nft where first_block > :ancestor and (token, token_id) in (
    select token, token_id from {with_ids} where log_at >= :from_log);

-- name: drop_deployed_by
delete from deployed_by where (address, tx_at, frame) in (
    select address, tx_at, frame from (
        select creator as address, tx_at, frame from deployment where tx_at >= :from_tx
        union all select t.sender, d.tx_at, d.frame from deployment d join tx t on t.tx_at = d.tx_at
        where d.tx_at >= :from_tx) as rolled_back);

-- name: drop_deployment
delete from deployment where tx_at >= :from_tx;

-- name: drop_message
delete from message where tx_at >= :from_tx;

-- name: drop_messenger_event
delete from messenger_event where log_at >= :from_log;

-- name: drop_native_balance
delete from native_balance where address = ? and block > ?;

-- Balances of senders are dropped with their transactions.
-- postgres: drop_native_balance
delete from native_rest where address = ? and block > ?;

-- name: drop_code
delete from code where address = ? and block > ?;

-- name: address_of
select address from address where id = ?;

-- name: drop_held
delete from nft_held where owner = ? and token_address = ? and token_id = ?;

-- name: put_held
insert into nft_held (owner, token_address, token_id, token) values (?, ?, ?, ?)
on conflict (owner, token_address, token_id) do nothing;

-- name: drop_{standard}
delete from {standard} where log_at >= :from_log;

-- name: drop_internal
delete from internal where tx_at >= :from_tx;

-- name: drop_tx
delete from tx where tx_at >= :from_tx;

-- name: drop_block
delete from block where number > :ancestor;

-- name: drop_name_part
delete from name_part where token in (select token from token where first_block > :ancestor);

-- name: drop_token
delete from token where first_block > :ancestor;

-- name: redeployed_tokens
select d.address from deployment d join token t on t.token = d.address where d.tx_at >= :from_tx;

-- name: restate_standards_since
update token set standards_since = coalesce((
    select max(d.tx_at >> 24) from deployment d where d.address = token.token and d.tx_at >> 24 > token.first_block), 0)
where token = ?;

-- The standards of a token follow from what is left of its transfers, and for ERC-20 also from holders that logs name.
-- name: clear_standards
update token set standards = 0 where token = ?;

-- name: restate_erc20
update token set standards = standards | 1 where token = ? and (
    exists (select 1 from erc20_holder h where h.token = token.token and h.since >= token.standards_since)
    or exists (select 1 from erc20_in i where i.token = token.token and i.block >= token.standards_since));

-- The view of blocks would read all transfers of the token.
-- postgres: restate_erc20
update token set standards = standards | 1 where token = ? and (
    exists (select 1 from held_token h where h.token = token.token and h.since >= token.standards_since)
    or exists (select 1 from erc20 e where +e.token = token.token
        and cast(+e.log_at >> 26 as integer) >= token.standards_since >> 2
        and +e.log_at >= token.standards_since << 24));

-- name: restate_{with_ids}
update token set standards = standards | {number} where token = ? and exists (
    select 1 from {with_ids} e where e.token = token.token and e.log_at >= token.standards_since << 24);

-- name: lower_unlogged_changes
update token set silent_changes = silent_changes - 1 where token = ?;

-- IDs are given again: no row of the address that had one before may be left.
-- name: drop_code_of_dropped
delete from code where address >= :next_address;

-- name: drop_address
delete from address where id >= :next_address;

-- name: drop_audit
delete from audit where block > :ancestor;

-- name: drop_state_owner
delete from nft_state_owner where block > :ancestor;

-- name: reread_token
update token set read_at = null, retry_at = 0, failures = 0, metadata_version = metadata_version + 1 where token = ?;

-- Every answer of a worker, and every cache of it, is of one number of rollbacks (reading/one_history.py).
-- name: count_rollback
insert into meta (name, value) values ('rollbacks', '1')
on conflict (name) do update set value = cast(cast(meta.value as bigint) + 1 as text);
