-- Holders of a token. A list is a walk along one index.

-- name: total
select t.standard, t.holders, t.tokens from holder_total t
where t.token = (select id from address where address = :address) order by t.standard;

-- name: by_balance
select h.holder, a.address, h.balance from holder h join address a on a.id = h.holder
where h.token = (select id from address where address = :address) and h.standard = :standard
    and h.balance > x'00' and (h.balance, h.holder) < (:balance, :holder)
order by h.balance desc, h.holder desc limit :limit;

-- In the order of their IDs, former holders too.
-- name: by_id
select h.holder, a.address, h.balance from holder h join address a on a.id = h.holder
where h.token = (select id from address where address = :address) and h.standard = :standard and h.holder > :after
order by h.holder limit :limit;

-- Some balances of a holder, in the order of blocks.
-- name: balances_between
select b.block, b.balance from erc20_balance b
where b.holder = :holder and b.token = (select id from address where address = :address)
    and b.block >= :low and b.block < :high order by b.block limit :limit;

-- name: balance_before
select coalesce((select newest.balance from (
        select b.block, b.balance from erc20_balance b
        where b.holder = :holder and b.token = (select id from address where address = :address) and b.block < :block
        order by b.block desc limit 1) newest),
    (select h.baseline from erc20_holding h where h.holder = :holder and h.token_address = :address));

-- name: trust
select is_untrusted, balance_source from token_trust where token = (select id from address where address = :address);
