"""Records the demo's EVM chain: `python -m bench.demo_chain ANVIL`, with the path of an anvil.

Its ID is one that no client takes by default, so that a chain of the user does not collide with it. The history is that
of the recording anvil-1, block by block, with keys of its own: every transaction is signed anew for this chain ID, and
addresses in it are replaced by those of the new senders and contracts. Whatever the new chain then does is what is
recorded: blocks, receipts, traces and state are the client's own answers.
"""

import hashlib
import http.client
import json
import lzma
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import coincurve
import msgspec

from icefall.demo.recording import INTERFACES, NAMED
from icefall.wire.evm.hex import checksummed
from icefall.wire.evm.rlp import encode, keccak256, number

CHAIN_ID = 3_210_042
VECTORS = Path(__file__).parents[1] / "tests" / "vectors" / "evm"
SOURCE, TARGET = VECTORS / "anvil-1", VECTORS / "demo-1"
PORT = 18_545
FUNDED_WEI = 10**24
_OPEN_GAS = 5_000  # more zero bytes in an address make a call cheaper, fewer dearer
_STANDARDS = ("native", "erc20", "erc721", "erc1155")


class Node:
    """JSON-RPC to the anvil; results as the bytes that it sent."""

    def __init__(self) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=60)

    def raw(self, calls: list[tuple[str, list[Any]]]) -> list[bytes | dict[str, Any]]:
        """Of each call its result, or its error."""
        if not calls:
            return []
        body = [
            {"jsonrpc": "2.0", "id": at, "method": name, "params": params} for at, (name, params) in enumerate(calls)
        ]
        self._connection.request("POST", "/", json.dumps(body), {"content-type": "application/json"})
        answers = msgspec.json.decode(self._connection.getresponse().read(), type=list[dict[str, msgspec.Raw]])
        answers.sort(key=lambda one: int(bytes(one["id"])))
        return [bytes(one["result"]) if "result" in one else json.loads(bytes(one["error"])) for one in answers]

    def call(self, name: str, *params: Any) -> Any:
        [answer] = self.raw([(name, list(params))])
        if isinstance(answer, dict):
            raise RuntimeError(f"{name}: {answer}")
        return json.loads(answer)


def rows(name: str) -> Iterator[Any]:
    with lzma.open(SOURCE / f"{name}.jsonl.xz") as lines:
        yield from map(json.loads, lines)


def key_of(old_address: str) -> coincurve.PrivateKey:
    return coincurve.PrivateKey(hashlib.sha256(b"icefall demo " + old_address.encode()).digest())


def address_of(key: coincurve.PrivateKey) -> str:
    return "0x" + keccak256(key.public_key.format(compressed=False)[1:])[12:].hex()


class Replacements:
    """Addresses of the old chain and their counterparts."""

    def __init__(self) -> None:
        self._new: dict[str, str] = {}

    def add(self, old: str, new: str) -> None:
        self._new[old[2:].lower()] = new[2:].lower()

    def address(self, old: str) -> str:
        return "0x" + self._new.get(old[2:].lower(), old[2:].lower())

    def data(self, text: str) -> str:
        for old, new in self._new.items():
            if old in text:
                text = text.replace(old, new)
        return text


def signed(tx: dict[str, Any], key: coincurve.PrivateKey, nonce: int, to: str, data: str, gas: int) -> str:
    value, kind = int(tx["value"], 16), int(tx["type"], 16)
    receiver, payload = bytes.fromhex(to[2:]), bytes.fromhex(data[2:])
    if kind == 0:
        fields: list[Any] = [
            number(nonce),
            number(int(tx["gasPrice"], 16)),
            number(gas),
            receiver,
            number(value),
            payload,
        ]
        digest = keccak256(encode([*fields, number(CHAIN_ID), b"", b""]))
        prefix, offset = b"", 35 + 2 * CHAIN_ID
    else:
        names = ("gasPrice",) if kind == 1 else ("maxPriorityFeePerGas", "maxFeePerGas")
        fees = [number(int(tx[name], 16)) for name in names]
        fields = [number(CHAIN_ID), number(nonce), *fees, number(gas), receiver, number(value), payload, []]
        prefix, offset = bytes([kind]), 0
        digest = keccak256(prefix + encode(fields))
    signature = key.sign_recoverable(digest, hasher=None)
    r, s = (int.from_bytes(signature[at : at + 32], "big") for at in (0, 32))
    return "0x" + (prefix + encode([*fields, number(signature[64] + offset), number(r), number(s)])).hex()


def frames(calls: Iterable[Any]) -> Iterator[Any]:
    for call in calls:
        yield call
        yield from frames(call.get("calls", []))


class Recorder:
    def __init__(self, node: Node) -> None:
        self._node = node
        self._old = json.loads(lzma.decompress((SOURCE / "meta.json.xz").read_bytes()))
        self.replaced = Replacements()
        self._keys: dict[str, coincurve.PrivateKey] = {}
        self._nonces: dict[str, int] = {}
        self._known: dict[tuple[str, ...], str | None] = {}
        self.blocks: list[bytes] = []
        self.state: list[dict[str, Any]] = []

    def begin(self, senders: Iterable[str]) -> None:
        for old in sorted(senders):
            key = self._keys[old] = key_of(old)
            self.replaced.add(old, address_of(key))
        first = next(rows("blocks"))["block"]
        funder = next(tx for row in rows("blocks") for tx in row["block"]["transactions"])["from"]
        self._node.call("anvil_setBalance", self.replaced.address(funder), hex(FUNDED_WEI))
        assert int(self._node.call("eth_getBlockByNumber", "0x0", False)["timestamp"], 16) == int(
            first["timestamp"], 16
        )

    def block(self, old: dict[str, Any], old_state: dict[str, Any]) -> None:
        if old["number"]:
            self._mine(old)
        self._hidden_changes(old["number"])
        calls: list[tuple[str, list[Any]]] = [
            ("eth_getBlockByNumber", ["latest", True]),
            ("eth_getBlockReceipts", ["latest"]),
            ("debug_traceBlockByNumber", ["latest", {"tracer": "callTracer", "tracerConfig": {"withLog": False}}]),
            ("debug_traceBlockByNumber", ["latest", {"tracer": "prestateTracer", "tracerConfig": {"diffMode": True}}]),
        ]
        parts = self._node.raw(calls)
        assert all(isinstance(part, bytes) for part in parts), parts
        named = zip(("block", "receipts", "calls", "diffs"), parts, strict=True)
        line = b",".join(b'"%s":%s' % (name.encode(), part) for name, part in named)
        self.blocks.append(b'{"number":%d,%s}' % (old["number"], line))
        traces, diffs = json.loads(parts[2]), json.loads(parts[3])  # type: ignore[arg-type]
        for before, after in zip(old["calls"] or [], traces, strict=False):
            for one, other in zip(frames([before["result"]]), frames([after["result"]]), strict=False):
                if one.get("type", "").startswith("CREATE") and one.get("to") and other.get("to"):
                    self.replaced.add(one["to"], other["to"])
        self._read_state(
            old["number"], old_state, {address for one in diffs for side in one["result"].values() for address in side}
        )

    def _mine(self, old: dict[str, Any]) -> None:
        for tx, receipt in zip(old["block"]["transactions"], old["receipts"], strict=True):
            sender = tx["from"]
            nonce = self._nonces.get(sender, 0)
            if tx["to"] is None:
                created = keccak256(encode([bytes.fromhex(self.replaced.address(sender)[2:]), number(nonce)]))[12:]
                self.replaced.add(receipt["contractAddress"], "0x" + created.hex())
            gas = int(tx["gas"], 16) + (_OPEN_GAS if receipt["status"] == "0x1" else 0)
            to = self.replaced.address(tx["to"]) if tx["to"] else "0x"
            raw = signed(tx, self._keys[sender], nonce, to, self.replaced.data(tx["input"]), gas)
            [answer] = self._node.raw([("eth_sendRawTransaction", [raw])])
            if isinstance(answer, bytes):
                self._nonces[sender] = nonce + 1
            else:
                print(f"block {old['number']}: left out: {answer['message']}")
        self._node.call("evm_setNextBlockTimestamp", int(old["block"]["timestamp"], 16))
        self._node.call("evm_mine")

    def _hidden_changes(self, block: int) -> None:
        for change in self._old["hiddenNativeChanges"]:
            if change["afterBlock"] == block and change["kind"] == "anvil_setCode":
                code = self._node.call(
                    "eth_getCode", self.replaced.address(self._old["contracts"]["messenger"]), "latest"
                )
                self._node.call("anvil_setCode", change["address"], code)
            elif change["afterBlock"] == block:
                self._node.call("anvil_setBalance", self.replaced.address(change["address"]), hex(int(change["value"])))

    def _read_state(self, block: int, old: dict[str, Any], touched: set[str]) -> None:
        """What changed at this block in the old chain, and every balance that changed in the new one."""
        wanted: set[tuple[str, ...]] = {("native", address) for address in touched}
        for path in ((standard, *path) for standard in _STANDARDS for path in _leaves(old[standard])):
            wanted.add(tuple(self.replaced.address(part) if part[:2] == "0x" else part for part in path))
        asked = sorted(wanted)
        row: dict[str, Any] = {"number": block, **{standard: {} for standard in _STANDARDS}}
        for path, answer in zip(asked, self._node.raw([_question(path) for path in asked]), strict=True):
            value = _value(path[0], answer)
            if (path in self._known and self._known[path] == value) or (
                value in (None, "0") and path not in self._known
            ):
                continue
            self._known[path] = value
            place = row
            for part in path[:-1]:
                place = place.setdefault(part, {})
            place[path[-1]] = value
        self.state.append(row)

    def tokens(self) -> dict[str, Any]:
        old = json.loads(lzma.decompress((SOURCE / "tokens.json.xz").read_bytes()))
        found = {}
        for address, token in old["tokens"].items():
            new = self.replaced.address(address)
            names = [name for name in token["answers"] if not name.endswith(".nonexistent")]
            answers = self._node.raw(
                [("eth_call", [{"to": new, "data": _call_data(name)}, "latest"]) for name in names]
            )
            shown = [json.loads(one) if isinstance(one, bytes) else {"error": one} for one in answers]
            found[new] = {**token, "answers": dict(zip(names, shown, strict=True))}
        return {**old, "tokens": found}

    def meta(self) -> dict[str, Any]:
        first, last = (json.loads(self.blocks[at])["block"] for at in (0, -1))
        return {
            "chainId": str(CHAIN_ID),
            "clientVersion": self._node.call("web3_clientVersion"),
            "lastBlock": int(last["number"], 16),
            "genesisHash": first["hash"],
            "lastHash": last["hash"],
            "firstTimestamp": int(first["timestamp"], 16),
            "lastTimestamp": int(last["timestamp"], 16),
            "transactions": sum(len(json.loads(line)["block"]["transactions"]) for line in self.blocks),
            "contracts": {name: checksum(self.replaced.address(old)) for name, old in self._old["contracts"].items()},
            "actors": [checksum(self.replaced.address(one["address"])) for one in self._old["actors"]],
        }


def checksum(address: str) -> str:
    return checksummed(bytes.fromhex(address[2:]))


def _leaves(values: dict[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _leaves(value, (*path, name))
        else:
            yield (*path, name)


def _question(path: tuple[str, ...]) -> tuple[str, list[Any]]:
    standard, *rest = path
    if standard == "native":
        return "eth_getBalance", [rest[0], "latest"]
    words = {
        "erc20": lambda: "70a08231" + rest[1][2:].rjust(64, "0"),
        "erc721": lambda: f"6352211e{int(rest[1]):064x}",
        "erc1155": lambda: f"00fdd58e{rest[1][2:].rjust(64, '0')}{int(rest[2]):064x}",
    }
    return "eth_call", [{"to": rest[0], "data": "0x" + words[standard]()}, "latest"]


def _value(standard: str, answer: bytes | dict[str, Any]) -> str | None:
    text = json.loads(answer) if isinstance(answer, bytes) else "0x"
    if text == "0x":
        return "0" if standard == "native" else None
    if standard == "erc721":
        return "0x" + text[-40:] if int(text, 16) else None
    return str(int(text, 16))


def _call_data(name: str) -> str:
    kind, _, rest = name.partition(".")
    if kind == "supportsInterface":
        selector = next(word for word, interface in INTERFACES.items() if interface == rest)
        return "0x01ffc9a7" + selector.ljust(64, "0")
    if rest:
        return f"0x{'c87b56dd' if kind == 'tokenURI' else '0e89341c'}{int(rest):064x}"
    return "0x" + next(selector for selector, named in NAMED.items() if named == name)


def record(anvil: str) -> None:
    first = next(rows("blocks"))["block"]
    options = ["--port", str(PORT), "--chain-id", str(CHAIN_ID), "--timestamp", str(int(first["timestamp"], 16))]
    options += ["--no-mining", "--order", "fifo", "--silent", "--gas-limit", str(int(first["gasLimit"], 16))]
    with subprocess.Popen([anvil, *options]) as process:
        try:
            node = _connected()
            recorder = Recorder(node)
            recorder.begin({tx["from"] for row in rows("blocks") for tx in row["block"]["transactions"]})
            for old, state in zip(rows("blocks"), rows("state"), strict=True):
                recorder.block(old, state)
                if old["number"] % 200 == 0:
                    print(f"block {old['number']}", flush=True)
            _write(recorder)
        finally:
            process.terminate()


def _connected() -> Node:
    for _ in range(100):
        try:
            node = Node()
            node.call("eth_chainId")
            return node
        except OSError:
            time.sleep(0.1)
    raise SystemExit("the anvil does not answer")


def _write(recorder: Recorder) -> None:
    TARGET.mkdir(parents=True, exist_ok=True)
    content = {
        "blocks.jsonl": b"\n".join(recorder.blocks) + b"\n",
        "state.jsonl": b"".join(json.dumps(row, separators=(",", ":")).encode() + b"\n" for row in recorder.state),
        "tokens.json": json.dumps(recorder.tokens(), separators=(",", ":")).encode(),
        "meta.json": json.dumps(recorder.meta(), indent=1).encode(),
    }
    for name, text in content.items():
        (TARGET / f"{name}.xz").write_bytes(lzma.compress(text, preset=9 | lzma.PRESET_EXTREME))


if __name__ == "__main__":
    record(sys.argv[1])
