"""Handlers of the platform chain: unspent outputs, balances, stakes and rewards."""

import asyncio
import time
from collections import defaultdict
from collections.abc import Iterable

from icefall.api.node.addresses import AddressParser
from icefall.api.node.handlers.utxo_pages import output_texts, requested_page
from icefall.api.node.platform_objects import HeldOutputs, LockedAmount, PlatformObjects
from icefall.api.node.schema.avm import GetTxParams, Index, UtxoReference
from icefall.api.node.schema.platform import (
    AddressesParams,
    Outputs,
    OutputsParams,
    PlatformBalance,
    RewardOutputs,
    StakedAmounts,
    StakeParams,
)
from icefall.errors import CallFailed
from icefall.node.chains import Chains
from icefall.pchain.reading import PlatformReader
from icefall.wire.ids import PLATFORM_CHAIN, id_text
from icefall.wire.packer import VERSION_BYTES
from icefall.wire.pvm.codec import held_in_utxo, unpack_utxo
from icefall.wire.pvm.parts import pack_transferable_output
from icefall.wire.pvm.types import PlatformOutput, StakeableOutput
from icefall.wire.text import checksum_hex
from icefall.xchain.ownership import UINT64_MAX
from icefall.xchain.store import NEWEST, StoredUtxo

STAKE_ADDRESSES_MAX = 256
_PIECE = 1024
_ATTEMPTS = 3

_Amounts = dict[bytes, int]


async def get_utxos(params: OutputsParams, chain: PlatformReader, addresses: AddressParser, chains: Chains) -> Outputs:
    page = await requested_page(params, chain, PLATFORM_CHAIN, addresses, chains)
    if page.utxos and params.encoding == "json":
        utxo_id = id_text(page.utxos[0].utxo_id)
        raise CallFailed(f"couldn't encode UTXO {utxo_id} as json: unsupported encoding in method")
    return Outputs(
        num_fetched=str(len(page.utxos)),
        utxos=output_texts(page.utxos, params.encoding),
        end_index=Index(addresses.text(page.end.address), id_text(page.end.utxo_id)),
        encoding=params.encoding,
    )


async def get_balance(
    params: AddressesParams, chain: PlatformReader, addresses: AddressParser, objects: PlatformObjects
) -> PlatformBalance:
    owners = [await addresses.parse(text) for text in params.addresses]
    held = await _holdings(tuple(sorted(set(owners))), chain, objects)
    unlocked, stakeable, not_stakeable = _by_lock(held.amounts, int(time.time()))
    total: _Amounts = defaultdict(int)
    for amounts in (stakeable, not_stakeable, unlocked):
        for asset_id, amount in amounts.items():
            total[asset_id] = min(UINT64_MAX, total[asset_id] + amount)
    avax = chain.parameters.avax_asset_id
    return PlatformBalance(
        balance=str(total.get(avax, 0)),
        unlocked=str(unlocked.get(avax, 0)),
        locked_stakeable=str(stakeable.get(avax, 0)),
        locked_not_stakeable=str(not_stakeable.get(avax, 0)),
        balances=_texts(total),
        unlockeds=_texts(unlocked),
        locked_stakeables=_texts(stakeable),
        locked_not_stakeables=_texts(not_stakeable),
        utxo_ids=held.outputs or None,
    )


async def _holdings(owners: tuple[bytes, ...], chain: PlatformReader, objects: PlatformObjects) -> HeldOutputs:
    cached = objects.holdings.now()
    known = cached.get(owners)
    if known is not None:
        return known
    amounts: dict[tuple[bytes, int, int], int] = defaultdict(int)
    outputs = []
    for raw in await _all_utxos(chain, owners):
        txid, output_index, asset_id, stakeable_until, amount, locktime = held_in_utxo(raw)
        amounts[asset_id, stakeable_until, locktime] += amount
        outputs.append(UtxoReference(id_text(txid), output_index))
    made = HeldOutputs([LockedAmount(*lock, amount) for lock, amount in amounts.items()], outputs)
    objects.holdings.put(cached, owners, made, 1 + len(owners) + len(outputs))
    return made


async def _all_utxos(chain: PlatformReader, owners: Iterable[bytes]) -> list[bytes]:
    """Every UTXO of the owners, once. Read in bounded pieces, and from the start again when a block was executed
    meanwhile; the last try is in one piece per address."""
    for attempt in range(_ATTEMPTS):
        is_last = attempt == _ATTEMPTS - 1
        height = (await chain.ledger()).height
        found: dict[bytes, bytes] = {}
        for owner in owners:
            found.update([(utxo.utxo_id, utxo.raw) for utxo in await _utxos_of(chain, owner, whole=is_last)])
        if is_last or (await chain.ledger()).height == height:
            return list(found.values())
    raise AssertionError("the last try always returns")


async def _utxos_of(chain: PlatformReader, owner: bytes, *, whole: bool) -> list[StoredUtxo]:
    found: list[StoredUtxo] = []
    below, limit = NEWEST, NEWEST if whole else _PIECE
    while True:
        piece = await chain.utxos(owner, below, limit)
        found += piece
        if len(piece) < limit:
            return found
        below = piece[-1].position
        await asyncio.sleep(0)


def _by_lock(held: Iterable[LockedAmount], now_s: int) -> tuple[_Amounts, _Amounts, _Amounts]:
    """Sum what is unlocked, what is locked but can be staked, and what is locked, each by asset."""
    unlocked: _Amounts = defaultdict(int)
    stakeable: _Amounts = defaultdict(int)
    not_stakeable: _Amounts = defaultdict(int)
    for asset_id, stakeable_until, locktime, amount in held:
        usable = stakeable if stakeable_until > now_s else unlocked
        amounts = not_stakeable if locktime > now_s else usable
        amounts[asset_id] = min(UINT64_MAX, amounts[asset_id] + amount)
    return unlocked, stakeable, not_stakeable


def _texts(amounts: _Amounts) -> dict[str, str]:
    return dict(sorted((id_text(asset_id), str(amount)) for asset_id, amount in amounts.items()))


async def get_stake(params: StakeParams, chain: PlatformReader, addresses: AddressParser) -> StakedAmounts:
    if len(params.addresses) > STAKE_ADDRESSES_MAX:
        count = len(params.addresses)
        raise CallFailed(f"{count} addresses provided but this method can take at most {STAKE_ADDRESSES_MAX}")
    owners = [await addresses.parse(text) for text in params.addresses]
    stakes = await chain.stakes(sorted(set(owners)), validators_only=params.validators_only)
    utxos = [unpack_utxo(raw) for raw in stakes]
    staked: _Amounts = defaultdict(int)
    for utxo in utxos:
        output = utxo.output.output if isinstance(utxo.output, StakeableOutput) else utxo.output
        staked[utxo.asset_id] = min(UINT64_MAX, staked[utxo.asset_id] + output.amount)
    if utxos and params.encoding == "json":
        asset = id_text(utxos[0].asset_id)
        raise CallFailed(f"couldn't encode output {asset} as json: unsupported encoding in method")
    outputs = [VERSION_BYTES + pack_transferable_output(PlatformOutput(at.asset_id, at.output)) for at in utxos]
    return StakedAmounts(
        staked=str(staked.get(chain.parameters.avax_asset_id, 0)),
        stakeds=_texts(staked),
        staked_outputs=[checksum_hex.encode(raw, params.encoding) for raw in outputs],
        encoding=params.encoding,
    )


async def get_reward_utxos(params: GetTxParams, chain: PlatformReader) -> RewardOutputs:
    raws = await chain.reward_utxos(params.tx_id)
    if raws and params.encoding == "json":
        raise CallFailed("couldn't encode utxo as json: unsupported encoding in method")
    utxos = [checksum_hex.encode(raw, params.encoding) for raw in raws]
    return RewardOutputs(str(len(utxos)), utxos, params.encoding)
