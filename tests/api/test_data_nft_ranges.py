"""A range of NFTs (ERC-2309) in every list: one item of transfers with its last ID, each NFT by itself elsewhere."""

from collections.abc import Iterator

import pytest
from tests.api.data_naive import address_text
from tests.api.data_scene import InProcess, walked
from tests.api.made_chain import ID, block, of, put, served
from tests.evm.nft_range_scene import ANN, MINTER, TOKEN, Move, minted, rows_of

ROWS = [block(0), rows_of(1, [minted(1, 5_000)]), rows_of(2, [Move(MINTER, ANN, 3)])]
COLLECTION = f"/v1/chains/{ID}/nfts/collections/{address_text(TOKEN)}/tokens"


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcess]:
    folder = tmp_path_factory.mktemp("ranges")
    put(folder, ROWS)
    with served(folder) as opened:
        yield opened


def test_transfers_show_the_first_and_the_last_id(app: InProcess) -> None:
    whole = app.result(f"/v1/chains/{ID}/transactions/0x{ROWS[1].txs[0].tx_hash.hex()}")
    for items in (
        walked(app, of(MINTER, "/transactions:listErc721"), "transactions"),
        walked(app, f"/v1/chains/{ID}/tokens/{address_text(TOKEN)}/transfers", "transfers"),
        [{"erc721Token": {"tokenId": "3"}}, *whole["erc721Transfers"]],
    ):
        assert [(one["erc721Token"]["tokenId"], one.get("lastTokenId")) for one in items] == [
            ("3", None),
            ("1", "5000"),
        ]


def test_nfts_are_shown_one_by_one(app: InProcess) -> None:
    found = app.result(of(MINTER, "/balances:listErc721?pageSize=4"))
    assert [one["tokenId"] for one in found["erc721TokenBalances"]] == ["1", "2", "4", "5"]
    listed = walked(app, of(MINTER, "/balances:listErc721"), "erc721TokenBalances")
    assert [one["tokenId"] for one in listed] == [str(one) for one in range(1, 5_001) if one != 3]
    (single,) = app.result(of(ANN, "/balances:listErc721"))["erc721TokenBalances"]
    assert single["tokenId"] == "3"
    found = app.result(f"{COLLECTION}?pageSize=3")
    assert [(one["tokenId"], one["ownerAddress"]) for one in found["tokens"]] == [
        ("1", address_text(MINTER)),
        ("2", address_text(MINTER)),
        ("3", address_text(ANN)),
    ]
    last = app.result(f"{COLLECTION}/5000")
    assert (last["tokenId"], last["ercType"], last["ownerAddress"]) == ("5000", "ERC-721", address_text(MINTER))
    assert app.get(f"{COLLECTION}/5001").status == 404
