"""A chain's store with tokens and NFTs, a fake clock, and rounds of the enrichment loops over a replayed upstream."""

from collections.abc import Awaitable, Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.store.opened import open_store
from tests.upstream.evm_replay import EvmReplay
from tests.upstream.evm_scene import RecordingLog, upstream_of
from tests.upstream.fake_clock import FakeClock

from icefall.db.engine import Reader
from icefall.evm.encoding import pack_uint
from icefall.evm.enriching.guarded_fetcher import GuardedFetcher
from icefall.evm.enriching.loops import EnrichSettings, rounds_of
from icefall.evm.enriching.nft_outcomes import EnrichCounts
from icefall.evm.enriching.reader import EnrichReader
from icefall.evm.reading.lists.joined import JoinedLists
from icefall.upstream.client import Retry
from icefall.upstream.evm.upstream import EvmUpstream

Round = Callable[[], Awaitable[bool]]


class Scene:
    """A second scene with the same path is a restart."""

    def __init__(self, path: Path) -> None:
        self.store = open_store(path, "icefall.evm")
        self.counts = EnrichCounts()
        self.log = RecordingLog()
        self.clock = FakeClock()
        self.now = 1_800_000_000.0

    def wall(self) -> float:
        return self.now

    async def add_tokens(self, addresses: Iterable[bytes], standards: int = 1) -> None:
        """Insert rows as the block writer does."""
        await self.store.write(
            lambda tx: [
                tx.run(
                    "insert into token (token, first_block, standards) values (?, 1, ?)",
                    (_address_id(tx, address), standards),
                )
                for address in addresses
            ]
        )

    async def add_nfts(self, address: bytes, token_ids: Iterable[int], standards: int = 2) -> None:
        if not self.rows("select 1 from token t join address a on a.id = t.token where a.address = ?", address):
            await self.add_tokens([address], standards)
        await self.store.write(
            lambda tx: [
                tx.run(
                    "insert into nft (token, token_id, first_block) values (?, ?, 1)",
                    (_address_id(tx, address), pack_uint(token_id)),
                )
                for token_id in token_ids
            ]
        )

    async def run(self, statement: str, *params: Any) -> None:
        await self.store.write(lambda tx: tx.run(statement, params))

    def rows(self, statement: str, *params: Any) -> list[tuple[Any, ...]]:
        return self.store.read(statement, params)

    def nft(self, token_id: int, columns: str = "status") -> Any:
        row = self.rows(f"select {columns} from nft where token_id = ?", pack_uint(token_id))[0]
        return row[0] if len(row) == 1 else row

    def rounds(
        self, upstream: EvmUpstream, settings: EnrichSettings | None = None, guard: GuardedFetcher | None = None
    ) -> dict[str, Round]:
        return rounds_of(
            self.store,
            upstream,
            settings or EnrichSettings(),
            self.log,
            counts=self.counts,
            clock=self.clock,
            wall=self.wall,
            guard=guard,
        )


async def with_upstream(
    path: Path, replay: EvmReplay, work: Callable[[Scene, EvmUpstream], Awaitable[None]], timeout_s: float = 60.0
) -> None:
    scene = Scene(path)
    with closing(scene.store):
        async with upstream_of(replay, retry=Retry(attempts=2), timeout_s=timeout_s) as upstream:
            await work(scene, upstream)


async def until_idle(one_round: Round, most: int = 1000) -> int:
    """How many rounds had something to do."""
    for count in range(most):
        if not await one_round():
            return count
    raise AssertionError(f"still busy after {most} rounds")


def _address_id(tx: Any, address: bytes) -> int:
    rows = tx.rows("select id from address where address = ?", (address,))
    if not rows:
        ((number,),) = tx.rows("select coalesce(max(id), 0) + 1 from address")
        tx.run("insert into address (id, address) values (?, ?)", (number, address))
        rows = tx.rows("select id from address where address = ?", (address,))
    return int(rows[0][0])


def enriched(store: Reader) -> EnrichReader:
    """A reader of what the loops have stored."""
    return EnrichReader(store, JoinedLists(store).token_details)
