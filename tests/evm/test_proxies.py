"""Proxies recognised by their code, their storage and what they answer; what was read is dropped with its block."""

import asyncio
from collections.abc import Sequence

import pytest

from icefall.errors import Unavailable
from icefall.evm.reading.contracts import MethodNames
from icefall.evm.reading.model import BlockRead
from icefall.evm.reading.proxies import BACK_OFF_S, FRESH_S, READ_MAX, Proxy, ProxyReader
from icefall.upstream.evm.errors import Reverted
from icefall.upstream.evm.state import At, ContractCall
from icefall.wire.evm.proxies import BEACON_SLOT, IMPLEMENTATION_SLOTS, clone_target, has_delegatecall

TARGET, OTHER, BEACON = (bytes([number]) * 20 for number in (0xAA, 0xBB, 0xCC))
CLONE = bytes.fromhex(f"363d3d373d3d3d363d73{TARGET.hex()}5af43d82803e903d91602b57fd5bf3")
SHORT_CLONE = bytes.fromhex("363d3d373d3d3d363d6faa2222222222222222222222222222bb5af43d82803e903d91602757fd5bf3")
DELEGATES, PLAIN = bytes.fromhex("60006000600060006000f4"), bytes.fromhex("60f400")


def word(address: bytes) -> bytes:
    return address.rjust(32, b"\0")


def block(number: int, branch: int = 0) -> BlockRead:
    return BlockRead(number, bytes([number, branch]) * 16, b"", 0, 0, 0, 0, 0, 0, 0, 0)


class Chain:
    """Blocks, code, storage and answers of contracts, and how often they were read."""

    def __init__(self) -> None:
        self.blocks = [block(1)]
        self.code: dict[bytes, bytes] = {TARGET: PLAIN, OTHER: PLAIN}
        self.slots: dict[tuple[bytes, bytes], bytes] = {}
        self.named: dict[bytes, bytes] = {}  # what implementation() returns
        self.reads: list[list[bytes]] = []
        self.failure: Exception | None = None
        self.now = 0.0

    async def tip(self) -> BlockRead | None:
        return self.blocks[-1]

    async def hashes_of(self, numbers: Sequence[int]) -> dict[int, bytes]:
        return {one.number: one.block_hash for one in self.blocks if one.number in numbers}

    async def codes(self, addresses: Sequence[bytes], at: At) -> list[bytes]:
        self.reads.append(list(addresses))
        if self.failure is not None:
            raise self.failure
        return [self.code.get(one, b"") for one in addresses]

    async def storage(self, slots: Sequence[tuple[bytes, bytes]], at: At) -> list[bytes]:
        return [self.slots.get(one, bytes(32)) for one in slots]

    async def answers(self, calls: Sequence[ContractCall], at: At, gas: int | None = None) -> list[bytes | Reverted]:
        assert gas
        return [word(self.named[one.to]) if one.to in self.named else Reverted("execution reverted") for one in calls]

    def reader(self) -> ProxyReader:
        return ProxyReader(self, self, lambda: self.now)  # type: ignore[arg-type]

    def proxy(self, address: bytes) -> Proxy | None:
        return asyncio.run(self.reader().of(address, self.blocks[-1]))


def test_clones_are_recognised_by_their_code() -> None:
    assert clone_target(CLONE) == TARGET
    assert clone_target(CLONE + b"arguments") == TARGET
    assert clone_target(SHORT_CLONE) == bytes.fromhex("00000000aa2222222222222222222222222222bb")
    for wrong in (b"", CLONE[:9], CLONE[:-1], CLONE.replace(b"\x2b", b"\x2a"), b"\0" + CLONE, PLAIN):
        assert clone_target(wrong) is None


def test_pushed_bytes_are_no_instructions() -> None:
    assert has_delegatecall(DELEGATES)
    assert not has_delegatecall(PLAIN)
    assert not has_delegatecall(bytes.fromhex("7f") + b"\xf4" * 32)
    assert has_delegatecall(bytes.fromhex("7f") + b"\xf4" * 33)
    assert not has_delegatecall(b"")


@pytest.mark.parametrize("kind", IMPLEMENTATION_SLOTS)
def test_a_slot_names_the_implementation(kind: str) -> None:
    chain, one = Chain(), b"p" * 20
    chain.code[one] = DELEGATES
    chain.slots[one, IMPLEMENTATION_SLOTS[kind]] = word(TARGET)  # type: ignore[index]
    assert chain.proxy(one) == Proxy(kind, TARGET)  # type: ignore[arg-type]
    chain.code[one] = PLAIN
    assert chain.proxy(one) is None, "it cannot run the code of another contract"


def test_a_beacon_and_the_contract_itself_are_asked() -> None:
    chain, one, two, none = Chain(), b"p" * 20, b"q" * 20, b"n" * 20
    for address in (one, two, none):
        chain.code[address] = DELEGATES
    chain.slots[one, BEACON_SLOT] = word(BEACON)
    chain.named = {BEACON: TARGET, two: OTHER, none: b"z" * 20}
    assert chain.proxy(one) == Proxy("EIP-1967 beacon", TARGET, BEACON)
    assert chain.proxy(two) == Proxy("EIP-897", OTHER)
    assert chain.proxy(none) is None, "it names an address without code"
    chain.named[two] = two
    assert chain.proxy(two) is None, "itself"
    chain.named.clear()
    assert chain.proxy(one) is None
    chain.slots[one, BEACON_SLOT] = b"\xff" * 32
    assert chain.proxy(one) is None, "no address"


def test_what_was_read_is_dropped_with_its_block() -> None:
    async def work() -> None:
        chain, one = Chain(), b"p" * 20
        chain.code[one] = DELEGATES
        slot = (one, IMPLEMENTATION_SLOTS["EIP-1967"])
        chain.slots[slot] = word(TARGET)
        reader = chain.reader()
        for _ in range(3):
            await reader.learn([one])
        assert (reader.implementation(one), len(chain.reads), reader.state_reads) == (TARGET, 1, 1)
        chain.blocks.append(block(2))
        chain.slots[slot] = word(OTHER)
        await reader.learn([one])
        assert reader.implementation(one) == TARGET, "its block is part of the chain, and it is not old"
        chain.now += FRESH_S + 1
        await reader.learn([one])
        assert reader.implementation(one) == OTHER
        chain.blocks[-1:] = [block(2, branch=1)]
        chain.slots[slot] = word(TARGET)
        await reader.learn([one])
        assert reader.implementation(one) == TARGET, "its block was rolled back"
        assert len(chain.reads) == 3

    asyncio.run(work())


def test_a_failure_is_not_repeated_at_once_and_reads_are_bounded() -> None:
    async def work() -> None:
        chain = Chain()
        chain.failure = Unavailable("no upstream answers")
        reader = chain.reader()
        many = [number.to_bytes(20, "big") for number in range(READ_MAX + 5)]
        await reader.learn(many)
        await reader.learn(many)
        assert [len(one) for one in chain.reads] == [READ_MAX]
        chain.failure, chain.now = None, BACK_OFF_S + 1
        await reader.learn(many)
        await reader.learn(many)
        assert [len(one) for one in chain.reads] == [READ_MAX, READ_MAX, 5]
        with pytest.raises(Unavailable):
            await ProxyReader(chain, None).of(TARGET, block(1))  # type: ignore[arg-type]

    asyncio.run(work())


def test_the_implementation_names_methods() -> None:
    own = {TARGET: {b"abcd": "pay()"}, OTHER: {b"efgh": "other()"}}
    names = MethodNames({b"ijkl": "common()"}, own, {b"p" * 20: TARGET}.get)
    assert names.of(b"p" * 20, b"abcd") == "pay()"
    assert names.of(b"p" * 20, b"efgh") is None
    assert names.of(b"x" * 20, b"abcd") is None
    assert names.of(b"x" * 20, b"ijkl") == "common()"
