"""All enrichment loops together: they run, continue after failures, log each once, and stop when cancelled."""

import asyncio
import json
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.evm.enriching.enrich_scene import Scene
from tests.upstream.evm_recording import recorded_state
from tests.upstream.evm_replay import EvmFault, EvmReplay
from tests.upstream.evm_scene import upstream_of
from tests.upstream.fake_clock import FakeClock
from tests.upstream.replay import FOREVER
from tests.waiting import LIMIT_S

from icefall.evm.enriching.loops import EnrichSettings, enrich_forever
from icefall.evm.enriching.nft_loop import NftSettings


class FastClock(FakeClock):
    """Sleeps no fake time, and gives other tasks a turn."""

    async def sleep(self, seconds: float) -> None:
        await super().sleep(seconds)
        await asyncio.sleep(0.001)


def test_all_loops_together(tmp_path: Path) -> None:
    replay = EvmReplay("geth-1")
    tokens = {bytes.fromhex(address[2:]): token for address, token in recorded_state("geth-1").tokens.items()}
    art = next(address for address, token in tokens.items() if token["label"] == "art")
    prices, reputations = tmp_path / "p.json", tmp_path / "r.json"
    prices.write_text(json.dumps({"currencies": {"usd": {"native": {"current": "1"}}}}))
    reputations.write_text(json.dumps({"Benign": ["0x" + art.hex()]}))
    settings = EnrichSettings(NftSettings(web=False), prices=str(prices), reputation=str(reputations))

    async def run() -> None:
        scene = Scene(tmp_path / "c.db")
        with closing(scene.store):
            await scene.add_tokens(tokens)
            await scene.add_nfts(art, [1, 2, 11])
            async with upstream_of(replay, timeout_s=120) as upstream:
                loops = asyncio.ensure_future(
                    enrich_forever(
                        scene.store,
                        upstream,
                        settings,
                        scene.log,
                        counts=scene.counts,
                        clock=FastClock(),
                        wall=scene.wall,
                    )
                )
                await reached(scene, loops, len(tokens), 3)
                replay.evm_faults = [EvmFault(times=FOREVER, status=500)]
                await scene.run("update token set read_at = null")  # work, while the upstream is down
                while scene.counts.failures["tokens"] < 2:
                    assert not loops.done()
                    await asyncio.sleep(0.01)
                warnings = [line for line in scene.log.lines if "enrichment of tokens failed" in line[0]]
                assert 1 <= len(warnings) <= scene.counts.failures["tokens"]
                prices.write_text("nonsense")
                replay.evm_faults = []
                await reached(scene, loops, len(tokens), 3)
                loops.cancel()
                await asyncio.gather(loops, return_exceptions=True)
                assert loops.cancelled()
        assert scene.counts.lists_loaded == {"prices": 1, "reputation": 1}
        assert scene.counts.nfts_read["INDEXED"] == 1

    asyncio.run(run())


async def reached(scene: Scene, loops: "asyncio.Future[Any]", tokens: int, nfts: int) -> None:
    deadline = time.monotonic() + LIMIT_S
    while time.monotonic() < deadline:
        await asyncio.sleep(0.01)
        assert not loops.done()
        read = scene.rows("select count(*) from token where read_at is not null")[0][0]
        nfts_read = scene.rows("select count(*) from nft where read_at is not null")[0][0]
        listed = scene.rows("select (select count(*) from price) + (select count(*) from reputation)")[0][0]
        if (read, nfts_read, listed) == (tokens, nfts, 2):
            return
    raise AssertionError((read, nfts_read, listed))
