"""Layouts proven on real clients: those that a contract's code shows are found, all others are refused."""

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import pytest
from tests.awaited import awaited
from tests.evm.adversarial.nodes import ADDRESSES, Node, anvil, geth
from tests.evm.adversarial.scenario import Step, Tx
from tests.evm.indexed import open_store
from tests.evm.liars.assembler import deployment
from tests.evm.liars.contracts import READS, clone_code, proxy_code, run_data, token_code
from tests.metrics.synthetic import address, assembled, native
from tests.upstream.evm_scene import RecordingLog

from icefall.evm.deriving.packing import packed
from icefall.evm.indexing.token_layouts import TokenLayouts
from icefall.evm.layouts.formulas import Order, StorageLayout
from icefall.evm.layouts.proof import CannotProve, Prover, Refused, SeenKey
from icefall.evm.model import ERC20, ERC721, ERC1155, Erc20Delta
from icefall.upstream.client import UpstreamDown, UpstreamFailure
from icefall.upstream.evm.errors import Reverted
from icefall.upstream.evm.state import At, StateCall
from icefall.upstream.evm.upstream import EvmUpstream
from icefall.wire.evm.hashes import created_address

HOLDER = bytes.fromhex("11" * 20)
WHOLE = 256
WHOLE_SLOT = StorageLayout(ERC20, Order.KEY_FIRST, bytes(32), 0, WHOLE, 0)
# By name: order, base (None: in a namespace), offset, bits, shift.
PROVEN: dict[str, tuple[Order, int | None, int, int, int]] = {
    "openzeppelin 4": (Order.KEY_FIRST, 0, 0, WHOLE, 0),
    "openzeppelin 5": (Order.KEY_FIRST, None, 0, WHOLE, 0),
    "solmate": (Order.KEY_FIRST, 3, 0, WHOLE, 0),
    "weth9": (Order.KEY_FIRST, 3, 0, WHOLE, 0),
    "vyper": (Order.BASE_FIRST, 7, 0, WHOLE, 0),
    "solady": (Order.PACKED_ADDRESS, 0x87A211A2, 0, WHOLE, 0),
    "struct": (Order.KEY_FIRST, 2, 1, WHOLE, 0),
    "packed": (Order.KEY_FIRST, 1, 0, 128, 0),
    "packed high": (Order.KEY_FIRST, 1, 0, 128, 128),
    "flagged": (Order.KEY_FIRST, 9, 0, 255, 0),
    "erc721": (Order.KEY_FIRST, 2, 0, 160, 0),
    "erc721 reverts": (Order.KEY_FIRST, 2, 0, 160, 0),
    "erc721 namespaced": (Order.KEY_FIRST, None, 0, 160, 0),
    "erc1155": (Order.KEY_FIRST, 0, 0, WHOLE, 0),
    "erc1155 by holder": (Order.KEY_FIRST, 6, 0, WHOLE, 0),
    "erc1155 namespaced": (Order.KEY_FIRST, None, 0, WHOLE, 0),
}


def standard_of(name: str) -> int:
    return ERC721 if name.startswith("erc721") else ERC1155 if name.startswith("erc1155") else ERC20


class Deployed:
    """The contracts on one node."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self._nonce = 0
        node.fund()
        self.reads = {name: self.put(token_code(name)) for name in READS}
        self.clone = self.put(clone_code(self.reads["solmate"]))
        self.other_clone = self.put(clone_code(self.reads["solmate"]))
        self.proxy = self.put(proxy_code())
        self.clone_of_proxied = self.put(clone_code(self.proxy))
        # The ledger that the external one asks.
        self.run(
            self.reads["external"], run_data({(5).to_bytes(32, "big"): int.from_bytes(self.reads["solmate"], "big")})
        )
        self.upgrade("solmate")

    def put(self, code: bytes) -> bytes:
        self.run(None, deployment(code))
        return created_address(ADDRESSES[0], self._nonce - 1)

    def run(self, to: bytes | None, data: bytes) -> None:
        self.node.run(Step(1, (Tx(0, to, data),), ""))
        self._nonce += 1

    def upgrade(self, name: str) -> None:
        self.run(self.proxy, b"\1" + self.reads[name].rjust(32, b"\0"))


@pytest.fixture(scope="module", params=["anvil", "geth"])
def deployed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    folder: Path = tmp_path_factory.mktemp("node")
    with anvil() if request.param == "anvil" else geth(folder) as node:
        yield Deployed(node)


class Proofs:
    """A prover at the newest block of a node."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self.upstream = EvmUpstream([node.url], None, RecordingLog())
        self.prover = Prover(self.upstream, lambda: False)

    async def prove(self, token: bytes, standard: int = ERC20) -> StorageLayout | Refused:
        newest = self._node.call("eth_getBlockByNumber", "latest", False)
        return await self.prover.prove(SeenKey(token, standard, HOLDER, 7), bytes.fromhex(newest["hash"][2:]))

    async def __aenter__(self) -> "Proofs":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.upstream.close()


@awaited
async def test_every_layout_is_proven_or_refused(deployed: Deployed) -> None:
    async with Proofs(deployed.node) as proofs:
        for name, token in deployed.reads.items():
            found = await proofs.prove(token, standard_of(name))
            if name not in PROVEN:
                assert isinstance(found, Refused), (name, found)
                continue
            assert isinstance(found, StorageLayout), (name, found)
            base = int.from_bytes(found.base, "big")
            expected = PROVEN[name]
            assert (found.order, base if expected[1] is not None else None, *expected[2:]) == expected, (name, found)
            assert (found.offset, found.bits, found.shift) == expected[2:], (name, found)
            assert found.holder_first == (name == "erc1155 by holder")
            assert not found.is_proxy


@awaited
async def test_clones_share_the_proof_of_their_code(deployed: Deployed) -> None:
    async with Proofs(deployed.node) as proofs:
        first = await proofs.prove(deployed.clone)
        assert isinstance(first, StorageLayout), first
        made = proofs.prover.calls
        assert await proofs.prove(deployed.other_clone) == first
        assert proofs.prover.calls == made + 1  # its code


@awaited
async def test_a_proxy_is_proven_with_the_code_it_has_now(deployed: Deployed) -> None:
    async with Proofs(deployed.node) as proofs:
        deployed.upgrade("solmate")
        before = await proofs.prove(deployed.proxy)
        deployed.upgrade("vyper")
        after = await proofs.prove(deployed.proxy)
        assert isinstance(before, StorageLayout), before
        assert isinstance(after, StorageLayout), after
        assert (before.is_proxy, before.order, after.is_proxy, after.order) == (True, 0, True, Order.BASE_FIRST)
        deployed.upgrade("rebased by index")
        assert isinstance(await proofs.prove(deployed.proxy), Refused)
        assert isinstance(await proofs.prove(deployed.clone_of_proxied), Refused)


@awaited
async def test_an_address_without_code_is_refused(deployed: Deployed) -> None:
    async with Proofs(deployed.node) as proofs:
        assert isinstance(await proofs.prove(HOLDER), Refused)


@awaited
async def test_a_node_without_overrides_proves_nothing(deployed: Deployed) -> None:
    async with Proofs(deployed.node) as proofs:
        forward = proofs.upstream.outcomes

        async def without_overrides(calls):  # type: ignore[no-untyped-def]
            return await forward(
                [call._replace(params=call.params[: 3 if "trace" in call.method else 2]) for call in calls]
            )

        proofs.upstream.outcomes = without_overrides  # type: ignore[method-assign]
        with pytest.raises(CannotProve):
            await proofs.prove(deployed.reads["solmate"])
        made = proofs.prover.calls
        with pytest.raises(CannotProve):
            await proofs.prove(deployed.reads["vyper"])
        assert proofs.prover.calls == made  # it is not tried again


class FailingProver:
    """Proves a layout, but at every third try, and has no state."""

    def __init__(self) -> None:
        self.tries = 0
        self.proven: Counter[bytes] = Counter()

    async def prove(self, seen: SeenKey, at: At) -> StorageLayout | Refused:
        self.tries += 1
        await asyncio.sleep(0)
        if self.tries % 3 == 0:
            raise UpstreamDown("no answer in time")
        self.proven[seen.token] += 1
        return Refused("its slot is no known formula") if seen.token[0] % 2 else WHOLE_SLOT

    async def head(self) -> int:
        return 1

    async def results(self, calls: Sequence[StateCall]) -> list[bytes | Reverted]:
        raise AssertionError(calls)


@awaited
async def test_proofs_outlast_the_failure_of_others(tmp_path: Path) -> None:
    """A block names many new tokens, and an upstream under load never answers all their calls in one try."""
    tokens = [address(number) for number in range(100, 140)]
    made = assembled(1, 1, (native(1, 0, HOLDER, tokens[0], 1),))
    rows = packed(msgspec.structs.replace(made, erc20_deltas=tuple(Erc20Delta(token, HOLDER, 1) for token in tokens)))
    store, prover = open_store(tmp_path / "chain.sqlite"), FailingProver()
    layouts, failures = TokenLayouts(store, prover, prover), 0
    while failures < len(tokens):
        layouts.trim()
        try:
            await layouts.prepare([rows])
        except UpstreamFailure:
            layouts.forget()
            failures += 1
        else:
            break
    assert 0 < failures < len(tokens)
    assert prover.proven == Counter(tokens)
    found = {one.token: one.layout is None for one in (await layouts.advance(rows)).layouts}
    assert found == {token: bool(token[0] % 2) for token in tokens}
    store.close()
