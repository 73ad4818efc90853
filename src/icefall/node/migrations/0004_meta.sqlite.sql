-- Names an engineer would search for, in place of those of the first release. Rows do not change.

-- A row is a named value of this data directory, such as the network it is bound to.
alter table fact rename to meta;

alter table endpoint_alias rename column place to position;
alter table chain_alias rename column place to position;
alter table ledger rename column next_place to next_position;
alter table utxo rename column place to position;
alter table utxo_owner rename column place to position;
alter table atomic_utxo rename column place to position;
alter table atomic_count rename column next_place to next_position;
alter table atomic_owner rename column place to position;
alter table refused_tx rename column place to position;
