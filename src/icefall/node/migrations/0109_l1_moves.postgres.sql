-- The state after each block, and what transactions did to validators of L1s. What was executed before stays without.

alter table p_block add column supply bigint;
alter table p_block add column active_l1 bigint;
alter table p_block add column accrued_fees bigint;
create table p_l1_move (
    seq bigint,
    validation_id bytea,
    weight bigint not null,
    balance bigint not null,
    change text not null,
    primary key (seq, validation_id)
);
create index p_l1_move_of on p_l1_move (validation_id, seq);

insert into meta (name, value) select 'p_l1_moves_missing', '1' where exists (select 1 from p_l1_validator);
