-- Sums of the fees of L1 validators by day. Where some paid before, their sums would begin in the middle, so the
-- operations that need them refuse. Validators of before stay without the proof of their key.

alter table p_l1_validator add column inactive_since integer not null default 0;
alter table p_l1_validator add column proof_of_possession blob not null default x'';
create table p_l1_fee_day (
    scope integer,
    key blob,
    day integer,
    active integer not null,
    paying integer not null,
    paid text not null,
    since integer not null,
    primary key (scope, key, day)
) without rowid;
create table p_accrued_day (day integer primary key, accrued integer not null);

insert into meta (name, value) select 'p_l1_fees_missing', '1' where exists (select 1 from p_l1_validator);
