"""How far the index of a chain is, and what its upstreams are doing."""

import time

from msgspec import UNSET, UnsetType

from icefall.api.schema.explorer import IndexingParams, IndexingResult, UpstreamResult
from icefall.evm.following.health import chain_health
from icefall.evm.following.status import ChainStatus, decode_status
from icefall.evm.reading.directory import ChainDirectory, EvmChain


async def indexing(params: IndexingParams, chains: ChainDirectory) -> IndexingResult:
    chain = await chains.find(params.chain_id)
    health = await chain_health(chain.chain, time.time())
    text = await chain.chain.meta("status")
    status = decode_status(text) if text is not None else ChainStatus(0.0, False)
    lowest, tip = await chain.chain.lowest(), await chain.chain.tip()
    last = tip.number if tip is not None else None
    return IndexingResult(
        chain_id=chain.info.id,
        first_block=_number(lowest),
        last_block=_number(last),
        head_block=_number(status.head),
        is_synced=health.synced,
        is_running=not status.stopped and health.is_fresh,
        blocks_per_second=status.blocks_per_s if health.is_fresh else 0.0,
        eta_seconds=_eta_s(status, last) if health.is_fresh else UNSET,
        audited_to_block=_number(status.audited_to if status.audited_to >= 0 else None),
        logs_stored_from_block=await _stored_from(chain, "logs_from"),
        calls_stored_from_block=await _stored_from(chain, "calls_from"),
        problem=health.problem or UNSET,
        limitations=list(status.degraded),
        upstreams=[
            UpstreamResult(name=one.name, state=one.state, problem=one.problem or UNSET) for one in status.upstreams
        ],
    )


def _eta_s(status: ChainStatus, last: int | None) -> int | UnsetType:
    """Until the target is stored; absent while nothing is stored."""
    if status.target is None or status.blocks_per_s <= 0:
        return 0 if status.synced else UNSET
    return round(max(0, status.target - (-1 if last is None else last)) / status.blocks_per_s)


async def _stored_from(chain: EvmChain, name: str) -> str | UnsetType:
    return await chain.chain.meta(name) or UNSET


def _number(number: int | None) -> str | UnsetType:
    return UNSET if number is None else str(number)
