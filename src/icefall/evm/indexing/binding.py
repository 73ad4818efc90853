"""Binds a store to its chain: stores what identifies it, and refuses another chain later."""

from collections.abc import Callable

import msgspec

from icefall.db.disk import DiskLow
from icefall.errors import StartRefused
from icefall.evm.storing.store import ChainStore
from icefall.observe.log import Log
from icefall.upstream.client import UpstreamFailure
from icefall.upstream.evm.errors import Reverted
from icefall.upstream.evm.state import ContractCall
from icefall.upstream.evm.upstream import EvmUpstream
from icefall.wire.ids import id_text

_WARP = bytes.fromhex("0200000000000000000000000000000000000005")
_GET_BLOCKCHAIN_ID = bytes.fromhex("4213cf78")
_PAUSE_S = (1.0, 60.0)


class Binding(msgspec.Struct, frozen=True):
    """The configured identity of a chain. `blockchain_id` empty: it is read from the chain."""

    chain_id: str
    blockchain_id: bytes
    first_block: int
    traces: bool = True


class Contradiction(Exception):
    """The upstream and the configuration do not agree, at the moment."""


async def bind(
    store: ChainStore, upstream: EvmUpstream, binding: Binding, log: Log, report: Callable[[str], None]
) -> bytes | None:
    """Bind the store, and return the blockchain ID that the chain reports of itself. Waits until an upstream answers
    what is configured, and until there is room on the disk; `report` gets what it waits for, and an empty text in the
    end.

    StartRefused where configuration and store contradict each other.
    """
    _check_stored(store, binding)
    pause, reported = _PAUSE_S[0], ""
    while True:
        try:
            reported_by_chain = await _bind_once(store, upstream, binding)
        except (UpstreamFailure, Contradiction, DiskLow) as error:
            if str(error) != reported:
                log.warn("the chain cannot be indexed yet, retrying", reason=str(error))
            reported = str(error)
            report(reported)
            await upstream.clock.sleep(pause)
            pause = min(pause * 2, _PAUSE_S[1])
        else:
            report("")
            return reported_by_chain


async def _bind_once(store: ChainStore, upstream: EvmUpstream, binding: Binding) -> bytes | None:
    problems = await upstream.probe_all()
    if not upstream.capabilities():
        raise Contradiction("no upstream answers: " + "; ".join(problems.values()))
    reported = await reported_id(upstream)
    if reported and binding.blockchain_id and reported != binding.blockchain_id:
        raise Contradiction(
            f"chain {binding.chain_id}: blockchain_id is {id_text(binding.blockchain_id)}, the chain itself reports "
            f"{id_text(reported)}: correct icefall.toml or its rpc address"
        )
    await store.put_meta({"chain_id": binding.chain_id, "first_block": str(binding.first_block)})
    return reported


def _check_stored(store: ChainStore, binding: Binding) -> None:
    if not binding.traces and "1" in (store.meta("has_calls"), store.meta("has_diffs")):
        raise StartRefused(
            f"chain {binding.chain_id}: this index has traces: without them its balances would stop being right. "
            "Remove traces = false, or index into another --data-dir"
        )
    stored = store.meta("first_block")
    if stored is not None and store.tip() is not None and int(stored) != binding.first_block:
        raise StartRefused(
            f"chain {binding.chain_id}: this index begins with block {stored}, not with {binding.first_block}: "
            "balances and totals follow from there. Keep start_block, or index into another --data-dir"
        )


async def reported_id(upstream: EvmUpstream) -> bytes | None:
    """The blockchain ID that a chain reports of itself: empty if it has none, None if it does not answer."""
    try:
        (answer,) = await upstream.answers([ContractCall(_WARP, _GET_BLOCKCHAIN_ID)], await upstream.head())
    except UpstreamFailure:
        return None
    return b"" if isinstance(answer, Reverted) or len(answer) != 32 else answer
