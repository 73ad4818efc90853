-- EVM chains among the blockchains that the P-Chain created. There are some thousands at most, so no index is needed.

-- name: blockchain_ids
select chain_id from p_blockchain where evm_chain_id = :evm_chain_id order by seq;

-- name: evm_chain_ids
select chain_id, evm_chain_id from p_blockchain where chain_id = ? and evm_chain_id is not null;

-- postgres: evm_chain_ids
select chain_id, evm_chain_id from p_blockchain where chain_id = any(?) and evm_chain_id is not null;
