-- Every balance that no transfer tells has a row in `slot_change`, which has the balance too: as a server stores it.

alter table slot_change add column balance blob;

update slot_change set balance = (
    select b.balance from erc20_balance b
    where b.holder = slot_change.holder and b.token = slot_change.token and b.block = slot_change.block);

insert or ignore into slot_change (block, token, holder, token_id, balance)
select u.block, u.token, s.holder, x'', b.balance
from slot s
join unclaimed_slot u on u.token = s.token and u.key >= s.key and substr(u.key, 1, 8) = s.key
join erc20_balance b on b.holder = s.holder and b.token = s.token and b.block = u.block;
