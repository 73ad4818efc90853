"""Blocks and transactions of all chains in one list, compared with what the recordings contain."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.api.data_naive import naive
from tests.api.data_scene import InProcess, put_chains, walked

CHAINS = ("geth-1", "anvil-1", "berlin-1")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcess]:
    folder = tmp_path_factory.mktemp("all")
    put_chains(folder, tmp_path_factory, dict.fromkeys(CHAINS, "http://127.0.0.1:9"))
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
