-- The store of one EVM chain, as PostgreSQL holds it. schema.sqlite.sql says more of each row and column.
-- Amounts are bytes here too: smaller and faster than numeric (docs/decisions/0019-postgresql.md). A primary key is not
-- part of every index: where lists need it, the index names it.
-- A row costs 28 bytes here besides its values, and a key is stored a second time in its index. So a list of SQLite is
-- here an index of the table it lists, and a view has its name and columns; IDs and blocks of long tables have four
-- bytes (docs/decisions/0034-bytes-on-postgresql.md). An index of a list is by groups of four blocks, whose rows share an
-- entry: a query names the group in its conditions and its order, and sorts the rows of a page by itself. Each is over
-- expressions of its own, such as `+tx_at`: the server might take another for as good, and would read all rows of an
-- address, or of the chain.

-- # The chain

-- A row is a named value of this store, such as the hash of the genesis block, the status of the indexer, or how far
-- a background task has come.
create table meta (
    name text collate "C" not null primary key,
    value text not null
);

-- A row gives an address its number in this store: every address that any row speaks of has one.
create table address (
    id bigint primary key,
    address bytea not null unique
);

-- A row is a block that is part of the chain.
create table block (
    number bigint primary key,
    hash bytea not null unique,
    parent_hash bytea not null,
    time bigint not null,
    tx_count bigint not null,
    base_fee bytea not null,
    gas_used bytea not null,
    gas_limit bytea not null,
    gas_cost bytea not null,
    fees_spent bytea not null,
    cumulative_txs bigint not null,
    next_address bigint not null,
    touched bytea not null,
    fee_recipient bytea,
    size bigint,
    fees_burned bytea
);

-- # Transactions

-- A row is a transaction of a block.
create table tx (
    tx_at bigint primary key,
    sender int4 not null,
    recipient int4 not null,
    kind int4 not null,
    hash bytea not null,
    amounts bytea not null,
    selector bytea not null,
    input bytea not null,
    sender_balance bytea not null default '' -- after the block; empty: a later transaction of the block has it, or none
);
create index tx_prefix on tx (substr(hash, 1, 4));
create index tx_from on tx (sender, (cast(+tx_at >> 26 as integer)));
create index tx_to on tx (recipient, (cast(+tx_at >> 26 as integer))) where recipient <> sender;
create index tx_balance on tx ((+sender), (cast(tx_at >> 24 as integer))) where sender_balance <> '';

-- A row says: this block has a transaction whose hash begins with these four bytes.
create view tx_by_hash as
select distinct substr(hash, 1, 4) as prefix, tx_at >> 24 as block from tx;

-- A row says: the address is sender or recipient of the transaction, or the contract it created.
create view native_of as
select address, block_group, tx_at from (
    select sender as address, cast(+tx_at >> 26 as integer) as block_group, +tx_at as tx_at, true as is_new from tx
    union all
    select recipient, cast(+tx_at >> 26 as integer), +tx_at, recipient <> sender from tx) as parties
where is_new;

-- A row is an internal transaction: a call or creation within a transaction that moved value or created a contract.
create table internal (
    tx_at bigint not null,
    frame bigint not null,
    kind text not null,
    sender bigint not null,
    recipient bigint,
    value bytea not null,
    gas_limit bytea not null,
    gas_used bytea not null,
    is_reverted bigint not null,
    primary key (tx_at, frame)
);

-- A row says: the address is sender or recipient of the internal transaction.
create table internal_of (
    address bigint not null,
    tx_at bigint not null,
    frame bigint not null,
    primary key (address, tx_at, frame)
);

-- A row says: a contract was created at the address.
create table deployment (
    address bigint not null,
    tx_at bigint not null,
    frame bigint not null,
    creator bigint not null,
    primary key (address, tx_at, frame)
);
create index deployment_at on deployment (tx_at, frame);

-- A row says: the address deployed the contract that is created there, as the account that sent the transaction or
-- as the contract that ran the creation.
create table deployed_by (
    address bigint not null,
    tx_at bigint not null,
    frame bigint not null,
    primary key (address, tx_at, frame)
);

-- A row says: the transaction sent or received a message between chains.
create table message (
    tx_at bigint primary key,
    message_id bytea not null,
    peer_blockchain_id bytea not null,
    is_source bigint not null
);

-- # Token transfers

-- A row is a transfer of an ERC-20 token.
create table erc20 (
    log_at bigint primary key,
    tx_index int4 not null,
    token int4 not null,
    sender int4 not null,
    recipient int4 not null,
    value bytea not null,
    sender_balance bytea, -- of the token, after the block; null: another transfer of the block has it
    recipient_balance bytea,
    touches int2 not null default 0 -- 1: `touch_of` has the sender with this transfer's transaction, 2: the recipient, 3: both
);
create index erc20_from on erc20 ((+sender), (cast(+log_at >> 26 as integer)));
create index erc20_to on erc20 ((+recipient), (cast(+log_at >> 26 as integer))) where recipient <> sender;
create index erc20_by_token on erc20 ((+token), (cast(+log_at >> 26 as integer)));
create index erc20_sent on erc20 (sender, token, cast(log_at >> 24 as integer)) where sender_balance is not null;
create index erc20_received on erc20 (recipient, token, cast(log_at >> 24 as integer)) where recipient_balance is not null;

-- A row says: the address is sender or recipient of the transfer.
create view erc20_of as
select address, block_group, log_at, tx_index from (
    select +sender as address, cast(+log_at >> 26 as integer) as block_group, +log_at as log_at, tx_index, true as is_new
    from erc20
    union all
    select +recipient, cast(+log_at >> 26 as integer), +log_at, tx_index, recipient <> sender from erc20) as parties
where is_new;

-- A row says: the token moved in the block, first and last at these logs; its transfers lie between them.
create view erc20_in as
select +token as token, cast(+log_at >> 26 as integer) as block_group, +log_at >> 24 as block,
    min(log_at & 16777215) as first_log, max(log_at & 16777215) as last_log
from erc20 group by +token, cast(+log_at >> 26 as integer), +log_at >> 24;

-- A row says: the address and the transaction belong in `touch_of`, and no transfer of an ERC-20 token says so.
create table touch_rest (
    address int4 not null,
    block_group int4 not null,
    tx_at bigint not null,
    primary key (address, block_group, tx_at)
);

-- A row says: the transaction concerns the address, but only through a token transfer or an internal transaction.
create view touch_of as
select address, block_group, tx_at from (
    select +sender as address, cast(+log_at >> 26 as integer) as block_group, +log_at & -16777216 | tx_index as tx_at,
        touches & 1 <> 0 as is_touch
    from erc20
    union all
    select +recipient, cast(+log_at >> 26 as integer), +log_at & -16777216 | tx_index,
        touches & 2 <> 0 and recipient <> sender
    from erc20
    union all
    select address, block_group, tx_at, true from touch_rest) as touched
where is_touch;

-- A row is a transfer of an ERC-721 token, or of a range of them (ERC-2309).
create table erc721 (
    log_at bigint primary key,
    tx_index bigint not null,
    token bigint not null,
    sender bigint not null,
    recipient bigint not null,
    token_id bytea not null,
    last_id bytea
);
create index erc721_in on erc721 (token, log_at);

-- A row says: the address is sender or recipient of the transfer.
create table erc721_of (
    address bigint not null,
    log_at bigint not null,
    primary key (address, log_at)
);

-- A row is a transfer of one ID of an ERC-1155 token.
create table erc1155 (
    log_at bigint not null,
    position bigint not null,
    tx_index bigint not null,
    token bigint not null,
    sender bigint not null,
    recipient bigint not null,
    token_id bytea not null,
    value bytea not null,
    primary key (log_at, position)
);
create index erc1155_in on erc1155 (token, log_at, position);

-- A row says: the address is sender or recipient of the log's transfers.
create table erc1155_of (
    address bigint not null,
    log_at bigint not null,
    primary key (address, log_at)
);

-- # Balances and owners

-- A row says: from this block on, the address had this native balance, and no transaction of the block has it as its
-- sender's; or it had `before` until then, and nothing is known of earlier blocks.
create table native_rest (
    address int4 not null,
    block int4 not null,
    balance bytea not null,
    before bytea,
    primary key (address, block)
);

-- A row says: from this block on, the address had this native balance.
create view native_balance as
select address, block, balance, before from (
    select +sender as address, cast(tx_at >> 24 as integer) as block, sender_balance as balance,
        cast(null as bytea) as before, sender_balance <> '' as is_known
    from tx
    union all
    select address, block, balance, before, true from native_rest) as parts
where is_known;

-- A row says: from this block on the holder had this balance by the token's storage, and no transfer of the block names
-- it.
create table slot_change (
    block int4 not null,
    token int4 not null,
    holder int4 not null,
    token_id bytea not null,
    balance bytea,
    primary key (block, token, holder, token_id)
);
create index slot_change_of on slot_change (holder, token, block) where balance is not null;

-- A row says: from this block on, the holder had this balance of the ERC-20 token.
create view erc20_balance as
select holder, token, block, balance from (
    select sender as holder, token, cast(log_at >> 24 as integer) as block, sender_balance as balance from erc20
    union all
    select recipient, token, cast(log_at >> 24 as integer), recipient_balance from erc20
    union all
    select holder, token, block, balance from slot_change) as after
where balance is not null;

-- A row says: a log named the holder together with the ERC-20 token, first in block `since`. Holdings of a holder are found
-- by the first bytes of the token's address.
create table held_token (
    token int4 not null,
    since int4 not null, -- the block
    holder int4 not null,
    token_start bytea not null, -- the first three bytes of its address
    baseline bytea not null,
    primary key (token, since, holder)
);
create index held_token_of on held_token (holder, token_start);

-- A row says: a log named the holder together with the ERC-20 token.
create view erc20_holding as
select h.holder, h.token_start, a.address as token_address, h.token, h.baseline, h.since
from held_token h
join address a on a.id = h.token and substr(a.address, 1, 3) = h.token_start;

-- A row is that of `erc20_holding` by token, with the block that named the holder first.
create view erc20_holder as
select token, since, holder from held_token;

-- A row says: from this block on, the holder had this balance of the ID of an ERC-1155 token, by the token's logs.
create table erc1155_balance (
    holder bigint not null,
    token bigint not null,
    token_id bytea not null,
    block bigint not null,
    balance bytea not null,
    primary key (holder, token, token_id, block)
);

-- A row says: a log named the holder together with the ID of the ERC-1155 token, first in block `since`.
create table erc1155_holding (
    holder bigint not null,
    token_address bytea not null,
    token_id bytea not null,
    token bigint not null,
    since bigint not null,
    baseline bytea not null,
    primary key (holder, token_address, token_id)
);
create index erc1155_holder on erc1155_holding (token, since, holder, token_id);

-- A row says: from this block on, the ERC-721 token belonged to this owner, by its logs; to the zero address: it is
-- burned.
create table nft_owner (
    token bigint not null,
    token_id bytea not null,
    block bigint not null,
    owner bigint not null,
    before bigint,
    primary key (token, token_id, block)
);

-- A row says: a log moved the ERC-721 tokens from the first to the last ID to this owner, who has those that have no row in
-- `nft_owner`.
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

-- A row says: the owner has this ERC-721 token now, by its logs.
create table nft_held (
    owner bigint not null,
    token_address bytea not null,
    token_id bytea not null,
    token bigint not null,
    primary key (owner, token_address, token_id)
);

-- A row says: an audit at this block, and at none before, found that the ERC-721 token belongs to this owner by the
-- contract's state, and to another by its logs.
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

-- A row says: the slot of the token's storage whose key begins so holds the balance of this holder.
create table slot (
    token bigint not null,
    key bytea not null,
    holder bigint not null,
    token_id bytea not null,
    primary key (token, key)
);

-- A row says: from this block on, a slot of the token's storage held this word, and its holder is not known.
create table unclaimed_slot (
    token bigint not null,
    key bytea not null,
    block bigint not null,
    word bytea not null,
    primary key (token, key, block)
);
create index unclaimed_slot_at on unclaimed_slot (block);

-- A row says: from this block on, the address has code, or has none.
create table code (
    address bigint not null,
    block bigint not null,
    has_code bigint not null,
    primary key (address, block)
);

-- # Tokens

-- A row is a contract that moved tokens, and what is known of it.
create table token (
    token bigint primary key,
    first_block bigint not null,
    standards bigint not null default 0,
    kind text,
    untrusted_since bigint,
    name text,
    symbol text,
    decimals bigint,
    read_at bigint,
    retry_at bigint not null default 0,
    failures bigint not null default 0,
    silent_changes bigint not null default 0,
    standards_since bigint not null default 0,
    metadata_version bigint not null default 0,
    layout bytea,
    layout_since bigint,
    layout_standard bigint,
    words_dropped_since bigint,
    differed_at bigint
);
create index token_to_read on token (retry_at) where read_at is null;
create index token_since on token (first_block);
create index token_layout_since on token (layout_since) where layout_since is not null;
create index token_words_dropped on token (words_dropped_since) where words_dropped_since is not null;
create index token_untrusted on token (untrusted_since) where untrusted_since is not null;
create index token_differed on token (differed_at) where differed_at is not null;
create index token_by_name on token (lower(name collate "C"), token) where name is not null;
create index token_by_symbol on token (lower(symbol collate "C")) where symbol is not null;

-- A row says: at this block the proof of the token's layout ended, which had been made at `layout_since`.
create table earlier_layout (
    token bigint not null,
    block bigint not null,
    layout bytea not null,
    layout_since bigint not null,
    layout_standard bigint not null,
    primary key (token, block)
);
create index earlier_layout_at on earlier_layout (block);

-- A row says: the token's name or symbol, in lower case, goes on like this from one of its characters on.
create table name_part (
    token bigint not null,
    part text collate "C" not null,
    primary key (token, part)
);
create index token_by_part on name_part (part, token);

-- A row is the metadata of one NFT.
create table nft (
    token bigint not null,
    token_id bytea not null,
    first_block bigint not null,
    token_uri text not null default '',
    status text not null default 'UNINDEXED',
    read_at bigint,
    retry_at bigint default 0,
    failures bigint not null default 0,
    metadata text not null default '{}',
    primary key (token, token_id)
);
create index nft_to_read on nft (retry_at) where retry_at is not null;
create index nft_to_read_of on nft (token, retry_at, token_id) where retry_at is not null;

-- A row is the price of a token in a currency on a day.
create table price (
    token_address bytea not null,
    currency text collate "C" not null,
    day bigint not null,
    value text not null,
    primary key (token_address, currency, day)
);
create index price_now on price (currency, token_address) where day = -1;

-- A row is the reputation that a feed gives a token.
create table reputation (
    token_address bytea not null primary key,
    reputation text not null
);

-- A row is what the operator's token list says of a token.
create table listed_token (
    token_address bytea not null primary key,
    details text not null
);

-- A row says what a holder has of a token, as counted in the background from the transfers up to meta `holders_to`.
create table holder (
    token bigint not null,
    standard bigint not null,
    holder bigint not null,
    balance bytea not null,
    primary key (token, standard, holder)
);
create index holder_by_balance on holder (token, standard, balance, holder);

-- A row says how many holders and transfers a token has, and how much of it there is.
create table holder_total (
    token bigint not null,
    standard bigint not null,
    holders bigint not null,
    tokens bigint not null,
    transfers bigint not null default 0,
    supply bytea not null default '\x00',
    primary key (token, standard)
);
create index token_by_holders on holder_total (holders, token, standard);
create index token_by_transfers on holder_total (transfers, token, standard);

-- A row says: every block up to this one was audited, and this many comparisons were left of the budget.
create table audit (
    block bigint not null primary key,
    credit bigint not null,
    dropped_from bigint
);
create index audit_dropped on audit (dropped_from) where dropped_from is not null;

-- # Raw logs and calls

-- A row is a log as the chain has it, of the blocks from meta `logs_from` on; only with `store_logs`.
create table log (
    log_at bigint primary key,
    tx_index bigint not null,
    address bytea not null,
    topic0 bytea not null,
    topics bytea not null,
    data bytea not null
);
create index log_of on log (address, log_at);
create index log_with_topic on log (address, topic0, log_at);

-- A row holds all calls of a transaction, compressed, of the blocks from meta `calls_from` on; only with
-- `store_traces`.
create table call_tree (
    tx_at bigint primary key,
    calls bytea not null
);

-- # Metrics

-- A row says what the blocks of one period come to.
create table rollup (
    span bigint not null,
    period bigint not null,
    first_block bigint not null,
    last_block bigint not null,
    first_time bigint not null,
    last_time bigint not null,
    tx_count bigint not null,
    gas_used bytea not null,
    fees bytea not null,
    price_sum bytea not null,
    price_max bytea not null,
    tps_max double precision not null,
    gps_max double precision not null,
    active_hour bigint not null,
    active_day bigint not null,
    active_week bigint not null,
    active_month bigint not null,
    senders_hour bigint not null,
    senders_day bigint not null,
    senders_week bigint not null,
    senders_month bigint not null,
    txs_total bigint not null,
    addresses_total bigint not null,
    contracts_total bigint not null,
    deployers_total bigint not null,
    primary key (span, period)
);

-- A row is the newest hour in which an address was seen, and in which it was on the sending side (-1: never).
create table last_activity (
    address bigint primary key,
    active bigint not null,
    sent bigint not null
);

-- A row says what a run of blocks within one hour changed in `last_activity`.
create table activity (
    hour bigint not null,
    block bigint not null,
    fresh bytea not null,
    earlier bytea not null,
    primary key (hour, block)
);

-- A row says: the address created a contract, the first one in this hour.
create table deployer (
    address bigint primary key,
    hour bigint not null
);
create index deployer_since on deployer (hour);

-- A row holds the gas prices that a block with transactions paid.
create table block_price (
    number bigint primary key,
    price_sum bytea not null,
    price_max bytea not null
);

-- # Messages between chains

-- A row is an event of a messenger contract (ICM, Teleporter).
create table messenger_event (
    log_at bigint primary key,
    tx_index bigint not null,
    kind bigint not null,
    message_id bytea not null,
    messenger bytea not null,
    peer bytea not null,
    party bytea not null,
    sender bytea not null,
    recipient bytea not null,
    data bytea not null
);
create index messenger_event_of on messenger_event (message_id, kind, log_at);
create index messenger_event_newest on messenger_event (kind, log_at);
create index messenger_event_peer on messenger_event (kind, peer, log_at);
create index messenger_event_from on messenger_event (kind, sender, log_at);
create index messenger_event_to on messenger_event (kind, recipient, log_at);

-- A row counts the messages that were sent or received in a period, by the other chain.
create table message_count (
    size bigint not null,
    start bigint not null,
    kind bigint not null,
    peer bytea not null,
    messages bigint not null,
    txs bigint not null,
    primary key (size, start, kind, peer)
);

-- # Webhooks

-- A row says: a transaction of a stored block is an event of a webhook, and a message about it is to be sent.
create table webhook_outbox (
    id text collate "C" primary key,
    sequence bigint not null unique,
    webhook text collate "C" not null,
    tx_at bigint not null,
    block_hash bytea not null,
    tx_hash bytea not null,
    removals bigint not null,
    is_removed bigint not null,
    created bigint not null,
    detail bytea not null
);
create index webhook_outbox_by_tx on webhook_outbox (tx_at);

-- # Views
-- Rows as the API returns them: addresses instead of their numbers, with the block and the transaction they belong to.
-- Lists join them to the table whose key they walk along.

-- A row is a transaction.
create view tx_view as
select t.tx_at, b.hash as block_hash, b.time, t.hash, s.address as sender_address, r.address as recipient_address,
    t.amounts, t.kind, t.selector, t.sender, t.recipient
from tx t
join block b on b.number = t.tx_at >> 24
join address s on s.id = t.sender
join address r on r.id = t.recipient;

-- A row is a transaction with its call data, and with its first ERC-20 transfer where the call data repeats that: it
-- begins with two zeros then (`pack_input`).
create view full_tx_view as
select v.tx_at, v.block_hash, v.time, v.hash, v.sender_address, v.recipient_address, v.amounts, v.kind, v.selector,
    v.sender, v.recipient, t.input, b.base_fee, s.address as transfer_sender, r.address as transfer_recipient,
    e.value as transfer_value
from tx t
join tx_view v on v.tx_at = t.tx_at
join block b on b.number = t.tx_at >> 24
left join erc20 e on e.log_at = case when substr(t.input, 1, 2) = '\x0000'::bytea then (
    select min(log_at) from erc20
    where log_at between t.tx_at & -16777216 and t.tx_at | 16777215 and tx_index = t.tx_at & 16777215) end
left join address s on s.id = e.sender
left join address r on r.id = e.recipient;

-- A row is an ERC-20 transfer.
create view erc20_view as
select cast(1 as bigint) as standard, e.log_at, cast(0 as bigint) as position, e.tx_index, b.hash as block_hash, b.time, t.hash as tx_hash,
    k.address as token_address, s.address as sender_address, r.address as recipient_address, cast(null as bytea) as token_id, e.value,
    e.token, e.sender, e.recipient
from erc20 e
join tx t on t.tx_at = (e.log_at & -16777216) | e.tx_index
join block b on b.number = e.log_at >> 24
join address k on k.id = e.token
join address s on s.id = e.sender
join address r on r.id = e.recipient;

-- A row is an ERC-721 transfer; of a range `value` is the last ID.
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

-- A row is a transfer of one ID of an ERC-1155 token.
create view erc1155_view as
select cast(4 as bigint) as standard, e.log_at, e.position, e.tx_index, b.hash as block_hash, b.time, t.hash as tx_hash,
    k.address as token_address, s.address as sender_address, r.address as recipient_address, e.token_id, e.value,
    e.token, e.sender, e.recipient
from erc1155 e
join tx t on t.tx_at = (e.log_at & -16777216) | e.tx_index
join block b on b.number = e.log_at >> 24
join address k on k.id = e.token
join address s on s.id = e.sender
join address r on r.id = e.recipient;

-- A row is an internal transaction.
create view internal_view as
select i.tx_at, i.frame, b.hash as block_hash, b.time, t.hash as tx_hash, i.kind, s.address as sender_address,
    r.address as recipient_address, i.value, i.gas_limit, i.gas_used, i.is_reverted, i.sender, i.recipient
from internal i
join tx t on t.tx_at = i.tx_at
join block b on b.number = i.tx_at >> 24
join address s on s.id = i.sender
left join address r on r.id = i.recipient;

-- A row is the deployment of a contract.
create view deployment_view as
select a.address, d.tx_at, d.frame, c.address as creator_address, t.hash as tx_hash, s.address as sender_address
from deployment d
join address a on a.id = d.address
join tx t on t.tx_at = d.tx_at
join address c on c.id = d.creator
join address s on s.id = t.sender;

-- A row says whether a token's stored balances can be trusted: they are what its storage holds, or they agreed with its
-- state at every audit, and there was one since its first transfer.
create view token_trust as
select token, standards, standards_since,
    untrusted_since is not null or differed_at is not null or (
        not coalesce(
            layout_since = first_block and standards = layout_standard and words_dropped_since is null, false)
        and first_block > coalesce((select max(block) from audit), -1)
    ) as is_untrusted,
    case when untrusted_since is not null or differed_at is not null then 'logs'
        when layout_since = first_block and standards = layout_standard and words_dropped_since is null then 'storage'
        when first_block > coalesce(
            (select dropped_from - 1 from audit where dropped_from >= 0 order by dropped_from limit 1),
            (select max(block) from audit), -1) then 'logs' else 'audited' end as balance_source
from token;
