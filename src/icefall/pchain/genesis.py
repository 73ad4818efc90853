"""The P-Chain's state at height 0, from its genesis bytes."""

import msgspec

from icefall.pchain.model import ExecutedBlock, FeeSum, Lookup, Subnet, TxRow, UtxoRow
from icefall.pchain.parameters import PlatformParameters
from icefall.pchain.state import GENESIS_SEQ, PlatformState
from icefall.pchain.transactions import execute_tx, put_stake, staker_of
from icefall.wire.ids import PRIMARY_NETWORK
from icefall.wire.pvm.codec import genesis_block, unpack_genesis


class NothingStored:
    """The state before anything was accepted."""

    def utxo(self, utxo_id: bytes) -> UtxoRow | None:
        return None

    def tx(self, txid: bytes) -> TxRow | None:
        return None

    def subnet(self, subnet_id: bytes) -> Subnet | None:
        return None

    def fee_sum(self, scope: int, key: bytes) -> FeeSum | None:
        return None


def genesis_state(parameters: PlatformParameters, genesis_raw: bytes, lookup: Lookup) -> PlatformState:
    """The state after block 0, with all of it among its changes. The first validators are rewarded in file order, each
    from the supply that the ones before it have left."""
    genesis = unpack_genesis(genesis_raw)
    block = genesis_block(genesis_raw)
    state = PlatformState(parameters, lookup)
    state.height, state.block_id, state.time = 0, block.block_id, genesis.timestamp
    state.set_supply(PRIMARY_NETWORK, genesis.initial_supply)
    for utxo, _message in genesis.utxos:
        state.add_utxo(utxo, GENESIS_SEQ)
    for tx in genesis.validators:
        seq = state.add_tx(tx, 0, is_committed=True)
        staker = staker_of(tx, 1)
        reward = state.mint(PRIMARY_NETWORK, staker.end - staker.start, staker.weight)
        staker = msgspec.structs.replace(staker, potential_reward=reward, seq=seq)
        state.add_staker(staker)
        put_stake(state, tx, staker, seq)
    for tx in genesis.chains:
        execute_tx(state, tx, 0)
    state.finish_block()
    state.changes.blocks.append(
        ExecutedBlock(
            0,
            block.block_id,
            int(block.block_type),
            state.time,
            0,
            len(block.raw),
            state.supplies[PRIMARY_NETWORK],
            0,
            0,
            0,
            block.block_id,
            block.raw,
        )
    )
    return state
