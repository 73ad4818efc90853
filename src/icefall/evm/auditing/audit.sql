-- What changed in the blocks (after, to], to be compared with state at the last of them.

-- name: erc20_pairs
select token, sender as holder from erc20 where log_at between :from_log and :to_log
union select token, recipient from erc20 where log_at between :from_log and :to_log;

-- name: erc1155_pairs
select token, sender as holder, token_id from erc1155 where log_at between :from_log and :to_log
union select token, recipient, token_id from erc1155 where log_at between :from_log and :to_log;

-- name: nfts
select distinct token, token_id from erc721 where log_at between :from_log and :to_log;

-- name: journals
select touched from block where number > :after and number <= :to;

-- name: trusted_token
select a.address, t.standards from token t join address a on a.id = t.token where t.token = ? and t.untrusted_since is null;

-- name: holders
select holder from erc20_holding where token = ? order by since desc limit ?;

-- name: holders_1155
select holder, token_id from erc1155_holding where token = ? order by since desc limit ?;

-- name: nfts_of
select distinct token_id from nft_owner where token = ? limit ?;

-- name: erc20_balance
select a.address, coalesce(
    (select balance from erc20_balance where holder = :holder and token = :token and block <= :block
     order by block desc limit 1),
    (select baseline from erc20_holding where holder = :holder and token_address = :address))
from address a where a.id = :holder;

-- name: erc1155_balance
select a.address, coalesce(
    (select balance from erc1155_balance
     where holder = :holder and token = :token and token_id = :token_id and block <= :block
     order by block desc limit 1),
    (select baseline from erc1155_holding
     where holder = :holder and token_address = :address and token_id = :token_id))
from address a where a.id = :holder;

-- name: owner
select a.address from nft_owner o join address a on a.id = o.owner
where o.token = :token and o.token_id = :token_id and o.block <= :block order by o.block desc limit 1;

-- name: mark_untrusted
update token set untrusted_since = ? where token = ? and untrusted_since is null;

-- name: put_audited
insert into meta (name, value) values ('audited_to', :to) on conflict (name) do update set value = excluded.value;
