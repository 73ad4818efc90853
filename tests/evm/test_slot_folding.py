"""Balances of tokens whose storage is understood: they are what the slots hold, through batches and rollbacks."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.awaited import awaited
from tests.evm.indexed import open_store
from tests.metrics.synthetic import address, assembled

from icefall.evm.deriving.packing import packed
from icefall.evm.encoding import unpack_uint
from icefall.evm.layouts.formulas import Order, StorageLayout, unclaimed_key
from icefall.evm.model import ERC20, ZERO_ADDRESS, BlockRows, Erc20Delta, Erc20TransferRow
from icefall.evm.packed import ResolvedBlock, TokenStorage
from icefall.evm.storing.batch import FoundLayout
from icefall.evm.storing.holders import count_all
from icefall.evm.storing.store import ChainStore
from icefall.wire.evm.rlp import keccak256

ENGINES = ("sqlite", "postgres")
TOKEN, ANN, BEN, EVE, FAY, GUS, HAL = (address(number) for number in range(1, 8))
LAYOUT = StorageLayout(ERC20, Order.KEY_FIRST, bytes(32), 0, 256, 0, is_whole=True)
OTHER = msgspec.structs.replace(LAYOUT, base=bytes(31) + b"\3")
PACKED = StorageLayout(ERC20, Order.KEY_FIRST, bytes(32), 0, 128, 128, is_whole=True)


def storage(layout: StorageLayout, changes: Mapping[bytes, tuple[int, int]]) -> bytes:
    """The text of a change of balances, as a client sends it: zeros are left out."""
    sides = []
    for side in (0, 1):
        words = {
            "0x" + layout.slot_of(who, 0).hex(): f"0x{change[side]:064x}"
            for who, change in changes.items()
            if change[side]
        }
        sides.append(msgspec.json.encode(words))
    return b"\n".join(sides)


def block(
    number: int,
    logged: Sequence[tuple[bytes, bytes, int]],
    *changes: Mapping[bytes, tuple[int, int]],
    layout: StorageLayout = LAYOUT,
    deposits: Sequence[bytes] = (),
) -> ResolvedBlock:
    """A block whose logs tell of transfers, and whose transactions changed slots. `deposits`: whom logs only name."""
    moves = tuple(Erc20TransferRow(0, place, TOKEN, *move) for place, move in enumerate(logged))
    deltas: dict[bytes, int] = dict.fromkeys(deposits, 0)
    for sender, to, value in logged:
        deltas[sender] = deltas.get(sender, 0) - value
        deltas[to] = deltas.get(to, 0) + value
    named = tuple(Erc20Delta(TOKEN, who, delta) for who, delta in deltas.items())
    rows: BlockRows = msgspec.structs.replace(assembled(number, number, ()), erc20_transfers=moves, erc20_deltas=named)
    texts = [storage(layout, one) for one in changes]
    return packed(rows).resolved((), (), (), {TOKEN: TokenStorage(layout, texts)})


# Ann and Ben are minted to, then each block lies in another way.
BLOCKS = [
    block(1, [(EVE, ANN, 5), (EVE, BEN, 7)], {ANN: (0, 5)}, {BEN: (0, 7)}),
    block(2, [(ANN, BEN, 1)], {ANN: (5, 4), BEN: (7, 6)}),  # a fee that no log tells
    block(3, [], {BEN: (6, 0)}),  # everything stolen, and nothing logged
    block(4, [], {EVE: (0, 9)}, {EVE: (9, 8)}),  # credited without a log; Eve was named before
    block(5, [(ANN, BEN, 3)]),  # a log, and nothing moved
    block(6, [(BEN, ANN, 0)], {ANN: (4, (1 << 256) - 1)}),  # a mint as large as can be
    block(7, [], {BEN: (0, 2)}, deposits=[BEN]),  # a log that names the holder, and no transfer
    block(8, [], {BEN: (2, 3), EVE: (8, 1)}, deposits=[BEN]),
]
TRUE = {
    ANN: {1: 5, 2: 4, 3: 4, 4: 4, 5: 4, 6: (1 << 256) - 1, 7: (1 << 256) - 1, 8: (1 << 256) - 1},
    BEN: {1: 7, 2: 6, 3: 0, 4: 0, 5: 0, 6: 0, 7: 2, 8: 3},
    EVE: {1: 0, 2: 0, 3: 0, 4: 8, 5: 8, 6: 8, 7: 8, 8: 1},
}


def balance(store: ChainStore, who: bytes, at: int) -> int | None:
    rows = store.read(
        "select coalesce((select balance from erc20_balance b where b.holder = h.holder and b.token = h.token"
        " and b.block <= :block order by block desc limit 1), h.baseline) from erc20_holding h"
        " join address a on a.id = h.holder where a.address = :who",
        {"who": who, "block": at},
    )
    return unpack_uint(rows[0][0]) if rows else None


def untrusted(store: ChainStore) -> Any:
    return store.read("select untrusted_since from token")[0][0]


async def put(store: ChainStore, blocks: Sequence[ResolvedBlock], layout: StorageLayout = LAYOUT) -> None:
    first = blocks[0].rows.block.number
    found = [FoundLayout(TOKEN, first, layout, is_other=False)] if first == 1 else []
    await store.commit(blocks, layouts=found)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("size", [1, 2, 6])
@awaited
async def test_balances_are_what_slots_hold(size: int, engine: str, tmp_path: Path) -> None:
    store = open_store(tmp_path / f"a.{engine}")
    for start in range(0, len(BLOCKS), size):
        await put(store, BLOCKS[start : start + size])
    for who, at in TRUE.items():
        assert {number: balance(store, who, number) for number in at} == at
    assert untrusted(store) is None
    await count_all(store._store)
    held = store.read("select a.address, h.balance from holder h join address a on a.id = h.holder")
    assert {who: unpack_uint(amount) for who, amount in held} == {who: at[8] for who, at in TRUE.items()}
    store.close()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("ancestor", range(1, 8))
@awaited
async def test_a_rollback_leaves_what_was_before(ancestor: int, engine: str, tmp_path: Path) -> None:
    tables = ("erc20_balance", "erc20_holding", "erc20_holder", "slot", "unclaimed_slot", "slot_change", "token")
    found = []
    for name, blocks in (("a", BLOCKS), ("b", BLOCKS[:ancestor])):
        store = open_store(tmp_path / f"{name}.{engine}")
        for one in blocks:
            await put(store, [one])
        if name == "a":
            await store.roll_back(ancestor)
        found.append({table: sorted(store.read(f"select * from {table}"), key=repr) for table in tables})
        store.close()
    assert found[0] == found[1]


@pytest.mark.parametrize("engine", ENGINES)
@awaited
async def test_a_slot_without_a_known_holder_is_the_history_of_its_holder(engine: str, tmp_path: Path) -> None:
    blocks = [
        block(1, [(ANN, ANN, 5)], {ANN: (0, 5)}),
        block(2, [], {BEN: (0, 3)}),
        block(3, [], {BEN: (3, 2)}),
        block(4, [(BEN, ANN, 1)], {BEN: (2, 1), ANN: (5, 6)}),
    ]
    for size in (1, 4):
        store = open_store(tmp_path / f"{size}.{engine}")
        for start in range(0, 4, size):
            await put(store, blocks[start : start + size])
        assert [balance(store, BEN, number) for number in range(5)] == [0, 0, 3, 2, 1]
        assert untrusted(store) is None
        await store.roll_back(3)
        assert balance(store, BEN, 3) is None
        await put(store, blocks[3:])
        assert [balance(store, BEN, number) for number in range(5)] == [0, 0, 3, 2, 1]
        store.close()


PARTLY = msgspec.structs.replace(LAYOUT, is_whole=False)  # of a token that is older than what was seen of it
OLDER = [
    block(1, [(ANN, BEN, 1)], {ANN: (9, 8), BEN: (0, 1)}, layout=PARTLY),
    block(2, [], {GUS: (100, 150), HAL: (0, 4)}, layout=PARTLY),  # whom no log has named
    block(3, [], {GUS: (150, 160)}, layout=PARTLY),
    block(4, [(GUS, HAL, 1)], {GUS: (160, 159), HAL: (4, 5)}, layout=PARTLY),
]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("size", [1, 3, 4])
@awaited
async def test_what_a_holder_had_before_the_token_was_seen_is_known(size: int, engine: str, tmp_path: Path) -> None:
    """The holder is named by a log long after its first change that was seen."""
    store = open_store(tmp_path / f"a.{engine}")
    for start in range(0, len(OLDER), size):
        await put(store, OLDER[start : start + size], PARTLY)
    for ancestor in (3, 2, 1):
        assert [balance(store, GUS, number) for number in range(1, 5)] == [100, 150, 160, 159]
        assert [balance(store, HAL, number) for number in range(1, 5)] == [0, 4, 4, 5]
        assert untrusted(store) is None
        await store.roll_back(ancestor)
        assert balance(store, GUS, ancestor) is None
        await put(store, OLDER[ancestor:], PARTLY)
    assert [balance(store, GUS, number) for number in range(1, 5)] == [100, 150, 160, 159]
    await store.roll_back(0)
    assert store.read("select * from unclaimed_slot") == []
    store.close()


def known_by(store: ChainStore) -> str:
    return str(store.read("select balance_source from token_trust")[0][0])


SPENT = [address(number) for number in range(50, 56)]  # whom no log names: as if these were allowances
CROWDED = [
    block(1, [(ANN, ANN, 5)], {ANN: (0, 5)}),
    block(2, [], {SPENT[0]: (0, 3), SPENT[1]: (0, 4)}),
    block(3, [(ANN, ANN, 0)], {SPENT[2]: (0, 3), ANN: (5, 6)}),  # the third word does not fit
    block(4, [(SPENT[0], ANN, 1)], {SPENT[0]: (3, 2), ANN: (6, 7)}),  # whose history was stored
    block(5, [], {SPENT[3]: (0, 9)}),
    block(6, [], {SPENT[0]: (2, 1)}),
]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("size", [1, 2, 6])
@awaited
async def test_a_token_of_which_words_were_dropped_is_not_known_by_storage(
    size: int, engine: str, tmp_path: Path
) -> None:
    store = open_store(tmp_path / f"a.{engine}", unclaimed_max=2)
    for start in range(0, len(CROWDED), size):
        await put(store, CROWDED[start : start + size])
        assert known_by(store) == ("storage" if start + size < 3 else "logs")  # never audited
    assert store.words_dropped == 2
    assert store.read("select words_dropped_since from token") == [(3,)]
    assert store.unclaimed_words([TOKEN, ANN]) == {TOKEN: 3}
    assert [balance(store, SPENT[0], number) for number in range(1, 7)] == [0, 3, 3, 2, 2, 1]
    assert untrusted(store) is None
    await store.roll_back(3)
    assert known_by(store) == "logs"
    await store.roll_back(2)
    assert known_by(store) == "storage"
    await put(store, CROWDED[2:])
    assert store.read("select words_dropped_since from token") == [(3,)]
    assert [balance(store, SPENT[0], number) for number in range(1, 7)] == [0, 3, 3, 2, 2, 1]
    store.close()


@pytest.mark.parametrize("size", [1, 9])
@pytest.mark.parametrize(
    ("last", "read", "value", "is_known"),
    [
        (block(6, [(SPENT[2], ANN, 1)], {SPENT[2]: (3, 2)}), None, 3, False),  # its word was dropped
        (block(6, [(SPENT[2], ANN, 0)]), 3, 3, False),
        (block(6, [(SPENT[4], ANN, 0)]), 0, 0, True),
        (block(6, [(SPENT[1], ANN, 0)]), 4, 4, True),  # its only word was stored
        (block(6, [(SPENT[1], ANN, 0)]), 5, 4, False),  # and a later one was not
    ],
)
@awaited
async def test_a_holder_whose_words_were_dropped_makes_the_token_untrusted(
    last: ResolvedBlock, read: int | None, value: int, is_known: bool, size: int, tmp_path: Path
) -> None:
    store = open_store(tmp_path / "a.sqlite", unclaimed_max=2)
    blocks = [*CROWDED[:5], last]
    who = last.rows.addresses[last.rows.erc20_deltas[1][0]]
    for start in range(0, len(blocks), size):
        some = blocks[start : start + size]
        found = [FoundLayout(TOKEN, 1, LAYOUT, is_other=False)] if not start else []
        baselines = {} if read is None else {(TOKEN, who, -1): read}
        await store.commit(some, baselines=baselines, layouts=found)
    assert balance(store, who, 5) == value
    assert (untrusted(store) is None) == is_known
    store.close()


@awaited
async def test_a_missed_change_makes_the_token_untrusted(tmp_path: Path) -> None:
    store = open_store(tmp_path / "a.sqlite")
    await put(store, [block(1, [(ANN, BEN, 5)], {ANN: (9, 4), BEN: (0, 5)})])
    assert (balance(store, ANN, 0), untrusted(store)) == (9, None)  # what it had before
    await put(store, [block(2, [(ANN, BEN, 1)], {ANN: (5, 4)})])
    assert untrusted(store) == 2
    store.close()


@awaited
async def test_storage_that_cannot_be_read_makes_the_token_untrusted(tmp_path: Path) -> None:
    good = block(1, [(ANN, BEN, 5)], {BEN: (0, 5)})
    for name, text in {
        "no JSON": b"{\n{",
        "no word": b'{}\n{"0x1":"0x2"}',
        "no hex": b'{}\n{"0x%s":"0x1"}' % (b"zz" * 32),
    }.items():
        store = open_store(tmp_path / f"{name}.sqlite")
        await put(store, [good])
        bad = block(2, [(ANN, BEN, 1)])
        await put(store, [msgspec.structs.replace(bad, slots={TOKEN: TokenStorage(LAYOUT, [text])})])
        assert untrusted(store) == 2, name
        store.close()


@pytest.mark.parametrize("has_layout", [True, False])
@pytest.mark.parametrize("engine", ENGINES)
@awaited
async def test_the_name_is_read_again_when_a_variable_changed(engine: str, has_layout: bool, tmp_path: Path) -> None:
    supply, name = (number.to_bytes(32, "big") for number in (2, 3))
    long_name = keccak256(name)  # where the text of a long name is
    in_struct, allowance = keccak256(ANN), keccak256(BEN)  # in mappings
    store = open_store(tmp_path / f"a.{engine}")
    await put(store, BLOCKS[:1])
    cases: list[tuple[dict[bytes, tuple[int, int]], bool]] = [
        ({in_struct: (1, 2)}, True),
        ({in_struct: (0, 18)}, True),
        ({allowance: (0, 300)}, False),  # which a log tells
        ({allowance: (300, 293)}, False),  # spent by the transfer of the block
        ({allowance: (293, 300), in_struct: (18, 300)}, True),  # one log explains one word
        ({allowance: (300, 293), in_struct: (300, 292)}, True),
        ({}, False),
        ({supply: (12, 17)}, False),  # what the block mints
        ({supply: (17, 99)}, True),
        ({supply: (99, 104), name: (1, 2)}, True),
        ({long_name: (1, 2)}, True),
    ]
    for number, (words, is_read_again) in enumerate(cases, start=2):
        await store.write(lambda tx: tx.run("update token set read_at = 1000"))
        made = block(number, [(ZERO_ADDRESS, EVE, 5), (ANN, BEN, 7)])
        rows = msgspec.structs.replace(made.rows, approvals=[(TOKEN, 300)])
        balances = {LAYOUT.slot_of(EVE, 0): (5 * number - 10, 5 * number - 5)} if has_layout else {}
        changed = {**words, **balances}
        text = b"\n".join(
            msgspec.json.encode({"0x" + key.hex(): f"0x{change[side]:064x}" for key, change in changed.items()})
            for side in (0, 1)
        )
        slots, others = ({TOKEN: TokenStorage(LAYOUT, [text])}, {}) if has_layout else ({}, {TOKEN: [text]})
        await put(store, [msgspec.structs.replace(made, rows=rows, slots=slots, other_storage=others)])
        ((read_at, retry_at),) = store.read("select read_at, retry_at from token")
        assert (read_at is None) == is_read_again, number
        assert not is_read_again or retry_at == 1060
    await store.write(lambda tx: tx.run("update token set read_at = 1000"))
    await store.roll_back(len(cases))
    assert store.read("select read_at from token") == [(None,)]  # the name of a block that is gone
    store.close()


@awaited
async def test_no_change_without_a_log_is_skipped_for_good(tmp_path: Path) -> None:
    """The first, second, fourth ... one is read at once, all others a minute after the last time."""
    store = open_store(tmp_path / "a.sqlite")
    await put(store, BLOCKS[:1])
    due = []
    for number in range(2, 8):
        await store.write(lambda tx: tx.run("update token set read_at = 1000"))
        made = block(number, [])
        rows = msgspec.structs.replace(made.rows, storage_changed_unlogged=[TOKEN])
        await put(store, [msgspec.structs.replace(made, rows=rows)])
        due += store.read("select read_at, retry_at from token")
    assert due == [(None, 0), (None, 0), (None, 1060), (None, 0), (None, 1060), (None, 1060)]
    await store.write(lambda tx: tx.run("update token set read_at = 1000"))
    await store.roll_back(6)
    assert store.read("select read_at from token") == [(None,)]
    store.close()


@awaited
async def test_other_bits_of_a_slot_are_no_balance(tmp_path: Path) -> None:
    store = open_store(tmp_path / "a.sqlite")
    noisy = {ANN: (0, 5 << 128 | 77), BEN: (0, 99)}
    await put(store, [block(1, [(BEN, ANN, 5)], noisy, layout=PACKED)], PACKED)
    assert (balance(store, ANN, 1), balance(store, BEN, 1)) == (5, 0)
    store.close()


@awaited
async def test_logs_never_add_up_to_more_than_a_word(tmp_path: Path) -> None:
    store = open_store(tmp_path / "a.sqlite")
    most = (1 << 256) - 1
    for number in (1, 2):
        one = block(number, [(EVE, ANN, most)])
        await store.commit([msgspec.structs.replace(one, slots={})])
    assert balance(store, ANN, 2) == most
    assert untrusted(store) == 1  # Eve had nothing to send
    store.close()


@awaited
async def test_another_layout_ends_the_proof(tmp_path: Path) -> None:
    store = open_store(tmp_path / "a.sqlite")
    await put(store, BLOCKS[:2])
    await store.commit([BLOCKS[2]], layouts=[FoundLayout(TOKEN, 3, None, is_other=True)])
    assert (untrusted(store), store.layouts([TOKEN])) == (3, {TOKEN: None})
    store.close()


TABLES = ("erc20_balance", "erc20_holding", "erc20_holder", "slot", "unclaimed_slot", "slot_change", "earlier_layout")
# Holders whom only blocks after the first one name, by one layout or the other, or by none.
ENDED = [
    BLOCKS[0],
    block(2, [(ANN, EVE, 1)], {ANN: (5, 4), EVE: (0, 1)}),
    block(3, [(ANN, FAY, 1)], layout=OTHER),
    block(4, [(ANN, GUS, 1)], {ANN: (3, 2), GUS: (0, 1)}, layout=OTHER),
    block(5, [(GUS, HAL, 1)], {GUS: (1, 0), HAL: (0, 1)}, layout=OTHER),
]
FOUND = {
    1: FoundLayout(TOKEN, 1, LAYOUT, is_other=False),
    3: FoundLayout(TOKEN, 3, None, is_other=True),
    4: FoundLayout(TOKEN, 4, OTHER, is_other=False),
}


async def put_ended(store: ChainStore, number: int) -> None:
    rows = ENDED[number - 1] if number != 3 else msgspec.structs.replace(ENDED[2], slots={})
    await store.commit([rows], layouts=[FOUND[number]] if number in FOUND else [])


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("ancestor", range(1, 5))
@awaited
async def test_the_end_of_a_proof_is_rolled_back_with_its_block(ancestor: int, engine: str, tmp_path: Path) -> None:
    """Else balances would follow from logs from then on, of a contract whose logs may lie."""
    found = []
    for name, last in (("a", 5), ("b", ancestor)):
        store = open_store(tmp_path / f"{name}.{engine}")
        for number in range(1, last + 1):
            await put_ended(store, number)
        if name == "a":
            assert untrusted(store) == 3
            await store.roll_back(ancestor)
        rows = {table: sorted(store.read(f"select * from {table}"), key=repr) for table in TABLES}
        ((layout, *known),) = store.read("select layout, layout_since, layout_standard, untrusted_since from token")
        found.append((rows, layout or None, known))  # refused, or never asked
        store.close()
    assert found[0] == found[1]


def test_neighbouring_slots_have_keys_of_their_own() -> None:
    """The slots of a struct or an array differ in their last bytes alone; both may be without a known holder."""
    first = keccak256(b"an array")
    keys = {unclaimed_key((int.from_bytes(first, "big") + offset).to_bytes(32, "big")) for offset in range(4)}
    assert len(keys) == 4
    assert {len(key) for key in keys} == {16}
