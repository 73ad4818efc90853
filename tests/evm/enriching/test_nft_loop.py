"""The NFT loop with recorded contracts, scripted contracts and real web servers."""

import asyncio
import base64
import json
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.evm.enriching.enrich_scene import Scene, enriched, until_idle, with_upstream
from tests.evm.enriching.web import Names, Web
from tests.upstream.evm_recording import CHAINS, recorded_state
from tests.upstream.evm_replay import EvmFault, EvmReplay
from tests.upstream.evm_scene import upstream_of
from tests.upstream.replay import FOREVER
from tests.waiting import LIMIT_S

from icefall.demo.replay import ReplayError
from icefall.evm.encoding import pack_uint, unpack_uint
from icefall.evm.enriching.guarded_fetcher import FetchLimits, GuardedFetcher
from icefall.evm.enriching.loops import EnrichSettings
from icefall.evm.enriching.nft_loop import NftSettings
from icefall.evm.enriching.nft_metadata import NftMetadata
from icefall.evm.enriching.nft_outcomes import POSTPONED
from icefall.upstream.client import UpstreamFailure
from icefall.upstream.evm.upstream import EvmUpstream

ART = b"\xa7" * 20
TOKEN_URI, URI = bytes.fromhex("c87b56dd"), bytes.fromhex("0e89341c")
CID = "QmYwAPJzv5CZsnA625s3Xf2nemtYgPpHdWEz79ojWKPbdG"
GOOD = '{"name":"x"}'
LIMITS = FetchLimits(total_s=LIMIT_S, size_max=10_000)


class Collection(EvmReplay):
    """A replayed chain with a scripted contract: per token a URI, None to revert, or bytes for a raw answer."""

    def __init__(self) -> None:
        super().__init__("berlin-1")
        self.uris: dict[int, str | bytes | None] = {}
        self.uris_1155: dict[int, str] = {}

    def result(self, method: str, params: list[Any]) -> bytes:
        if method != "eth_call" or params[0]["to"] != "0x" + ART.hex():
            return super().result(method, params)
        data = bytes.fromhex(params[0]["data"][2:])
        uris = self.uris if data[:4] == TOKEN_URI else self.uris_1155
        assert data[:4] in (TOKEN_URI, URI)
        uri = uris.get(int.from_bytes(data[4:], "big"))
        if uri is None:
            raise ReplayError(3, "execution reverted", "0x")
        raw = uri.encode() if isinstance(uri, str) else uri
        answer = raw if isinstance(uri, bytes) else (32).to_bytes(32, "big") + len(raw).to_bytes(32, "big") + raw
        return msgspec.json.encode("0x" + answer.hex())


class Stage:
    """What a test of the loop needs."""

    def __init__(self, scene: Scene, upstream: EvmUpstream, contract: Collection, web: Web) -> None:
        self.scene = scene
        self.upstream = upstream
        self.contract = contract
        self.web = web
        self.settings = NftSettings(gateway=f"{web.url}/ipfs/", allow=("127.0.0.1",))

    def round(
        self, settings: NftSettings | None = None, guard: GuardedFetcher | None = None
    ) -> Callable[[], Awaitable[bool]]:
        nfts = settings or self.settings
        guard = guard or GuardedFetcher(allow=nfts.allow, trusted=[nfts.gateway], limits=LIMITS, lookup=Names())
        return self.scene.rounds(self.upstream, EnrichSettings(nfts), guard)["nfts"]


def staged(path: Path, work: Callable[[Stage], Awaitable[None]]) -> None:
    async def run() -> None:
        contract = Collection()
        async with AsyncExitStack() as stack:
            web = await stack.enter_async_context(Web())
            upstream = await stack.enter_async_context(upstream_of(contract, timeout_s=1000))
            scene = Scene(path / "c.db")
            stack.enter_context(closing(scene.store))
            await work(Stage(scene, upstream, contract, web))

    asyncio.run(run())


def test_every_outcome(tmp_path: Path) -> None:
    async def work(stage: Stage) -> None:
        web, url = stage.web, stage.web.url
        web.page("/good", '{"name":"N","image":"https://i/1.png","attributes":[{"a":1}]}')
        web.page(f"/ipfs/{CID}/4", '{"name":"from ipfs"}')
        web.page("/html", "<html>")
        web.page("/list", "[]")
        web.page("/large", "x" * 10_001)
        web.page("/busy", status=429)
        web.page("/broken", status=500)
        b64 = base64.b64encode(GOOD.encode()).decode()
        cases: list[tuple[str | bytes | None, str, bool]] = [  # answer of the contract, status, tried again
            (f"{url}/good", "INDEXED", False),
            (f"data:application/json;base64,{b64}", "INDEXED", False),
            (f"data:application/json;utf8,{GOOD}", "INDEXED", False),
            (f"ipfs://{CID}/4", "INDEXED", False),
            (None, "MISSING_TOKEN", False),
            (b"", "MISSING_TOKEN", False),
            ("", "INVALID_TOKEN_URI", False),
            (b"\xff" * 40, "INVALID_TOKEN_URI", False),
            ("no uri", "INVALID_TOKEN_URI", False),
            ("ipfs://../x", "INVALID_TOKEN_URI", False),
            ("ftp://other.example/1", "INVALID_TOKEN_URI_SCHEME", False),
            (f"{url}/missing", "UNREACHABLE_TOKEN_URI", True),
            (f"{url}/broken", "UNREACHABLE_TOKEN_URI", True),
            ("https://nowhere.example/1", "UNREACHABLE_TOKEN_URI", True),
            ("http://127.0.0.2/1", "UNREACHABLE_TOKEN_URI", True),
            (f"{url}/busy", "THROTTLED_TOKEN_URI", True),
            (f"{url}/large", "METADATA_CONTENT_TOO_LARGE", False),
            ("data:," + "x" * 70_000, "METADATA_CONTENT_TOO_LARGE", False),
            (f"{url}/html", "INVALID_METADATA_JSON", True),
            ("data:application/json,nonsense", "INVALID_METADATA_JSON", False),
            (f"{url}/list", "INVALID_METADATA", True),
        ]
        stage.contract.uris = {number: answer for number, (answer, _, _) in enumerate(cases)}
        await stage.scene.add_nfts(ART, range(len(cases)))
        await until_idle(stage.round())
        for number, (answer, status, again) in enumerate(cases):
            got, retry_at, read_at = stage.scene.nft(number, "status, retry_at, read_at")
            assert (got, retry_at is not None, read_at) == (status, again, int(stage.scene.now)), answer
        assert sum(stage.scene.counts.nfts_read.values()) == len(cases)
        details = await enriched(stage.scene.store).nft_metadata([(1, 0), (1, 4), (1, 999)])
        assert details[1, 0].metadata == NftMetadata(name="N", image_uri="https://i/1.png", attributes='[{"a":1}]')
        assert (details[1, 0].status, details[1, 0].token_uri) == ("INDEXED", f"{url}/good")
        assert (details[1, 4].status, details[1, 999].status) == ("MISSING_TOKEN", "UNINDEXED")

    staged(tmp_path, work)


def test_a_server_that_does_not_answer(tmp_path: Path) -> None:
    async def work(stage: Stage) -> None:
        stage.web.silent("/silent")
        stage.contract.uris = {1: f"{stage.web.url}/silent"}
        await stage.scene.add_nfts(ART, [1])
        await until_idle(stage.round(guard=GuardedFetcher(allow=["127.0.0.1"], limits=FetchLimits(total_s=0.05))))
        assert stage.scene.nft(1, "status, retry_at") == ("UNREACHABLE_TOKEN_URI", int(stage.scene.now) + 60)

    staged(tmp_path, work)


def test_erc1155_and_contracts_of_both_standards(tmp_path: Path) -> None:
    async def work(stage: Stage) -> None:
        scene, contract = stage.scene, stage.contract
        contract.uris_1155 = {7: 'data:application/json,{"name":"{id}"}', 8: 'data:,{"name":"multi"}'}
        contract.uris = {8: None, 9: 'data:,{"name":"single"}'}
        await scene.add_nfts(ART, [7, 8, 9], standards=4)
        await until_idle(stage.round())
        assert json.loads(scene.nft(7, "metadata")) == {"name": f"{7:064x}"}
        assert scene.nft(9) == "MISSING_TOKEN"
        await scene.run("update token set standards = 6")
        await scene.run("update nft set retry_at = 0")
        await until_idle(stage.round())
        assert [json.loads(scene.nft(number, "metadata"))["name"][-6:] for number in (7, 8, 9)] == [
            "000007",
            "multi",
            "single",
        ]

    staged(tmp_path, work)


def test_retries_end(tmp_path: Path) -> None:
    async def work(stage: Stage) -> None:
        scene = stage.scene
        stage.contract.uris = {1: f"{stage.web.url}/missing"}
        await scene.add_nfts(ART, [1])
        one, pauses = stage.round(), []
        while scene.nft(1, "retry_at") is not None:
            await until_idle(one)
            retry_at = scene.nft(1, "retry_at")
            if retry_at is not None:
                pauses.append(retry_at - int(scene.now))
                scene.now = retry_at
        assert pauses == [60, 240, 960, 3840, 15360, 61440, 86400, 86400]
        assert scene.nft(1, "status, failures") == ("UNREACHABLE_TOKEN_URI", 9)
        assert len(stage.web.requests) == 9
        stage.web.page("/missing", GOOD)
        await scene.run("update nft set retry_at = 0")  # as a metadata event of the chain does
        await until_idle(one)
        assert scene.nft(1, "status, failures, retry_at") == ("INDEXED", 0, None)

    staged(tmp_path, work)


def test_a_failed_refresh_keeps_the_metadata(tmp_path: Path) -> None:
    async def work(stage: Stage) -> None:
        scene, url = stage.scene, stage.web.url
        stage.web.page("/1", GOOD)
        stage.contract.uris = {1: f"{url}/1"}
        await scene.add_nfts(ART, [1])
        await until_idle(stage.round())
        read_at = scene.nft(1, "read_at")
        scene.now += 1000
        stage.web.page("/1", status=500)
        await scene.run("update nft set retry_at = 0")
        await until_idle(stage.round())
        kept = ("INDEXED", GOOD, read_at, int(scene.now) + 60)
        assert scene.nft(1, "status, metadata, read_at, retry_at") == kept
        stage.contract.uris = {1: f"{url}/other"}  # another URI: the stored metadata is not of it
        await scene.run("update nft set retry_at = 0")
        await until_idle(stage.round())
        assert scene.nft(1, "status, metadata, token_uri") == ("UNREACHABLE_TOKEN_URI", "{}", f"{url}/other")

    staged(tmp_path, work)


def test_an_nft_that_becomes_due_while_it_is_read_is_read_again(tmp_path: Path) -> None:
    async def work(stage: Stage) -> None:
        scene = stage.scene
        stage.contract.uris = {1: f"{stage.web.url}/1"}
        await scene.add_nfts(ART, [1])

        async def meanwhile(_: Any) -> Any:
            assert scene.nft(1, "retry_at") == -1
            await scene.run("update nft set retry_at = 0")
            stage.web.page("/1", '{"name":"new"}')
            from aiohttp.web import Response

            return Response(text='{"name":"old"}')

        stage.web.pages["/1"] = meanwhile
        one = stage.round()
        assert await one()
        assert scene.nft(1, "retry_at, status") == (0, "UNINDEXED")
        await until_idle(one)
        assert scene.nft(1, "metadata") == '{"name":"new"}'

    staged(tmp_path, work)


def test_changed_settings_make_postponed_nfts_due(tmp_path: Path) -> None:
    async def work(stage: Stage) -> None:
        scene, web = stage.scene, stage.web
        web.page("/1", GOOD)
        web.page(f"/ipfs/{CID}", GOOD)
        stage.contract.uris = {1: f"{web.url}/1", 2: f"ipfs://{CID}", 3: f"data:,{GOOD}"}
        await scene.add_nfts(ART, [1, 2, 3])

        async def after(settings: NftSettings) -> list[tuple[str, bool]]:
            await until_idle(stage.round(settings))
            return [(status, at == POSTPONED) for status, at in (scene.nft(n, "status, retry_at") for n in (1, 2, 3))]

        off = msgspec.structs.replace(stage.settings, web=False)
        assert await after(off) == [("UNINDEXED", True), ("UNINDEXED", True), ("INDEXED", False)]
        assert scene.nft(1, "token_uri") == f"{web.url}/1"
        private = NftSettings(gateway="", allow=())
        assert await after(private) == [("UNREACHABLE_TOKEN_URI", True), ("UNINDEXED", True), ("INDEXED", False)]
        assert web.requests == []
        calls = len(stage.contract.calls)
        assert await after(private) == [("UNREACHABLE_TOKEN_URI", True), ("UNINDEXED", True), ("INDEXED", False)]
        assert len(stage.contract.calls) == calls  # same settings: no retry
        assert await after(stage.settings) == [("INDEXED", False)] * 3

    staged(tmp_path, work)


def test_a_gateway_on_loopback_serves_ipfs_and_nothing_else(tmp_path: Path) -> None:
    async def work(stage: Stage) -> None:
        url = stage.web.url
        stage.web.page(f"/ipfs/{CID}", GOOD)
        stage.contract.uris = {
            1: f"ipfs://{CID}",
            2: f"{url}/ipfs/{CID}",
            3: f"{url}/admin",
            4: f"ipfs://{CID}/../../admin",
        }
        await stage.scene.add_nfts(ART, [1, 2, 3, 4])
        await until_idle(stage.round(NftSettings(gateway=f"{url}/ipfs/")))
        refused = "UNREACHABLE_TOKEN_URI"
        assert [stage.scene.nft(n) for n in (1, 2, 3, 4)] == ["INDEXED", refused, refused, "INVALID_TOKEN_URI"]
        assert stage.web.paths == [f"/ipfs/{CID}"]

    staged(tmp_path, work)


def test_a_throttling_host_is_not_requested_again_until_its_retry_after(tmp_path: Path) -> None:
    async def work(stage: Stage) -> None:
        scene, web = stage.scene, stage.web
        web.page("/busy", status=429, Retry_After="600")
        stage.contract.uris = dict.fromkeys(range(200), f"{web.url}/busy")
        await scene.add_nfts(ART, range(200))
        one = stage.round()
        await until_idle(one)
        assert len(web.requests) <= 8 * 4  # those of the first round
        assert scene.rows("select distinct status, retry_at from nft") == [("THROTTLED_TOKEN_URI", scene.now + 600)]
        web.page("/busy", GOOD)
        scene.now += 601
        await until_idle(one)
        assert scene.rows("select status, count(*) from nft") == [("INDEXED", 200)]

    staged(tmp_path, work)


def test_a_large_contract_does_not_delay_the_others(tmp_path: Path) -> None:
    async def work(stage: Stage) -> None:
        scene = stage.scene
        await scene.add_nfts(ART, range(500))
        others = [bytes([number]) * 20 for number in range(1, 30)]
        for other in others:
            await scene.add_nfts(other, [0])
        one = stage.round()
        for _ in range(5):
            await one()
        waiting = "select count(*) from nft n join address a on a.id = n.token where retry_at is not null and a.address"
        assert scene.rows(f"{waiting} <> ?", ART) == [(0,)]
        assert scene.rows(f"{waiting} = ?", ART)[0][0] > 400
        assert await until_idle(one) < 20  # alone, it gets whole rounds
        assert scene.rows("select count(*) from nft where retry_at is null") == [(529,)]

    staged(tmp_path, work)


def test_nothing_is_stored_while_the_upstream_is_down(tmp_path: Path) -> None:
    async def work(stage: Stage) -> None:
        stage.contract.uris = {1: f"data:,{GOOD}"}
        await stage.scene.add_nfts(ART, [1])
        stage.contract.evm_faults = [EvmFault(times=FOREVER, status=500)]
        one = stage.round()
        with pytest.raises(UpstreamFailure):
            await one()
        assert stage.scene.nft(1, "status, failures") == ("UNINDEXED", 0)
        stage.contract.evm_faults = []
        await until_idle(one)
        assert stage.scene.nft(1) == "INDEXED"

    staged(tmp_path, work)


def test_an_internal_error_affects_one_row_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from icefall.evm.enriching import nft_loop

    def faulty(body: bytes) -> NftMetadata:
        if b"bad" in body:
            raise ZeroDivisionError
        return NftMetadata(name="x")

    async def work(stage: Stage) -> None:
        monkeypatch.setattr(nft_loop, "metadata_of", faulty)
        stage.contract.uris = {1: "data:,bad", 2: "data:,good"}
        await stage.scene.add_nfts(ART, [1, 2])
        await until_idle(stage.round())
        assert (stage.scene.nft(1), stage.scene.nft(2)) == ("UNKNOWN", "INDEXED")
        assert stage.scene.nft(1, "retry_at") == int(stage.scene.now) + 60
        assert len(stage.scene.log.lines) == 1

    staged(tmp_path, work)


@pytest.mark.parametrize("chain", CHAINS)
def test_recorded_collections(chain: str, tmp_path: Path) -> None:
    """Contracts and data: URIs are read; no host of a recorded URI resolves here."""
    replay, tokens = EvmReplay(chain), recorded_state(chain).tokens
    recorded = [
        (bytes.fromhex(address[2:]), int(key.partition(".")[2]), answer, 4 if key.startswith("uri") else 2)
        for address, token in tokens.items()
        for key, answer in token["answers"].items()
        if key.startswith(("tokenURI.", "uri.")) and key.partition(".")[2].isdigit()
    ]

    async def work(scene: Scene, upstream: EvmUpstream) -> None:
        for address, token_id, _, standards in recorded:
            await scene.add_nfts(address, [token_id], standards)
        settings = EnrichSettings(NftSettings(gateway=""))
        await until_idle(scene.rounds(upstream, settings, GuardedFetcher(lookup=Names()))["nfts"])
        read = {
            (address, unpack_uint(token_id)): (uri, status, json.loads(metadata))
            for address, token_id, uri, status, metadata in scene.rows(
                "select a.address, token_id, token_uri, status, metadata from nft n join address a on a.id = n.token"
            )
        }
        seen = set()
        for address, token_id, answer, _ in recorded:
            uri, status, metadata = read[address, token_id]
            seen.add(status)
            if not isinstance(answer, str):
                assert (uri, status) == ("", "MISSING_TOKEN")
                continue
            raw = bytes.fromhex(answer[2:])
            expected_uri = raw[64 : 64 + int.from_bytes(raw[32:64], "big")].decode().replace("{id}", f"{token_id:064x}")
            assert uri == expected_uri
            expected = {
                "": ("INVALID_TOKEN_URI",),
                "data": ("INDEXED", "INVALID_METADATA_JSON"),
                "ipfs": ("UNINDEXED",),
                "ftp": ("INVALID_TOKEN_URI_SCHEME",),
                "https": ("UNREACHABLE_TOKEN_URI",),
            }
            assert status in expected[uri.partition(":")[0]], uri
            assert (status == "INVALID_METADATA_JSON") == ("{broken" in uri)
            assert bool(metadata.get("name")) == (status == "INDEXED")
        assert {"INDEXED", "MISSING_TOKEN", "INVALID_TOKEN_URI"} <= seen or chain == "berlin-1"

    asyncio.run(with_upstream(tmp_path / "c.db", replay, work))


def test_cancelled_anywhere_and_resumed(tmp_path: Path) -> None:
    """Cancelled after some requests, again and again: nothing is lost, and no finished NFT is read twice."""

    async def work(stage: Stage) -> None:
        finished_before: list[str] = []
        count, requests, stop_at, stop = 120, 0, 0, asyncio.Event()

        async def page(request: Any) -> Any:
            from aiohttp.web import Response

            nonlocal requests
            requests += 1
            if requests == stop_at:
                stop.set()
            token_id = int(request.path[1:])
            if stage.scene.nft(token_id, "retry_at") is None:
                finished_before.append(request.path)
            await asyncio.sleep(0.002 * (token_id % 5))
            return Response(text=GOOD)

        stage.web.pages = {f"/{number}": page for number in range(count)}
        stage.contract.uris = {number: f"{stage.web.url}/{number}" for number in range(count)}
        await stage.scene.add_nfts(ART, range(count))
        stops = 0
        for attempt in range(1000):
            requests, stop_at = 0, 1 + 7 * (attempt % 9)  # up to 57 requests; a round has 32
            stop.clear()
            task = asyncio.ensure_future(until_idle(stage.round()))
            stopped = asyncio.ensure_future(stop.wait())
            await asyncio.wait([task, stopped], return_when=asyncio.FIRST_COMPLETED)
            stopped.cancel()
            if task.done():
                await task
                break
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            stops += 1
        assert stops > 4
        assert stage.scene.rows("select status, count(*) from nft where retry_at is null") == [("INDEXED", count)]
        assert finished_before == []
        assert pack_uint(5) == stage.scene.rows("select token_id from nft where token_id = ?", pack_uint(5))[0][0]

    staged(tmp_path, work)
