"""Lists read table by table, as on Citus, are those that one statement with joins returns."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

from msgspec.structs import replace
from tests.api.made_chain import ANN, BEN, EVE, TOKEN, ZERO_ADDRESS, block, erc20, erc721, minted, put, store_at
from tests.metrics.synthetic import address
from tests.store.conformance.evm_operations import check_forms

from icefall.db.sqlite import SqliteReader
from icefall.evm.model import Erc1155TransferRow


def name_tokens(path: Path) -> None:
    """Gives each token a name, and all addresses a price: only those of tokens that are transferred are shown."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("update token set name = 'token ' || token, symbol = 'T', decimals = token")
        connection.execute("insert into price select address, 'usd', -1, '1.' || id from address")


def test_they_are_the_same(tmp_path: Path) -> None:
    batch = tuple(Erc1155TransferRow(0, 1, at, address(3000), BEN, EVE, at, 5) for at in range(7))
    blocks = [minted(block(0), ANN, 6), erc20(1, ZERO_ADDRESS, BEN, 9), erc20(2, BEN, ANN, 4), erc721(3, ANN, BEN)]
    blocks += [replace(block(4), erc1155_transfers=batch), block(5, EVE, ANN)]
    blocks += [erc20(6, ANN, TOKEN, 1), erc20(7, TOKEN, address(1000), 1)]  # tokens that are parties too
    put(tmp_path, blocks)
    name_tokens(store_at(tmp_path))
    with closing(SqliteReader(store_at(tmp_path))) as reader:
        for one in (ANN, BEN, EVE, TOKEN, ZERO_ADDRESS, address(77)):
            asyncio.run(check_forms(reader, one))
