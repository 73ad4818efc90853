"""Name, symbol and decimals of recorded contracts, read from an upstream that may fail."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.evm.enriching.enrich_scene import Scene, enriched, until_idle, with_upstream
from tests.upstream.evm_recording import CHAINS, recorded_state
from tests.upstream.evm_replay import EvmFault, EvmReplay
from tests.upstream.replay import FOREVER

from icefall.upstream.client import UpstreamFailure
from icefall.upstream.evm.upstream import EvmUpstream


def recorded(chain: str) -> dict[bytes, dict[str, Any]]:
    return {bytes.fromhex(address[2:]): token for address, token in recorded_state(chain).tokens.items()}


def decoded(answer: Any) -> str:
    """The text in a recorded answer to name() or symbol(), decoded independently."""
    if not isinstance(answer, str) or len(answer) < 66:
        return ""
    raw = bytes.fromhex(answer[2:])
    if len(raw) == 32:
        return raw.rstrip(b"\0").decode()
    return raw[64 : 64 + raw[63]].decode()


def expected(token: dict[str, Any]) -> tuple[str, str, int | None]:
    answers = token["answers"]
    decimals = answers.get("decimals")
    number = int(decimals, 16) if isinstance(decimals, str) and len(decimals) == 66 else None
    return decoded(answers.get("name")), decoded(answers.get("symbol")), number


READ = "select a.address, t.name, t.symbol, t.decimals from token t join address a on a.id = t.token where read_at > 0"


def read_so_far(scene: Scene) -> dict[bytes, tuple[str, str, int | None]]:
    return {address: (name, symbol, decimals) for address, name, symbol, decimals in scene.rows(READ)}


@pytest.mark.parametrize("chain", CHAINS)
def test_every_recorded_token(chain: str, tmp_path: Path) -> None:
    replay, tokens = EvmReplay(chain), recorded(chain)

    async def work(scene: Scene, upstream: EvmUpstream) -> None:
        await scene.add_tokens(tokens)
        rounds = await until_idle(scene.rounds(upstream)["tokens"])
        assert read_so_far(scene) == {address: expected(token) for address, token in tokens.items()}
        assert rounds == -(-len(tokens) // 50)
        assert scene.counts.tokens_read == len(tokens)
        details = await enriched(scene.store).priced_tokens(range(1, 1000), "usd")
        assert sorted((one.name, one.symbol) for one in details.values()) == sorted(
            expected(token)[:2] for token in tokens.values()
        )

    asyncio.run(with_upstream(tmp_path / "c.db", replay, work))


def test_the_recordings_include_unusual_tokens() -> None:
    kinds = {token["kind"] for chain in CHAINS for token in recorded(chain).values()}
    assert {"erc20:bytes32", "erc20:no-metadata", "erc20:empty-name", "erc721", "nft:pre-standard"} <= kinds


def test_an_address_without_code_is_read_once(tmp_path: Path) -> None:
    async def work(scene: Scene, upstream: EvmUpstream) -> None:
        await scene.add_tokens([b"\7" * 20])
        await until_idle(scene.rounds(upstream)["tokens"])
        assert read_so_far(scene) == {b"\7" * 20: ("", "", None)}

    asyncio.run(with_upstream(tmp_path / "c.db", EvmReplay("berlin-1"), work))


def test_nothing_is_stored_while_the_upstream_is_down(tmp_path: Path) -> None:
    replay, tokens = EvmReplay("berlin-1"), recorded("berlin-1")

    async def work(scene: Scene, upstream: EvmUpstream) -> None:
        await scene.add_tokens(tokens)
        one = scene.rounds(upstream)["tokens"]
        replay.evm_faults = [EvmFault(times=FOREVER, status=500)]
        with pytest.raises(UpstreamFailure):
            await one()
        assert read_so_far(scene) == {}
        assert scene.rows("select distinct failures, retry_at from token") == [(0, 0)]
        replay.evm_faults = []
        await until_idle(one)
        assert len(read_so_far(scene)) == len(tokens)

    asyncio.run(with_upstream(tmp_path / "c.db", replay, work, timeout_s=120))


def test_a_failing_contract_does_not_fail_the_others(tmp_path: Path) -> None:
    replay, tokens = EvmReplay("geth-1"), recorded("geth-1")
    bad = sorted(tokens)[3]

    def refuse(method: str, params: list[Any]) -> None:
        if method == "eth_call" and params[0]["to"] == "0x" + bad.hex():
            replay.evm_faults = [EvmFault("eth_call", error=(-32000, "execution aborted (timeout = 5s)"))]

    async def work(scene: Scene, upstream: EvmUpstream) -> None:
        await scene.add_tokens(tokens)
        one = scene.rounds(upstream)["tokens"]
        replay.on_call = refuse
        await until_idle(one)
        assert set(read_so_far(scene)) == set(tokens) - {bad}
        waiting = scene.rows("select failures, retry_at from token where read_at is null")
        assert waiting == [(1, scene.now + 60)]
        scene.now += 60
        await until_idle(one)
        assert scene.rows("select failures, retry_at from token where read_at is null") == [(2, scene.now + 240)]
        replay.on_call = lambda method, params: None
        scene.now += 240
        await until_idle(one)
        assert set(read_so_far(scene)) == set(tokens)

    asyncio.run(with_upstream(tmp_path / "c.db", replay, work, timeout_s=1000))


def test_a_result_is_dropped_if_its_id_now_belongs_to_another_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rollback during the contract call: the same ID may be given to another address."""
    replay, tokens = EvmReplay("berlin-1"), recorded("berlin-1")
    old, new = sorted(tokens)[:2]

    async def work(scene: Scene, upstream: EvmUpstream) -> None:
        await scene.add_tokens([old])
        changed = False

        async def rolled_back() -> None:
            await scene.run("delete from token")
            await scene.run("delete from address")
            await scene.add_tokens([new])

        answers = upstream.answers

        async def delayed(*calls: Any) -> Any:
            nonlocal changed
            returned = await answers(*calls)
            if not changed:
                changed = True
                await rolled_back()
            return returned

        monkeypatch.setattr(upstream, "answers", delayed)
        one = scene.rounds(upstream)["tokens"]
        assert await one()
        assert read_so_far(scene) == {}
        await until_idle(one)
        assert read_so_far(scene) == {new: expected(tokens[new])}

    asyncio.run(with_upstream(tmp_path / "c.db", replay, work))


async def add_block(scene: Scene, number: int, block_hash: bytes) -> None:
    await scene.run("delete from block")
    columns = "parent_hash, touched, base_fee, gas_used, gas_limit, gas_cost, fees_spent"
    await scene.run(
        f"insert into block (number, hash, time, tx_count, cumulative_txs, next_address, {columns})"
        " values (?, ?, 0, 0, 0, 0, x'', x'', x'', x'', x'', x'', x'')",
        number,
        block_hash,
    )


def test_names_are_those_of_the_newest_stored_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The upstream may be ahead, on a branch that is never stored."""
    replay, tokens = EvmReplay("berlin-1"), recorded("berlin-1")
    token = sorted(tokens)[0]
    tip = replay.blocks[replay.head - 3]

    async def work(scene: Scene, upstream: EvmUpstream) -> None:
        await scene.add_tokens([token])
        await add_block(scene, tip.number, bytes.fromhex(tip.hash[2:]))
        asked: list[Any] = []
        answers = upstream.answers

        async def noted(calls: Any, at: Any) -> Any:
            asked.append(at)
            return await answers(calls, at)

        monkeypatch.setattr(upstream, "answers", noted)
        one = scene.rounds(upstream)["tokens"]
        assert await one()
        assert read_so_far(scene) == {token: expected(tokens[token])}
        await scene.run("update token set read_at = null")
        await add_block(scene, 1, b"\1" * 32)  # far behind
        assert await one()
        await scene.run("update token set read_at = null")
        await add_block(scene, tip.number, b"\2" * 32)  # replaced, and not noticed yet
        assert not await one()
        assert scene.rows("select read_at, failures from token") == [(None, 0)]
        assert asked == [bytes.fromhex(tip.hash[2:]), replay.head - 64, b"\2" * 32]

    asyncio.run(with_upstream(tmp_path / "c.db", replay, work))


def test_a_name_of_a_block_that_was_replaced_meanwhile_is_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The contract may have been made again on the new branch, with the same ID and address and another name."""
    replay, tokens = EvmReplay("berlin-1"), recorded("berlin-1")
    token, tip = sorted(tokens)[0], replay.blocks[replay.head]

    async def work(scene: Scene, upstream: EvmUpstream) -> None:
        await scene.add_tokens([token])
        await add_block(scene, tip.number, bytes.fromhex(tip.hash[2:]))
        answers = upstream.answers

        async def replaced(*calls: Any) -> Any:
            found = await answers(*calls)
            await add_block(scene, tip.number, b"\1" * 32)
            await scene.run("delete from token")
            await scene.add_tokens([token])
            return found

        monkeypatch.setattr(upstream, "answers", replaced)
        await scene.rounds(upstream)["tokens"]()
        assert read_so_far(scene) == {}

    asyncio.run(with_upstream(tmp_path / "c.db", replay, work))
