"""The order in which the recorded node inserted outputs of one block, which is random there.

It is taken from its answers about single addresses, so that all that follows from the order can be compared: pages, and
where they end. Only outputs of the same block change places.
"""

from collections import defaultdict
from graphlib import TopologicalSorter
from itertools import pairwise
from typing import Any

from tests.wire.platform_vectors import p_rows

from icefall.db.engine import Transaction
from icefall.wire.ids import input_id
from icefall.wire.pvm.codec import unpack_utxo
from icefall.wire.text import checksum_hex

_INSERTED = """
select u.utxo_id, u.position, coalesce(t.height, 0) from p_utxo u
left join p_tx t on t.seq = coalesce(u.returned_seq, u.created_seq) where u.state = 0
"""


def take_drawn_order(tx: Transaction, recording: str) -> None:
    order: dict[bytes, set[bytes]] = defaultdict(set)
    for row in p_rows(recording, "final"):
        if _is_whole_list(row):
            for newer, older in pairwise([_utxo_id(text) for text in row["response"]["result"]["utxos"]]):
                order[newer].add(older)
    inserted = {utxo_id: (position, height) for utxo_id, position, height in tx.rows(_INSERTED)}
    by_height: dict[int, list[bytes]] = defaultdict(list)
    for utxo_id in TopologicalSorter(order).static_order():  # oldest first
        by_height[inserted[utxo_id][1]].append(utxo_id)
    moved = []
    for same_block in by_height.values():
        places = sorted(inserted[utxo_id][0] for utxo_id in same_block)
        moved += [(-place, inserted[utxo_id][0]) for utxo_id, place in zip(same_block, places, strict=True)]
    for table in ("p_utxo", "p_utxo_owner"):  # `made`, by which lists are ordered, stays
        tx.run_many(f"update {table} set position = ? where position = ?", moved)
        tx.run(f"update {table} set position = -position where position < 0")


def _is_whole_list(row: Any) -> bool:
    params = row["params"]
    return (
        row["method"] == "platform.getUTXOs"
        and "result" in row["response"]
        and len(params.get("addresses") or ()) == 1
        and not {"limit", "startIndex", "sourceChain"} & params.keys()
        and row["response"]["result"]["encoding"] == "hex"
    )


def _utxo_id(text: str) -> bytes:
    utxo = unpack_utxo(checksum_hex.decode(text))
    return input_id(utxo.txid, utxo.output_index)
