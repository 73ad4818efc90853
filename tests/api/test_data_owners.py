"""`ownerAddress` is the owner by the contract's state where logs cannot be trusted. Transfers stay as logged."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.api.data_naive import address_text
from tests.api.data_scene import InProcess, Zeros, walked
from tests.api.made_chain import ANN, BEN, EVE, ID, TOKEN, ZERO_ADDRESS, block, erc721, of, put, served

from icefall.errors import Unavailable
from icefall.evm.contract_calls import owner_of
from icefall.evm.model import BlockRows
from icefall.upstream.evm.errors import Reverted
from icefall.upstream.evm.state import At, ContractCall

HONEST = [block(0), erc721(1, ZERO_ADDRESS, ANN), erc721(2, ANN, BEN), erc721(3, ZERO_ADDRESS, ANN, 8)]
# The second transfer is by another than the owner that the first one names.
CONTRADICTING = [block(0), erc721(1, ZERO_ADDRESS, ANN), erc721(2, EVE, BEN), erc721(3, ZERO_ADDRESS, ANN, 8)]


class Owners(Zeros):
    """A state in which token 7 belongs to Eve and token 8 to no one."""

    async def answers(self, calls: Sequence[ContractCall], _: At) -> list[bytes | Reverted]:
        true = {owner_of(TOKEN, 7): EVE.rjust(32, b"\0")}
        return [true.get(call, Reverted("no such token")) for call in calls]


class Gone(Zeros):
    async def answers(self, calls: Sequence[ContractCall], _: At) -> list[bytes | Reverted]:
        raise Unavailable("no upstream answers")


def logged(blocks: list[BlockRows]) -> list[tuple[str, str, str]]:
    return [
        (str(move.token_id), address_text(move.sender), address_text(move.to))
        for rows in blocks[::-1]
        for move in rows.erc721_transfers
    ]


def everywhere(app: InProcess) -> dict[str, list[Any]]:
    """Every list that shows these tokens."""
    whole = [app.result(f"/v1/chains/{ID}/transactions/0x{rows.txs[0].tx_hash.hex()}") for rows in HONEST[:0:-1]]
    return {
        "of the token": walked(app, f"/v1/chains/{ID}/tokens/{address_text(TOKEN)}/transfers", "transfers"),
        "by transaction": [one for tx in whole for one in tx["erc721Transfers"]],
        "of Ann": walked(app, of(ANN, "/transactions:listErc721"), "transactions"),
        "of Ann, nested": [
            one for tx in walked(app, of(ANN, "/transactions"), "transactions") for one in tx.get("erc721Transfers", ())
        ],
    }


def moves(items: list[Any]) -> list[tuple[str, str, str]]:
    return [(one["erc721Token"]["tokenId"], one["from"]["address"], one["to"]["address"]) for one in items]


def owners(items: list[Any]) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for one in items:
        owner = one["erc721Token"].get("ownerAddress")
        assert found.setdefault(one["erc721Token"]["tokenId"], owner) == owner
    return found


@pytest.mark.parametrize(
    ("blocks", "expected"),
    [
        (HONEST, {"7": address_text(BEN), "8": address_text(ANN)}),
        (CONTRADICTING, {"7": address_text(EVE), "8": None}),
    ],
    ids=["trusted", "untrusted"],
)
def test_owners_in_lists_of_transfers(blocks: list[BlockRows], expected: dict[str, str | None], tmp_path: Path) -> None:
    put(tmp_path, blocks)
    ann = address_text(ANN)
    with served(tmp_path, state=Owners()) as app:
        lists = everywhere(app)
    for name, items in lists.items():
        every = logged(blocks)
        assert moves(items) == ([one for one in every if ann in one] if "Ann" in name else every), name
        assert owners(items) == expected, name


def test_balances_show_the_true_owner(tmp_path: Path) -> None:
    put(tmp_path, CONTRADICTING)
    with served(tmp_path, state=Owners()) as app:
        for holder in (ANN, BEN):
            assert app.result(of(holder, "/balances:listErc721"))["erc721TokenBalances"] == []


def test_transfers_are_listed_without_owners_while_no_upstream_answers(tmp_path: Path) -> None:
    """Balances are not: 503."""
    put(tmp_path, CONTRADICTING)
    with served(tmp_path, state=Gone()) as app:
        items = everywhere(app)["of the token"]
        assert moves(items) == logged(CONTRADICTING)
        assert owners(items) == {"7": None, "8": None}
        assert app.get(of(BEN, "/balances:listErc721")).status == 503
