"""An answer that is kept is given again only where it would be made again byte for byte."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from tests.api.data_scene import InProcess
from tests.api.made_chain import ANN, BEN, block, erc20, of, put, roll_back, served

from icefall.api.endpoints.chain_data import CHAIN_DATA_ENDPOINTS
from icefall.api.kept_answers import KeptAnswers
from icefall.db.sqlite import SqliteReader
from icefall.evm.reading.kept import SQL

PAGE = of(ANN, "/transactions:listErc20")


class SetClock:
    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SetClock:
    """Of what is kept."""
    made = SetClock()
    monkeypatch.setattr("icefall.api.app.KeptAnswers", partial(KeptAnswers, made))
    return made


@pytest.fixture
def app(tmp_path: Path, clock: SetClock) -> Iterator[InProcess]:
    put(tmp_path, [block(0), *[erc20(number, ANN, BEN, 5) for number in range(1, 13)]])
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


def test_a_page_with_a_token_is_kept_for_the_second_of_its_token(
    app: InProcess, clock: SetClock, pages_read: list[str]
) -> None:
    last = of(ANN, "/transactions:listErc20?pageSize=100")
    for _ in range(2):
        assert "nextPageToken" in app.get(PAGE).json()
        assert "nextPageToken" not in app.get(last).json()
    clock.now += 0.9
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
        kept.keep((f"/{number}", ""), mark, b"a" * 1000, has_token=False)
        assert kept.find((f"/{number}", ""), mark) is not None
        assert kept._size <= 100_000
    assert kept._size == sum(len(key[0]) + len(one.body) + 400 for key, one in kept._answers.items()) > 40_000
    kept.keep(("/long", ""), mark, bytes(1 << 20), has_token=False)
    assert kept.find(("/long", ""), mark) is None
    assert kept.find(("/999", ""), kept.mark(2)) is None


def test_only_what_is_asked_for_again_is_kept() -> None:
    kept = KeptAnswers()
    assert [kept.is_repeated(("/a", "")) for _ in range(3)] == [False, True, True]
    assert not any(kept.is_repeated(("/a", str(number))) for number in range(10_000))
    assert not kept.is_repeated(("/a", ""))  # forgotten meanwhile
    assert len(kept._seen) <= 4096


def test_only_answers_that_never_ask_an_upstream_are_kept() -> None:
    """Owners of NFTs and balances may be read from state."""
    kept = {row.operation for row in CHAIN_DATA_ENDPOINTS if row.keeps_answers}
    assert kept == {
        "getLatestBlocks",
        "listLatestTransactions",
        "listNativeTransactions",
        "listErc20Transactions",
        "listInternalTransactions",
    }
