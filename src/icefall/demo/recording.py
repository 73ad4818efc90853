"""The recorded answers of an EVM client, byte for byte, the state at any block, and calls of contracts from it."""

import json
import lzma
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from importlib.resources.abc import Traversable
from io import BytesIO
from typing import Any, Literal

import msgspec

Kind = Literal["geth", "coreth", "anvil"]

_CLEARED = "0x" + "00" * 32  # geth's code hash of an account whose delegation (EIP-7702) was removed
_ZERO_WORD = "0x" + "00" * 32


class _BlockLine(msgspec.Struct):
    number: int
    block: msgspec.Raw
    receipts: msgspec.Raw
    calls: msgspec.Raw
    diffs: msgspec.Raw


class RecordedBlock:
    """One block, each part byte for byte as it was recorded. `calls` and `diffs` of an untraceable genesis are None."""

    def __init__(self, line: bytes) -> None:
        row = msgspec.json.decode(line, type=_BlockLine)
        self.number = row.number
        self.block, self.receipts = bytes(row.block), bytes(row.receipts)
        self.calls = None if bytes(row.calls) == b"null" else bytes(row.calls)
        self.diffs = None if bytes(row.diffs) == b"null" else bytes(row.diffs)
        block = msgspec.json.decode(row.block)
        self.hash: str = block["hash"]
        self.parent_hash: str = block["parentHash"]
        self.txids = tuple(tx["hash"] for tx in block["transactions"])

    @cached_property
    def without_txs(self) -> bytes:
        """The block with the hashes of its transactions only."""
        return msgspec.json.encode({**msgspec.json.decode(self.block), "transactions": self.txids})

    @cached_property
    def diffs_without_code(self) -> bytes:
        """Return the diffs without code, as a client sends them with `disableCode`."""
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


class Recording:
    """A folder of recorded answers: meta.json, tokens.json, blocks.jsonl and state.jsonl, each compressed by xz."""

    def __init__(self, folder: Traversable, kind: Kind) -> None:
        self.folder = folder
        self.kind = kind

    def lines(self, name: str) -> Iterator[bytes]:
        """Decompressed line by line, to save memory."""
        compressed = (self.folder / f"{name}.jsonl.xz").read_bytes()
        with lzma.LZMAFile(BytesIO(compressed)) as lines:
            for line in lines:
                yield line.rstrip(b"\n")

    def loaded(self, name: str) -> Any:
        return json.loads(lzma.decompress((self.folder / f"{name}.json.xz").read_bytes()))

    @cached_property
    def meta(self) -> Any:
        return self.loaded("meta")

    @cached_property
    def blocks(self) -> Blocks:
        """Return the recorded blocks by number."""
        return {block.number: block for block in map(RecordedBlock, self.lines("blocks"))}

    @cached_property
    def state(self) -> "RecordedState":
        return RecordedState(self)


class History:
    """The values of one balance, owner or code, by the block from which they hold."""

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
        count = bisect_right(self._blocks, block)
        return self._values[count - 1] if count else absent


class RecordedState:
    """Native and token balances, owners and code, at any block."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self.values: dict[tuple[str, ...], History] = {}
        self.of_token: dict[tuple[str, ...], list[tuple[str, ...]]] = {}  # (standard, contract): paths in `values`
        for line in recording.lines("state"):
            row = json.loads(line)
            for what in ("native", "erc20", "erc721", "erc1155"):
                for path, value in _leaves(row[what], (what,)):
                    if path not in self.values:
                        self.values[path] = History()
                        self.of_token.setdefault(path[:2], []).append(path)
                    self.values[path].add(row["number"], value)
        self.tokens: dict[str, Any] = recording.loaded("tokens")["tokens"]

    def at(self, block: int, *path: str) -> Any:
        """None: not recorded, or the call fails."""
        history = self.values.get(path)
        return history.at(block) if history is not None else None

    @cached_property
    def _codes(self) -> dict[str, History]:
        codes: dict[str, History] = {}
        for block in self._recording.blocks.values():
            for row in msgspec.json.decode(block.diffs or b"[]"):
                pre, post = row["result"]["pre"], row["result"]["post"]
                for address, account in pre.items():
                    if "code" in account and address not in codes:
                        codes.setdefault(address, History()).add(0, account["code"])
                    if address not in post and self._recording.kind != "coreth":
                        codes.setdefault(address, History()).add(block.number, "0x")
                for address, account in post.items():
                    if "code" in account or account.get("codeHash") == _CLEARED:
                        codes.setdefault(address, History()).add(block.number, account.get("code", "0x"))
        return codes

    def code(self, address: str, block: int) -> str:
        history = self._codes.get(address)
        return history.at(block, "0x") if history is not None else "0x"

    @cached_property
    def _words(self) -> dict[tuple[str, str], History]:
        """The words of storage that blocks changed. A slot that is not in the state after a change holds zero."""
        words: dict[tuple[str, str], History] = {}
        for block in self._recording.blocks.values():
            for row in msgspec.json.decode(block.diffs or b"[]"):
                pre, post = row["result"]["pre"], row["result"]["post"]
                for address, account in pre.items():
                    for slot in account.get("storage", {}):
                        if slot not in post.get(address, {}).get("storage", {}):
                            words.setdefault((address, slot), History()).add(block.number, _ZERO_WORD)
                for address, account in post.items():
                    for slot, word in account.get("storage", {}).items():
                        words.setdefault((address, slot), History()).add(block.number, word)
        return words

    def word(self, address: str, slot: str, block: int) -> str:
        history = self._words.get((address, slot))
        return history.at(block, _ZERO_WORD) if history is not None else _ZERO_WORD


def _leaves(values: dict[str, Any], path: tuple[str, ...]) -> Iterable[tuple[tuple[str, ...], Any]]:
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _leaves(value, (*path, key))
        else:
            yield (*path, key), value


NAMED = {"06fdde03": "name", "95d89b41": "symbol", "313ce567": "decimals", "18160ddd": "totalSupply"}
INTERFACES = {
    "01ffc9a7": "erc165",
    "80ac58cd": "erc721",
    "5b5e139f": "erc721Metadata",
    "780e9d63": "erc721Enumerable",
    "d9b67a26": "erc1155",
    "0e89341c": "erc1155Uri",
    "ffffffff": "invalid",
}


class Reverts(Exception):
    def __init__(self, text: str = "execution reverted", data: str = "0x") -> None:
        super().__init__(text)
        self.data = data


def answer(state: RecordedState, call: dict[str, Any], block: int) -> str:
    """The returned bytes in hex; empty where there is no code."""
    to, data = call["to"].lower(), (call.get("data") or call.get("input") or "0x")[2:]
    if state.code(to, block) == "0x":
        return "0x"
    selector, words = data[:8], [data[at : at + 64] for at in range(8, len(data), 64)]
    make = STATEFUL.get(selector)
    if make is not None and all(len(word) == 64 for word in words):
        return make(state, block, to, words)
    recorded = state.tokens.get(to, {}).get("answers", {}).get(_key(selector, words))
    if isinstance(recorded, str):
        return recorded
    error = (recorded or {}).get("error", {})
    raise Reverts(error.get("message", "execution reverted"), error.get("data", "0x"))


def _key(selector: str, words: list[str]) -> str:
    if selector == "01ffc9a7" and words:
        return f"supportsInterface.{INTERFACES.get(words[0][:8], '')}"
    if selector in ("c87b56dd", "0e89341c") and words:
        return f"{'tokenURI' if selector == 'c87b56dd' else 'uri'}.{int(words[0], 16)}"
    return NAMED.get(selector, "")


def _balance(state: RecordedState, block: int, to: str, words: list[str]) -> str:
    holder = _address(words[0])
    owned = state.of_token.get(("erc721", to))
    if owned:
        return _word(sum(state.at(block, *path) == holder for path in owned))
    if ("erc20", to) not in state.of_token:
        raise Reverts
    amount = state.at(block, "erc20", to, holder)
    if (
        amount is None
        and ("erc20", to, holder) in state.values
        and state.values["erc20", to, holder].at(block, 0) is None
    ):
        raise Reverts
    return _word(int(amount or 0))


def _owner(state: RecordedState, block: int, to: str, words: list[str]) -> str:
    owner = state.at(block, "erc721", to, str(int(words[0], 16)))
    if owner is None:
        raise Reverts("execution reverted: no owner", "0x08c379a0")
    return _word(int(owner, 16))


def _balance_of_id(state: RecordedState, block: int, to: str, words: list[str]) -> str:
    if ("erc1155", to) not in state.of_token:
        raise Reverts
    return _word(int(state.at(block, "erc1155", to, _address(words[0]), str(int(words[1], 16))) or 0))


STATEFUL: dict[str, Callable[[RecordedState, int, str, list[str]], str]] = {
    "70a08231": _balance,
    "6352211e": _owner,
    "00fdd58e": _balance_of_id,
}


def _address(word: str) -> str:
    return "0x" + word[24:]


def _word(number: int) -> str:
    return f"0x{number:064x}"
