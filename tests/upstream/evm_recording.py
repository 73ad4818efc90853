"""What real EVM clients answered, read from tests/vectors/evm, and what their state was at any block."""

import json
import lzma
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import msgspec

VECTORS = Path(__file__).parent.parent / "vectors" / "evm"
CHAINS = ("geth-1", "cchain-1", "anvil-1", "berlin-1")
KINDS = {"geth-1": "geth", "cchain-1": "coreth", "anvil-1": "anvil", "berlin-1": "anvil"}


def lines(chain: str, name: str) -> Iterator[bytes]:
    yield from lzma.decompress((VECTORS / chain / f"{name}.jsonl.xz").read_bytes()).splitlines()


def loaded(chain: str, name: str) -> Any:
    return json.loads(lzma.decompress((VECTORS / chain / f"{name}.json.xz").read_bytes()))


class _Row(msgspec.Struct):
    number: int
    block: msgspec.Raw
    receipts: msgspec.Raw
    calls: msgspec.Raw
    diffs: msgspec.Raw


class RecordedBlock:
    """One block, each part byte for byte as it was recorded. `calls` and `diffs` of an untraceable genesis are None."""

    def __init__(self, line: bytes) -> None:
        row = msgspec.json.decode(line, type=_Row)
        self.number = row.number
        self.block, self.receipts = bytes(row.block), bytes(row.receipts)
        self.calls = None if bytes(row.calls) == b"null" else bytes(row.calls)
        self.diffs = None if bytes(row.diffs) == b"null" else bytes(row.diffs)
        told = msgspec.json.decode(row.block)
        self.hash: str = told["hash"]
        self.parent_hash: str = told["parentHash"]
        self.txids = tuple(tx["hash"] for tx in told["transactions"])

    @cached_property
    def slim(self) -> bytes:
        """The block with the hashes of its transactions only."""
        return msgspec.json.encode({**msgspec.json.decode(self.block), "transactions": self.txids})

    @cached_property
    def lean_diffs(self) -> bytes:
        """Without code, as a client sends them that was asked to leave it out."""
        rows = msgspec.json.decode(self.diffs or b"[]")
        for row in rows:
            for side in row["result"].values():
                for account in side.values():
                    account.pop("code", None)
        return msgspec.json.encode(rows)

    @cached_property
    def single_receipts(self) -> tuple[bytes, ...]:
        return tuple(bytes(raw) for raw in msgspec.json.decode(self.receipts, type=list[msgspec.Raw]))


Blocks = dict[int, RecordedBlock]


@cache
def recorded_blocks(chain: str, name: str = "blocks") -> Blocks:
    """By number. `name` may be one of anvil-1's reorg1_before_blocks, reorg1_after_blocks, reorg2_..."""
    return {block.number: block for block in map(RecordedBlock, lines(chain, name))}


class History:
    """The values of one thing, by the block they hold from."""

    def __init__(self) -> None:
        self._blocks: list[int] = []
        self._values: list[Any] = []

    def add(self, block: int, value: Any) -> None:
        if self._blocks and self._blocks[-1] == block:
            self._values[-1] = value
        else:
            self._blocks.append(block)
            self._values.append(value)

    def at(self, block: int, absent: Any = None) -> Any:
        place = bisect_right(self._blocks, block)
        return self._values[place - 1] if place else absent


class RecordedState:
    """Native and token balances, owners and code, at any block."""

    def __init__(self, chain: str, kind: str) -> None:
        self._chain = chain
        self._kind = kind
        self.values: dict[tuple[str, ...], History] = {}
        for line in lines(chain, "state"):
            row = json.loads(line)
            for what in ("native", "erc20", "erc721", "erc1155"):
                for path, value in _leaves(row[what], (what,)):
                    self.values.setdefault(path, History()).add(row["number"], value)
        self.tokens: dict[str, Any] = loaded(chain, "tokens")["tokens"]

    def at(self, block: int, *path: str) -> Any:
        """None: nobody knows, or it fails."""
        history = self.values.get(path)
        return history.at(block) if history is not None else None

    @cached_property
    def _codes(self) -> dict[str, History]:
        codes: dict[str, History] = {}
        for block in recorded_blocks(self._chain).values():
            for row in msgspec.json.decode(block.diffs or b"[]"):
                pre, post = row["result"]["pre"], row["result"]["post"]
                for address, account in pre.items():
                    if "code" in account and address not in codes:
                        codes.setdefault(address, History()).add(0, account["code"])
                    if address not in post and self._kind != "coreth":
                        codes.setdefault(address, History()).add(block.number, "0x")
                for address, account in post.items():
                    if "code" in account:
                        codes.setdefault(address, History()).add(block.number, account["code"])
        return codes

    def code(self, address: str, block: int) -> str:
        history = self._codes.get(address)
        return history.at(block, "0x") if history is not None else "0x"


def _leaves(values: dict[str, Any], path: tuple[str, ...]) -> Iterable[tuple[tuple[str, ...], Any]]:
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _leaves(value, (*path, key))
        else:
            yield (*path, key), value


@cache
def recorded_state(chain: str) -> RecordedState:
    return RecordedState(chain, KINDS[chain])
