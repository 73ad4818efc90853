"""A store belongs to one chain: what it was begun with is remembered, and nothing else goes into it."""

import msgspec

from icefall.errors import StartRefused
from icefall.evm.storing.store import ChainStore
from icefall.observe.log import Log
from icefall.upstream.client import UpstreamFailure
from icefall.upstream.evm.errors import Reverted, WrongChain
from icefall.upstream.evm.state import ContractCall
from icefall.upstream.evm.upstream import EvmUpstream
from icefall.wire.ids import id_text

_WARP = bytes.fromhex("0200000000000000000000000000000000000005")
_GET_BLOCKCHAIN_ID = bytes.fromhex("4213cf78")
_PAUSE_S = (1.0, 30.0)


class Binding(msgspec.Struct, frozen=True):
    """What the configuration says. `blockchain_id` empty: the chain is asked."""

    chain_id: str
    blockchain_id: bytes
    first_block: int


async def bind(store: ChainStore, upstream: EvmUpstream, told: Binding, log: Log) -> bytes:
    """The chain's ID on its network, if it has one. Waits until an upstream answers.

    StartRefused where configuration, upstream and store contradict each other.
    """
    _check_stored(store, told)
    await _greeted(upstream, log)
    genesis = upstream.genesis_hash or ""
    stored = store.fact("genesis_hash")
    if stored and genesis and stored != genesis:
        raise StartRefused(
            f"chain {told.chain_id}: the store began with genesis {stored}, the upstream has {genesis}: this is "
            "another chain. Check its address, or use another --data-dir"
        )
    facts = {"chain_id": told.chain_id, "first_block": str(told.first_block)}
    if genesis:
        facts["genesis_hash"] = genesis
    blockchain_id = await _blockchain_id(upstream, told)
    if blockchain_id:
        facts["blockchain_id"] = id_text(blockchain_id)
    await store.put_facts(facts)
    return blockchain_id


def _check_stored(store: ChainStore, told: Binding) -> None:
    begun = store.fact("first_block")
    if begun is not None and store.tip() is not None and int(begun) != told.first_block:
        raise StartRefused(
            f"chain {told.chain_id}: this index begins with block {begun}, not with {told.first_block}: balances and "
            "totals follow from there. Keep start_block, or index into another --data-dir"
        )


async def _greeted(upstream: EvmUpstream, log: Log) -> None:
    pause = _PAUSE_S[0]
    while True:
        try:
            against = await upstream.greet()
        except WrongChain as error:
            raise StartRefused(str(error)) from error
        if upstream.capabilities():
            return
        log.warn("no upstream answers", why=against)
        await upstream.clock.sleep(pause)
        pause = min(pause * 2, _PAUSE_S[1])


async def _blockchain_id(upstream: EvmUpstream, told: Binding) -> bytes:
    """The configured one; where the chain itself says one, it must be the same."""
    try:
        (answer,) = await upstream.answers([ContractCall(_WARP, _GET_BLOCKCHAIN_ID)], await upstream.head())
    except UpstreamFailure:
        return told.blockchain_id
    said = b"" if isinstance(answer, Reverted) or len(answer) != 32 else answer
    if said and told.blockchain_id and said != told.blockchain_id:
        raise StartRefused(
            f"chain {told.chain_id}: blockchain_id is {id_text(told.blockchain_id)}, the chain itself says "
            f"{id_text(said)}: correct icefall.toml or its rpc address"
        )
    return told.blockchain_id or said
