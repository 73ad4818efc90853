"""Transactions with thousands of transfers: answers are cut, everything is on further pages, other requests go on."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace
from tests.api.data_scene import InProcess
from tests.api.made_chain import ANN, BEN, ID, TOKEN, ZERO_ADDRESS, block, of, put, served
from tests.counted_calls import counted_calls
from tests.metrics.synthetic import address

from icefall.api.data.handlers import transactions
from icefall.api.data.render.transactions import whole_lists
from icefall.db.engine import Reader, Row
from icefall.evm.model import (
    BlockRows,
    Erc20TransferRow,
    Erc721TransferRow,
    Erc1155TransferRow,
    InternalTx,
    NftOwner,
)
from icefall.evm.reading.large_answers import AT_ONCE_MAX, LargeAnswers, Place
from icefall.evm.reading.transfers import PARTS_MAX

EACH, CALLS, LARGE, SMALL = 1500, 2500, 5, 6
ROWS_PER_TURN_MAX, CALLS_PER_TURN_MAX = 600, 20_000
KINDS = ("erc20Transfers", "erc721Transfers", "erc1155Transfers")


def large() -> BlockRows:
    """Logs of the three standards in turn, each transfer to an address of its own; the last is a batch of 100."""
    at = range(EACH)
    to = [address(10_000 + number) for number in at]
    batch = tuple(Erc1155TransferRow(0, 3 * EACH, inside, TOKEN, ANN, BEN, inside, 1) for inside in range(100))
    return replace(
        block(LARGE),
        erc20_transfers=tuple(Erc20TransferRow(0, 3 * n, TOKEN, ANN, to[n], 1) for n in at),
        erc721_transfers=tuple(Erc721TransferRow(0, 3 * n + 1, TOKEN, ANN, to[n], n) for n in at),
        nft_owners=tuple(NftOwner(TOKEN, n, to[n], ZERO_ADDRESS) for n in at),
        erc1155_transfers=(*(Erc1155TransferRow(0, 3 * n + 2, 0, TOKEN, ANN, to[n], n, 1) for n in at), *batch),
        internals=tuple(InternalTx(0, n + 1, "CALL", ANN, BEN, n, 1, 1, False) for n in range(CALLS)),
    )


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcess]:
    folder = tmp_path_factory.mktemp("large")
    put(folder, [*(block(number) for number in range(LARGE)), large(), *(block(SMALL + n) for n in range(5))])
    with served(folder) as app:
        yield app


@pytest.fixture(scope="module")
def tx(app: InProcess) -> str:
    (shown,) = app.result(f"/v1/chains/{ID}/blocks/{LARGE}/transactions")["transactions"]
    return f"/v1/chains/{ID}/transactions/{shown['txHash']}"


def transfers_in(shown: Any) -> list[Any]:
    return sorted((one for kind in KINDS for one in shown[kind]), key=lambda one: one["logIndex"])


def parts(app: InProcess, tx: str, size: int) -> tuple[list[Any], list[Any]]:
    transfers: list[Any] = []
    internals: list[Any] = []
    token = ""
    while True:
        page = app.result(f"{tx}/transfers?pageSize={size}" + (f"&pageToken={token}" if token else ""))
        assert 1 <= len(page["transfers"]) + len(page["internalTransactions"]) <= size
        assert not (internals and page["transfers"])
        transfers += page["transfers"]
        internals += page["internalTransactions"]
        token = page.get("nextPageToken", "")
        if not token:
            return transfers, internals


def test_a_large_transaction_is_truncated(app: InProcess, tx: str) -> None:
    shown = app.result(tx)
    assert shown["truncated"] is True
    assert [one["logIndex"] for one in transfers_in(shown)] == list(range(PARTS_MAX))
    assert [one["value"] for one in shown["internalTransactions"]] == [str(n) for n in range(PARTS_MAX)]


def test_a_usual_transaction_is_not(app: InProcess) -> None:
    (shown,) = app.result(f"/v1/chains/{ID}/blocks/{SMALL}/transactions")["transactions"]
    assert "truncated" not in app.result(f"/v1/chains/{ID}/transactions/{shown['txHash']}")


@pytest.mark.parametrize("size", [1, 1000])
def test_the_size_of_a_page_has_its_limits(size: int, app: InProcess, tx: str) -> None:
    assert app.get(f"{tx}/transfers?pageSize={size}").status == (200 if size == 1 else 400)


@pytest.mark.parametrize("size", [97, 100])
def test_all_parts_are_on_further_pages(size: int, app: InProcess, tx: str) -> None:
    transfers, internals = parts(app, tx, size)
    assert [one["logIndex"] for one in transfers] == [*range(3 * EACH), *[3 * EACH] * 100]
    assert [one["erc1155Token"]["tokenId"] for one in transfers[-100:]] == [str(n) for n in range(100)]
    assert [one["value"] for one in internals] == [str(n) for n in range(CALLS)]
    shown, located = transfers_in(app.result(tx)), ("blockNumber", "blockTimestamp", "blockHash", "txHash")
    without = [{key: value for key, value in one.items() if key not in located} for one in transfers]
    assert without[:PARTS_MAX] == shown


def test_a_transaction_that_is_not_there(app: InProcess) -> None:
    assert app.get(f"/v1/chains/{ID}/transactions/0x{'00' * 32}/transfers").status == 404


@pytest.mark.parametrize("order", ["asc", "desc"])
def test_pages_of_an_address_are_shortened_to_the_large_one(order: str, app: InProcess) -> None:
    found: list[Any] = []
    token = ""
    while True:
        ask = of(ANN, f"/transactions?pageSize=100&sortOrder={order}") + (f"&pageToken={token}" if token else "")
        page = app.result(ask)
        assert sum(len(transfers_in(one)) for one in page["transactions"]) <= PARTS_MAX
        found += page["transactions"]
        token = page.get("nextPageToken", "")
        if not token:
            break
    numbers = [int(one["nativeTransaction"]["blockNumber"]) for one in found]
    assert numbers == sorted(numbers, reverse=order == "desc")
    assert set(numbers) >= set(range(1, SMALL + 5))
    assert [n for n, one in zip(numbers, found, strict=True) if one.get("truncated")] == [LARGE]
    (cut,) = (one for one in found if "truncated" in one)
    assert len(transfers_in(cut)) == PARTS_MAX


def test_a_worker_makes_few_large_answers_at_once(app: InProcess, tx: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each holds its rows until it is encoded."""
    running, most, made = 0, 0, whole_lists

    async def counted(*arguments: Any) -> Any:
        nonlocal running, most
        running += 1
        most = max(most, running)
        try:
            return await made(*arguments)
        finally:
            running -= 1

    async def ask_all() -> list[int]:
        return [reply.status for reply in await asyncio.gather(*(app.ask(tx) for _ in range(3 * AT_ONCE_MAX)))]

    monkeypatch.setattr(transactions, "whole_lists", counted)
    assert app.run(ask_all()) == [200] * 3 * AT_ONCE_MAX
    assert most == AT_ONCE_MAX


def test_other_transactions_do_not_wait_for_large_ones(
    app: InProcess, tx: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (shown,) = app.result(f"/v1/chains/{ID}/blocks/{SMALL}/transactions")["transactions"]

    async def taken(_: Place) -> None:
        await asyncio.Event().wait()

    async def ask_both() -> None:
        large = asyncio.ensure_future(app.ask(tx))
        assert (await app.ask(f"/v1/chains/{ID}/transactions/{shown['txHash']}")).status == 200
        assert not large.done()
        large.cancel()

    monkeypatch.setattr(Place, "take", taken)
    app.run(ask_both())


def test_a_place_is_given_back_when_its_request_is_cancelled() -> None:
    async def scene() -> None:
        answers, begun = LargeAnswers(1), asyncio.Event()

        async def make() -> None:
            async with answers.place() as place:
                await place.take()
                await place.take()
                begun.set()
                await asyncio.Event().wait()

        first = asyncio.ensure_future(make())
        await begun.wait()
        begun.clear()
        second = asyncio.ensure_future(make())
        first.cancel()
        await begun.wait()
        second.cancel()

    asyncio.run(scene())


@pytest.mark.parametrize("what", ["getTransaction", "listTransactions"])
def test_no_request_keeps_the_loop_for_long(
    what: str, app: InProcess, tx: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted, not timed: a slow machine does the same work. 20,000 calls or 600 rows are about 10 ms when idle."""
    target = tx if what == "getTransaction" else of(ANN, "/transactions?pageSize=1&startBlock=5&endBlock=6")
    read = 0
    reader = type(app.reader)
    rows = reader.rows

    async def counted_rows(self: Reader, *query: Any) -> list[Row]:
        nonlocal read
        found = await rows(self, *query)
        read += len(found)
        return found

    async def largest_turn() -> tuple[int, int]:
        nonlocal read
        request = asyncio.ensure_future(app.ask(target))
        calls_max = rows_max = 0
        with counted_calls() as count:
            while not request.done():
                count.calls = read = 0
                await asyncio.sleep(0)
                calls_max, rows_max = max(calls_max, count.calls), max(rows_max, read)
        assert (await request).json().get("truncated", True)
        return calls_max, rows_max

    monkeypatch.setattr(reader, "rows", counted_rows)
    calls_max, rows_max = app.run(largest_turn())
    assert rows_max <= ROWS_PER_TURN_MAX
    assert calls_max <= CALLS_PER_TURN_MAX
