"""Balances that must be read from contracts: a request makes at most 200 calls, further pages the rest."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from tests.api.data_scene import InProcess
from tests.api.made_chain import BEN, block, minted, of, put, served

from icefall.api.data.handlers.balances import charged
from icefall.api.http.row import Charged
from icefall.evm.reading.balances import CALLS_MAX, CallBudget
from icefall.upstream.evm.state import At, ContractCall

TOKENS = 450


class CountedState:
    """Every balance is 5, and BEN owns every NFT."""

    def __init__(self) -> None:
        self.calls = 0

    async def balances(self, addresses: Sequence[bytes], _: At) -> list[int]:
        return [5] * len(addresses)

    async def answers(self, calls: Sequence[ContractCall], _: At) -> list[Any]:
        self.calls += len(calls)
        return [
            (int.from_bytes(BEN, "big") if one.data[:4].hex() == "6352211e" else 5).to_bytes(32, "big") for one in calls
        ]


@pytest.fixture(scope="module")
def state() -> CountedState:
    return CountedState()


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory, state: CountedState) -> Iterator[InProcess]:
    folder = tmp_path_factory.mktemp("calls")
    put(folder, [block(0), minted(block(1), BEN, TOKENS)], audited=False)
    with served(folder, state=state) as app:
        yield app


LISTS = {
    "listErc20": ("erc20TokenBalances", TOKENS),
    "listErc20?filterSpamTokens=false": ("erc20TokenBalances", TOKENS),
    "listErc721": ("erc721TokenBalances", TOKENS),
    "listErc1155": ("erc1155TokenBalances", TOKENS),
    "listCollectibles": ("collectibleBalances", 2 * TOKENS),
}


@pytest.mark.parametrize("size", [500, 150])
@pytest.mark.parametrize("name", LISTS)
def test_a_request_makes_200_calls_at_most(name: str, size: int, app: InProcess, state: CountedState) -> None:
    key, count = LISTS[name]
    target = of(BEN, f"/balances:{name}{'&' if '?' in name else '?'}pageSize={size}")
    found: list[Any] = []
    token, most = "", 0
    while True:
        state.calls = 0
        page = app.result(target + (f"&pageToken={token}" if token else ""))
        most = max(most, state.calls)
        found += page[key]
        token = page.get("nextPageToken", "")
        if not token:
            break
    assert 0 < most <= CALLS_MAX
    shown = [(one["ercType"], one["address"], one.get("tokenId")) for one in found]
    assert len(shown) == len(set(shown)) == count


def test_owners_in_a_list_of_transfers_are_left_out_beyond_the_limit(app: InProcess, state: CountedState) -> None:
    (shown,) = app.result("/v1/chains/berlin-1/blocks/1/transactions")["transactions"]
    state.calls = 0
    transaction = app.result(f"/v1/chains/berlin-1/transactions/{shown['txHash']}")
    assert len(transaction["erc721Transfers"]) == TOKENS
    assert state.calls == CALLS_MAX


def test_20_calls_cost_a_small_weight() -> None:
    budget = CallBudget()
    for calls, units in ((19, 0), (20, 10), (39, 10), (40, 20), (CALLS_MAX, 100)):
        budget.left = CALLS_MAX - calls
        assert charged("result", budget) == (Charged("result", units) if units else "result")
