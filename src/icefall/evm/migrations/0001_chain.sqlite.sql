-- One EVM chain in one file. Addresses are interned; amounts are `uint` blobs (amounts.py); positions are integers that
-- sort like the chain (places.py): tx_at = block and transaction index, log_at = block and log index.

create table fact (
    name text not null primary key,
    value text not null
) without rowid;

-- Every address any row speaks of. IDs are given in chain order, so a rollback takes the newest ones away.
create table address (
    id integer primary key,
    address blob not null unique
);

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
    cumulative_txs integer not null,
    next_address integer not null, -- IDs from here on were given by this block or a later one
    touched blob not null -- what a rollback must look at besides this block's own rows (journal.py)
);

create table tx (
    tx_at integer primary key,
    hash blob not null,
    sender integer not null,
    recipient integer not null,
    value blob not null,
    nonce blob not null,
    gas_limit blob not null,
    gas_used blob not null,
    gas_price blob not null,
    max_fee blob,
    max_priority_fee blob,
    kind integer not null, -- type, status and call type (tx_kind.py)
    selector blob not null,
    input blob not null -- what follows the selector, zero runs packed (amounts.py); last, so that lists do not read it
);
create index tx_by_hash on tx (substr(hash, 1, 6));

-- Transactions of which the address is sender, recipient or the contract created.
create table native_of (
    address integer not null,
    tx_at integer not null,
    primary key (address, tx_at)
) without rowid;

-- Transactions that concern the address only through a token transfer or an internal transaction.
create table touch_of (
    address integer not null,
    tx_at integer not null,
    primary key (address, tx_at)
) without rowid;

create table erc20 (
    log_at integer primary key,
    tx_index integer not null,
    token integer not null,
    sender integer not null,
    recipient integer not null,
    value blob not null
);
create index erc20_in on erc20 (token, log_at);
create table erc20_of (
    address integer not null,
    log_at integer not null,
    primary key (address, log_at)
) without rowid;

create table erc721 (
    log_at integer primary key,
    tx_index integer not null,
    token integer not null,
    sender integer not null,
    recipient integer not null,
    token_id blob not null
);
create index erc721_in on erc721 (token, log_at);
create table erc721_of (
    address integer not null,
    log_at integer not null,
    primary key (address, log_at)
) without rowid;

-- A batch is one log of several rows: same token and parties, `position` counts.
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
create table erc1155_of (
    address integer not null,
    log_at integer not null,
    primary key (address, log_at)
) without rowid;

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
create table internal_of (
    address integer not null,
    tx_at integer not null,
    frame integer not null,
    primary key (address, tx_at, frame)
) without rowid;

-- Successful creations; of several at one address the latest counts. creator: who ran the creation, for frame 0 the
-- sender.
create table deployment (
    address integer not null,
    tx_at integer not null,
    frame integer not null,
    creator integer not null,
    primary key (address, tx_at, frame)
) without rowid;
create index deployment_at on deployment (tx_at, frame);
-- Contracts by the account that sent the transaction, and by the contract that ran the creation.
create table deployed_by (
    address integer not null,
    tx_at integer not null,
    frame integer not null,
    primary key (address, tx_at, frame)
) without rowid;

create table message (
    tx_at integer primary key,
    message_id blob not null,
    peer_blockchain_id blob not null,
    is_source integer not null
);

-- Balance from this block on. `before`, on an address's first row alone: what it was until then; null: not known.
create table native_balance (
    address integer not null,
    block integer not null,
    balance blob not null,
    before blob,
    primary key (address, block)
) without rowid;

create table erc20_balance (
    holder integer not null,
    token integer not null,
    block integer not null,
    balance blob not null,
    primary key (holder, token, block)
) without rowid;
-- Tokens a holder was ever named with, in the order they are listed. baseline: balance before the first row, where the
-- index does not begin with the chain.
create table erc20_holding (
    holder integer not null,
    token_address blob not null,
    token integer not null,
    since integer not null,
    baseline blob not null,
    primary key (holder, token_address)
) without rowid;
create index erc20_holder on erc20_holding (token, since);

create table erc1155_balance (
    holder integer not null,
    token integer not null,
    token_id blob not null,
    block integer not null,
    balance blob not null,
    primary key (holder, token, token_id, block)
) without rowid;
create table erc1155_holding (
    holder integer not null,
    token_address blob not null,
    token_id blob not null,
    token integer not null,
    since integer not null,
    baseline blob not null,
    primary key (holder, token_address, token_id)
) without rowid;
create index erc1155_holder on erc1155_holding (token, since);

-- Owner from this block on; the zero address: burned. `before`, on a token's first row alone: the owner until then.
create table nft_owner (
    token integer not null,
    token_id blob not null,
    block integer not null,
    owner integer not null,
    before integer,
    primary key (token, token_id, block)
) without rowid;
-- What is owned now, in the order it is listed.
create table nft_held (
    owner integer not null,
    token_address blob not null,
    token_id blob not null,
    token integer not null,
    primary key (owner, token_address, token_id)
) without rowid;

-- Whether an address has code, from this block on.
create table code (
    address integer not null,
    block integer not null,
    has_code integer not null,
    primary key (address, block)
) without rowid;

-- What is known of a contract that moved tokens. kind: what it is where its logs do not tell ('' for neither; null: never
-- asked); odd_since: the block at which its state was seen to disagree with its logs, so that state is asked.
-- The rest is enrichment: read_at null: not read yet; failures count up while reading fails.
create table token (
    token integer primary key,
    first_block integer not null,
    standards integer not null default 0, -- of the transfers seen: 1 ERC-20, 2 ERC-721, 4 ERC-1155
    kind text,
    odd_since integer,
    name text,
    symbol text,
    decimals integer,
    read_at integer,
    retry_at integer not null default 0,
    failures integer not null default 0
);
create index token_to_read on token (retry_at) where read_at is null;
create index token_since on token (first_block);

-- Metadata of single tokens. status as the interface lists them. retry_at null: settled; 0: due, whatever was read before
-- (so says the block writer when the chain says that it changed); -1: being read.
create table nft (
    token integer not null,
    token_id blob not null,
    first_block integer not null,
    token_uri text not null default '',
    status text not null default 'UNINDEXED',
    read_at integer,
    retry_at integer default 0,
    failures integer not null default 0,
    metadata text not null default '{}', -- the fields of the answer, as JSON
    primary key (token, token_id)
) without rowid;
create index nft_to_read on nft (retry_at) where retry_at is not null;
create index nft_to_read_of on nft (token, retry_at) where retry_at is not null;

-- By address, not by interned ID: a price may be known before its token, and outlives a rollback. token_address empty: the
-- native token. day: UTC day number; -1: now.
create table price (
    token_address blob not null,
    currency text not null,
    day integer not null,
    value text not null,
    primary key (token_address, currency, day)
) without rowid;

create table reputation (
    token_address blob not null primary key,
    word text not null
) without rowid;

-- Rows as they are told: the names in place of the numbers, with the block and transaction they are of. Each is a walk
-- along the keys of its table; lists join them to the index they walk.
create view told_tx as
select t.tx_at, b.hash as block_hash, b.time, t.hash, s.address as sender_address, r.address as recipient_address,
    t.value, t.nonce, t.gas_limit, t.gas_used, t.gas_price, t.max_fee, t.max_priority_fee, t.kind, t.selector,
    t.sender, t.recipient
from tx t
join block b on b.number = t.tx_at >> 24
join address s on s.id = t.sender
join address r on r.id = t.recipient;

create view told_erc20 as
select e.log_at, e.tx_index, b.hash as block_hash, b.time, t.hash as tx_hash, k.address as token_address,
    s.address as sender_address, r.address as recipient_address, e.value, e.token, e.sender, e.recipient
from erc20 e
join tx t on t.tx_at = (e.log_at & ~0xffffff) | e.tx_index
join block b on b.number = e.log_at >> 24
join address k on k.id = e.token
join address s on s.id = e.sender
join address r on r.id = e.recipient;

create view told_erc721 as
select e.log_at, e.tx_index, b.hash as block_hash, b.time, t.hash as tx_hash, k.address as token_address,
    s.address as sender_address, r.address as recipient_address, e.token_id, e.token, e.sender, e.recipient
from erc721 e
join tx t on t.tx_at = (e.log_at & ~0xffffff) | e.tx_index
join block b on b.number = e.log_at >> 24
join address k on k.id = e.token
join address s on s.id = e.sender
join address r on r.id = e.recipient;

create view told_erc1155 as
select e.log_at, e.position, e.tx_index, b.hash as block_hash, b.time, t.hash as tx_hash, k.address as token_address,
    s.address as sender_address, r.address as recipient_address, e.token_id, e.value, e.token, e.sender, e.recipient
from erc1155 e
join tx t on t.tx_at = (e.log_at & ~0xffffff) | e.tx_index
join block b on b.number = e.log_at >> 24
join address k on k.id = e.token
join address s on s.id = e.sender
join address r on r.id = e.recipient;

create view told_internal as
select i.tx_at, i.frame, b.hash as block_hash, b.time, t.hash as tx_hash, i.kind, s.address as sender_address,
    r.address as recipient_address, i.value, i.gas_limit, i.gas_used, i.is_reverted, i.sender, i.recipient
from internal i
join tx t on t.tx_at = i.tx_at
join block b on b.number = i.tx_at >> 24
join address s on s.id = i.sender
left join address r on r.id = i.recipient;

create view told_deployment as
select a.address, d.tx_at, d.frame, c.address as creator_address, t.hash as tx_hash, s.address as sender_address
from deployment d
join address a on a.id = d.address
join tx t on t.tx_at = d.tx_at
join address c on c.id = d.creator
join address s on s.id = t.sender;
