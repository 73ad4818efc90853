"""Lists read table by table, as on Citus, are those that one statement with joins returns."""

import asyncio
from contextlib import closing
from pathlib import Path

from msgspec.structs import replace
from tests.api.made_chain import ANN, BEN, EVE, TOKEN, ZERO_ADDRESS, block, erc20, erc721, minted, put, store_at
from tests.metrics.synthetic import address
from tests.store.conformance.evm_operations import check_flat

from icefall.db.sqlite import SqliteReader
from icefall.evm.model import Erc1155TransferRow


def test_they_are_the_same(tmp_path: Path) -> None:
    batch = tuple(Erc1155TransferRow(0, 1, at, address(3000), BEN, EVE, at, 5) for at in range(7))
    blocks = [minted(block(0), ANN, 6), erc20(1, ZERO_ADDRESS, BEN, 9), erc20(2, BEN, ANN, 4), erc721(3, ANN, BEN)]
    blocks += [replace(block(4), erc1155_transfers=batch), block(5, EVE, ANN)]
    put(tmp_path, blocks)
    with closing(SqliteReader(store_at(tmp_path))) as reader:
        for one in (ANN, BEN, EVE, TOKEN, ZERO_ADDRESS, address(77)):
            asyncio.run(check_flat(reader, one))
