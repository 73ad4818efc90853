"""An answer that is kept is given again only where it would be made again byte for byte."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.api.data_naive import address_text
from tests.api.data_scene import InProcess
from tests.api.kept_scene import SetClock, StateOfNow, set_clock
from tests.api.made_chain import ANN, BEN, EVE, TOKEN, ZERO_ADDRESS, block, erc20, erc721, of, put, roll_back, served
from tests.awaited import awaited
from tests.waiting import LIMIT_S

from icefall.api.data.endpoints import CHAIN_DATA_ENDPOINTS
from icefall.api.http.answer_cache import KeptAnswers
from icefall.db.sqlite import SqliteReader
from icefall.evm.model import NativeRow
from icefall.evm.reading.lists.cached import SQL

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


def test_a_page_with_a_token_is_kept_for_the_minute_of_its_token(
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


def test_errors_are_not_kept(app: InProcess, tmp_path: Path) -> None:
    refused = f"{PAGE}?pageToken=x"
    assert [app.get(refused).status for _ in range(2)] == [400, 400]
    assert app.get(PAGE).status == 200


def test_what_is_kept_is_bounded() -> None:
    kept = KeptAnswers(size_max=100_000)
    mark = kept.mark(1)
    for number in range(1000):
        kept.keep((f"/{number}", ""), mark, b"a" * 1000)
        assert kept.find((f"/{number}", ""), mark) is not None
        assert kept._size <= 100_000
    assert kept._size == sum(len(key[0]) + len(one.body) + 400 for key, one in kept._answers.items()) > 40_000
    kept.keep(("/long", ""), mark, bytes(1 << 20))
    assert kept.find(("/long", ""), mark) is None
    assert kept.find(("/999", ""), kept.mark(2)) is None


def test_only_what_is_asked_for_again_is_kept() -> None:
    kept = KeptAnswers()
    assert [kept.is_repeated(("/a", "")) for _ in range(3)] == [False, True, True]
    assert not any(kept.is_repeated(("/a", str(number))) for number in range(10_000))
    assert not kept.is_repeated(("/a", ""))  # forgotten meanwhile
    assert len(kept._seen) <= 4096


@awaited
async def test_an_answer_is_waited_for_only_with_the_same_mark() -> None:
    kept, key = KeptAnswers(lambda: 1.0), ("/a", "")
    async with asyncio.timeout(LIMIT_S):
        old, mark = kept.mark(1), kept.mark(2)
        assert await kept.made_by_another(key, mark) is await kept.made_by_another(key, mark) is None  # no answer yet
        kept.keep(key, old, b"old", 1)
        assert await kept.made_by_another(key, mark) is None  # it makes it
        waiting = [asyncio.ensure_future(kept.made_by_another(key, mark)) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        kept.end_making(key, old)
        await asyncio.sleep(0)
        assert not waiting[1].done()
        kept.keep(key, mark, b"new", 1)
        assert [await one for one in waiting[1:]] == [b"new", b"new"]
        assert await kept.made_by_another(key, kept.mark(3)) is None
        left = asyncio.ensure_future(kept.made_by_another(key, kept.mark(3)))
        await asyncio.sleep(0)
        assert await kept.made_by_another(key, kept.mark(4)) is None  # makes a newer one
        assert await left is None
        kept.end_making(key, kept.mark(4))
        assert not kept._making


def test_what_was_read_from_state_is_not_kept(tmp_path: Path, clock: SetClock) -> None:
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


def test_an_owner_that_no_upstream_said_is_not_kept_as_missing(tmp_path: Path, clock: SetClock) -> None:
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
def test_what_the_store_alone_answers_is_kept(app: InProcess, statements_read: list[str], page: str) -> None:
    path = of(BEN if page else TOKEN, page)
    app.get(path)
    first, read = app.get(path), len(statements_read)
    assert (first.status, app.get(path).body) == (200, first.body)
    assert len(statements_read) == read


def test_what_depends_on_the_time_is_not_kept() -> None:
    """Prices of a transaction of the last day are those of now; health and progress change without a commit."""
    never = {row.operation for row in CHAIN_DATA_ENDPOINTS if "{chainId}" in row.path and not row.keeps_answers}
    assert {"getTransaction", "getDeploymentTransaction", "getChainInfo", "getIndexing", "reindexNft"} <= never
