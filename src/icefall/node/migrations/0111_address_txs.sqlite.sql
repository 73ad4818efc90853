-- The transactions of an address on P are those that show it: also who gets the reward of a stake, and whose outputs
-- were imported, but not those that only gave a stake back. Without notes of who was paid, the latter are left there.
-- Who would have got the reward of a proposal that was aborted is not known here.

delete from p_address_tx where seq in (select seq from p_tx where type = 20) and exists (select 1 from p_reward_of);

insert into p_address_tx (address, seq)
select distinct r.owner, u.created_seq from p_reward_of r join p_utxo u on u.position = r.position
where r.is_node = 0
on conflict (address, seq) do nothing;

insert into p_address_tx (address, seq)
select distinct address, seq from p_stake_owner where role in (0, 1)
on conflict (address, seq) do nothing;

insert into p_address_tx (address, seq)
select distinct o.address, t.seq from chain_output_owner o
join chain_output c on c.utxo_id = o.utxo_id and c.destination = o.chain_id and c.source <> o.chain_id
join p_tx t on t.txid = c.spent_txid
where o.is_spent = 1
on conflict (address, seq) do nothing;

insert into address_tx (chain, address, seq, asset)
select distinct l.chain, o.address, t.seq, substr(c.bytes, 39, 32) from ledger l
join chain_output_owner o on o.chain_id = l.chain_id and o.is_spent = 1
join chain_output c on c.utxo_id = o.utxo_id and c.destination = o.chain_id and c.source <> o.chain_id
join ledger_tx t on t.chain = l.chain and t.txid = c.spent_txid
where true
on conflict (chain, address, seq, asset) do nothing;
