"""A contract that was destroyed and deployed again as another standard is shown as what it is now."""

from pathlib import Path

import pytest
from tests.api.data_naive import address_text
from tests.api.data_scene import InProcess, walked
from tests.api.made_chain import (
    ANN,
    BEN,
    EVE,
    FACTORY,
    ID,
    TOKEN,
    ZERO_ADDRESS,
    block,
    deployed,
    erc20,
    erc721,
    of,
    put,
    roll_back,
    served,
)
from tests.metrics.synthetic import address

OTHER = address(9)
BLOCKS = [
    block(0),
    deployed(1, sender=ANN),
    erc20(2, ZERO_ADDRESS, BEN, 50),
    deployed(3, OTHER, sender=ANN),
    deployed(4, sender=EVE),
    erc721(5, ZERO_ADDRESS, BEN, 7),
]
# What TOKEN is after each block: its standard, and the block that deployed it.
EXPECTED = [None, ("UNKNOWN", 1), ("ERC-20", 1), ("ERC-20", 1), ("UNKNOWN", 4), ("ERC-721", 4)]


def contract(app: InProcess) -> tuple[str, str] | None:
    reply = app.get(of(TOKEN))
    if reply.status == 404:
        return None
    found = reply.json()
    return found["ercType"], found["deploymentDetails"]["txHash"]


def expected_after(number: int) -> tuple[str, str] | None:
    known = EXPECTED[number]
    return known and (known[0], "0x" + BLOCKS[known[1]].txs[0].tx_hash.hex())


def test_one_block_at_a_time_and_back(tmp_path: Path) -> None:
    with served(tmp_path) as app:
        for number, rows in enumerate(BLOCKS):
            put(tmp_path, [rows])
            assert contract(app) == expected_after(number), number
        for ancestor in (4, 3, 2, 1, 0):
            roll_back(tmp_path, ancestor)
            assert contract(app) == expected_after(ancestor), ancestor
        put(tmp_path, BLOCKS[1:3], BLOCKS[3:])
        assert contract(app) == expected_after(5)


@pytest.mark.parametrize("cut", range(1, 6))
def test_any_batches_give_the_same(cut: int, tmp_path: Path) -> None:
    put(tmp_path, BLOCKS[:cut], BLOCKS[cut:])
    with served(tmp_path) as app:
        assert contract(app) == expected_after(5)
        moved = walked(app, f"/v1/chains/{ID}/tokens/{address_text(TOKEN)}/transfers", "transfers")
        kinds = [next(one[key]["ercType"] for key in ("erc20Token", "erc721Token") if key in one) for one in moved]
        assert kinds == ["ERC-721", "ERC-20"], "transfers stay what they were"


def deployments(app: InProcess, creator: bytes) -> list[tuple[str, str]]:
    lists = [
        [
            (one["address"], one["deploymentDetails"]["txHash"])
            for one in walked(app, f"/v1/chains/{ID}/contracts/{address_text(creator)}/deployments", "contracts", size)
        ]
        for size in (1, 2, 100)
    ]
    assert lists[0] == lists[1] == lists[2]
    return lists[0]


def test_deployments_list_each_address_once(tmp_path: Path) -> None:
    """With its latest creation, under those who made that one."""
    at = {number: (address_text(contract), "0x" + BLOCKS[number].txs[0].tx_hash.hex())
          for number, contract in ((1, TOKEN), (3, OTHER), (4, TOKEN))}  # fmt: skip
    put(tmp_path, BLOCKS)
    with served(tmp_path) as app:
        assert deployments(app, FACTORY) == [at[4], at[3]]
        assert deployments(app, EVE) == [at[4]]
        assert deployments(app, ANN) == [at[3]]
        roll_back(tmp_path, 3)
        assert deployments(app, FACTORY) == [at[3], at[1]]
        assert deployments(app, EVE) == []
        assert deployments(app, ANN) == [at[3], at[1]]
