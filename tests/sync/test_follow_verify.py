"""Containers verified without any state: bytes in, verified containers or an error out."""

from datetime import UTC, datetime

import pytest
from tests.sync.memory_chains import CHAIN_IDS, GENESIS_IDS
from tests.upstream.replay import Row, labelled, local_genesis, other_history, recorded, rewrapped
from tests.wire.wire_vectors import pack_option

from icefall.node.sync.verify import (
    ChainLinks,
    ChainPosition,
    InvalidContainer,
    UnknownContainer,
    UnlinkedContainer,
    VerifiedContainer,
    identify,
    verify,
)
from icefall.upstream.node import FetchedContainer
from icefall.wire.avm.codec import unpack_block
from icefall.wire.container.coreth import unpack_coreth_block
from icefall.wire.container.proposer import pack_container, unpack_container
from icefall.wire.ids import hash256, id_text
from icefall.wire.packer import u32, u64

NOW = datetime(2026, 11, 15, tzinfo=UTC)
SCENARIO, CCHAIN = "scenario-1/containers.jsonl.gz", "cchain-1_containers.jsonl.gz"


def fetched(rows: list[Row], start: int = 0) -> list[FetchedContainer]:
    return [FetchedContainer(number, row.id_text, row.raw, NOW) for number, row in enumerate(rows, start)]


def links(chain: str) -> ChainLinks:
    return ChainLinks(chain, CHAIN_IDS["X"])


def genesis(chain: str) -> ChainPosition:
    return ChainPosition(0, GENESIS_IDS[chain], GENESIS_IDS[chain])


def judge(chain: str, rows: list[Row], position: ChainPosition | None = None) -> list[VerifiedContainer]:
    at = position or genesis(chain)
    return verify(links(chain), at, fetched(rows, at.number))[0]


@pytest.mark.parametrize(
    ("name", "chain"), [(SCENARIO, "X"), (SCENARIO, "P"), (SCENARIO, "C"), (CCHAIN, "X"), (CCHAIN, "C")]
)
def test_recorded_histories_hold(name: str, chain: str) -> None:
    rows = recorded(name)[chain]
    anywhere = ChainLinks(chain, CHAIN_IDS["X"], is_genesis=lambda parent_id: True)  # they started at different times
    run, after = verify(anywhere, genesis(chain), fetched(rows))
    assert [offered.raw for offered in run] == [row.raw for row in rows]
    assert [id_text(offered.container_id) for offered in run] == [row.id_text for row in rows]
    assert [offered.height for offered in run] == list(range(1, len(rows) + 1))
    assert after.number == len(rows)
    assert (after.container_id, after.block_id) == (run[-1].container_id, run[-1].block_id)
    for offered in run:
        wrapping = unpack_container(offered.raw)
        assert (offered.inner, offered.time) == (wrapping.inner, wrapping.timestamp)
        if chain == "X":
            block = unpack_block(offered.inner)
            assert (block.block_id, block.parent_id, block.time) == (
                offered.block_id,
                offered.parent_block_id,
                offered.time,
            )
            assert offered.exports == ()
    exported = sum(len(offered.exports) for offered in run)
    assert all(export.destination_chain == CHAIN_IDS["X"] for offered in run for export in offered.exports)
    if name == SCENARIO:
        assert exported == {"X": 0, "P": 62, "C": 36}[chain]


@pytest.mark.parametrize("size", [1, 7, 100])
def test_runs_of_any_length_come_to_the_same(size: int) -> None:
    batch = fetched(recorded()["X"])
    whole, _ = verify(links("X"), genesis("X"), batch)
    position, parts = genesis("X"), []
    for start in range(0, len(batch), size):
        part, position = verify(links("X"), position, batch[start : start + size])
        parts += part
    assert parts == whole


def test_the_start_of_a_network_decides_about_p() -> None:
    rows = recorded()["P"]
    other = local_genesis(1_700_000_000).p_block_0_id
    with pytest.raises(InvalidContainer, match="not this network's genesis"):
        verify(links("P"), ChainPosition(0, other, other), fetched(rows))
    known = {other, GENESIS_IDS["P"]}
    assert (
        len(verify(ChainLinks("P", CHAIN_IDS["X"], known.__contains__), ChainPosition(0, b"", b""), fetched(rows))[0])
        == 13
    )


FORGED_AT = 150


def forgeries() -> dict[str, tuple[Row, str]]:
    """What may be sent instead of container 150, and the error for it."""
    rows = recorded()["X"]
    true = rows[FORGED_AT]
    inner = unpack_container(true.raw).inner
    before = unpack_container(rows[FORGED_AT - 1].raw)
    return {
        "wrong ID": (Row(rows[FORGED_AT + 1].id_text, true.raw), "its bytes are those of"),
        "no ID": (Row("nonsense", true.raw), "is labelled nonsense"),
        "ID of the block": (Row(id_text(hash256(inner)), true.raw), "its bytes are those of"),
        "broken parent": (rewrapped(true, parent_id=hash256(b"x")), "follows"),
        "truncated": (Row(true.id_text, true.raw[:-5]), "neither a container nor a block"),
        "truncated to nothing": (Row(true.id_text, true.raw[:1]), "neither a container nor a block"),
        "a byte too many": (Row(true.id_text, true.raw + b"\0"), "neither a container nor a block"),
        "another block inside": (rewrapped(true, inner=before.inner), "has height 150"),
        "no block inside": (rewrapped(true, inner=b"\0\0\0\0\0\x14"), "holds no block"),
        "a block of another kind": (rewrapped(true, inner=b"\0\0\0\0\0\x15" + bytes(48)), "unknown block type 21"),
        "an orphan inside": (
            rewrapped(true, inner=inner[:6] + hash256(b"x") + inner[38:]),
            "but the one before it is",
        ),
        "time runs backwards": (rewrapped(true, timestamp=before.timestamp - 1), "before the"),
        "P height runs backwards": (rewrapped(true, p_chain_height=0), "below the"),
        "unwrapped": (Row(id_text(hash256(inner)), inner), "follows"),
    }


@pytest.mark.parametrize("name", forgeries())
def test_invalid_containers(name: str) -> None:
    rows = recorded()["X"]
    row, text = forgeries()[name]
    with pytest.raises(InvalidContainer, match=text):
        judge("X", [*rows[:FORGED_AT], row, *rows[FORGED_AT + 1 :]])


def test_holes() -> None:
    rows = recorded()["X"]
    gap = fetched(rows[:5]) + fetched(rows, 0)[6:9]
    with pytest.raises(InvalidContainer, match="X container 6 was sent where 5 belongs: the index has a hole"):
        verify(links("X"), genesis("X"), gap)
    with pytest.raises(InvalidContainer, match=r"container 5 has height 7, where 6 belongs.*--index-allow-incomplete"):
        judge("X", rows[:5] + rows[6:9])
    with pytest.raises(InvalidContainer, match="container 0 has height 11"):
        judge("X", rows[10:])


def test_an_unlinked_first_container_has_its_own_error() -> None:
    rows = recorded()["X"]
    _, position = verify(links("X"), genesis("X"), fetched(rows[:10]))
    unlinked = other_history(rows, 5)[10:20]
    with pytest.raises(UnlinkedContainer):
        judge("X", unlinked, position)
    with pytest.raises(InvalidContainer) as caught:
        judge("X", [rows[10], *unlinked[1:]], position)
    assert not isinstance(caught.value, UnlinkedContainer)


def test_unknown_blocks_of_p_and_c_are_not_invalid() -> None:
    for chain in "PC":
        rows = recorded()[chain]
        strange = rewrapped(rows[5], inner=b"\0\0\0\0\0\x63 a block type of tomorrow")
        with pytest.raises(UnknownContainer, match=f"{chain} container 5 .* cannot be read") as caught:
            judge(chain, [*rows[:5], strange, *rows[6:]])
        assert len(caught.value.readable) == 5
        with pytest.raises(InvalidContainer, match="follows"):
            judge(chain, [*rows[:5], rewrapped(strange, parent_id=hash256(b"x"))])


def test_blocks_from_before_there_were_wrappings() -> None:
    for chain, unpack in (("X", unpack_block), ("C", unpack_coreth_block)):
        rows = recorded()[chain]
        bare = [unpack_container(row.raw).inner for row in rows[:4]]
        old = [Row(id_text(unpack(inner).block_id), inner) for inner in bare]
        # The first wrapped one names the last bare one's own ID.
        fork = rewrapped(rows[4], parent_id=unpack(bare[3]).block_id)
        run = judge(chain, [*old, fork])
        assert [offered.height for offered in run] == [1, 2, 3, 4, 5]
        assert run[3].container_id == run[3].block_id != run[4].container_id


def test_options_take_their_parents_time() -> None:
    first = pack_container(GENESIS_IDS["P"], 777, 3, apricot(0, GENESIS_IDS["P"], 1))
    second = unpack_container(pack_option(first.container_id, apricot(2, hash256(first.inner), 2)))
    third = pack_container(second.container_id, 778, 3, apricot(2, hash256(second.inner), 3))
    run = judge("P", [labelled(wrapped.raw) for wrapped in (first, second, third)])
    assert [offered.time for offered in run] == [777, 777, 778]


def apricot(type_id: int, parent_id: bytes, height: int) -> bytes:
    """A P-Chain block without a time: 0 proposes to reward a validator, 2 commits that."""
    proposal = u32(20) + bytes(32) + u32(0) if type_id == 0 else b""
    return b"\0\0" + u32(type_id) + parent_id + u64(height) + proposal


def test_identify() -> None:
    row = recorded()["X"][9]
    assert id_text(identify(links("X"), fetched([row], 9)[0])) == row.id_text
    with pytest.raises(InvalidContainer, match="has height 10, where 9 belongs"):
        identify(links("X"), fetched([row], 8)[0])
