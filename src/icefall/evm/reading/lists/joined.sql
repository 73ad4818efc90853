-- Lists of one address, for stores that join cheaply: an index is walked (o) and joined by key to the view of its rows (v).

-- The columns of the views, in the order in which lists/rows.py reads them. The position is that of the walked index.
-- fragment: tx
o.tx_at, v.block_hash, v.time, v.hash, v.sender_address, v.recipient_address, v.amounts, v.kind, v.selector, v.sender,
    v.recipient;

-- fragment: transfer
v.standard, o.log_at, v.position, v.tx_index, v.block_hash, v.time, v.tx_hash, v.token_address, v.sender_address,
    v.recipient_address, v.token_id, v.value, v.token, v.sender, v.recipient;

-- On a server the lists of transactions and of ERC-20 transfers are walked by groups of four blocks: so many rows, and
-- all others of the last one's group, are then put in order.
-- fragment: of_address
address = (select id from address where address = :address);

-- fragment: in_txs
{of_address} and block_group >= :low >> 26 and block_group <= :high >> 26 and tx_at >= :low and tx_at < :high;

-- fragment: in_logs
{of_address} and block_group >= :low >> 26 and block_group <= :high >> 26 and log_at >= :low and log_at < :high;

-- fragment: newest_logs
select log_at from (
    select log_at from erc20_of where {in_logs} order by block_group desc fetch first :limit rows with ties) as near
order by log_at desc limit :limit;

-- name: txs_of
select {tx}
from native_of o join tx_view v on v.tx_at = o.tx_at
where o.address = (select id from address where address = :address) and o.tx_at >= :low and o.tx_at < :high
order by o.tx_at desc limit :limit;

-- postgres: txs_of
select {tx}
from (
    select tx_at from (
        select tx_at from native_of where {in_txs} order by block_group desc fetch first :limit rows with ties) as near
    order by tx_at desc limit :limit) o
join tx_view v on v.tx_at = o.tx_at
order by o.tx_at desc;

-- The two lists are disjoint; each is read in index order and merged.
-- name: touched
select {tx}
from native_of o join tx_view v on v.tx_at = o.tx_at
where o.address = (select id from address where address = :address) and o.tx_at >= :low and o.tx_at < :high
union all
select {tx}
from touch_of o join tx_view v on v.tx_at = o.tx_at
where o.address = (select id from address where address = :address) and o.tx_at >= :low and o.tx_at < :high
order by 1 desc limit :limit;

-- Transfers that touch the address are found among all of its transfers. Only those are looked through that are newer
-- than the page's last own transaction: others than touching ones are of the own transactions of the page, so there is
-- no long way past them.
-- postgres: touched
with own as (
    select tx_at from native_of where {in_txs} order by block_group desc fetch first :limit rows with ties),
bound as (
    select case when count(*) < :limit then :low else min(tx_at) end as low from own)
select {tx} from (
    select tx_at from (
        select tx_at from own
        union all
        (select tx_at from touch_of
        where {of_address} and block_group >= (select low from bound) >> 26 and block_group <= :high >> 26
            and tx_at >= (select low from bound) and tx_at < :high
        order by block_group desc fetch first :limit rows with ties)) as found
    order by tx_at desc limit :limit) o
join tx_view v on v.tx_at = o.tx_at
order by o.tx_at desc;

-- name: touched_ascending
select {tx}
from native_of o join tx_view v on v.tx_at = o.tx_at
where o.address = (select id from address where address = :address) and o.tx_at >= :low and o.tx_at < :high
union all
select {tx}
from touch_of o join tx_view v on v.tx_at = o.tx_at
where o.address = (select id from address where address = :address) and o.tx_at >= :low and o.tx_at < :high
order by 1 limit :limit;

-- postgres: touched_ascending
with own as (
    select tx_at from native_of where {in_txs} order by block_group fetch first :limit rows with ties),
bound as (
    select case when count(*) < :limit then :high else max(tx_at) end as high from own)
select {tx} from (
    select tx_at from (
        select tx_at from own
        union all
        (select tx_at from touch_of
        where {of_address} and block_group >= :low >> 26 and block_group <= (select high from bound) >> 26
            and tx_at >= :low and tx_at < (select high from bound)
        order by block_group fetch first :limit rows with ties)) as found
    order by tx_at limit :limit) o
join tx_view v on v.tx_at = o.tx_at
order by o.tx_at;

-- name: {single}_of
select {transfer}
from {single}_of o join {single}_view v on v.log_at = o.log_at
where o.address = (select id from address where address = :address) and o.log_at >= :low and o.log_at < :high
order by o.log_at desc limit :limit;

-- postgres: erc20_of
select {transfer}
from ({newest_logs}) o join erc20_view v on v.log_at = o.log_at
order by o.log_at desc;

-- The same of ERC-20 in one round trip with the details of the token and its price, and of sender and recipient, which are seldom
-- tokens; null for an address that is none.
-- fragment: with_tokens
{transfer}, k.token, k.name, k.symbol, k.decimals,
    (select p.value from price p where p.token_address = v.token_address and p.currency = :currency and p.day = -1) as price,
    (select l.details from listed_token l where l.token_address = v.token_address) as listed,
    s.token, s.name, s.symbol, s.decimals,
    case when s.token is not null then (select l.details from listed_token l where l.token_address = v.sender_address) end as listed,
    r.token, r.name, r.symbol, r.decimals,
    case when r.token is not null then (select l.details from listed_token l where l.token_address = v.recipient_address) end as listed;

-- name: erc20_of_with_tokens
select {with_tokens}
from erc20_of o join erc20_view v on v.log_at = o.log_at
left join token k on k.token = v.token left join token s on s.token = v.sender
left join token r on r.token = v.recipient
where o.address = (select id from address where address = :address) and o.log_at >= :low and o.log_at < :high
order by o.log_at desc limit :limit;

-- postgres: erc20_of_with_tokens
select {with_tokens}
from ({newest_logs}) o join erc20_view v on v.log_at = o.log_at
left join token k on k.token = v.token left join token s on s.token = v.sender
left join token r on r.token = v.recipient
order by o.log_at desc;

-- name: {batched}_of
select {transfer} from {batched}_of o join {batched}_view v on v.log_at = o.log_at
where o.address = (select id from address where address = :address) and o.log_at >= :low and o.log_at < :high
order by o.log_at desc, v.position desc limit :limit;

-- Logs are bounded, and so is each batch: otherwise the server reads and sorts all of a batch.
-- postgres: {batched}_of
select {transfer} from (
    select o.log_at, e.position from (
        select log_at from {batched}_of
        where address = (select id from address where address = :address) and log_at >= :low and log_at < :high
        order by log_at desc limit :limit) o
    cross join lateral (
        select position from {batched} where log_at = o.log_at order by position desc limit :limit) e
    order by o.log_at desc, e.position desc limit :limit) o
join {batched}_view v on v.log_at = o.log_at and v.position = o.position
order by o.log_at desc, v.position desc;

-- The remainder of a batch in which the page before ended.
-- name: {batched}_rest
select {transfer} from {batched}_of o join {batched}_view v on v.log_at = o.log_at
where o.address = (select id from address where address = :address) and o.log_at = :high and v.position < :inside
order by v.position desc limit :limit;

-- fragment: {standard}_of_txs
select {transfer}
from {standard}_of o join {standard}_view v on v.log_at = o.log_at
where o.address = (select id from address where address = :address) and o.log_at >= :low and o.log_at < :high
    and (o.log_at, v.position) > (:low, :inside)
    and (o.log_at & -16777216 | v.tx_index) between :first_tx and :last_tx;

-- The transfers of a page of transactions. The lists of the standards are disjoint; each is read in index order and
-- merged.
-- name: transfers_of_page
{union {standard}_of_txs}
order by 2, 3 limit :limit;

-- fragment: erc20_page_of_txs
(select {transfer}
from (
    select log_at from erc20_of
    where {in_logs} and (log_at, 0) > (:low, :inside)
        and (log_at & -16777216 | tx_index) between :first_tx and :last_tx
    order by block_group fetch first :limit rows with ties) o
join erc20_view v on v.log_at = o.log_at
order by o.log_at limit :limit);

-- fragment: {single_nft}_page_of_txs
(select {transfer}
from {single_nft}_of o join {single_nft}_view v on v.log_at = o.log_at
where o.address = (select id from address where address = :address) and o.log_at >= :low and o.log_at < :high
    and (o.log_at, v.position) > (:low, :inside)
    and (o.log_at & -16777216 | v.tx_index) between :first_tx and :last_tx
order by o.log_at, v.position limit :limit);

-- fragment: {batched}_page_of_txs
(select {transfer}
from (
    select o.log_at, e.position from {batched}_of o
    cross join lateral (
        select position from {batched}
        where log_at = o.log_at and (log_at, position) > (:low, :inside)
            and (log_at & -16777216 | tx_index) between :first_tx and :last_tx
        order by position limit :limit) e
    where o.address = (select id from address where address = :address) and o.log_at >= :low and o.log_at < :high
    order by o.log_at, e.position limit :limit) o
join {batched}_view v on v.log_at = o.log_at and v.position = o.position
order by o.log_at, v.position limit :limit);

-- Each list is bounded by itself, and so is a batch of it: otherwise the server may read and sort all of them.
-- postgres: transfers_of_page
{erc20_page_of_txs}
union all
{union {single_nft}_page_of_txs}
union all
{union {batched}_page_of_txs}
order by 2, 3 limit :limit;

-- All tokens of a page at once. :tokens is a list of address IDs, most of which are not tokens; day -1 is the current price.
-- name: priced_tokens
select t.token, t.name, t.symbol, t.decimals,
    (select p.value from price p where p.token_address = a.address and p.currency = :currency and p.day = -1),
    (select l.details from listed_token l where l.token_address = a.address)
from token t join address a on a.id = t.token
where t.token in (select value from json_each(:tokens));
