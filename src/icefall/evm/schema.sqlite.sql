-- The store of one EVM chain, as SQLite holds it. schema.postgres.sql is the same for PostgreSQL.
--
-- Addresses are replaced by numbers (table `address`), except where a comment says why not.
-- `tx_at` is a block number and the index of a transaction in it, `log_at` a block number and the index of a log: in both
-- the block is above the lowest 24 bits, so that they sort like the chain.
-- Amounts are bytes that sort like the number (`pack_uint`): a length, then the number without leading zeros.
-- A rollback deletes the rows of the blocks it undoes; where a table says so, other rows tell what was before.

-- # The chain

-- A row is a named value of this store, such as the hash of the genesis block, the status of the indexer, or how far a
-- background task has come. Key: the name. Serves: the start of the indexer, /health and the status of a chain.
create table meta (
    name text not null primary key,
    value text not null
) without rowid;

-- A row gives an address its number in this store: every address that any row speaks of has one. Numbers are given in
-- the order of the chain, so a rollback deletes the highest. Key: the number, and the address. Serves: every read.
create table address (
    id integer primary key,
    address blob not null unique
);

-- A row is a block that is part of the chain. Key: the block number, and the hash. Serves: blocks by number, hash and
-- time, and the block of everything else that is listed.
create table block (
    number integer primary key,
    hash blob not null unique,
    parent_hash blob not null,
    time integer not null,
    tx_count integer not null,
    base_fee blob not null,
    gas_used blob not null,
    gas_limit blob not null,
    gas_cost blob not null,
    fees_spent blob not null,
    cumulative_txs integer not null, -- transactions from the first stored block to this one
    next_address integer not null, -- numbers of addresses from here on were given by this block or a later one
    touched blob not null, -- what a rollback must look at besides this block's own rows (`TouchedAddresses`)
    fee_recipient blob, -- the address itself: it takes part in no transaction. Null: an older release stored the block
    size integer, -- in bytes, as the upstream says. Null: it does not, or an older release stored the block
    fees_burned blob -- of `fees_spent`, what no one gets. Null: not known of such a chain, or an older release
);

-- # Transactions

-- A row is a transaction of a block. Key: its position. Serves: transactions of a block and of an address, and with the
-- call data a single one.
create table tx (
    tx_at integer primary key,
    hash blob not null,
    sender integer not null,
    recipient integer not null, -- of a creation: the contract
    kind integer not null, -- type, status and call type (`pack_kind`)
    amounts blob not null, -- value, nonce, gas limit, gas used, gas price, and maximum fees if any (`PackedUints`)
    selector blob not null, -- the first four bytes of the call data, unless `kind` tells them
    input blob not null -- what follows the selector (`pack_input`); last, so that lists do not read it
);

-- A row says: this block has a transaction whose hash begins with these four bytes. Key: both. Serves: a transaction by
-- its hash.
-- in two parts
create table tx_by_hash (
    prefix blob not null,
    block integer not null,
    primary key (prefix, block)
) without rowid;

-- A row says: the address is sender or recipient of the transaction, or the contract it created. Key: both, so that the
-- newest are the last of an address. Serves: transactions of an address.
-- in two parts
create table native_of (
    address integer not null,
    tx_at integer not null,
    primary key (address, tx_at)
) without rowid;

-- A row is an internal transaction: a call or creation within a transaction that moved value or created a contract.
-- Key: the transaction and the number of the call frame in it. Serves: internal transactions of a transaction.
create table internal (
    tx_at integer not null,
    frame integer not null,
    kind text not null,
    sender integer not null,
    recipient integer, -- null: a creation that failed
    value blob not null,
    gas_limit blob not null,
    gas_used blob not null,
    is_reverted integer not null,
    primary key (tx_at, frame)
) without rowid;

-- A row says: the address is sender or recipient of the internal transaction. Key: all columns. Serves: internal
-- transactions of an address.
create table internal_of (
    address integer not null,
    tx_at integer not null,
    frame integer not null,
    primary key (address, tx_at, frame)
) without rowid;

-- A row says: a contract was created at the address. Of several at one address the latest counts. Key: the address, the
-- transaction and the call frame. Serves: the deployment of a contract; contracts of a block.
create table deployment (
    address integer not null,
    tx_at integer not null,
    frame integer not null,
    creator integer not null, -- who ran the creation; for frame 0 the sender of the transaction
    primary key (address, tx_at, frame)
) without rowid;
create index deployment_at on deployment (tx_at, frame);

-- A row says: the address deployed the contract that is created there, as the account that sent the transaction or as
-- the contract that ran the creation. Key: all columns. Serves: contracts that an address has deployed.
create table deployed_by (
    address integer not null,
    tx_at integer not null,
    frame integer not null,
    primary key (address, tx_at, frame)
) without rowid;

-- A row says: the transaction sent or received a message between chains. Key: the transaction. Serves: the message that
-- a transaction is listed with.
create table message (
    tx_at integer primary key,
    message_id blob not null,
    peer_blockchain_id blob not null,
    is_source integer not null -- 1: sent from here
);

-- # Token transfers

-- A row is a transfer of an ERC-20 token. Key: the position of its log. Serves: transfers of a transaction, and those
-- that the tables below list.
create table erc20 (
    log_at integer primary key,
    tx_index integer not null,
    token integer not null,
    sender integer not null,
    recipient integer not null,
    value blob not null
);

-- A row says: the address is sender or recipient of the transfer. Key: both. Serves: ERC-20 transfers of an address.
-- in two parts
create table erc20_of (
    address integer not null,
    log_at integer not null,
    primary key (address, log_at)
) without rowid;

-- A row says: the token moved in the block, first and last at these logs; its transfers lie between them. An index of
-- `erc20` by token would have an entry for every transfer. Key: the token and the block. Serves: transfers of a token.
create table erc20_in (
    token integer not null,
    block integer not null,
    first_log integer not null, -- index in the block
    last_log integer not null,
    primary key (token, block)
) without rowid;

-- A row says: the transaction concerns the address, but only through a token transfer or an internal transaction. Key:
-- both. Serves: transactions of an address, of any kind.
-- in two parts
create table touch_of (
    address integer not null,
    tx_at integer not null,
    primary key (address, tx_at)
) without rowid;

-- A row is a transfer of an ERC-721 token, or of a range of them (ERC-2309). Key: the position of its log. Serves: transfers of a transaction, and through
-- its index those of a token.
create table erc721 (
    log_at integer primary key,
    tx_index integer not null,
    token integer not null,
    sender integer not null,
    recipient integer not null,
    token_id blob not null, -- of a range the first one
    last_id blob -- of a range; null: one token
);
create index erc721_in on erc721 (token); -- an index ends with the key of its table by itself

-- A row says: the address is sender or recipient of the transfer. Key: both. Serves: ERC-721 transfers of an address.
create table erc721_of (
    address integer not null,
    log_at integer not null,
    primary key (address, log_at)
) without rowid;

-- A row is a transfer of one ID of an ERC-1155 token. A batch is one log of several rows, with the same token and
-- parties. Key: the position of the log, and the number of the transfer in it. Serves: transfers of a transaction, and
-- through its index those of a token.
create table erc1155 (
    log_at integer not null,
    position integer not null,
    tx_index integer not null,
    token integer not null,
    sender integer not null,
    recipient integer not null,
    token_id blob not null,
    value blob not null,
    primary key (log_at, position)
) without rowid;
create index erc1155_in on erc1155 (token, log_at, position);

-- A row says: the address is sender or recipient of the log's transfers. Key: both. Serves: ERC-1155 transfers of an
-- address.
create table erc1155_of (
    address integer not null,
    log_at integer not null,
    primary key (address, log_at)
) without rowid;

-- # Balances and owners

-- A row says: from this block on, the address had this native balance. Key: the address and the block; the newest row at
-- or before a block is the balance then. Serves: native balances, at any block.
-- in two parts
create table native_balance (
    address integer not null,
    block integer not null,
    balance blob not null,
    before blob, -- in the first row of an address alone: the balance until then; null: not known
    primary key (address, block)
) without rowid;
create trigger native_balance_update instead of update on native_balance begin
    update native_balance_recent set balance = new.balance where address = old.address and block = old.block;
    update native_balance_merged set balance = new.balance where address = old.address and block = old.block;
end;

-- A row says: from this block on the holder had this balance by the token's storage, and no transfer of the block names
-- it. Key: all columns but the balance. Serves: rollbacks, and the counting of holders; on a server also balances.
create table slot_change (
    block integer not null,
    token integer not null,
    holder integer not null,
    token_id blob not null, -- empty: the token has no IDs
    balance blob, -- as in `erc20_balance`
    primary key (block, token, holder, token_id)
) without rowid;

-- A row says: from this block on, the holder had this balance of the ERC-20 token. It is that of the token's storage
-- where its `layout` is known, else that of its logs. Key: holder, token and block; the newest row at or before a block
-- is the balance then. Serves: ERC-20 balances, at any block.
-- in two parts
create table erc20_balance (
    holder integer not null,
    token integer not null,
    block integer not null,
    balance blob not null,
    primary key (holder, token, block)
) without rowid;

-- A row says: a log named the holder together with the ERC-20 token. Key: the holder and the address of the token, which
-- is the order of the list. Serves: ERC-20 balances of an address.
-- in two parts
create table erc20_holding (
    holder integer not null,
    token_address blob not null,
    token integer not null,
    baseline blob not null, -- the balance before the first row, where the index does not begin with the chain
    primary key (holder, token_address)
) without rowid;

-- A row is that of `erc20_holding` by token, with the block that named the holder first. Key: all columns. Serves:
-- audits, verification and rollbacks.
create table erc20_holder (
    token integer not null,
    since integer not null,
    holder integer not null,
    primary key (token, since, holder)
) without rowid;

-- A row says: from this block on, the holder had this balance of the ID of an ERC-1155 token, by the token's logs. Key:
-- holder, token, ID and block. Serves: ERC-1155 balances, at any block.
create table erc1155_balance (
    holder integer not null,
    token integer not null,
    token_id blob not null,
    block integer not null,
    balance blob not null,
    primary key (holder, token, token_id, block)
) without rowid;

-- A row says: a log named the holder together with the ID of the ERC-1155 token, first in block `since`. Key: the holder,
-- the address of the token and the ID, which is the order of the list. Serves: ERC-1155 balances of an address; through
-- its index audits and rollbacks.
create table erc1155_holding (
    holder integer not null,
    token_address blob not null,
    token_id blob not null,
    token integer not null,
    since integer not null,
    baseline blob not null, -- as in `erc20_holding`
    primary key (holder, token_address, token_id)
) without rowid;
create index erc1155_holder on erc1155_holding (token, since);

-- A row says: from this block on, the ERC-721 token belonged to this owner, by its logs; to the zero address: it is
-- burned. Key: token, ID and block. Serves: owners, and rollbacks.
create table nft_owner (
    token integer not null,
    token_id blob not null,
    block integer not null,
    owner integer not null,
    before integer, -- in the first row of a token alone: the owner until then
    primary key (token, token_id, block)
) without rowid;

-- A row says: a log moved the ERC-721 tokens from the first to the last ID to this owner, who has those that have no row in
-- `nft_owner`. The first ID of the log itself is not in it: that one has such a row. Ranges of a trusted token do not
-- overlap. Key: the token, the first ID and the position of the log. Serves: owners; through its indexes ERC-721 balances
-- of an address, and rollbacks.
create table nft_range (
    token integer not null,
    first_id blob not null,
    log_at integer not null,
    last_id blob not null,
    owner integer not null,
    token_address blob not null,
    moved integer not null, -- IDs in it that have a row in `nft_owner`
    primary key (token, first_id, log_at)
) without rowid;
create index nft_range_of on nft_range (owner, token_address, last_id);
create index nft_range_at on nft_range (log_at);

-- A row says: the owner has this ERC-721 token now, by its logs. Key: the owner, the address of the token and the ID,
-- which is the order of the list. Serves: ERC-721 balances of an address.
create table nft_held (
    owner integer not null,
    token_address blob not null,
    token_id blob not null,
    token integer not null,
    primary key (owner, token_address, token_id)
) without rowid;

-- A row says: an audit at this block, and at none before, found that the ERC-721 token belongs to this owner by the
-- contract's state, and to another by its logs. The addresses are not numbers: the owner may be one that no log names. Key: as in `nft_held`.
-- Serves: ERC-721 balances of an owner that no log names.
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

-- A row says: the slot of the token's storage whose key begins so holds the balance of this holder. Only of tokens with
-- a `layout`. Key: the token and eight bytes of the slot's key. Serves: balances that change without a log.
create table slot (
    token integer not null,
    key blob not null,
    holder integer not null,
    token_id blob not null, -- empty: the token has no IDs
    primary key (token, key)
) without rowid;

-- A row says: from this block on, a slot of the token's storage held this word, and its holder is not known.
-- Only of tokens with a `layout`, up to UNCLAIMED_MAX rows each. Key: the token, sixteen bytes of the slot's key and the
-- block. Serves: the history of a holder whom a later block names; through its index rollbacks.
create table unclaimed_slot (
    token integer not null,
    key blob not null,
    block integer not null,
    word blob not null,
    primary key (token, key, block)
) without rowid;
create index unclaimed_slot_at on unclaimed_slot (block);

-- A row says: from this block on, the address has code, or has none. Key: the address and the block. Serves: the kind of
-- an address, and what a call of it is.
create table code (
    address integer not null,
    block integer not null,
    has_code integer not null,
    primary key (address, block)
) without rowid;

-- # Tokens

-- A row is a contract that moved tokens, and what is known of it. Name, symbol and decimals are read from the contract in
-- the background. Key: the address. Serves: the token in every list; through its indexes search by the beginning of a
-- name or symbol, what is to be read next, and rollbacks.
create table token (
    token integer primary key,
    first_block integer not null,
    standards integer not null default 0, -- of the transfers seen: 1 ERC-20, 2 ERC-721, 4 ERC-1155
    kind text, -- what it is where its logs do not tell; empty: neither; null: never asked
    untrusted_since integer, -- the first block that, or whose audit, showed that its logs do not match its state
    name text,
    symbol text,
    decimals integer,
    read_at integer, -- null: not read yet
    retry_at integer not null default 0,
    failures integer not null default 0, -- counts up while reading fails
    silent_changes integer not null default 0, -- how often its storage changed without a log that explains it
    standards_since integer not null default 0, -- of its latest deployment, if that was after its first transfer
    metadata_version integer not null default 0, -- raised when name, symbol or decimals may have changed
    layout blob, -- where it stores its balances, proven on its code (`StorageLayout`); empty: refused; null: never asked
    layout_since integer, -- the block of the proof: from here on balances are what its storage holds
    layout_standard integer, -- the standard whose balances or owners these are, as in `standards`
    words_dropped_since integer, -- the first block of which a word did not fit into `unclaimed_slot`
    differed_at integer -- the block, newest then, at which all tokens were compared and this one disagreed
);
create index token_to_read on token (retry_at) where read_at is null;
create index token_since on token (first_block);
create index token_layout_since on token (layout_since) where layout_since is not null;
create index token_words_dropped on token (words_dropped_since) where words_dropped_since is not null;
create index token_untrusted on token (untrusted_since) where untrusted_since is not null;
create index token_differed on token (differed_at) where differed_at is not null;
create index token_by_name on token (lower(name), token) where name is not null;
create index token_by_symbol on token (lower(symbol)) where symbol is not null;

-- A row says: at this block the proof of the token's layout ended, which had been made at `layout_since`. Its
-- columns are those of `token`. Key: the token and the block. Serves: rollbacks, through its index too.
create table earlier_layout (
    token integer not null,
    block integer not null,
    layout blob not null,
    layout_since integer not null,
    layout_standard integer not null,
    primary key (token, block)
) without rowid;
create index earlier_layout_at on earlier_layout (block);

-- A row says: the token's name or symbol, in lower case, goes on like this from one of its characters on. There is one for
-- each of the first 64 characters but the last, with up to 24 of those that follow. Key: the token and the part. Serves:
-- search by any part of a name, which is the beginning of such a part; through its key, a name that changes.
create table name_part (
    token integer not null,
    part text not null,
    primary key (token, part)
) without rowid;
create index token_by_part on name_part (part, token);

-- A row is the metadata of one NFT. Key: the token and the ID. Serves: NFTs in every list; through its indexes what is to
-- be read next.
create table nft (
    token integer not null,
    token_id blob not null,
    first_block integer not null,
    token_uri text not null default '',
    status text not null default 'UNINDEXED', -- as the interface lists them
    read_at integer,
    retry_at integer default 0, -- null: settled; 0: due, as the chain says that it changed; -1: being read
    failures integer not null default 0,
    metadata text not null default '{}', -- the fields of the answer, as JSON
    primary key (token, token_id)
) without rowid;
create index nft_to_read on nft (retry_at) where retry_at is not null;
create index nft_to_read_of on nft (token, retry_at) where retry_at is not null;

-- A row is the price of a token in a currency on a day. The address is not a number: a price may be known before its
-- token, and outlives a rollback. Key: the address (empty: the native token), the currency and the day. Serves: prices
-- and values in lists.
create table price (
    token_address blob not null,
    currency text not null,
    day integer not null, -- of UTC, counted from 1970; -1: now
    value text not null,
    primary key (token_address, currency, day)
) without rowid;
create index price_now on price (currency, token_address) where day = -1;

-- A row is the reputation that a feed gives a token. Key: the address of the token, as in `price`. Serves: lists of
-- ERC-20 balances.
create table reputation (
    token_address blob not null primary key,
    reputation text not null
) without rowid;

-- A row is what the operator's token list says of a token. Key: the address of the token, as in `price`. Serves: logos,
-- and the names, symbols and decimals that contracts do not return.
create table listed_token (
    token_address blob not null primary key,
    details text not null -- a `ListedToken`, as JSON
) without rowid;

-- A row says what a holder has of a token, as counted in the background from the transfers up to meta `holders_to`. Who no
-- longer holds any has a row too. Key: token, standard and holder. Serves: holders by balance, and in the order of their
-- numbers.
create table holder (
    token integer not null,
    standard integer not null, -- 1 ERC-20; 2 NFTs
    holder integer not null,
    balance blob not null, -- of NFTs: the number of IDs held
    primary key (token, standard, holder)
) without rowid;
create index holder_by_balance on holder (token, standard, balance, holder);

-- A row says how many holders and transfers a token has, and how much of it there is. Key: the token and the standard, as
-- in `holder`. Serves: the totals of lists of holders; through its indexes tokens by holders and by transfers.
create table holder_total (
    token integer not null,
    standard integer not null,
    holders integer not null, -- rows of `holder` with a balance
    tokens integer not null, -- NFTs that exist, of ERC-1155 those that ever moved; 0 for ERC-20
    transfers integer not null default 0,
    supply blob not null default x'00', -- the sum of the balances in `holder`; 0 but for ERC-20
    primary key (token, standard)
) without rowid;
create index token_by_holders on holder_total (holders, token, standard);
create index token_by_transfers on holder_total (transfers, token, standard);

-- A row says: every block up to this one was audited, and this many comparisons were left of the budget. A rollback
-- deletes the rows above the ancestor. Key: the block. Serves: audits, and `token_trust`.
create table audit (
    block integer not null primary key,
    credit integer not null,
    dropped_from integer -- of the blocks since the row before, the first of which not all was compared that was due
) without rowid;
create index audit_dropped on audit (dropped_from) where dropped_from is not null;

-- # Raw logs and calls

-- A row is a log as the chain has it, of the blocks from meta `logs_from` on; only with `store_logs`. The address is not a
-- number: a log may be stored long after its block, and numbers are given in the order of the chain. Key: the position.
-- Serves: logs of a transaction, and through its indexes logs of a contract, all or with a first topic.
create table log (
    log_at integer primary key,
    tx_index integer not null,
    address blob not null,
    topic0 blob not null, -- empty: a log without topics
    topics blob not null, -- those after the first, one after another
    data blob not null -- with runs of zeros packed (`pack_data`)
);
create index log_of on log (address);
create index log_with_topic on log (address, topic0);

-- A row holds all calls of a transaction, compressed, of the blocks from meta `calls_from` on; only with `store_traces`.
-- Key: the transaction. Serves: call tree and revert reason of a transaction.
create table call_tree (
    tx_at integer primary key,
    calls blob not null
);

-- # Metrics

-- A row says what the blocks of one period come to. Hours, days, weeks (from a Monday) and months are numbered from 1970.
-- Block 0 belongs to none; a period without blocks has no row. Key: the span and the period. Serves: every series, with
-- one range of rows, and rolling windows.
create table rollup (
    span integer not null, -- 0 hour, 1 day, 2 week, 3 month
    period integer not null,
    first_block integer not null,
    last_block integer not null,
    first_time integer not null,
    last_time integer not null,
    tx_count integer not null,
    gas_used blob not null,
    fees blob not null,
    price_sum blob not null,
    price_max blob not null,
    tps_max real not null,
    gps_max real not null,
    active_hour integer not null,
    active_day integer not null, -- addresses of the period that were not seen before on the same day; so the others
    active_week integer not null,
    active_month integer not null,
    senders_hour integer not null,
    senders_day integer not null,
    senders_week integer not null,
    senders_month integer not null,
    txs_total integer not null, -- from the chain's beginning to the period's end; so the others
    addresses_total integer not null,
    contracts_total integer not null,
    deployers_total integer not null,
    primary key (span, period)
) without rowid;

-- A row is the newest hour in which an address was seen, and in which it was on the sending side (-1: never). Key: the
-- address. Serves: the counting of active addresses.
create table last_activity (
    address integer primary key,
    active integer not null,
    sent integer not null
);

-- A row says what a run of blocks within one hour changed in `last_activity`. Key: the hour and the last block of the
-- run. Serves: rollbacks.
create table activity (
    hour integer not null,
    block integer not null,
    fresh blob not null, -- addresses never seen before (`pack_changes`)
    earlier blob not null, -- rows of `last_activity` as they were
    primary key (hour, block)
) without rowid;

-- A row says: the address created a contract, the first one in this hour. Key: the address. Serves: the number of
-- deployers, and rollbacks.
create table deployer (
    address integer primary key,
    hour integer not null
);
create index deployer_since on deployer (hour);

-- A row holds the gas prices that a block with transactions paid. Key: the block. Serves: the part of an hour that a
-- window or a rollback cuts off.
create table block_price (
    number integer primary key,
    price_sum blob not null,
    price_max blob not null
);

-- # Messages between chains

-- A row is an event of a messenger contract (ICM, Teleporter). A message was sent (1) or received (2), a received one was
-- executed (3) or failed (4), its receipt came back (5), or its fee was raised (6). Of a message that was sent again the
-- first sending counts. Addresses are not numbers: most are of another chain, and older blocks are filled in later. Key:
-- the position of the log. Serves: messages by ID and, newest first, by chain, sender and recipient.
create table messenger_event (
    log_at integer primary key,
    tx_index integer not null,
    kind integer not null,
    message_id blob not null,
    messenger blob not null,
    peer blob not null, -- blockchain ID of the other chain; empty: kind 6
    party blob not null, -- who delivered the message (2) or is rewarded (5); else empty
    sender blob not null, -- of the message, on its source; empty but for kinds 1 and 2
    recipient blob not null, -- the same on its destination
    data blob not null -- of the log, with runs of zeros packed (`pack_data`); empty for kinds 3 and 4
);
create index messenger_event_of on messenger_event (message_id, kind);
create index messenger_event_newest on messenger_event (kind);
create index messenger_event_peer on messenger_event (kind, peer);
create index messenger_event_from on messenger_event (kind, sender);
create index messenger_event_to on messenger_event (kind, recipient);

-- A row counts the messages that were sent or received in a period, by the other chain. The kind is 1 for those that were
-- sent, 2 for those that were received. A message counts once, where it was sent first; a transaction once, for the first of its messages. Key: the length of the period in
-- seconds (0: all time), its start, the kind and the other chain. Serves: counts of messages over time.
create table message_count (
    size integer not null,
    start integer not null,
    kind integer not null,
    peer blob not null,
    messages integer not null,
    txs integer not null,
    primary key (size, start, kind, peer)
) without rowid;

-- # Webhooks

-- A row says: a transaction of a stored block is an event of a webhook, and a message about it is to be sent. It is written
-- with its block. If that is rolled back, the row stays and says so. Rows are deleted after some days. Key: the ID, made
-- from the webhook, block and transaction. Serves: delivery, which reads rows in the order of `sequence`.
create table webhook_outbox (
    id text primary key,
    sequence integer not null unique, -- grows with every row that is written or changed
    webhook text not null,
    tx_at integer not null, -- block and index of the transaction
    block_hash blob not null,
    tx_hash blob not null,
    removals integer not null, -- how often its block was rolled back
    is_removed integer not null, -- 1: its block is not part of the chain now
    created integer not null, -- Unix time
    detail blob not null -- what the other rows of the transaction do not say: webhooks/matching.py
) without rowid;
create index webhook_outbox_by_tx on webhook_outbox (tx_at);

-- # Views
-- Rows as the API returns them: addresses instead of their numbers, with the block and the transaction they belong to.
-- Lists join them to the table whose key they walk along.

-- A row is a transaction. Serves: lists of transactions.
create view tx_view as
select t.tx_at, b.hash as block_hash, b.time, t.hash, s.address as sender_address, r.address as recipient_address,
    t.amounts, t.kind, t.selector, t.sender, t.recipient
from tx t
join block b on b.number = t.tx_at >> 24
join address s on s.id = t.sender
join address r on r.id = t.recipient;

-- A row is a transaction with its call data, and with its first ERC-20 transfer where the call data repeats that: it
-- begins with two zeros then (`pack_input`). Serves: a transaction by its hash, and by its position.
create view full_tx_view as
select v.tx_at, v.block_hash, v.time, v.hash, v.sender_address, v.recipient_address, v.amounts, v.kind, v.selector,
    v.sender, v.recipient, t.input, b.base_fee, s.address as transfer_sender, r.address as transfer_recipient,
    e.value as transfer_value
from tx t
join tx_view v on v.tx_at = t.tx_at
join block b on b.number = t.tx_at >> 24
left join erc20 e on e.log_at = case when substr(t.input, 1, 2) = x'0000' then (
    select min(log_at) from erc20
    where log_at between t.tx_at & -16777216 and t.tx_at | 16777215 and tx_index = t.tx_at & 16777215) end
left join address s on s.id = e.sender
left join address r on r.id = e.recipient;

-- A row is an ERC-20 transfer. Transfers of the three standards have the same columns; `standard` is as in
-- token.standards. Serves: lists of transfers.
create view erc20_view as
select 1 as standard, e.log_at, 0 as position, e.tx_index, b.hash as block_hash, b.time, t.hash as tx_hash,
    k.address as token_address, s.address as sender_address, r.address as recipient_address, null as token_id, e.value,
    e.token, e.sender, e.recipient
from erc20 e
join tx t on t.tx_at = (e.log_at & ~0xffffff) | e.tx_index
join block b on b.number = e.log_at >> 24
join address k on k.id = e.token
join address s on s.id = e.sender
join address r on r.id = e.recipient;

-- A row is an ERC-721 transfer; of a range `value` is the last ID. Serves: lists of transfers.
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

-- A row is a transfer of one ID of an ERC-1155 token. Serves: lists of transfers.
create view erc1155_view as
select 4 as standard, e.log_at, e.position, e.tx_index, b.hash as block_hash, b.time, t.hash as tx_hash,
    k.address as token_address, s.address as sender_address, r.address as recipient_address, e.token_id, e.value,
    e.token, e.sender, e.recipient
from erc1155 e
join tx t on t.tx_at = (e.log_at & ~0xffffff) | e.tx_index
join block b on b.number = e.log_at >> 24
join address k on k.id = e.token
join address s on s.id = e.sender
join address r on r.id = e.recipient;

-- A row is an internal transaction. Serves: lists of internal transactions.
create view internal_view as
select i.tx_at, i.frame, b.hash as block_hash, b.time, t.hash as tx_hash, i.kind, s.address as sender_address,
    r.address as recipient_address, i.value, i.gas_limit, i.gas_used, i.is_reverted, i.sender, i.recipient
from internal i
join tx t on t.tx_at = i.tx_at
join block b on b.number = i.tx_at >> 24
join address s on s.id = i.sender
left join address r on r.id = i.recipient;

-- A row is the deployment of a contract. Serves: the deployment of a contract, and contracts by deployer.
create view deployment_view as
select a.address, d.tx_at, d.frame, c.address as creator_address, t.hash as tx_hash, s.address as sender_address
from deployment d
join address a on a.id = d.address
join tx t on t.tx_at = d.tx_at
join address c on c.id = d.creator
join address s on s.id = t.sender;

-- A row says whether a token's stored balances can be trusted: they are what its storage holds, or they agreed with its
-- state at every audit, and there was one since its first transfer. The balances of an untrusted token are read from
-- state. Serves: lists of balances and owners, and how the balances of a token are known.
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
