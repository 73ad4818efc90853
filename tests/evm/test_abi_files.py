"""ABI files: what compilers write is read, written again as it was, and nothing in a hostile one is unbounded."""

import asyncio
import json
import os
import random
from collections.abc import Sequence
from typing import Any

import pytest

from icefall.access.abis import ChangedAbi
from icefall.evm.reading.abis import PARSED_MAX, ContractAbis
from icefall.evm.reading.contracts import ContractDecoder
from icefall.wire.evm.abi import AbiError
from icefall.wire.evm.abi_json import DECLARATIONS_MAX, SIZE_MAX, read_abi
from icefall.wire.evm.rlp import keccak256

CASES = int(os.environ.get("ICEFALL_FUZZ_CASES", "2000")) // 4
POINT = {
    "name": "p",
    "type": "tuple[2][]",
    "components": [{"name": "x", "type": "int24"}, {"name": "", "type": "bytes"}],
}
PAY: dict[str, Any] = {
    "type": "function", "name": "pay", "stateMutability": "payable",
    "inputs": [{"name": "to", "type": "address"}, POINT], "outputs": [{"name": "", "type": "bool"}],
}  # fmt: skip
TOTAL = {"type": "function", "name": "total", "inputs": [], "outputs": [{"name": "", "type": "uint256"}]}
PAID = {
    "type": "event", "name": "Paid", "anonymous": False,
    "inputs": [{"name": "who", "type": "address", "indexed": True}, {"name": "sum", "type": "uint", "indexed": False}],
}  # fmt: skip
BROKE = {"type": "error", "name": "Broke", "inputs": [{"name": "missing", "type": "uint256"}]}
OTHERS = [{"type": "constructor", "inputs": []}, {"type": "receive"}, {"type": "fallback"}]
WHOLE = [PAY, TOTAL | {"stateMutability": "view"}, PAID, BROKE, *OTHERS]


def test_what_compilers_write_is_read() -> None:
    abi = read_abi(json.dumps({"contractName": "Vault", "abi": WHOLE, "bytecode": "0x60"}))
    signatures = [one.signature for one in abi.functions.values()]
    assert signatures == ["pay(address,(int24,bytes)[2][])", "total()"]
    assert [one.is_view for one in abi.functions.values()] == [False, True]
    assert list(abi.events) == [keccak256(b"Paid(address,uint256)")]
    assert list(abi.errors) == [keccak256(b"Broke(uint256)")[:4]]
    again = read_abi(json.dumps(abi.entries()))
    assert again == abi, "what is stored is what was read"
    assert [one["type"] for one in abi.entries()] == ["function", "function", "event", "error"]


def nested(depth: int) -> dict[str, Any]:
    inner: dict[str, Any] = {"name": "x", "type": "uint8"}
    for _ in range(depth):
        inner = {"name": "x", "type": "tuple", "components": [inner]}
    return PAY | {"inputs": [inner]}


REFUSED = [
    ("", "an ABI file is JSON"),
    ("[" * 100_000, "an ABI file is JSON"),
    ("{}", "list of declarations"),
    ("[1]", "list of declarations"),
    ("[]", "at least one"),
    (json.dumps(OTHERS), "at least one"),
    (" " * (SIZE_MAX + 1), f"at most {SIZE_MAX} bytes"),
    (json.dumps([{"type": "fallback"}] * (DECLARATIONS_MAX + 1)), f"at most {DECLARATIONS_MAX} declarations"),
    (json.dumps([PAY | {"name": "<script>"}]), "is not a name"),
    (json.dumps([PAY | {"name": "a" * 200}]), "is not a name"),
    (json.dumps([PAY | {"name": ""}]), "needs a name"),
    (json.dumps([PAY | {"name": 5}]), "name is a text"),
    (json.dumps([PAY | {"type": "script"}]), "is not function, event"),
    (json.dumps([PAY | {"inputs": "x"}]), "parameters are a list"),
    (json.dumps([PAY | {"inputs": [{"name": "x", "type": "uint8"}] * 65}]), "parameters are a list"),
    (json.dumps([PAY | {"inputs": [{"name": "x", "type": "uint7"}]}]), "not a type"),
    (json.dumps([PAY | {"inputs": [{"name": "x", "type": "uint8" + "[1]" * 17}]}]), "deep"),
    (json.dumps([PAY | {"inputs": [{"name": "x", "type": "tuple"}]}]), "parameters are a list"),
    (json.dumps([nested(40)]), "deep"),
]


@pytest.mark.parametrize(("text", "wrong"), REFUSED, ids=[wrong for _, wrong in REFUSED])
def test_what_is_not_valid_is_refused_with_its_reason(text: str, wrong: str) -> None:
    with pytest.raises(AbiError, match=wrong):
        read_abi(text)


def test_hostile_files_and_data_end_in_a_refusal_or_a_bounded_answer() -> None:
    dice = random.Random(37)
    odd: list[Any] = [
        None,
        True,
        -1,
        1e300,
        "",
        "x" * 300,
        "\ud800",
        [],
        {},
        [[]],
        {"type": "tuple"},
        "uint256[999999][999999]",
    ]
    whole = [PAY, TOTAL, PAID, BROKE, nested(16), PAY | {"inputs": [{"name": "a", "type": "uint8[256][256][256]"}]}]
    decoder, read = ContractDecoder({}), 0
    for _ in range(CASES):
        abi = json.loads(json.dumps(whole))
        for _ in range(dice.randrange(4)):
            place = dice.choice(abi)
            while place.get("inputs") and dice.random() < 0.6 and isinstance(place["inputs"], list):
                inner = dice.choice(place["inputs"])
                place = inner if isinstance(inner, dict) else place
                if "inputs" not in place:
                    break
            place[dice.choice(["name", "type", "inputs", "components", "outputs", "x"])] = dice.choice(odd)
        text = json.dumps(abi).encode()
        if dice.random() < 0.2:
            cut = dice.randrange(len(text))
            text = text[:cut] + dice.randbytes(3) + text[cut + 3 :]
        try:
            found = read_abi(text)
        except AbiError:
            continue
        read += 1
        size = dice.randrange(900)
        data = (
            (bytes(size) if dice.random() < 0.5 else dice.randbytes(size))
            + bytes(31)
            + bytes([dice.choice([0, 32, 64])])
        )
        for selector in found.functions:
            shown = decoder.call(selector + data, found)
            assert shown is None or len(shown.values) <= 256
        for topic in found.events:
            decoder.event((topic, data[:32].ljust(32)), data, found)
        assert read_abi(json.dumps(found.entries())) == found
    assert read > CASES // 10


class Texts:
    """ABIs in memory, which count how often one is read."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, bytes], ChangedAbi] = {}
        self.version = self.reads = 0

    def add(self, chain: str, address: bytes, text: str) -> None:
        self.version += 1
        self.rows[chain, address] = ChangedAbi(chain, address, text, self.version)

    async def changed(self, version: int, count: int) -> Sequence[ChangedAbi]:
        newer = [row for row in self.rows.values() if row.version > version]
        return sorted(newer, key=lambda row: row.version)[:count]

    async def text(self, chain_id: str, address: bytes) -> str | None:
        self.reads += 1
        return self.rows[chain_id, address].text or None

    async def put(self, chain_id: str, address: bytes, text: str, origin: str, now: int) -> None:
        self.add(chain_id, address, text)

    async def remove(self, chain_id: str, address: bytes, now: int) -> bool:
        self.add(chain_id, address, "")
        return True


def test_changes_are_seen_and_parsed_interfaces_are_kept() -> None:
    async def work() -> None:
        texts = Texts()
        one, other = bytes(19) + b"\1", bytes(19) + b"\2"
        folder = {("7", other): lambda: json.dumps([BROKE]).encode(), ("7", bytes(20)): lambda: b"nonsense"}
        reported: list[str] = []
        abis = ContractAbis(texts, folder, reported.append)
        assert len(reported) == 1
        assert not await abis.refresh()
        assert set(await abis.of("7", [one, other])) == {other}
        texts.add("7", one, json.dumps([TOTAL]))
        texts.add("7", other, json.dumps([PAY]))
        assert await abis.refresh()
        assert abis.names("8") == {}
        names = {contract: list(of.values()) for contract, of in abis.names("7").items()}
        assert names == {one: ["total()"], other: ["pay(address,(int24,bytes)[2][])"]}
        for _ in range(3):
            assert set(await abis.of("7", [one, other, bytes(20)])) == {one, other}
        assert texts.reads == 2
        await abis.remove("7", one, 0)
        await abis.remove("7", other, 0)
        assert await abis.refresh()
        assert [*(await abis.of("7", [one, other]))[other].errors] == [keccak256(b"Broke(uint256)")[:4]], (
            "of the folder"
        )
        assert not abis.has("7", one)
        for number in range(PARSED_MAX + 30):
            texts.add("7", number.to_bytes(20, "big"), json.dumps([TOTAL]))
        await abis.refresh()
        await abis.of("7", [number.to_bytes(20, "big") for number in range(PARSED_MAX + 30)])
        assert len(abis._parsed) == PARSED_MAX

    asyncio.run(work())
