"""The P-Chain's genesis bytes: unstaked funds, first validators, and the transactions that create X and C."""

import heapq
from collections.abc import Iterator

from icefall.wire.errors import WireError
from icefall.wire.genesis.config import (
    BLS_KEY_SIZE,
    BLS_PROOF_SIZE,
    Allocation,
    GenesisConfig,
    Signer,
    Staker,
    address_bytes,
    eth_address_bytes,
    hex_bytes,
)
from icefall.wire.ids import EMPTY_ID, node_id_from_text
from icefall.wire.packer import VERSION_BYTES, pack_arrays, pack_blob, pack_string, u32, u64

_TRANSFER_OUTPUT, _OWNERS, _INPUT = 7, 11, 10
_ADD_VALIDATOR, _CREATE_CHAIN, _LOCKED_OUTPUT, _ADD_PERMISSIONLESS, _PROOF_OF_POSSESSION = 12, 15, 22, 25, 28
_NO_CREDENTIALS = u32(0)

_Stake = tuple[int, int, bytes]  # locktime, amount, address: also the order they are written in


def create_chain_tx(network_id: int, name: str, vm_id: bytes, fx_ids: tuple[bytes, ...], genesis: bytes) -> bytes:
    """The transaction, without codec version, whose hash is the new chain's ID."""
    return b"".join(
        (
            u32(_CREATE_CHAIN),
            _empty_base(network_id),
            EMPTY_ID,  # the primary network
            pack_string(name),
            vm_id,
            pack_arrays(fx_ids),
            pack_blob(genesis),
            u32(_INPUT),
            u32(0),  # the first chains need no authorisation
            _NO_CREDENTIALS,
        )
    )


def platform_genesis(
    config: GenesisConfig, network_id: int, start_time: int, avax_asset_id: bytes, chain_txs: tuple[bytes, ...]
) -> bytes:
    """The bytes that P block 0 hashes."""
    utxos = list(_utxos(config, start_time, avax_asset_id))
    validators = _validators(config, network_id, start_time, avax_asset_id)
    supply = sum(a.initial_amount + sum(u.amount for u in a.unlock_schedule) for a in config.allocations)
    return b"".join(
        (
            VERSION_BYTES,
            pack_arrays(tuple(utxos)),
            pack_arrays(tuple(validators)),
            pack_arrays(chain_txs),
            u64(start_time),
            u64(supply),
            pack_string(config.message),
        )
    )


def _empty_base(network_id: int) -> bytes:
    return u32(network_id) + EMPTY_ID + u32(0) * 3  # no outputs, no inputs, no memo


def _utxos(config: GenesisConfig, start_time: int, asset_id: bytes) -> Iterator[bytes]:
    staked = {address_bytes(text) for text in config.initial_staked_funds}
    index = 0
    for allocation in config.allocations:
        address = address_bytes(allocation.avax_addr)
        if address in staked:
            continue
        for unlock in allocation.unlock_schedule:
            if not unlock.amount:
                continue
            output = _output((unlock.locktime, unlock.amount, address), start_time)
            message = pack_blob(eth_address_bytes(allocation.eth_addr))
            yield EMPTY_ID + u32(index) + asset_id + output + message
            index += 1


def _output(stake: _Stake, start_time: int) -> bytes:
    locktime, amount, address = stake
    output = u32(_TRANSFER_OUTPUT) + u64(amount) + _owners(address)
    return u32(_LOCKED_OUTPUT) + u64(locktime) + output if locktime > start_time else output


def _owners(address: bytes) -> bytes:
    return u64(0) + u32(1) + u32(1) + address


def _validators(config: GenesisConfig, network_id: int, start_time: int, asset_id: bytes) -> list[bytes]:
    """The node keeps the first validators in a heap by the end of their stake and writes them in heap order."""
    if not config.initial_stakers:
        return []
    heap: list[tuple[int, int, bytes]] = []
    end = start_time + config.initial_stake_duration
    for position, (staker, stakes) in enumerate(zip(config.initial_stakers, _shares(config), strict=True)):
        if not stakes:
            raise WireError(f"genesis: initialStakers[{position}] has nothing at stake")
        tx = _validator_tx(staker, network_id, (start_time, end), sorted(stakes), asset_id)
        heapq.heappush(heap, (end, position, tx))
        end -= config.initial_stake_duration_offset
    return [tx for _, _, tx in heap]


def _validator_tx(staker: Staker, network_id: int, times: tuple[int, int], stakes: list[_Stake], asset: bytes) -> bytes:
    start_time, end_time = times
    weight = sum(amount for _, amount, _ in stakes)
    owner = u32(_OWNERS) + _owners(address_bytes(staker.reward_address))
    signer = staker.signer
    return b"".join(
        (
            u32(_ADD_PERMISSIONLESS if signer else _ADD_VALIDATOR),
            _empty_base(network_id),
            node_id_from_text(staker.node_id),
            u64(start_time),
            u64(end_time),
            u64(weight),
            EMPTY_ID + _signer(signer) if signer else b"",
            pack_arrays(tuple(asset + _output(stake, start_time) for stake in stakes)),
            owner * 2 if signer else owner,  # rewards of the validator, then of its delegators
            u32(staker.delegation_fee),
            _NO_CREDENTIALS,
        )
    )


def _signer(signer: Signer) -> bytes:
    key = hex_bytes(signer.public_key, BLS_KEY_SIZE)
    return u32(_PROOF_OF_POSSESSION) + key + hex_bytes(signer.proof_of_possession, BLS_PROOF_SIZE)


def _shares(config: GenesisConfig) -> list[list[_Stake]]:
    """The staked funds in file order, cut into one equal share per staker; the last one takes what division leaves."""
    staked = {address_bytes(text) for text in config.initial_staked_funds}
    funds = [a for a in config.allocations if address_bytes(a.avax_addr) in staked]
    number = len(config.initial_stakers)
    share = sum(unlock.amount for a in funds for unlock in a.unlock_schedule) // number
    shares: list[list[_Stake]] = [[]]
    room = share
    for locktime, amount, address in _unlocks(funds):
        rest = amount
        while rest > room and len(shares) < number:
            shares[-1].append((locktime, room, address))
            rest -= room
            shares.append([])
            room = share
        if rest:
            shares[-1].append((locktime, rest, address))
            room -= rest
    return shares + [[] for _ in range(number - len(shares))]


def _unlocks(allocations: list[Allocation]) -> Iterator[_Stake]:
    for allocation in allocations:
        address = address_bytes(allocation.avax_addr)
        for unlock in allocation.unlock_schedule:
            yield unlock.locktime, unlock.amount, address
