"""Owners of NFTs and amounts of IDs of tokens whose storage is understood: they are what the slots hold."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.awaited import awaited
from tests.evm.indexed import open_store
from tests.metrics.synthetic import address, assembled

from icefall.evm.contract_calls import owner_of
from icefall.evm.deriving.packing import packed
from icefall.evm.deriving.tokens import id_deltas, nft_owners
from icefall.evm.encoding import pack_uint, unpack_uint
from icefall.evm.indexing.token_layouts import OWNERS_ASKED_MAX, TokenLayouts, _Known
from icefall.evm.layouts.formulas import Order, StorageLayout
from icefall.evm.layouts.proof import Refused, SeenKey
from icefall.evm.model import ERC721, ERC1155, ZERO_ADDRESS, BlockRows, Erc721TransferRow, Erc1155TransferRow
from icefall.evm.packed import ResolvedBlock, TokenStorage
from icefall.evm.storing.batch import FoundLayout
from icefall.evm.storing.holders import count_all
from icefall.evm.storing.store import ChainStore
from icefall.upstream.evm.errors import Aborted, NoState, Reverted
from icefall.upstream.evm.state import At, StateCall

ENGINES = ("sqlite", "postgres")
TOKEN, ANN, BEN, EVE, DAN = (address(number) for number in range(1, 6))
OWNERS = StorageLayout(ERC721, Order.KEY_FIRST, bytes(32), 0, 160, 0, is_whole=True)
AMOUNTS = StorageLayout(ERC1155, Order.KEY_FIRST, bytes(32), 0, 256, 0, is_whole=True)
Change = tuple[int, int]
TABLES = (
    "nft_owner",
    "nft_held",
    "erc1155_balance",
    "erc1155_holding",
    "slot",
    "unclaimed_slot",
    "slot_change",
    "address",
    "holder",
    "holder_total",
)


def storage(changes: Mapping[bytes, Change]) -> bytes:
    """The text of changed slots, as a client sends it: zeros are left out."""
    return b"\n".join(
        msgspec.json.encode({"0x" + slot.hex(): f"0x{one[side]:064x}" for slot, one in changes.items() if one[side]})
        for side in (0, 1)
    )


def nft_block(
    number: int,
    logged: Sequence[tuple[bytes, bytes, int]],
    layout: StorageLayout = OWNERS,
    **changes: tuple[bytes, bytes],
) -> ResolvedBlock:
    """A block whose logs move NFTs, and whose storage gives some (`n7`) from one owner to another."""
    moves = tuple(Erc721TransferRow(0, place, TOKEN, *move) for place, move in enumerate(logged))
    slots = {
        OWNERS.slot_of(b"", int(name[1:])): (int.from_bytes(before, "big"), int.from_bytes(after, "big"))
        for name, (before, after) in changes.items()
    }
    return _block(number, layout, slots, erc721_transfers=moves, nft_owners=tuple(nft_owners(moves)))


def amount_block(
    number: int,
    logged: Sequence[tuple[bytes, bytes, int, int]],
    changes: Mapping[bytes, Change],
    layout: StorageLayout = AMOUNTS,
) -> ResolvedBlock:
    """A block whose logs move amounts, and whose storage changes amounts of ID 7."""
    moves = tuple(Erc1155TransferRow(0, place, 0, TOKEN, *move) for place, move in enumerate(logged))
    slots = {AMOUNTS.slot_of(who, 7): change for who, change in changes.items()}
    return _block(number, layout, slots, erc1155_transfers=moves, erc1155_deltas=tuple(id_deltas(moves)))


def _block(number: int, layout: StorageLayout, slots: Mapping[bytes, Change], **rows: Any) -> ResolvedBlock:
    made: BlockRows = msgspec.structs.replace(assembled(number, number, ()), **rows)
    return packed(made).resolved((), (), (), {TOKEN: TokenStorage(layout, [storage(slots)])})


NFTS = [
    nft_block(1, [(ZERO_ADDRESS, ANN, 1), (ZERO_ADDRESS, BEN, 2)], n1=(ZERO_ADDRESS, ANN), n2=(ZERO_ADDRESS, BEN)),
    nft_block(2, [], n1=(ANN, EVE), n3=(ZERO_ADDRESS, DAN)),  # stolen, and minted, without a log
    nft_block(3, [(EVE, ANN, 1)]),  # a log, and nothing moved
    nft_block(4, [(BEN, ANN, 2)], n2=(BEN, EVE)),  # a log that names another owner
    nft_block(5, [(DAN, BEN, 3), (ZERO_ADDRESS, BEN, 9)], n3=(DAN, BEN)),  # 9 was never minted
    nft_block(6, [], n2=(EVE, ZERO_ADDRESS), n3=(BEN, DAN)),
]
OWNED = {
    1: [ANN, EVE, EVE, EVE, EVE, EVE],
    2: [BEN, BEN, BEN, EVE, EVE, ZERO_ADDRESS],
    3: [None, DAN, DAN, DAN, BEN, DAN],
    9: [None, None, None, None, ZERO_ADDRESS, ZERO_ADDRESS],
}
IDS = [
    amount_block(1, [(ZERO_ADDRESS, ANN, 7, 5), (ZERO_ADDRESS, BEN, 7, 6)], {ANN: (0, 5), BEN: (0, 6)}),
    amount_block(2, [(ANN, BEN, 7, 1)], {ANN: (5, 4)}),  # a fee of everything
    amount_block(3, [], {BEN: (6, 1), DAN: (0, 8)}),  # nothing logged
    amount_block(4, [(ANN, BEN, 7, 3)], {}),
    amount_block(5, [(DAN, BEN, 7, 1)], {DAN: (8, 3), BEN: (1, 2)}),
    amount_block(6, [], {DAN: (3, 0), ANN: (4, 9)}),
]
HELD = {ANN: [5, 4, 4, 4, 4, 9], BEN: [6, 6, 1, 1, 2, 2], DAN: [0, 0, 8, 8, 3, 0]}


async def put(store: ChainStore, blocks: Sequence[ResolvedBlock], owners: Mapping[int, bytes] | None = None) -> None:
    """Store blocks. `owners`: what was read from state, by ID."""
    number = blocks[0].rows.block.number
    layout = blocks[0].slots[TOKEN].layout
    read = {(TOKEN, b"", one): int.from_bytes(who, "big") for one, who in (owners or {}).items()}
    found = [FoundLayout(TOKEN, 1, layout, is_other=False)] if number == 1 else []
    await store.commit(blocks, baselines=read, layouts=found)


def owner(store: ChainStore, token_id: int, at: int) -> bytes | None:
    rows = store.read(
        "select a.address from nft_owner o join address a on a.id = o.owner where o.token_id = :token_id"
        " and o.block <= :block order by o.block desc limit 1",
        {"token_id": pack_uint(token_id), "block": at},
    )
    return rows[0][0] if rows else None


def amount(store: ChainStore, who: bytes, at: int) -> int:
    rows = store.read(
        "select coalesce((select balance from erc1155_balance b where b.holder = h.holder and b.block <= :block"
        " order by block desc limit 1), h.baseline) from erc1155_holding h join address a on a.id = h.holder"
        " where a.address = :who",
        {"who": who, "block": at},
    )
    return unpack_uint(rows[0][0])


def untrusted(store: ChainStore) -> Any:
    return store.read("select untrusted_since from token")[0][0]


def held(store: ChainStore) -> dict[bytes, int]:
    rows = store.read("select a.address, h.balance from holder h join address a on a.id = h.holder")
    return {who: count for who, balance in rows if (count := unpack_uint(balance))}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("size", [1, 3, 6])
@awaited
async def test_owners_are_what_slots_hold(size: int, engine: str, tmp_path: Path) -> None:
    store = open_store(tmp_path / f"a.{engine}")
    for start in range(0, len(NFTS), size):
        await put(store, NFTS[start : start + size])
        await count_all(store._store)
    assert {one: [owner(store, one, at) for at in range(1, 7)] for one in OWNED} == OWNED
    assert untrusted(store) is None
    listed = store.read("select a.address, h.token_id from nft_held h join address a on a.id = h.owner")
    assert sorted(listed) == sorted([(EVE, pack_uint(1)), (DAN, pack_uint(3))])
    assert held(store) == {EVE: 1, DAN: 1}
    assert store.read("select balance_source from token_trust") == [("storage",)]
    store.close()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("size", [1, 3, 6])
@awaited
async def test_amounts_are_what_slots_hold(size: int, engine: str, tmp_path: Path) -> None:
    store = open_store(tmp_path / f"a.{engine}")
    for start in range(0, len(IDS), size):
        await put(store, IDS[start : start + size])
        await count_all(store._store)
    assert {who: [amount(store, who, at) for at in range(1, 7)] for who in HELD} == HELD
    assert untrusted(store) is None
    assert held(store) == {ANN: 1, BEN: 1}
    store.close()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("blocks", [NFTS, IDS], ids=["owners", "amounts"])
@awaited
async def test_a_rollback_leaves_what_was_before(blocks: list[ResolvedBlock], engine: str, tmp_path: Path) -> None:
    rolled = open_store(tmp_path / f"a.{engine}")
    whole = open_store(tmp_path / f"b.{engine}")
    for ancestor, one in enumerate(blocks[:-1], start=1):
        await put(whole, [one])
        await count_all(whole._store)
        for left in blocks[ancestor - 1 :]:
            await put(rolled, [left])
        await count_all(rolled._store)
        await rolled.roll_back(ancestor)
        for table in TABLES:
            rows = [sorted(store.read(f"select * from {table}"), key=repr) for store in (rolled, whole)]
            assert rows[0] == rows[1], (ancestor, table)
    rolled.close()
    whole.close()


@awaited
async def test_a_missed_change_makes_the_token_untrusted(tmp_path: Path) -> None:
    for name, first, second in (
        ("nft", NFTS[0], nft_block(2, [(EVE, ANN, 1)], n1=(EVE, ANN))),
        ("amount", IDS[0], amount_block(2, [(ANN, BEN, 7, 1)], {ANN: (4, 3)})),
    ):
        store = open_store(tmp_path / f"{name}.sqlite")
        await put(store, [first])
        await put(store, [second])
        assert untrusted(store) == 2
        store.close()


@awaited
async def test_a_contract_of_another_standard_too_is_not_trusted_by_its_storage(tmp_path: Path) -> None:
    store = open_store(tmp_path / "a.sqlite")
    await put(store, IDS[:1])
    sources = [store.read("select balance_source, is_untrusted from token_trust")]
    nft = nft_block(2, [(ZERO_ADDRESS, ANN, 1)])
    await store.commit([msgspec.structs.replace(nft, slots={})])
    sources.append(store.read("select balance_source, is_untrusted from token_trust"))
    assert sources == [[("storage", 0)], [("logs", 1)]]
    store.close()


# A collection that is older than its first log: the owners of what logs name are asked where no slot changed.
OLDER = msgspec.structs.replace(OWNERS, is_whole=False)
OLD_NFTS = [
    nft_block(1, [(BEN, DAN, 1), (BEN, EVE, 2)], OLDER, n2=(BEN, EVE)),  # 1 stays with Ann, whatever the log says
    nft_block(2, [(ANN, BEN, 1), (EVE, DAN, 5)], OLDER, n1=(ANN, BEN)),  # 5 has no owner
    nft_block(3, [(BEN, ANN, 1)], OLDER),
]


OLDER_AMOUNTS = msgspec.structs.replace(AMOUNTS, is_whole=False)
CHANGED_EARLY = [
    nft_block(1, [(BEN, EVE, 2)], OLDER, n2=(BEN, EVE)),
    nft_block(2, [], OLDER, n7=(ANN, DAN), n8=(ZERO_ADDRESS, DAN)),  # which no log has named
    nft_block(3, [], OLDER, n7=(DAN, BEN)),
    nft_block(4, [(BEN, EVE, 7), (DAN, EVE, 8)], OLDER, n7=(BEN, EVE), n8=(DAN, EVE)),
]
GAINED_EARLY = [
    amount_block(1, [(ANN, BEN, 7, 1)], {ANN: (9, 8), BEN: (0, 1)}, OLDER_AMOUNTS),
    amount_block(2, [], {DAN: (100, 150)}, OLDER_AMOUNTS),
    amount_block(3, [], {DAN: (150, 160)}, OLDER_AMOUNTS),
    amount_block(4, [(DAN, BEN, 7, 1)], {DAN: (160, 159), BEN: (1, 2)}, OLDER_AMOUNTS),
]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("size", [1, 3, 4])
@awaited
async def test_what_was_there_before_the_token_was_seen_is_known(size: int, engine: str, tmp_path: Path) -> None:
    """The ID or the holder is named by a log long after the first change of its slot that was seen."""
    for name, blocks in (("nfts", CHANGED_EARLY), ("amounts", GAINED_EARLY)):
        store = open_store(tmp_path / f"{name}.{engine}")
        for start in range(0, len(blocks), size):
            await put(store, blocks[start : start + size])
        for _ in range(2):
            if blocks is CHANGED_EARLY:
                assert [owner(store, 7, at) for at in range(1, 5)] == [ANN, DAN, BEN, EVE]
                assert [owner(store, 8, at) for at in range(1, 5)] == [None, DAN, DAN, EVE]
            else:
                assert [amount(store, DAN, at) for at in range(1, 5)] == [100, 150, 160, 159]
            assert untrusted(store) is None
            await store.roll_back(1)
            await put(store, blocks[1:])
        store.close()


class StateOfOwners:
    """The state of a collection. It counts what was asked."""

    def __init__(self, answers: Mapping[int, bytes | Reverted]) -> None:
        self._answers = {owner_of(TOKEN, token_id): answer for token_id, answer in answers.items()}
        self.asked: list[StateCall] = []
        self.is_pruned = False

    async def head(self) -> int:
        return 0

    async def results(self, calls: Sequence[StateCall]) -> list[bytes | Reverted]:
        if self.is_pruned:
            raise NoState("pruned")
        self.asked += calls
        return [self._answers[one.call] for one in calls]

    async def prove(self, seen: SeenKey, at: At) -> StorageLayout | Refused:
        raise AssertionError(seen)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("size", [1, 3])
@awaited
async def test_owners_from_before_the_first_log_are_asked(size: int, engine: str, tmp_path: Path) -> None:
    store = open_store(tmp_path / f"a.{engine}")
    state = StateOfOwners({1: ANN.rjust(32, b"\0"), 5: Reverted("no such token")})
    layouts = TokenLayouts(store, state, state)
    for start in range(0, len(OLD_NFTS), size):
        some = OLD_NFTS[start : start + size]
        read = await layouts.owners(some)
        await put(store, some, {key[2]: owner.to_bytes(20, "big") for key, owner in read.items()})
        await count_all(store._store)
    assert untrusted(store) is None
    assert [one.at for one in state.asked] == [one.rows.block.parent_hash for one in OLD_NFTS[:2]]
    assert {one: [owner(store, one, at) for at in range(1, 4)] for one in (1, 2, 5)} == {
        1: [ANN, BEN, BEN],
        2: [EVE, EVE, EVE],
        5: [None, ZERO_ADDRESS, ZERO_ADDRESS],
    }
    assert held(store) == {BEN: 1, EVE: 1}
    store.close()


@pytest.mark.parametrize("engine", ENGINES)
@awaited
async def test_a_rollback_forgets_owners_that_were_asked(engine: str, tmp_path: Path) -> None:
    rolled = open_store(tmp_path / f"a.{engine}")
    whole = open_store(tmp_path / f"b.{engine}")
    read = {1: ANN, 5: ZERO_ADDRESS}
    older = nft_block(1, [(BEN, EVE, 2)], OLDER, n2=(BEN, EVE))
    named = nft_block(2, [(BEN, DAN, 1)], OLDER)
    for store, blocks in ((rolled, [older, named]), (whole, [older])):
        for one in blocks:
            await put(store, [one], read)
        await count_all(store._store)
    assert held(rolled) == {ANN: 1, EVE: 1}
    await rolled.roll_back(1)
    for table in TABLES:
        rows = [sorted(store.read(f"select * from {table}"), key=repr) for store in (rolled, whole)]
        assert rows[0] == rows[1], table
    rolled.close()
    whole.close()


@awaited
async def test_an_owner_who_cannot_be_asked_makes_the_token_untrusted(tmp_path: Path) -> None:
    for name, answer, is_pruned in (("aborted", Aborted("out of gas"), False), ("pruned", b"", True)):
        store = open_store(tmp_path / f"{name}.sqlite")
        state = StateOfOwners({1: answer})
        state.is_pruned = is_pruned
        read = await TokenLayouts(store, state, state).owners(OLD_NFTS[:1])
        assert read == {}
        await put(store, OLD_NFTS[:1])
        assert untrusted(store) == 1
        store.close()


@awaited
async def test_the_owners_that_a_block_has_asked_are_bounded(tmp_path: Path) -> None:
    store = open_store(tmp_path / "a.sqlite")
    state = StateOfOwners({token_id: ANN.rjust(32, b"\0") for token_id in range(OWNERS_ASKED_MAX + 5)})
    many = nft_block(1, [(BEN, DAN, token_id) for token_id in range(OWNERS_ASKED_MAX + 5)], OLDER)
    assert len(await TokenLayouts(store, state, state).owners([many])) == OWNERS_ASKED_MAX
    store.close()


# More words change without a log than may be stored of a token.
CROWDED = [
    nft_block(1, [(ZERO_ADDRESS, ANN, 1)], n1=(ZERO_ADDRESS, ANN)),
    nft_block(2, [], n2=(ZERO_ADDRESS, DAN), n3=(ZERO_ADDRESS, EVE)),
]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize(
    ("last", "read", "is_known"),
    [
        (nft_block(3, [(DAN, BEN, 2)], n2=(DAN, BEN)), {}, True),  # its word was stored
        (nft_block(3, [(EVE, BEN, 3)], n3=(EVE, BEN)), {}, False),
        (nft_block(3, [(EVE, BEN, 3)]), {3: EVE}, False),
        (nft_block(3, [(EVE, BEN, 9)]), {9: ZERO_ADDRESS}, True),
    ],
)
@awaited
async def test_an_nft_whose_words_were_dropped_makes_the_token_untrusted(
    last: ResolvedBlock, read: dict[int, bytes], is_known: bool, size: int, engine: str, tmp_path: Path
) -> None:
    store = open_store(tmp_path / f"a.{engine}", unclaimed_max=1)
    blocks = [*CROWDED, last]
    for start in range(0, len(blocks), size):
        await put(store, blocks[start : start + size], read)
    assert store.read("select words_dropped_since from token") == [(2,)]
    assert store.words_dropped == 1
    assert (untrusted(store) is None) == is_known
    store.close()


@awaited
async def test_owners_are_asked_where_words_may_have_been_dropped(tmp_path: Path) -> None:
    """Words are counted by the length of their text, and by what is stored of a token that is met again."""
    store = open_store(tmp_path / "a.sqlite", unclaimed_max=1)
    blocks = [*CROWDED, nft_block(3, [(EVE, BEN, 9)]), nft_block(4, [(EVE, BEN, 8)])]
    state = StateOfOwners({token_id: Reverted("no such token") for token_id in (8, 9)})
    layouts = TokenLayouts(store, state, state)
    layouts._known[TOKEN] = _Known(True, OWNERS)
    for one in blocks[:3]:
        rows = msgspec.structs.replace(one.rows, storage=[(TOKEN, text) for text in one.slots[TOKEN].texts])
        slots = (await layouts.advance(rows)).slots
        read = await layouts.owners([msgspec.structs.replace(one, slots=slots)])
        assert [key[2] for key in read] == ([9] if one is blocks[2] else [])
        await put(store, [one], {key[2]: owner.to_bytes(20, "big") for key, owner in read.items()})
    assert untrusted(store) is None
    again = TokenLayouts(store, state, state)
    await again.prepare([blocks[3].rows])
    slots = (await again.advance(blocks[3].rows)).slots
    assert slots[TOKEN].may_lack_words
    store.close()
