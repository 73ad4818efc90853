"""State at a block: as recorded, at any block, in as many requests as the upstream needs."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.upstream.evm_recording import CHAINS, recorded_blocks, recorded_state
from tests.upstream.evm_replay import EvmFault, EvmReplay
from tests.upstream.evm_scene import upstream_of
from tests.upstream.replay import FOREVER

from icefall.demo.recording import RecordedState
from icefall.upstream.client import UpstreamFailure
from icefall.upstream.evm.errors import NoState, NotThere, Reverted
from icefall.upstream.evm.state import ContractCall
from icefall.upstream.evm.upstream import EvmUpstream


def raw(text: str) -> bytes:
    return bytes.fromhex(text.removeprefix("0x"))


def word(value: bytes | int) -> bytes:
    return value.rjust(32, b"\0") if isinstance(value, bytes) else value.to_bytes(32, "big")


def on(scene: Callable[[EvmUpstream], Awaitable[None]], *replays: EvmReplay, **options: Any) -> None:
    async def run() -> None:
        async with upstream_of(*replays, **options) as upstream:
            await scene(upstream)

    asyncio.run(run())


@pytest.mark.parametrize("chain", CHAINS)
def test_native_balances_at_any_block(chain: str) -> None:
    state, replay = recorded_state(chain), EvmReplay(chain)
    addresses = [path[1] for path in state.values if path[0] == "native"]
    head = replay.head

    async def scene(upstream: EvmUpstream) -> None:
        for block in (0, 1, head // 2, head):
            logged = await upstream.balances([raw(address) for address in addresses], block)
            assert logged == [int(state.at(block, "native", address)) for address in addresses]
        by_hash = raw(recorded_blocks(chain)[head // 2].hash)
        assert await upstream.balances([raw(addresses[0])], by_hash) == [
            int(state.at(head // 2, "native", addresses[0]))
        ]

    on(scene, replay)


def token_calls(state: RecordedState, block: int, count: int) -> list[tuple[ContractCall, Any]]:
    """Some recorded token values, and how to ask for them; None: it fails or is not there."""
    chosen = random.Random(7).sample([path for path in state.values if path[0] != "native"], count)
    calls = []
    for kind, token, *rest in chosen:
        value = state.at(block, kind, token, *rest)
        data = {
            "erc20": lambda rest: bytes.fromhex("70a08231") + word(raw(rest[0])),
            "erc721": lambda rest: bytes.fromhex("6352211e") + word(int(rest[0])),
            "erc1155": lambda rest: bytes.fromhex("00fdd58e") + word(raw(rest[0])) + word(int(rest[1])),
        }[kind](rest)
        wanted = None if value is None else int(value, 16) if kind == "erc721" else int(value)
        calls.append((ContractCall(raw(token), data), wanted))
    return calls


@pytest.mark.parametrize("chain", CHAINS)
def test_token_balances_and_owners_at_any_block(chain: str) -> None:
    state, replay = recorded_state(chain), EvmReplay(chain)

    async def scene(upstream: EvmUpstream) -> None:
        for block in (replay.head // 2, replay.head):
            asked = token_calls(state, block, 100)
            logged = await upstream.answers([call for call, _ in asked], block)
            for (call, wanted), answer in zip(asked, logged, strict=True):
                if wanted is not None:
                    assert not isinstance(answer, Reverted), call
                    assert int.from_bytes(answer, "big") == wanted
        assert max(replay.batches) == 100

    on(scene, replay)


def test_names_as_recorded_and_failures_as_answers() -> None:
    state, replay = recorded_state("cchain-1"), EvmReplay("cchain-1")
    selectors = {"name": "06fdde03", "symbol": "95d89b41", "decimals": "313ce567"}

    async def scene(upstream: EvmUpstream) -> None:
        seen = set()
        for token, row in state.tokens.items():
            for what, selector in selectors.items():
                (answer,) = await upstream.answers([ContractCall(raw(token), raw(selector))], replay.head)
                recorded = row["answers"][what]
                if isinstance(recorded, str):
                    assert answer == raw(recorded)
                else:
                    assert isinstance(answer, Reverted)
                    assert answer.output == recorded["error"].get("data", "0x")
                seen.add(type(answer))
        assert seen == {bytes, Reverted}
        first = raw(next(iter(state.tokens)))
        assert await upstream.answers([ContractCall(first, raw("06fdde03"))], 0) == [b""]
        codes = await upstream.codes([first, bytes(20)], replay.head)
        assert len(codes[0]) > 100
        assert codes[1] == b""
        assert await upstream.codes([first], 0) == [b""]

    on(scene, replay)


@pytest.mark.parametrize("chain", CHAINS)
def test_beyond_the_head_is_not_zero(chain: str) -> None:
    async def scene(upstream: EvmUpstream) -> None:
        for ask in (upstream.balances([bytes(20)], 99_999), upstream.codes([bytes(20)], 99_999)):
            with pytest.raises(NotThere):
                await ask
        with pytest.raises(NotThere):
            await upstream.answers([ContractCall(bytes(20), b"")], 99_999)
        with pytest.raises(NotThere):
            await upstream.balances([bytes(20)], bytes(32))

    on(scene, EvmReplay(chain))


def test_pruned_state_is_read_from_another_or_refused() -> None:
    pruned, archive = EvmReplay("geth-1"), EvmReplay("geth-1")
    pruned.pruned_below = 300
    address = next(path[1] for path, values in recorded_state("geth-1").values.items() if path[0] == "native")

    async def both(upstream: EvmUpstream) -> None:
        await upstream.probe_all()
        assert await upstream.balances([raw(address)], 20) == [int(recorded_state("geth-1").at(20, "native", address))]
        assert upstream.pool.failing() == {}

    async def alone(upstream: EvmUpstream) -> None:
        with pytest.raises(NoState, match="missing trie node"):
            await upstream.balances([raw(address)], 20)
        assert len(await upstream.balances([raw(address)], 350)) == 1

    on(both, pruned, archive)
    on(alone, pruned)


@pytest.mark.parametrize(
    "evm_fault",
    [
        EvmFault("eth_getBalance", result=b"null"),
        EvmFault("eth_getBalance", result=b'"0x"'),
        EvmFault("eth_getBalance", result=b'"12"'),
        EvmFault("eth_getBalance", result=b"12"),
        EvmFault("eth_getBalance", result=b'"0x1' + b"0" * 64 + b'"'),
        EvmFault("eth_getBalance", error=(-32000, "an unknown error")),
        EvmFault("eth_getBalance", status=500),
    ],
)
def test_an_answer_that_is_none_is_never_zero(evm_fault: EvmFault) -> None:
    replay = EvmReplay("geth-1")

    async def scene(upstream: EvmUpstream) -> None:
        await upstream.probe_all()
        replay.evm_faults = [evm_fault._replace(times=FOREVER)]
        with pytest.raises(UpstreamFailure):
            await upstream.balances([bytes(20), bytes(19) + b"\1"], 5)
        replay.evm_faults = [evm_fault]
        assert await upstream.balances([bytes(20), bytes(19) + b"\1"], 5) == [0, 1]

    on(scene, replay)


def test_a_client_that_takes_no_block_hashes() -> None:
    """State is read by number then, and only valid while that number is still the same block."""
    replay = EvmReplay("anvil-1")
    replay.off.add("blockHash")
    state, blocks = recorded_state("anvil-1"), recorded_blocks("anvil-1")
    who = next(path[1] for path in state.values if path[0] == "native")

    async def scene(upstream: EvmUpstream) -> None:
        for number in (5, 700, 1900):
            logged = await upstream.balances([raw(who)], raw(blocks[number].hash))
            assert logged == [int(state.at(number, "native", who) or 0)]
        assert sum("blockHash" in str(params) for _, params in replay.calls) == 1, "it was not remembered"
        with pytest.raises(NotThere):
            await upstream.balances([raw(who)], bytes(32))

    on(scene, replay)
