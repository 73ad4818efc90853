"""Tokens whose storage cannot be read, or whose code lies although its layout was proven: audits tell."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.awaited import awaited
from tests.evm.adversarial.nodes import CHAIN_ID, Node, anvil
from tests.evm.liars.assembler import deployment
from tests.evm.liars.checking import GAS, UntrueChain, audited, caught_up, compare, following
from tests.evm.liars.contracts import Move, run_data, token_code
from tests.evm.liars.tokens import LAYOUTS, ZERO
from tests.upstream.evm_scene import RecordingLog

from icefall.evm.auditing import sample
from icefall.evm.auditing.audit import finish_audits
from icefall.upstream.evm.client import Call, Outcome
from icefall.upstream.evm.upstream import NO_TRACES, EvmUpstream
from icefall.wire.evm.hashes import created_address

BLOCKS, PER_BLOCK = 3, 22


def limited(node: Node, lack: str) -> EvmUpstream:
    """An upstream that lacks something."""
    if lack == "traces":
        return EvmUpstream([node.url], CHAIN_ID, RecordingLog(), required=NO_TRACES)
    upstream = EvmUpstream([node.url], CHAIN_ID, RecordingLog())
    forward = upstream.outcomes

    async def without(calls: Sequence[Call]) -> list[Outcome]:
        some = [call._replace(params=call.params[: 3 if "trace" in call.method else 2]) for call in calls]
        if lack == "debug_traceCall":
            some = [one._replace(method="debug_unknown") if one.method == lack else one for one in some]
        return await forward(some)

    upstream.outcomes = without  # type: ignore[method-assign]
    return upstream


@awaited
async def test_without_overrides_or_traces_tokens_stay_with_logs_and_audits(tmp_path: Path) -> None:
    with anvil() as node:
        chain = UntrueChain(node, len(LAYOUTS), 1, PER_BLOCK, untrue_every=3, per_tx=5)
        for _ in range(BLOCKS):
            chain.step()
        untrue = {address for address, token in chain.tokens.items() if token.is_untrue}
        for address in untrue:
            del chain.tokens[address]  # compared are the others
        answered: dict[int, list[int]] = {}
        for lack in ("overrides", "debug_traceCall", "traces"):
            path = tmp_path / f"{lack}.sqlite"
            async with following(node, path, upstream=limited(node, lack)) as found:
                await audited(node, found)
                await finish_audits(found.follower.auditor, found.store)
                rows = found.store.read(
                    "select a.address, t.balance_source, t.is_untrusted from token_trust t"
                    " join address a on a.id = t.token"
                )
                assert found.store.read("select 1 from token where layout_since is not null") == [], lack
            known = {address: (source, bool(is_untrusted)) for address, source, is_untrusted in rows}
            assert {known[address] for address in chain.tokens} == {("audited", False)}, lack
            assert {known[address] for address in untrue} >= {("logs", True)}, lack
            result = await compare(chain, path, range(node.newest() + 1), answered)
            assert result.wrong == [], lack
            assert result.compared > 10 * result.from_state, lack  # of those whom no log has named


CHEAT = bytes.fromhex("cc" * 20)
TELLS_SEVEN = (
    f"4 CALLDATALOAD 0x{CHEAT.hex()} EQ @cheat JUMPI"
    " 4 CALLDATALOAD 0 MSTORE 0 32 MSTORE 64 0 KECCAK256 SLOAD 0 MSTORE 32 0 RETURN"
    " cheat: 7 0 MSTORE 32 0 RETURN"
)


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
@awaited
async def test_a_constant_balance_in_proven_code_is_found_by_audits_and_rolled_back(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No proof shows it: the slot of a named and of a random holder is what it should be."""
    monkeypatch.setattr(sample, "BY_STORAGE_EVERY", 1)
    with anvil() as node:
        account = node.call("eth_accounts")[0]
        sent = {"from": account, "gas": hex(GAS)}
        node.put_block([sent | {"data": "0x" + deployment(token_code(TELLS_SEVEN)).hex()}])
        token = created_address(bytes.fromhex(account[2:]), 0)

        def minted(holder: bytes) -> None:
            slots = {LAYOUTS["openzeppelin 4"].slot_of(holder, 0): 5}
            data = "0x" + run_data(slots, [Move(ZERO, holder, 5)]).hex()
            node.put_block([sent | {"to": "0x" + token.hex(), "data": data}])

        async with following(node, tmp_path / f"a.{engine}") as found:

            async def known() -> tuple[str, int | None]:
                await audited(node, found)
                rows = found.store.read(
                    "select u.balance_source, t.untrusted_since from token t join token_trust u on u.token = t.token"
                )
                return str(rows[0][0]), rows[0][1]

            await asyncio.to_thread(minted, bytes.fromhex("dd" * 20))
            assert await known() == ("storage", None)
            await asyncio.to_thread(minted, CHEAT)
            assert await known() == ("logs", 3)
            await asyncio.to_thread(node.reorganise, 1)
            await caught_up(node, found)
            assert await known() == ("storage", None)
