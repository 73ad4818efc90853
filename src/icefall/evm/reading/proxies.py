"""The implementations of proxies, read from the upstream at the newest indexed block, and cached.

What was read is used as long as its block is part of the chain: for half a minute where an implementation may change,
for an hour where the code alone decides. A rollback therefore drops what was read from the blocks that are gone.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol

import msgspec

from icefall.errors import BadGateway, Unavailable
from icefall.evm.contract_calls import address_of
from icefall.evm.reading.chain import ChainReader
from icefall.evm.reading.model import BlockRead
from icefall.upstream.evm.errors import Reverted
from icefall.upstream.evm.state import At, ContractCall
from icefall.wire.evm.proxies import (
    BEACON_SLOT,
    IMPLEMENTATION_CALL,
    IMPLEMENTATION_SLOTS,
    ProxyKind,
    address_in,
    clone_target,
    has_delegatecall,
)

FRESH_S, FINAL_S = 30.0, 3600.0
LEARN_S = 2.0  # that an answer waits for the names of functions
BACK_OFF_S = 15.0  # after a failure: answers are decoded without implementations meanwhile
READ_MAX = 50  # contracts of one request whose implementation is not known
KNOWN_MAX = 4_096
_GAS = 300_000  # of implementation()
_SLOTS = (*IMPLEMENTATION_SLOTS.values(), BEACON_SLOT)


class ContractSource(Protocol):
    """The code and storage of contracts, and calls, at a block."""

    async def codes(self, addresses: Sequence[bytes], at: At) -> list[bytes]: ...

    async def storage(self, slots: Sequence[tuple[bytes, bytes]], at: At) -> list[bytes]: ...

    async def answers(
        self, calls: Sequence[ContractCall], at: At, gas: int | None = None
    ) -> list[bytes | Reverted]: ...


class Proxy(msgspec.Struct, frozen=True):
    """What a proxy passes calls on to, and how that was recognised. `beacon`: the contract that names it."""

    kind: ProxyKind
    implementation: bytes
    beacon: bytes | None = None


class _ReadProxy(NamedTuple):
    """What was read of a contract. `valid_s`: how long it is used after `read_at`."""

    proxy: Proxy | None
    block: int
    block_hash: bytes
    read_at: float
    valid_s: float


class ProxyReader:
    """The proxies of a chain. `source` None: there is no upstream, and no proxy is known."""

    def __init__(
        self, blocks: ChainReader, source: ContractSource | None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._blocks = blocks
        self._source = source
        self._clock = clock
        self._known: OrderedDict[bytes, _ReadProxy] = OrderedDict()
        self._backs_off_until = 0.0
        self.state_reads = 0  # begun so far

    async def of(self, address: bytes, block: BlockRead) -> Proxy | None:
        """Return what a contract is a proxy of, right after a block. Unavailable or BadGateway where that cannot be
        read."""
        if self._source is None:
            raise Unavailable("what a contract is a proxy of is read from an upstream, and none is configured")
        return (await self._read(self._source, [address], block.block_hash))[address][0]

    async def learn(self, addresses: Iterable[bytes]) -> None:
        """Read which of these contracts are proxies, for `implementation`. Those that cannot be read now are left
        out."""
        tip = await self._blocks.tip() if self._source is not None else None
        if tip is None or self._source is None:
            return
        unknown = await self._not_current(set(addresses), tip)
        if not unknown or self._clock() < self._backs_off_until:
            return
        try:
            async with asyncio.timeout(LEARN_S):
                found = await self._read(self._source, unknown[:READ_MAX], tip.block_hash)
        except (Unavailable, BadGateway, TimeoutError):
            self._backs_off_until = self._clock() + BACK_OFF_S
            return
        now = self._clock()
        for address, (proxy, is_final) in found.items():
            self._known[address] = _ReadProxy(proxy, tip.number, tip.block_hash, now, FINAL_S if is_final else FRESH_S)
        while len(self._known) > KNOWN_MAX:
            self._known.popitem(last=False)

    def implementation(self, address: bytes) -> bytes | None:
        """Return the implementation of a contract that `learn` has read; None if it is no proxy, or not known."""
        known = self._known.get(address)
        return known.proxy.implementation if known is not None and known.proxy is not None else None

    async def _not_current(self, addresses: set[bytes], tip: BlockRead) -> list[bytes]:
        """The contracts that are to be read. What is known of those on blocks that are gone is dropped."""
        now, known = self._clock(), {one: self._known[one] for one in addresses if one in self._known}
        older = {one.block for one in known.values() if one.block_hash != tip.block_hash}
        hashes = await self._blocks.hashes_of(sorted(older)) if older else {}
        for address, one in known.items():
            is_at_tip = one.block_hash == tip.block_hash
            if not is_at_tip and (hashes.get(one.block) != one.block_hash or now - one.read_at > one.valid_s):
                self._known.pop(address, None)
            else:
                self._known.move_to_end(address)
        return sorted(one for one in addresses if one not in self._known)

    async def _read(
        self, source: ContractSource, addresses: Sequence[bytes], at: At
    ) -> dict[bytes, tuple[Proxy | None, bool]]:
        """Read what contracts are proxies of, and whether their code alone decides that."""
        self.state_reads += 1
        codes = dict(zip(addresses, await source.codes(addresses, at), strict=True))
        found: dict[bytes, tuple[Proxy | None, bool]] = {}
        for address, code in codes.items():
            target = clone_target(code)
            if target is not None or not has_delegatecall(code):
                found[address] = (None if target is None else Proxy("EIP-1167", target), True)
        others = [address for address in addresses if address not in found]
        return {**found, **await self._from_storage(source, others, at)} if others else found

    async def _from_storage(
        self, source: ContractSource, addresses: Sequence[bytes], at: At
    ) -> dict[bytes, tuple[Proxy | None, bool]]:
        words = await source.storage([(address, slot) for address in addresses for slot in _SLOTS], at)
        found: dict[bytes, tuple[Proxy | None, bool]] = {}
        asked: dict[bytes, bytes | None] = {}  # the beacon of each contract that is called; None: it names itself
        for index, address in enumerate(addresses):
            *targets, beacon = map(address_in, words[index * len(_SLOTS) : (index + 1) * len(_SLOTS)])
            named = next(((kind, one) for kind, one in zip(IMPLEMENTATION_SLOTS, targets, strict=True) if one), None)
            found[address] = (None if named is None else Proxy(*named), False)
            if named is None:
                asked[address] = beacon
        if asked:
            found |= {one: (proxy, False) for one, proxy in (await self._from_calls(source, asked, at)).items()}
        return found

    async def _from_calls(
        self, source: ContractSource, asked: dict[bytes, bytes | None], at: At
    ) -> dict[bytes, Proxy | None]:
        """Ask beacons, and contracts themselves (EIP-897), for the implementation, which has to have code."""
        calls = [ContractCall(beacon or address, IMPLEMENTATION_CALL) for address, beacon in asked.items()]
        answers = await source.answers(calls, at, _GAS)
        named = {one: target for one, answer in zip(asked, answers, strict=True) if (target := address_of(answer))}
        named = {one: target for one, target in named.items() if any(target) and target != one}
        codes = await source.codes(list(named.values()), at) if named else []
        return {
            one: Proxy("EIP-1967 beacon" if asked[one] else "EIP-897", target, asked[one])
            for (one, target), code in zip(named.items(), codes, strict=True)
            if code
        }
