"""The packed form of a block's rows: the writer makes the same rows of it as of the rows themselves."""

import random
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.evm.recordings import CHAINS, derived
from tests.metrics.synthetic import assembled, chain

from icefall.evm.deriving.derive import raw_rows
from icefall.evm.deriving.packing import TableRows, addresses_in, packed
from icefall.evm.model import (
    ZERO_ADDRESS,
    BlockRows,
    Erc20Delta,
    Erc721TransferRow,
    Erc1155TransferRow,
    IdDelta,
    InternalTx,
    MetadataChange,
    NftOwner,
    StoredRaw,
)
from icefall.evm.packed import PackedBlock, from_bytes, to_bytes
from icefall.evm.storing.writing import INSERTS, BatchRows

UINTS = st.integers(0, 2**256 - 1)
ADDRESSES = st.sampled_from([ZERO_ADDRESS, *(bytes([number] * 20) for number in range(1, 9))])


class _Written:
    """A transaction that only records."""

    def __init__(self) -> None:
        self.rows: dict[str, list[Any]] = {}

    def run_many(self, statement: str, params: list[Any]) -> None:
        self.rows.setdefault(statement, []).extend(params)


def assert_same(rows: Sequence[BlockRows], blocks: Sequence[PackedBlock]) -> None:
    """The rows of all tables, whatever IDs the addresses have, and everything else that is stored of a block."""
    addresses = [address for one in rows for address in addresses_in(one)]
    numbers = random.Random(1).sample(range(10**9), len(addresses))
    ids = dict(zip(addresses, numbers, strict=True))
    expected, gathered = TableRows(ids.__getitem__), BatchRows()
    for one, block in zip(rows, blocks, strict=True):
        assert block.block == one.block
        assert list(block.addresses) == list(addresses_in(one))
        expected.add(one)
        gathered.add(block, [*map(ids.__getitem__, block.addresses), None])
        changes = block.balance_changes()
        assert changes.erc20_deltas == one.erc20_deltas
        assert changes.id_deltas == (one.erc1155_deltas,)
        assert changes.nft_owners == one.nft_owners
        assert block.native_before == {had.address: had.balance for had in one.native_before}
        assert block.native_after == {has.address: has.balance for has in one.native_after}
        assert block.code_changes == [(change.address, change.has_code) for change in one.code_changes]
        assert block.raw == one.raw
    written = _Written()
    list(gathered.write(written))  # type: ignore[arg-type]
    for table, statement in INSERTS.items():
        assert sorted(written.rows.get(statement, []), key=repr) == sorted(expected.of_table(table), key=repr), table


@pytest.mark.parametrize("name", CHAINS)
def test_recorded_blocks(name: str) -> None:
    recorded = derived(name)
    rows = [
        msgspec.structs.replace(one.rows, raw=raw_rows(one.full, None, "", StoredRaw(logs=index % 2 == 0)))
        for index, one in enumerate(recorded)
    ]
    assert any(one.internals for one in rows) or name.startswith("berlin")
    blocks = [packed(one) for one in rows]
    assert_same(rows, blocks)
    assert_same(rows, from_bytes(to_bytes(blocks)))


@given(st.integers(0, 10**6), st.data())
def test_made_up_blocks(seed: int, data: st.DataObject) -> None:
    rows = chain(seed, 4, first=1)
    log = st.integers(0, 100)
    nfts = data.draw(st.lists(st.builds(Erc721TransferRow, st.just(0), log, ADDRESSES, ADDRESSES, ADDRESSES, UINTS)))
    items = data.draw(
        st.lists(st.builds(Erc1155TransferRow, st.just(0), log, log, ADDRESSES, ADDRESSES, ADDRESSES, UINTS, UINTS))
    )
    to = st.one_of(st.just(b""), ADDRESSES)
    calls = st.builds(
        InternalTx, st.just(0), log, st.just("CREATE"), ADDRESSES, to, UINTS, log, log, is_reverted=st.booleans()
    )
    more = msgspec.structs.replace(
        assembled(9, 9, rows[-1].txs),
        erc721_transfers=tuple(nfts),
        erc1155_transfers=tuple(items),
        internals=tuple(data.draw(st.lists(calls))),
        erc20_deltas=tuple(data.draw(st.lists(st.builds(Erc20Delta, ADDRESSES, ADDRESSES, st.integers())))),
        erc1155_deltas=tuple(data.draw(st.lists(st.builds(IdDelta, ADDRESSES, ADDRESSES, UINTS, st.integers())))),
        nft_owners=tuple(data.draw(st.lists(st.builds(NftOwner, ADDRESSES, UINTS, ADDRESSES, ADDRESSES)))),
        metadata_changes=tuple(data.draw(st.lists(st.builds(MetadataChange, ADDRESSES, UINTS, UINTS)))),
    )
    assert_same([*rows, more], from_bytes(to_bytes([packed(one) for one in [*rows, more]])))
