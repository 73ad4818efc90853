-- Enrichment reads and writes token, nft, price, reputation and listed_token. The block writer inserts the rows of the
-- first two. After a rollback an address ID may belong to another address, so an update also compares the address.

-- name: due_tokens
select t.token, a.address, t.failures, t.metadata_version from token t join address a on a.id = t.token
where t.read_at is null and t.retry_at <= :now order by t.retry_at, t.token limit :count;

-- name: tip
select number, hash from block order by number desc limit 1;

-- name: is_stored
select 1 from block where number = :number and hash = :block_hash;

-- name: put_token
update token set name = :name, symbol = :symbol, decimals = :decimals, read_at = :now
where token = :token and read_at is null and metadata_version = :version
    and exists (select 1 from address where id = :token and address = :address);

-- name: token_names
select name, symbol from token where token = :token;

-- name: drop_name_parts
delete from name_part where token = :token;

-- name: put_name_part
insert into name_part (token, part) values (?, ?);

-- name: postpone_token
update token set retry_at = :retry_at, failures = failures + 1
where token = :token and read_at is null and exists (select 1 from address where id = :token and address = :address);

-- name: nft_due
select min(retry_at) <= :now from nft where retry_at is not null;

-- One contract after another, so that a large one does not delay the others.
-- name: contracts_to_read
with recursive walk(token) as (
    select min(token) from nft where retry_at is not null and token > :after
    union all
    select (select min(token) from nft where retry_at is not null and token > walk.token)
    from walk where walk.token is not null limit :count
)
select token from walk where token is not null;

-- postgres: contracts_to_read
with recursive walk(token) as (
    (select min(token) from nft where retry_at is not null and token > :after)
    union all
    select (select min(token) from nft where retry_at is not null and token > walk.token)
    from walk where walk.token is not null
)
select token from walk where token is not null limit :count;

-- name: due_nfts
select n.token, a.address, n.token_id, t.standards, n.status, n.token_uri, n.failures, n.retry_at
from nft n join address a on a.id = n.token left join token t on t.token = n.token
where n.token = :token and n.retry_at <= :now order by n.retry_at, n.token_id limit :count;

-- retry_at -1: being read; due at once after a crash. A row whose retry_at becomes 0 meanwhile is read again.
-- name: claim_nft
update nft set retry_at = -1, failures = case when retry_at = 0 then 0 else failures end
where token = :token and token_id = :token_id and retry_at = :retry_at
    and exists (select 1 from address where id = :token and address = :address);

-- name: put_nft
update nft set token_uri = :token_uri, status = :status, read_at = :read_at, retry_at = :retry_at,
    failures = :failures, metadata = :metadata
where token = :token and token_id = :token_id and retry_at = -1
    and exists (select 1 from address where id = :token and address = :address);

-- Metadata that was read before stays.
-- name: postpone_nft
update nft set retry_at = :retry_at, failures = :failures
where token = :token and token_id = :token_id and retry_at = -1
    and exists (select 1 from address where id = :token and address = :address);

-- name: postponed_nfts
select token, token_id from nft where retry_at = :postponed limit :count;

-- name: make_nft_due
update nft set retry_at = 0 where token = ? and token_id = ?;

-- An ID of a range has no row until it moves, or is asked for here.
-- name: add_nft_of_range
insert into nft (token, token_id, first_block)
select r.token, :token_id, r.log_at >> 24 from nft_range r
where r.token = (select id from address where address = :token) and r.last_id >= :token_id and r.first_id = (
    select b.first_id from nft_range b
    where b.token = (select id from address where address = :token) and b.first_id <= :token_id
    order by b.first_id desc limit 1)
on conflict (token, token_id) do nothing;

-- name: reindex_nft
update nft set retry_at = 0, failures = 0
where token = (select id from address where address = :token) and token_id = :token_id and (retry_at is null or retry_at <> 0);

-- name: meta
select value from meta where name = :name;

-- name: put_meta
insert into meta (name, value) values (:name, :value) on conflict (name) do update set value = excluded.value;

-- name: prices
select token_address, currency, day, value from price;

-- name: put_price
insert into price (token_address, currency, day, value) values (?, ?, ?, ?)
on conflict (token_address, currency, day) do update set value = excluded.value;

-- name: drop_price
delete from price where token_address = ? and currency = ? and day = ?;

-- name: reputations
select token_address, reputation from reputation;

-- name: malicious_of
select token_address from reputation where token_address = ? and reputation = 'Malicious';

-- postgres: malicious_of
select r.token_address from unnest(?) as k(address) join reputation r on r.token_address = k.address
where r.reputation = 'Malicious';

-- name: put_reputation
insert into reputation (token_address, reputation) values (?, ?)
on conflict (token_address) do update set reputation = excluded.reputation;

-- name: drop_reputation
delete from reputation where token_address = ?;

-- name: listed_tokens
select token_address, details from listed_token;

-- name: put_listed_token
insert into listed_token (token_address, details) values (?, ?)
on conflict (token_address) do update set details = excluded.details;

-- name: drop_listed_token
delete from listed_token where token_address = ?;

-- What the API reads, one seek each.

-- name: nft_metadata
select token, token_id, status, token_uri, read_at, metadata from nft where token = ? and token_id = ?;

-- postgres: nft_metadata
select n.token, n.token_id, n.status, n.token_uri, n.read_at, n.metadata
from unnest(?, ?) as k(token, token_id) join nft n on n.token = k.token and n.token_id = k.token_id;

-- name: price
select value from price where token_address = :token_address and currency = :currency and day = :day;
