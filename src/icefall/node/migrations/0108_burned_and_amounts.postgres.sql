-- What X and C have burned, added up with the lists: where some is listed already it stays unknown. Outputs of P are
-- listed by when they were made, and by amount; what was made first is told by its transaction and its place there.

alter table listed add column burned text;

alter table p_utxo add column made bigint not null default 0;
update p_utxo set made = (select n.made from (
    select position, row_number() over (order by created_seq, position) - 1 as made from p_utxo
) n where n.position = p_utxo.position);
alter table p_utxo_owner rename to p_utxo_owner_before;
alter table p_utxo_owner_before drop constraint p_utxo_owner_pkey;
create table p_utxo_owner (
    address bytea,
    state bigint,
    made bigint,
    position bigint not null,
    amount bigint not null,
    primary key (address, state, made)
);
insert into p_utxo_owner (address, state, made, position, amount)
select o.address, o.state, u.made, o.position,
       case when u.amount < 0 then u.amount + 9223372036854775807 + 1 else u.amount - 9223372036854775807 - 1 end
from p_utxo_owner_before o join p_utxo u on u.position = o.position;
drop table p_utxo_owner_before;
create index p_utxo_spendable on p_utxo_owner (address, position) where state = 0;
create index p_utxo_by_amount on p_utxo_owner (address, state, amount, made);
