"""Every rule of the published interface for the index, on scenario-1 as it was followed."""

import re
from datetime import datetime

import pytest
from tests.sync.expected import accepted, txs
from tests.sync.followed_node import X_TX, X_VTX, Answer, Followed, Node, X, node_after_following

from icefall.wire.container.proposer import unpack_container
from icefall.wire.ids import hash256, id_from_text, id_text
from icefall.wire.text import checksum_hex

BLOCK_PATHS = ("/ext/index/C/block", "/ext/index/P/block", "/ext/index/X/block")
PATHS = (*BLOCK_PATHS, X_TX, X_VTX)
FULL_PATHS = (*BLOCK_PATHS, X_TX)
LIMIT_MAX = 1024
ISO_8601 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)")
UNUSED_ID = b"\xfe" * 32


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Followed:
    return node_after_following(tmp_path_factory.mktemp("rules"))


@pytest.fixture(scope="module")
def node(history: Followed) -> Node:
    return history.node


def expected_ids(path: str) -> list[bytes]:
    if path == X_TX:
        return [tx.txid for tx in txs()]
    return [container.container_id for container in accepted(path.split("/")[3])]


@pytest.mark.parametrize("path", FULL_PATHS)
def test_containers_have_the_fields_of_the_interface_and_no_others(history: Followed, path: str) -> None:
    rows, before = list(history.node.walk(path)), history.began
    assert [id_from_text(row["id"]) for row in rows] == expected_ids(path)
    for number, row in enumerate(rows):
        assert set(row) == {"id", "bytes", "timestamp", "encoding", "index"}
        assert all(isinstance(value, str) for value in row.values())
        assert (row["encoding"], row["index"]) == ("hex", str(number))
        raw = checksum_hex.decode(row["bytes"])  # with its checksum
        assert id_from_text(row["id"]) == (hash256(raw) if path == X_TX else unpack_container(raw).container_id)
        assert ISO_8601.fullmatch(row["timestamp"])
        moment = datetime.fromisoformat(row["timestamp"][:19] + row["timestamp"][19:].lstrip(".0123456789")).timestamp()
        assert before - 1 <= moment <= history.ended  # when this node accepted it, in order
        before = max(before, moment)


@pytest.mark.parametrize("path", FULL_PATHS)
def test_a_container_is_found_by_id_by_number_and_as_the_last(node: Node, path: str) -> None:
    rows = list(node.walk(path))
    for row in (rows[0], rows[len(rows) // 2], rows[-1]):
        assert node.ask(path, "index.getContainerByID", id=row["id"], encoding="hex").result == row
        assert node.ask(path, "index.getContainerByIndex", index=row["index"], encoding="hex").result == row
        assert node.ask(path, "index.getContainerByIndex", index=int(row["index"])).result == row
        assert node.ask(path, "index.getIndex", id=row["id"], encoding="hex").result == {"index": row["index"]}
        assert node.ask(path, "index.isAccepted", id=row["id"], encoding="hex").result == {"isAccepted": True}
    assert node.ask(path, "index.getLastAccepted", encoding="hex").result == rows[-1]


@pytest.mark.parametrize("path", PATHS)
def test_what_was_never_accepted_is_not_found(node: Node, path: str) -> None:
    unused = id_text(UNUSED_ID)
    assert node.ask(path, "index.isAccepted", id=unused, encoding="hex").result == {"isAccepted": False}
    assert node.ask(path, "index.getIndex", id=unused, encoding="hex").failed
    assert node.ask(path, "index.getContainerByID", id=unused, encoding="hex").failed
    assert node.ask(path, "index.getContainerByIndex", index="100000", encoding="hex").failed


def count_of(path: str) -> int:
    return 0 if path == X_VTX else len(expected_ids(path))


def ranged(node: Node, path: str, start: int, count: int) -> Answer:
    return node.ask(path, "index.getContainerRange", startIndex=str(start), numToFetch=str(count), encoding="hex")


@pytest.mark.parametrize("path", PATHS)
def test_range_rule_1_a_count_of_zero_is_null(node: Node, path: str) -> None:
    for start in (0, count_of(path), 1 << 40):
        assert ranged(node, path, start, 0).result is None


@pytest.mark.parametrize("path", PATHS)
def test_range_rule_2_a_start_behind_the_last_is_an_error(node: Node, path: str) -> None:
    for start in (count_of(path), count_of(path) + 1, 1 << 63, (1 << 64) - 1):
        assert ranged(node, path, start, 1).failed


@pytest.mark.parametrize("path", PATHS)
def test_range_rule_3_more_than_1024_is_an_error(node: Node, path: str) -> None:
    for count in (1025, 1 << 32, (1 << 64) - 1):
        assert "[0,1024]" in ranged(node, path, 0, count).failed
    if path != X_VTX:
        assert len(ranged(node, path, 0, 1024).result) == count_of(path)


@pytest.mark.parametrize("path", FULL_PATHS)
def test_range_rule_4_where_fewer_exist_those_are_returned(node: Node, path: str) -> None:
    last = count_of(path) - 1
    assert [row["index"] for row in ranged(node, path, last - 2, 1024).result] == [str(last - 2 + n) for n in range(3)]
    assert [row["index"] for row in ranged(node, path, last, 2).result] == [str(last)]
    assert [row["index"] for row in ranged(node, path, 1, 2).result] == ["1", "2"]


def test_vertices_are_readable_and_there_are_none(node: Node) -> None:
    for method in ("index.getLastAccepted", "index.getContainerByIndex"):
        assert node.ask(X_VTX, method, encoding="hex").failed
    assert ranged(node, X_VTX, 0, 1).failed == "no containers have been accepted"


def test_transactions_are_read_in_order_through_the_index(node: Node) -> None:
    """As the interface describes it: IDs by index from X/tx, then avm.getTx with each."""
    for number, tx in enumerate(txs()):
        row = node.ask(X_TX, "index.getContainerByIndex", index=str(number), encoding="hex").result
        result = node.ask(X, "avm.getTx", txID=row["id"]).result
        assert result == {"tx": row["bytes"], "encoding": "hex"}
        assert checksum_hex.decode(result["tx"]) == tx.raw
