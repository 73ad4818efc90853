"""Recorded chains, indexed once for a whole run of tests, with readers and a recorded state."""

import asyncio
import atexit
import shutil
import tempfile
from collections.abc import Callable, Coroutine, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from tests.evm.digest import digests
from tests.evm.indexed import indexing
from tests.made_once import made_once
from tests.store.opened import on_postgres, open_reader
from tests.upstream.evm_recording import recorded_blocks, recorded_state
from tests.upstream.evm_replay import EvmReplay

from icefall.db.engine import BlockingReader
from icefall.demo.recording import RecordedState, Reverts, answer
from icefall.evm.indexing.follower import BlockRange
from icefall.evm.reading.balances import BalanceReader
from icefall.evm.reading.chain import ChainReader
from icefall.evm.reading.directory import lists_of
from icefall.evm.reading.lists.rows import AddressLists
from icefall.evm.reading.model import PageRange
from icefall.evm.reading.transfers import TransferReader
from icefall.upstream.evm.errors import Reverted
from icefall.upstream.evm.state import At, ContractCall

T = TypeVar("T")
SIZES = (1, 3, 10, 100)


def now(answer: Coroutine[Any, Any, T]) -> T:
    """Of a reader that never waits, but may let others run: without a loop, which would cost more than the reading."""
    while True:
        try:
            waits_for = answer.send(None)
        except StopIteration as done:
            value: T = done.value
            return value
        assert waits_for is None, "it waited"


class RecordedStateReader:
    """State from a recording, at once. By hash only for blocks the chain has."""

    def __init__(self, state: RecordedState, numbers: dict[bytes, int]) -> None:
        self._state = state
        self._numbers = numbers
        self._answers: dict[tuple[ContractCall, int], bytes | Reverted] = {}
        self.calls = 0

    def _number(self, at: At) -> int:
        assert isinstance(at, bytes), "a stored block is read by its hash"
        return self._numbers[at]

    async def balances(self, addresses: Sequence[bytes], at: At) -> list[int]:
        self.calls += len(addresses)
        number = self._number(at)
        return [int(self._state.at(number, "native", "0x" + address.hex()) or 0) for address in addresses]

    async def answers(self, calls: Sequence[ContractCall], at: At) -> list[bytes | Reverted]:
        self.calls += len(calls)
        number = self._number(at)
        return [self._answer(call, number) for call in calls]

    def _answer(self, call: ContractCall, number: int) -> bytes | Reverted:
        key = call, number
        if key not in self._answers:
            try:
                shown = answer(self._state, {"to": "0x" + call.to.hex(), "data": "0x" + call.data.hex()}, number)
                self._answers[key] = bytes.fromhex(shown[2:])
            except Reverts as reverts:
                self._answers[key] = Reverted(str(reverts))
        return self._answers[key]


class Scene(NamedTuple):
    path: Path
    reader: BlockingReader
    lists: AddressLists
    chain: ChainReader
    transfers: TransferReader
    balances: BalanceReader
    state: RecordedStateReader


def scene_of(path: Path, state: RecordedStateReader) -> Scene:
    reader = open_reader(path)
    chain, transfers, balances = ChainReader(reader), TransferReader(reader), BalanceReader(reader, state)
    return Scene(path, reader, lists_of(reader), chain, transfers, balances, state)


async def index(path: Path, replay: EvmReplay, last: int | None = None, first: int = 0) -> None:
    blocks = BlockRange(first, replay.head if last is None else last)
    async with indexing(path, replay, blocks=blocks) as scene:
        await scene.follower.run()


@cache
def _folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="icefall-reading-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@cache
def indexed(chain: str, engine: str = "sqlite") -> Scene:
    """The whole chain. No test may change it: see `copied`."""

    def make(path: Path) -> None:
        asyncio.run(index(path, EvmReplay(chain)))

    path = _folder() / f"{chain}.{engine}"
    if on_postgres(path):  # each test process has a server of its own
        make(path)
    else:
        path = made_once(f"{chain}.{engine}", make)
    numbers = {bytes.fromhex(block.hash[2:]): block.number for block in recorded_blocks(chain).values()}
    return scene_of(path, RecordedStateReader(recorded_state(chain), numbers))


@cache
def expected(chain: str) -> dict[str, str]:
    """The digests of the whole chain, indexed in one go."""
    with ThreadPoolExecutor(1) as outside:  # of the loop that a test runs in
        return outside.submit(lambda: digests(indexed(chain).path)).result()


def copied(chain: str, path: Path) -> Path:
    """A store of one's own."""
    shutil.copy(indexed(chain).path, path)
    return path


def known_lines(state: RecordedState, first: int, last: int) -> list[Any]:
    """The recorded state of some blocks, each line whole."""
    lines = []
    for number in range(first, last + 1):
        line: dict[str, Any] = {"number": number, "native": {}, "erc20": {}, "erc721": {}, "erc1155": {}}
        for path, history in state.values.items():
            value = history.at(number)
            inner = line
            for key in path[:-1]:
                inner = inner.setdefault(key, {})
            if value is not None or path[0] == "erc721":
                inner[path[-1]] = value
        lines.append(line)
    return lines


Lister = Callable[[PageRange, int], Coroutine[Any, Any, Sequence[Any]]]


def paged(lister: Lister, span: PageRange, size: int) -> list[Any]:
    """All pages, one after the other, each read with one row more, as handlers do."""
    found: list[Any] = []
    before = span.before
    while True:
        rows = now(lister(PageRange(span.start_block, span.end_block, before), size + 1))
        assert len(rows) <= size + 1
        found += rows[:size]
        if len(rows) <= size:
            return found
        before = rows[size - 1].cursor


def flat(row: Any, names: Iterable[str] = ()) -> tuple[Any, ...]:
    """A row as a tuple: its location first, then its fields, without interned IDs."""
    location = row.location
    fields = names or [name for name in row.__struct_fields__ if name != "location" and not name.endswith("_ref")]
    return (
        location.block_number, location.block_hash, location.time, location.tx_hash,
        *(getattr(row, name) for name in fields),
    )  # fmt: skip
