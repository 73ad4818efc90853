"""Pages are rendered with the details that other answers have read, unless something in them was not read yet."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.api.made_chain import ANN, BEN, EVE, ID, TOKEN, block, erc20, erc721, minted, put, served, store_at
from tests.evm.reading_scene import now
from tests.metrics.synthetic import address

from icefall.api.data.render.context import NotRead, context_for, known_context, rendered
from icefall.api.data.render.transactions import transfers
from icefall.api.dialect import INTERFACE
from icefall.db.sqlite import SqliteReader
from icefall.evm.model import ERC20, ERC721, Erc1155TransferRow
from icefall.evm.reading.directory import ChainInfo, EvmChain, TokenInfo
from icefall.evm.reading.model import PageRange, TransferRead

LISTS = ("", *(f":list{kind}" for kind in ("Native", "Erc20", "Erc721", "Erc1155", "Internals")))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Each of the addresses has transfers with parties and tokens that the others have not."""
    batch = tuple(Erc1155TransferRow(0, 1, at, address(3000), BEN, EVE, at, 5) for at in range(3))
    blocks = [
        minted(block(0), ANN, 6),
        erc20(1, ANN, BEN, 9),
        erc20(2, BEN, EVE, 4, address(1003)),
        erc721(3, ANN, BEN),
    ]
    blocks += [replace(block(4), erc1155_transfers=batch), block(5, EVE, ANN), erc20(6, EVE, TOKEN, 1)]
    put(tmp_path, blocks)
    with closing(sqlite3.connect(store_at(tmp_path))) as connection, connection:
        connection.execute("update token set name = 'token ' || token, symbol = 'T', decimals = token")
        connection.execute("insert into price select address, 'usd', -1, '1.' || id from address")
    return tmp_path


def test_a_page_is_the_same_whatever_was_asked_for_before(folder: Path) -> None:
    targets = [
        f"/v1/chains/{ID}/addresses/0x{one.hex()}/transactions{kind}"
        for one in (ANN, BEN, EVE, TOKEN)
        for kind in LISTS
    ]
    alone = []
    for target in targets:
        with served(folder) as app:
            alone.append(app.get(target).body)
    for order in (1, -1):
        with served(folder) as app:
            assert [app.get(target).body for target in targets[::order]] == alone[::order]


def transfers_of(chain: EvmChain, standard: int, address: bytes) -> list[TransferRead]:
    return now(chain.lists.transfers_of(standard, address, PageRange(), 10))


def test_what_was_not_read_is_not_guessed(folder: Path) -> None:
    with closing(SqliteReader(store_at(folder))) as reader:
        chain = EvmChain(ChainInfo(ID, "Made", TokenInfo("Coin", "C", 18)), reader)
        assert known_context(chain, INTERFACE) is None
        of_ann, of_eve, nfts = (
            transfers_of(chain, ERC20, ANN), transfers_of(chain, ERC20, EVE), transfers_of(chain, ERC721, ANN),
        )  # fmt: skip
        whole = transfers(now(context_for(chain, INTERFACE, of_ann)), of_ann)
        known = known_context(chain, INTERFACE)
        assert known is not None
        assert transfers(known, of_ann) == whole
        for rows in (of_eve, nfts):
            with pytest.raises(NotRead):
                transfers(known, rows)
            read = transfers(now(context_for(chain, INTERFACE, rows)), rows)
            assert now(rendered(chain, INTERFACE, rows, transfers)) == read
