"""A cached answer is given only where it would be made again byte for byte."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.api.cache_scene import SetClock, StateOfNow, set_clock
from tests.api.data_naive import address_text
from tests.api.data_scene import InProcess
from tests.api.made_chain import ANN, BEN, EVE, TOKEN, ZERO_ADDRESS, block, erc20, erc721, of, put, roll_back, served
from tests.awaited import awaited
from tests.waiting import LIMIT_S

from icefall.api.data.endpoints import CHAIN_DATA_ENDPOINTS
from icefall.api.http.answer_cache import AnswerCache, RestAnswer
from icefall.db.sqlite import SqliteReader
from icefall.evm.model import NativeRow
from icefall.evm.reading.lists.cached import SQL
from icefall.server.response import Response

PAGE = of(ANN, "/transactions:listErc20")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SetClock:
    return set_clock(monkeypatch)


@pytest.fixture
def app(tmp_path: Path, clock: SetClock) -> Iterator[InProcess]:
    blocks = [erc20(0, ZERO_ADDRESS, ANN, 100), *[erc20(number, ANN, BEN, 5) for number in range(1, 13)]]
    put(tmp_path, blocks, native=[NativeRow(BEN, 0, 6, 7)])
    with served(tmp_path) as made:
        assert made.get(of(BEN, "/transactions")).status == 200  # opens the store
        yield made


@pytest.fixture
def pages_read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A mark for every page of ERC-20 transfers that is read from the store."""
    marks: list[str] = []
    read = SqliteReader.read

    def counted(self: SqliteReader, statement: str, params: object = ()) -> list[tuple[object, ...]]:
        marks.extend(["read"] if statement == SQL.erc20_of else [])
        return read(self, statement, params)  # type: ignore[arg-type]

    monkeypatch.setattr(SqliteReader, "read", counted)
    return marks


@pytest.fixture
def statements_read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every statement that is read from the store."""
    statements: list[str] = []
    read = SqliteReader.read

    def noted(self: SqliteReader, statement: str, params: object = ()) -> list[tuple[object, ...]]:
        statements.append(statement)
        return read(self, statement, params)  # type: ignore[arg-type]

    monkeypatch.setattr(SqliteReader, "read", noted)
    return statements


def test_the_same_page_is_read_twice_at_most(app: InProcess, pages_read: list[str]) -> None:
    app.get(PAGE)
    first = app.get(PAGE)
    assert first.status == 200
    read = len(pages_read)
    assert read == 2
    again = app.get(PAGE)
    assert (again.body, again.headers) == (first.body, first.headers)
    assert len(pages_read) == read
    assert len(app.get(f"{PAGE}?pageSize=3").json()["transactions"]) == 3
    assert len(pages_read) > read


def test_it_is_made_again_after_every_commit(app: InProcess, tmp_path: Path) -> None:
    for _ in range(3):
        assert app.get(PAGE).json()["transactions"][0]["blockNumber"] == "12"
    put(tmp_path, [erc20(13, BEN, ANN, 1)])
    assert app.get(PAGE).json()["transactions"][0]["blockNumber"] == "13"
    roll_back(tmp_path, 11)
    assert app.get(PAGE).json()["transactions"][0]["blockNumber"] == "11"


def test_a_page_with_a_token_is_cached_for_the_minute_of_its_token(
    app: InProcess, clock: SetClock, pages_read: list[str]
) -> None:
    last = of(ANN, "/transactions:listErc20?pageSize=100")
    for _ in range(2):
        assert "nextPageToken" in app.get(PAGE).json()
        assert "nextPageToken" not in app.get(last).json()
    clock.now += 59.9
    read = len(pages_read)
    app.get(PAGE)
    app.get(last)
    assert len(pages_read) == read
    clock.now += 0.2
    app.get(PAGE)
    assert len(pages_read) == read + 1
    app.get(last)
    assert len(pages_read) == read + 1


def test_errors_are_not_cached(app: InProcess, tmp_path: Path) -> None:
    refused = f"{PAGE}?pageToken=x"
    assert [app.get(refused).status for _ in range(2)] == [400, 400]
    assert app.get(PAGE).status == 200


class Version(NamedTuple):
    """The version of a store, as the cache asks for it."""

    store: int
    is_of_server: bool = False
    without_state: bool = True

    def is_without_state(self) -> bool:
        return self.without_state


class Requests:
    """Requests to a cache, and how many answers were made for them. `wait` is set: a handler waits for it."""

    def __init__(self, cache: AnswerCache) -> None:
        self.cache = cache
        self.made = 0
        self.versions_read = 0
        self.wait: asyncio.Event | None = None

    async def ask(self, path: str, version: Version | None, body: bytes = b"x") -> bytes:
        async def read_version() -> Version | None:
            self.versions_read += 1
            return version

        async def make() -> RestAnswer:
            self.made += 1
            if self.wait is not None:
                await self.wait.wait()
            return RestAnswer(Response(200, [], body), 10)

        answer = await self.cache.around((path, ""), read_version, make)
        assert answer.units == (0 if answer.is_cached else 10)
        assert isinstance(answer.response.body, bytes)
        return answer.response.body


@awaited
async def test_the_cache_is_bounded() -> None:
    requests = Requests(AnswerCache(size_max=100_000))
    cache = requests.cache
    for number in range(1000):
        for _ in range(3):
            await requests.ask(f"/{number}", Version(1), b"a" * 1000)
        assert requests.made == 2 * (number + 1)
        assert cache._size <= 100_000
    assert cache._size == sum(len(key[0]) + 1000 + 400 for key in cache._answers) > 40_000
    before = requests.made
    for _ in range(3):
        await requests.ask("/long", Version(1), bytes(1 << 20))
    assert requests.made == before + 3, "an answer that is too long is not cached"
    await requests.ask("/999", Version(2))
    assert requests.made == before + 4, "nor given for another version"


@awaited
async def test_only_what_is_asked_for_again_is_cached() -> None:
    requests = Requests(AnswerCache())
    for expected in (0, 1, 2):
        await requests.ask("/a", None)
        assert requests.versions_read == expected, "the first request does not read the version of the store"
    for number in range(10_000):
        await requests.ask(f"/a/{number}", Version(1))
    assert requests.versions_read == 2
    await requests.ask("/a", Version(1))
    assert requests.versions_read == 2, "it was forgotten meanwhile"
    assert len(requests.cache._seen) <= 4096


@awaited
async def test_an_answer_is_waited_for_only_with_the_same_stamp() -> None:
    requests = Requests(AnswerCache(lambda: 1.0))
    old, new, newer = (Version(number, is_of_server=True) for number in (1, 2, 3))
    async with asyncio.timeout(LIMIT_S):
        requests.wait = asyncio.Event()
        begun = [asyncio.ensure_future(requests.ask("/a", old)) for _ in range(3)]
        await asyncio.sleep(0)
        assert requests.made == 3, "what was never cached is not waited for"
        requests.wait.set()
        await asyncio.gather(*begun)

        requests.wait = asyncio.Event()
        waiting = [asyncio.ensure_future(requests.ask("/a", new, b"new")) for _ in range(4)]
        await asyncio.sleep(0)
        assert requests.made == 4, "the first makes it, the others wait"
        waiting[1].cancel()
        other = asyncio.ensure_future(requests.ask("/a", newer, b"newer"))
        await asyncio.sleep(0)
        assert requests.made == 5, "another version is made at once"
        await asyncio.sleep(0)
        assert requests.made == 7, "and those who waited for an older one make it themselves"
        requests.wait.set()
        assert await asyncio.gather(waiting[0], *waiting[2:], other) == [b"new"] * 3 + [b"newer"]
        assert not requests.cache._inflight


@awaited
async def test_those_who_wait_get_the_answer_or_make_it_themselves() -> None:
    requests = Requests(AnswerCache(lambda: 1.0))
    async with asyncio.timeout(LIMIT_S):
        for _ in range(2):
            await requests.ask("/a", Version(1, is_of_server=True))
        for fails in (False, True):
            requests.made, requests.wait = 0, asyncio.Event()
            version = Version(3 if fails else 2, is_of_server=True)
            waiting = [asyncio.ensure_future(requests.ask("/a", version)) for _ in range(3)]
            await asyncio.sleep(0)
            assert requests.made == 1
            if fails:
                waiting.pop(0).cancel()
                await asyncio.sleep(0)
            requests.wait.set()
            assert await asyncio.gather(*waiting) == [b"x"] * len(waiting)
            assert requests.made == (3 if fails else 1)
        assert not requests.cache._inflight


def test_what_was_read_from_state_is_not_cached(tmp_path: Path, clock: SetClock) -> None:
    """The upstream may know more than the store: nothing says when its answer changes."""
    put(tmp_path, [block(0), erc20(1, ANN, BEN, 5), erc721(2, ANN, BEN)], audited=False)
    state = StateOfNow()
    with served(tmp_path, state=state) as app:
        native = of(EVE, "/balances:getNative")
        for balance in (5, 6, 7, 8):
            state.balance = balance
            assert app.get(native).json()["nativeTokenBalance"]["balance"] == str(balance)
        for page in ("/balances:listErc20", "/balances:listErc721", "/transactions:listErc721", "/transactions"):
            asked = [(app.get(of(BEN, page)).status, state.asked)[1] for _ in range(4)]
            assert asked == sorted(set(asked)), page


def test_an_owner_that_no_upstream_said_is_not_cached_as_missing(tmp_path: Path, clock: SetClock) -> None:
    put(tmp_path, [block(0), erc721(1, ANN, BEN)], audited=False)
    state = StateOfNow()
    state.answering = False
    page = of(BEN, "/transactions:listErc721")
    with served(tmp_path, state=state) as app:
        for _ in range(3):
            assert "ownerAddress" not in str(app.get(page).json())
        state.answering = True
        assert address_text(EVE) in str(app.get(page).json())


@pytest.mark.parametrize("page", ["/transactions", "/balances:listErc20", "/transactions:listErc721", ""])
def test_what_the_store_alone_answers_is_cached(app: InProcess, statements_read: list[str], page: str) -> None:
    path = of(BEN if page else TOKEN, page)
    app.get(path)
    first, read = app.get(path), len(statements_read)
    assert (first.status, app.get(path).body) == (200, first.body)
    assert len(statements_read) == read


def test_what_depends_on_the_time_is_not_cached() -> None:
    """Prices of a transaction of the last day are those of now; health and progress change without a commit."""
    never = {row.operation for row in CHAIN_DATA_ENDPOINTS if "{chainId}" in row.path and not row.cacheable}
    assert {"getTransaction", "getDeploymentTransaction", "getChainInfo", "getIndexing", "reindexNft"} <= never
