"""One or several replayed upstreams and what reads from them, on a clock that obeys."""

from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from tests.upstream.evm_replay import EvmReplay
from tests.upstream.fake_clock import FakeClock

from icefall.demo.recording import RecordedBlock
from icefall.upstream.client import Limits
from icefall.upstream.evm.block_parts import FetchedBlock
from icefall.upstream.evm.client import EvmClient
from icefall.upstream.evm.upstream import EvmUpstream

LIMITS = Limits(total_s=60, calls_at_once=4)
HASTY = Limits(total_s=0.5, calls_at_once=4)


class RecordingLog:
    """A log that remembers."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, dict[str, Any]]] = []

    def warn(self, message: str, **fields: Any) -> None:
        self.lines.append((message, fields))

    info = error = warn


@asynccontextmanager
async def client_of(replay: EvmReplay, limits: Limits = LIMITS, **options: Any) -> AsyncIterator[EvmClient]:
    async with replay:
        client = EvmClient(replay.url, clock=FakeClock(), chance=lambda: 1.0, limits=limits, **options)
        try:
            yield client
        finally:
            await client.close()


@asynccontextmanager
async def upstream_of(*replays: EvmReplay, limits: Limits = LIMITS, **options: Any) -> AsyncIterator[EvmUpstream]:
    async with AsyncExitStack() as stack:
        for replay in replays:
            await stack.enter_async_context(replay)
        chain_id = options.pop("chain_id", replays[0].chain_id)
        urls = [replay.url for replay in replays]
        upstream = EvmUpstream(
            urls, chain_id, RecordingLog(), clock=FakeClock(), chance=lambda: 1.0, limits=limits, **options
        )
        try:
            yield upstream
        finally:
            await upstream.close()


async def fetched(upstream: EvmUpstream, numbers: Iterable[int]) -> list[FetchedBlock]:
    return [block async for block in upstream.fetch(numbers)]


async def collect(upstream: EvmUpstream, numbers: Iterable[int], into: list[FetchedBlock]) -> None:
    """What came before a failure is kept."""
    async for block in upstream.fetch(numbers):
        into.append(block)


def slept(holder: EvmClient | EvmUpstream) -> list[float]:
    clock = holder.client.clock if isinstance(holder, EvmClient) else holder.clock
    assert isinstance(clock, FakeClock)
    return clock.slept


def parts(block: FetchedBlock) -> tuple[int, bytes, bytes, bytes | None, bytes | None]:
    return block.number, block.block, block.receipts, block.calls, block.diffs


def expected(block: RecordedBlock, *, omits_code: bool) -> tuple[int, bytes, bytes, bytes | None, bytes | None]:
    """What a fetch of a recorded block must come to, if its upstream can trace."""
    diffs = block.diffs_without_code if omits_code else block.diffs or b"[]"
    return block.number, block.block, block.receipts, block.calls or b"[]", diffs
