-- Sums of the fees of L1 validators by day. Where some paid before, their sums would begin in the middle, so the
-- operations that need them refuse. Validators of before stay without the proof of their key.

alter table p_l1_validator add column inactive_since bigint not null default 0;
alter table p_l1_validator add column proof_of_possession bytea not null default '';
create table p_l1_fee_day (
    scope bigint,
    key bytea,
    day bigint,
    active bigint not null,
    paying bigint not null,
    paid text not null,
    since bigint not null,
    primary key (scope, key, day)
);
create table p_accrued_day (day bigint primary key, accrued bigint not null);

insert into meta (name, value) select 'p_l1_fees_missing', '1' where exists (select 1 from p_l1_validator);
