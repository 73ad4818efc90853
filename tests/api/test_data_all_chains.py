"""Blocks and transactions of all chains in one list, compared with what the recordings contain."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.api.data_naive import naive
from tests.api.data_scene import InProcess, put_chains, walked
from tests.store.counted_statements import StatementCount

from icefall.api.data.schema.chains import AllBlocksParams
from icefall.api.data.schema.transactions import AllTxsParams
from icefall.api.http.paging import pack_cursor
from icefall.evm.encoding import position_of

CHAINS = ("geth-1", "anvil-1", "berlin-1")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcess]:
    folder = tmp_path_factory.mktemp("all")
    put_chains(folder, dict.fromkeys(CHAINS, "http://127.0.0.1:9"))
    with InProcess(folder, dict.fromkeys(CHAINS, "")) as app:
        yield app


def expected_blocks() -> list[Any]:
    """Newest first, at equal times by chain."""
    found = []
    for order, chain in enumerate(CHAINS):
        total = 0
        for at, one in enumerate(naive(chain).blocks):
            total += len(one.rows.txs)
            shown = naive(chain).block(at, total)
            found.append((-shown["blockTimestamp"], order, -int(shown["blockNumber"]), shown))
    return [one[-1] for one in sorted(found, key=lambda one: one[:3])]


def expected_txs(status: str = "") -> list[Any]:
    found = []
    for order, chain in enumerate(CHAINS):
        for tx in naive(chain).txs:
            shown = tx["native"]
            place = (-shown["blockTimestamp"], order, -int(shown["blockNumber"]), -shown["blockIndex"])
            found.append((*place, shown))
    listed = [one[-1] for one in sorted(found, key=lambda one: one[:4])]
    return [one for one in listed if status in ("", one["txStatus"])]


@pytest.mark.parametrize("path", ["/v1/blocks", "/v1/chains/allBlocks"])
@pytest.mark.parametrize("size", [7, 100])
def test_blocks_of_all_chains(path: str, size: int, served: InProcess) -> None:
    assert walked(served, path, "blocks", size) == expected_blocks()


@pytest.mark.parametrize("path", ["/v1/transactions", "/v1/chains/allTransactions"])
def test_transactions_of_all_chains(path: str, served: InProcess) -> None:
    assert walked(served, path, "transactions", 13) == expected_txs()


@pytest.mark.parametrize(("status", "shown"), [("failed", "0"), ("success", "1")])
def test_transactions_of_a_status(status: str, shown: str, served: InProcess) -> None:
    found = walked(served, f"/v1/transactions?status={status}", "transactions", 5)
    assert found == expected_txs(shown)
    assert found


def test_a_rare_status_is_found_page_by_page(served: InProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("icefall.evm.reading.chain.SEARCH_MAX", 10)
    assert walked(served, "/v1/transactions?status=failed", "transactions", 3) == expected_txs("0")


@pytest.mark.parametrize("path", ["/v1/blocks", "/v1/transactions"])
def test_every_page_costs_as_many_statements_as_the_first(
    path: str, served: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The token says where each chain goes on, so nothing is searched for."""
    served.result(path)
    count, taken, token = StatementCount(monkeypatch), [], ""
    while True:
        before = count.total
        page = served.result(f"{path}?pageSize=3{token}")
        taken.append(count.total - before)
        if not page.get("nextPageToken"):
            break
        token = f"&pageToken={page['nextPageToken']}"
    assert len(taken) > 10
    assert max(taken[1:]) <= taken[0] + (0 if path == "/v1/blocks" else 3), taken  # a chain's names, once they are due


@pytest.mark.parametrize("chains_max", [1, 2])
def test_more_chains_than_a_token_names(chains_max: int, served: InProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("icefall.api.data.handlers.merging._CHAINS_MAX", chains_max)
    assert walked(served, "/v1/blocks", "blocks", 7) == expected_blocks()
    assert walked(served, "/v1/transactions", "transactions", 7) == expected_txs()
    assert walked(served, "/v1/transactions?status=failed", "transactions", 3) == expected_txs("0")


def test_tokens_of_earlier_releases_stay_valid(served: InProcess) -> None:
    """They held the time, the chain and the position of the last item only."""
    blocks, txs = expected_blocks(), expected_txs()
    for at in range(0, len(blocks) - 1, 17):
        cursor = pack_cursor(blocks[at]["blockTimestamp"], int(blocks[at]["chainId"]), int(blocks[at]["blockNumber"]))
        token = served.paging.token("allBlocks", AllBlocksParams(), cursor)
        assert served.result(f"/v1/blocks?pageToken={token}")["blocks"] == blocks[at + 1 : at + 11]
    for at in range(0, len(txs) - 1, 17):
        position = position_of(int(txs[at]["blockNumber"]), txs[at]["blockIndex"])
        cursor = pack_cursor(txs[at]["blockTimestamp"], int(txs[at]["chainId"]), position)
        token = served.paging.token("allTransactions", AllTxsParams(), cursor)
        assert served.result(f"/v1/transactions?pageToken={token}")["transactions"] == txs[at + 1 : at + 11]


def test_a_network_is_asked_for(served: InProcess) -> None:
    assert served.result("/v1/blocks?network=testnet")["blocks"] == []  # none of these chains is a test network
    assert len(served.result("/v1/blocks?network=mainnet")["blocks"]) == 10


def test_the_old_path_of_the_chains_of_an_address(served: InProcess) -> None:
    address = naive("anvil-1").txs[0]["native"]["from"]["address"]
    here = served.result(f"/v1/chains/address/{address}")
    assert here == served.result(f"/v1/address/{address}/chains")
    assert here["indexedChains"]


@pytest.mark.parametrize("chain", CHAINS)
def test_a_block_by_time(chain: str, served: InProcess) -> None:
    blocks = [one.rows.block for one in naive(chain).blocks]
    times = sorted({one.time + change for one in blocks[1:] for change in (-1, 0, 1)})
    for time in [0, *times[:: max(1, len(times) // 60)], times[-1]]:
        before = [one for one in blocks if one.time <= time]
        after = [one for one in blocks if one.time >= time]
        for closest, wanted in (("before", before[-1:]), ("after", after[:1])):
            reply = served.get(f"/v1/chains/{chain}/blocks:getByTime?timestamp={time}&closest={closest}")
            assert reply.status == (200 if wanted else 404), reply
            if wanted:
                assert reply.json()["blockNumber"] == str(wanted[0].number)
