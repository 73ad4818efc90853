"""Damaged answers: refused with our own errors, or noticed, or without effect on anything that hashes cover.

ICEFALL_FUZZ_CASES sets how many are tried, ICEFALL_FUZZ_SEED which ones.
"""

import json
import os
import random
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from tests.evm.recordings import CHAINS, Code, Row, contract_info_for, decoded, lines

from icefall.evm.deriving.derive import derive
from icefall.wire.errors import WireError
from icefall.wire.evm.types import FullBlock
from icefall.wire.evm.verify import verify_full

CASES = int(os.environ.get("ICEFALL_FUZZ_CASES", "6000")) // 10
SEED = int(os.environ.get("ICEFALL_FUZZ_SEED", "1"))
PARTS = ("block", "receipts", "calls", "diffs")
UNEXPECTED: list[Any] = [
    *[None, True, 0, -1, 1e308, "", "0x", "0x0", "0x-1", "0xzz", "0x1", [], {}, [None], {"a": 1}],
    *["0x" + "f" * 64, "0x" + "f" * 65, "0x" + "11" * 20, "0x" + "22" * 32, "CALL", "CREATE", "SELFDESTRUCT", "\u0661"],
]


def cut(raw: bytes, chance: random.Random) -> bytes:
    return raw[: chance.randrange(len(raw))]


def flip(raw: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(raw))
    return raw[:at] + bytes([chance.choice(b'0123456789abcdef"{}[],:x \xff\0')]) + raw[at + 1 :]


def drop(raw: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(raw))
    return raw[:at] + raw[at + chance.randrange(1, 80) :]


def double(raw: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(raw))
    end = at + chance.randrange(1, 80)
    return raw[:end] + raw[at:end] + raw[end:]


def other_value(raw: bytes, chance: random.Random) -> bytes:
    """Sound JSON in which one value is another, is gone or is there twice."""
    value = json.loads(raw)
    node = value
    while isinstance(node, dict | list) and node:
        key: Any = chance.choice(list(node)) if isinstance(node, dict) else chance.randrange(len(node))
        inner = node[key]
        if isinstance(inner, dict | list) and inner and chance.random() < 0.9:
            node = inner
            continue
        what = chance.random()
        if what < 0.2:
            del node[key]
        elif what < 0.3 and isinstance(node, list):
            node.append(inner)
        else:
            node[key] = chance.choice(UNEXPECTED)
        break
    return json.dumps(value).encode()


DAMAGE: list[Callable[[bytes, random.Random], bytes]] = [cut, flip, drop, double, other_value, other_value, other_value]


def covered(full: FullBlock) -> Any:
    """What hashes cover, or several answers repeat. The rest is not used, or is optional."""
    txs = [msgspec.structs.replace(tx, gas_price=0, chain_id=tx.type_id and tx.chain_id) for tx in full.block.txs]
    receipts = [msgspec.structs.replace(receipt, gas_price=0, contract=b"") for receipt in full.receipts]
    return msgspec.structs.replace(full.block, txs=tuple(txs), unknown_fields=False, size=None), receipts


@pytest.mark.parametrize("chain", CHAINS)
@pytest.mark.parametrize("part", PARTS)
def test_damaged_answers(chain: str, part: str) -> None:
    chance = random.Random(f"{SEED} {chain} {part}")
    rows = [row for row in lines(chain) if len(bytes(row.receipts)) > 2 and len(bytes(row.block)) < 40_000]
    code = Code(chain)
    refused = 0
    for _ in range(CASES // 8):
        row = chance.choice(rows)
        raw = chance.choice(DAMAGE)(bytes(getattr(row, part)), chance)
        damaged = Row(**{**{name: getattr(row, name) for name in Row.__struct_fields__}, part: msgspec.Raw(raw)})
        try:
            full = decoded(damaged)
            problems = verify_full(full, None, roots=True)
        except WireError:
            refused += 1
            continue
        if not problems:
            assert covered(full) == covered(decoded(row)), raw
        derive(full, contract_info_for(chain, full, code))
    assert refused > 0
