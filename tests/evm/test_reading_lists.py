"""Every list of every address of the recorded chains, by pages of any size, equals the JSON of the blocks.

Lists of more than 30 rows are read by pages of ten and of a hundred; ICEFALL_FUZZ_LONG_LIST sets another length. Where
many addresses have a list, each is read by half of the sizes of pages and in a third of the ranges, the next by others;
ICEFALL_FUZZ_EVERY_ADDRESS=1 reads each by all.
"""

import os
from collections.abc import Callable, Coroutine, Iterable, Sequence
from functools import partial
from typing import Any, TypeVar

import pytest
from tests.evm.naive import Item, Naive, naive
from tests.evm.reading_scene import SIZES, Scene, flat, indexed, now, paged
from tests.evm.recordings import CHAINS, derived

from icefall.evm.model import ERC20, ERC721, ERC1155
from icefall.evm.reading import chain as chain_reading
from icefall.evm.reading import transfers as transfer_reading
from icefall.evm.reading.model import DeploymentRead, PageRange, TransferRead, TxParts, TxRead

T = TypeVar("T")
LONG = int(os.environ.get("ICEFALL_FUZZ_LONG_LIST", "30"))
MANY = 10**6 if os.environ.get("ICEFALL_FUZZ_EVERY_ADDRESS") == "1" else 12  # lists that are not empty
UNKNOWN_ADDRESS = bytes.fromhex("5732a46e9c00000000000000000000000000beef")
TX_FIELDS = (
    "tx_at", "status", "type_id", "sender", "to", "value", "nonce", "gas_limit", "gas_used", "gas_price", "max_fee",
    "max_priority_fee",
)  # fmt: skip


TRANSFER_FIELDS = {
    ERC20: ("log_at", "tx_at", "token", "sender", "to", "value"),
    ERC721: ("log_at", "tx_at", "token", "sender", "to", "token_id"),
    ERC1155: ("log_at", "position", "tx_at", "token", "sender", "to", "token_id", "value"),
}
STANDARDS = {"erc20": ERC20, "erc721": ERC721, "erc1155": ERC1155}


def flat_tx(row: TxRead) -> Item:
    return flat(row, TX_FIELDS)


def flat_transfer(row: TransferRead) -> Item:
    return flat(row, TRANSFER_FIELDS[row.standard])


def flat_part(parts: TxParts, name: str) -> list[Item]:
    if name == "internals":
        return [flat(row) for row in parts.internals]
    return [flat_transfer(row) for row in parts.transfers if row.standard == STANDARDS[name]]


Of = Callable[[bytes, PageRange, int], Coroutine[Any, Any, Sequence[Any]]]
LISTS: dict[str, tuple[Callable[[Naive], dict[bytes, list[Item]]], Callable[[Scene], Of], Callable[[Any], Item]]] = {
    "native": (lambda recorded: recorded.native_of, lambda scene: scene.lists.txs_of, flat_tx),
    "touched": (lambda recorded: recorded.touched, lambda scene: scene.lists.touched_txs, flat_tx),
    "erc20": (
        lambda recorded: recorded.erc20_of,
        lambda scene: partial(scene.lists.transfers_of, ERC20),
        flat_transfer,
    ),
    "erc721": (
        lambda recorded: recorded.erc721_of,
        lambda scene: partial(scene.lists.transfers_of, ERC721),
        flat_transfer,
    ),
    "erc1155": (
        lambda recorded: recorded.erc1155_of,
        lambda scene: partial(scene.lists.transfers_of, ERC1155),
        flat_transfer,
    ),
    "internals": (lambda recorded: recorded.internals_of, lambda scene: scene.transfers.internals_of, flat),
    "in_token": (lambda recorded: recorded.in_token, lambda scene: scene.transfers.in_token, flat_transfer),
}


def check_list(scene: Scene, recorded: Naive, name: str, addresses: Iterable[bytes]) -> int:
    expected_of, reader_of, flatten = LISTS[name]
    expected, of = expected_of(recorded), reader_of(scene)
    asked = [*addresses, UNKNOWN_ADDRESS]
    is_many = sum(bool(expected.get(address)) for address in asked) >= MANY
    place = 0
    for address in asked:
        items = expected.get(address, [])[::-1]
        place += bool(items)
        sizes = SIZES if len(items) <= LONG else [size for size in SIZES if size >= 10]
        for size in taken_in_turns(sizes, 2, place) if is_many else sizes:
            rows = paged(partial(of, address), PageRange(), size)
            assert [flatten(row) for row in rows] == items, (name, address.hex(), size)
        for start, end in taken_in_turns(spans(items), 3, place) if is_many else spans(items):
            inside = [item for item in items if start <= item[0] and (end is None or item[0] < end)]
            rows = paged(partial(of, address), PageRange(start, end), 3 if len(items) <= LONG else 100)
            assert [flatten(row) for row in rows] == inside, (name, address.hex(), start, end)
    return sum(map(len, expected.values()))


def taken_in_turns(values: Sequence[T], parts: int, place: int) -> Sequence[T]:
    """One of so many parts of the values; the next place has the next part."""
    return values[place % parts :: parts]


def spans(items: list[Item]) -> list[tuple[int, int | None]]:
    """Ranges that cut a list at its ends, in its middle, to one block, to nothing."""
    if not items:
        return [(0, None), (5, 9)]
    last, middle, first = items[0][0], items[len(items) // 2][0], items[-1][0]
    return [
        (middle, None), (0, middle), (middle, middle + 1), (first + 1, last), (middle, last + 1), (last, middle),
        (last + 1, None), (0, 0), (1 << 60, 1 << 62),
    ]  # fmt: skip


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize("chain", CHAINS)
def test_every_list_of_every_address(chain: str, name: str) -> None:
    listed = check_list(indexed(chain), naive(chain), name, naive(chain).addresses)
    assert listed >= (10 if name == "erc1155" else 30)


@pytest.mark.parametrize("chain", CHAINS)
def test_lists_in_ascending_order(chain: str) -> None:
    scene, recorded = indexed(chain), naive(chain)
    for address, items in recorded.touched.items():
        for size in (1, 10) if len(items) <= LONG else (10,):
            rows = paged(partial(scene.lists.touched_txs, address, ascending=True), PageRange(), size)
            assert [flat_tx(row) for row in rows] == items
        for start, end in spans(items):
            size = 3 if len(items) <= LONG else 100
            rows = paged(partial(scene.lists.touched_txs, address, ascending=True), PageRange(start, end), size)
            assert [flat_tx(row) for row in rows] == [
                item for item in items if start <= item[0] and (end is None or item[0] < end)
            ]


@pytest.mark.parametrize("chain", CHAINS)
def test_interned_ids_belong_to_the_addresses_of_their_row(chain: str) -> None:
    scene, recorded = indexed(chain), naive(chain)
    address_of: dict[int, bytes] = dict(now(scene.reader.rows("select id, address from address")))
    for address in recorded.addresses:
        for name, (_, reader_of, _) in LISTS.items():
            for row in now(reader_of(scene)(address, PageRange(), 20)):
                if name not in ("native", "touched", "internals"):
                    assert address_of[row.token_ref] == row.token
                assert address_of[row.sender_ref] == row.sender
                assert address_of.get(row.to_ref, b"") == row.to


def test_transfers_of_a_token_have_their_standard() -> None:
    standards: set[int] = set()
    for chain in CHAINS:
        for token in naive(chain).in_token:
            standards |= {row.standard for row in now(indexed(chain).transfers.in_token(token, PageRange(), 100))}
    assert standards == {ERC20, ERC721, ERC1155}


# -- inside transactions -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chain", CHAINS)
def test_parts_of_every_page_are_those_of_the_address(chain: str) -> None:
    scene, recorded = indexed(chain), naive(chain)
    kinds = ("erc20", recorded.erc20_of), ("erc721", recorded.erc721_of), ("erc1155", recorded.erc1155_of)
    for address, items in recorded.touched.items():
        expected: dict[str, dict[bytes, list[Item]]] = {}
        for name, lists in (*kinds, ("internals", recorded.internals_of)):
            mine = expected[name] = {}
            for item in lists.get(address, ()):
                mine.setdefault(item[3], []).append(item)
        for ascending in (False, True):
            txs = paged(partial(scene.lists.touched_txs, address, ascending=ascending), PageRange(), 100)
            assert len(txs) == len(items)
            for start in range(0, len(txs), 7):
                page = txs[start : start + 7]
                parts = now(scene.transfers.parts_of_page(scene.lists, address, page))
                assert set(parts) == {tx.tx_at for tx in page}
                for tx in page:
                    for name, of_tx in expected.items():
                        assert flat_part(parts[tx.tx_at], name) == of_tx.get(tx.location.tx_hash, [])


@pytest.mark.parametrize("chain", CHAINS)
def test_every_transaction_by_hash_with_all_its_parts(chain: str) -> None:
    scene, recorded = indexed(chain), naive(chain)
    expected: dict[str, dict[bytes, list[Item]]] = {}
    for name in ("erc20", "erc721", "erc1155", "internals"):
        mine = expected[name] = {}
        for item in getattr(recorded, name):
            mine.setdefault(item[3], []).append(item)
    for item, (tx_input, base_fee) in zip(recorded.txs, recorded.inputs, strict=True):
        full = now(scene.chain.tx(item[3]))
        assert full is not None
        assert (flat_tx(full.tx), full.input, full.base_fee) == (item, tx_input, base_fee)
        assert now(scene.chain.full_tx_at(full.tx.tx_at)) == full
        parts = now(scene.transfers.parts_of_tx(full.tx.tx_at))
        for name, of_tx in expected.items():
            assert flat_part(parts, name) == of_tx.get(item[3], [])
    assert now(scene.chain.tx(bytes(32))) is None
    assert now(scene.chain.tx(recorded.txs[0][3][:31] + b"\x00")) is None  # another with the same beginning


def test_a_page_too_full_is_shortened_and_a_single_transaction_truncated(monkeypatch: pytest.MonkeyPatch) -> None:
    scene, recorded = indexed(CHAINS[0]), naive(CHAINS[0])
    address = max(recorded.erc20_of, key=lambda one: len(recorded.erc20_of[one]))
    txs = now(scene.lists.touched_txs(address, PageRange(), 20))
    whole = now(scene.transfers.parts_of_page(scene.lists, address, txs))
    assert len(whole) == len(txs)
    assert not any(parts.truncated for parts in whole.values())
    for limit in (0, 1, 2, 5):
        monkeypatch.setattr("icefall.evm.reading.transfers.PARTS_MAX", limit)
        rest = list(txs)
        while rest:
            shown = now(scene.transfers.parts_of_page(scene.lists, address, rest))
            assert list(shown) == [tx.tx_at for tx in rest[: len(shown)]]
            for tx_at, parts in shown.items():
                full = whole[tx_at]
                assert parts.transfers == full.transfers[:limit]
                assert parts.internals == full.internals[:limit]
                assert parts.truncated == (len(full.transfers) > limit or len(full.internals) > limit)
                assert len(shown) == 1 or not parts.truncated
            rest = rest[len(shown) :]
        for tx in txs:
            parts = now(scene.transfers.parts_of_tx(tx.tx_at))
            assert len(parts.transfers) <= limit
            assert len(parts.internals) <= limit
    assert now(scene.transfers.parts_of_page(scene.lists, address, [])) == {}


# -- blocks, and transactions of all -----------------------------------------------------------------------------------


@pytest.mark.parametrize("chain", CHAINS)
def test_blocks(chain: str) -> None:
    scene = indexed(chain)
    expected, total = [], 0
    for one in derived(chain):
        row = one.rows.block
        total += row.tx_count
        expected.append({name: getattr(row, name) for name in row.__struct_fields__} | {"cumulative_txs": total})
    for size in SIZES:
        found: list[Any] = []
        before: int | None = None
        while page := now(scene.chain.page(before, size)):
            found += page
            before = page[-1].number
        assert [{name: getattr(row, name) for name in row.__struct_fields__} for row in found] == expected[::-1]
    for row in found:
        assert now(scene.chain.block(row.number)) == row
        assert now(scene.chain.block(row.block_hash)) == row
    assert now(scene.chain.tip()) == found[0]
    assert now(scene.chain.lowest()) == found[-1].number
    assert now(scene.chain.block(10**30)) is None
    assert now(scene.chain.block(bytes(32))) is None


@pytest.mark.parametrize("chain", CHAINS)
def test_transactions_of_every_block(chain: str) -> None:
    scene, recorded = indexed(chain), naive(chain)
    for said in recorded.lines:
        items = (
            [item for item in recorded.txs if item[0] == said["number"]][::-1] if said["block"]["transactions"] else []
        )
        for size in (1, 3, 100):
            found: list[TxRead] = []
            before: int | None = None
            while page := now(scene.chain.txs_of_block(said["number"], before, size)):
                found += page
                before = page[-1].tx_index
            assert [flat_tx(row) for row in found] == items


@pytest.mark.parametrize("chain", CHAINS)
def test_newest_transactions_of_a_status(chain: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However few are looked at for a page, all are found."""
    scene, recorded = indexed(chain), naive(chain)
    failed = sum(item[5] == 0 for item in recorded.txs)
    assert 0 < failed < len(recorded.txs) / 2
    for looked_at in (1, 7, 5000):
        monkeypatch.setattr(chain_reading, "SEARCH_MAX", looked_at)
        for status in (None, 0, 1):
            for size in (3, 100):
                found: list[TxRead] = []
                before: int | None = None
                empty = 0
                while True:
                    rows, before = now(scene.chain.newest_txs(before, size, status))
                    found += rows
                    empty += not rows
                    if before is None:
                        break
                items = [item for item in recorded.txs[::-1] if status in (None, item[5])]
                assert [flat_tx(row) for row in found] == items
                assert empty == 0 or (looked_at < 5000 and status is not None)


@pytest.mark.parametrize("chain", CHAINS)
def test_methods(chain: str) -> None:
    scene = indexed(chain)
    kinds = set()
    for one in derived(chain):
        for tx in one.rows.txs:
            full = now(scene.chain.full_tx_at(one.rows.block.number << 24 | tx.tx_index))
            assert full is not None
            assert (full.tx.call_type, full.tx.selector) == (tx.call_type, tx.selector)
            kinds.add(tx.call_type)
    assert len(kinds) == 3


# -- deployments and messages ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chain", CHAINS)
def test_deployments(chain: str) -> None:
    scene, recorded = indexed(chain), naive(chain)
    latest = {made[0]: made for made in recorded.deployments}
    by: dict[bytes, list[Item]] = {}
    again = 0
    for made in recorded.deployments:
        for who in {made[3], made[5]}:
            by.setdefault(who, []).append(made)
    for address in (*recorded.addresses, UNKNOWN_ADDRESS):
        found = now(scene.transfers.deployment(address))
        assert (found and tuple(getattr(found, name) for name in found.__struct_fields__)) == latest.get(address)
        expected = [made for made in by.get(address, [])[::-1] if latest[made[0]] == made]
        again += len(by.get(address, [])) - len(expected)
        for size in (1, 3, 100):
            rows = deployed_pages(scene, address, size)
            assert [tuple(getattr(row, name) for name in row.__struct_fields__) for row in rows] == expected
    assert len(latest) > 10
    assert again, "no address was deployed twice"


def deployed_pages(scene: Scene, address: bytes, size: int) -> list[DeploymentRead]:
    """All pages of the contracts an address deployed."""
    found: list[DeploymentRead] = []
    before: tuple[int, ...] | None = None
    while True:
        rows, before = now(scene.transfers.deployed_by(address, before, size))
        assert len(rows) <= size
        found += rows
        if before is None:
            return found


def test_few_deployments_are_read_for_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """A short page is not the last one, and the pages together are the whole list."""
    scene = indexed("anvil-1")
    makers = {made[3] for made in naive("anvil-1").deployments}
    whole = {maker: deployed_pages(scene, maker, 100) for maker in makers}
    monkeypatch.setattr(transfer_reading, "DEPLOYMENTS_MAX", 3)
    for maker, rows in whole.items():
        assert deployed_pages(scene, maker, 100) == rows
        assert len(now(scene.transfers.deployed_by(maker, None, 100))[0]) <= 3


@pytest.mark.parametrize("chain", CHAINS)
def test_messages(chain: str) -> None:
    scene, found = indexed(chain), 0
    for one in derived(chain):
        expected = {row.tx_index: (row.message_id, row.peer_blockchain_id, row.is_source) for row in one.rows.messages}
        for tx in one.rows.txs:
            row = now(scene.transfers.message(one.rows.block.number << 24 | tx.tx_index))
            assert (row and (row.message_id, row.peer_blockchain_id, row.is_source)) == expected.get(tx.tx_index)
            found += row is not None
    assert found > 0


@pytest.mark.parametrize("chain", CHAINS)
def test_known_addresses(chain: str) -> None:
    scene, recorded = indexed(chain), naive(chain)
    assert all(now(scene.chain.is_known(address)) for address in recorded.addresses)
    assert not now(scene.chain.is_known(UNKNOWN_ADDRESS))
