"""Pictures of NFTs and tokens on other hosts: only those that the store names, only pictures, bounded, and kept."""

import asyncio
import struct
import time
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from icefall.api.data.endpoints import EXPLORER_ENDPOINTS
from icefall.api.http.structs import RestParams
from icefall.demo.pictures import demo_picture
from icefall.errors import NotFound, Unavailable
from icefall.evm.enriching import pictures as module
from icefall.evm.enriching.guarded_fetcher import FetchLimits, GuardedFetcher
from icefall.evm.enriching.picture_types import PIXELS_MAX, SIDE_MAX, NotAPicture, picture_type
from icefall.evm.enriching.pictures import FAILED_S, FRESH_S, Pictures

LOOPBACK = ["127.0.0.0/8"]
ROOM = 1 << 20


def png(width: int = 3, height: int = 2, extra: int = 0) -> bytes:
    head = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + head + struct.pack(">I", zlib.crc32(head)) + bytes(extra)


def jpeg(width: int, height: int) -> bytes:
    size = struct.pack(">HBHHB", 17, 8, height, width, 3)
    return b"\xff\xd8\xff\xe0" + struct.pack(">H", 16) + b"JFIF\0" + bytes(9) + b"\xff\xff\xc2" + size + bytes(9)


def webp(kind: bytes, rest: bytes) -> bytes:
    return b"RIFF" + bytes(4) + b"WEBP" + kind + bytes(4) + rest


GOOD = [
    (png(), "image/png"),
    (jpeg(640, 480), "image/jpeg"),
    (b"GIF89a" + struct.pack("<HH", 5, 6) + bytes(3), "image/gif"),
    (webp(b"VP8X", bytes(4) + (99).to_bytes(3, "little") + (49).to_bytes(3, "little")), "image/webp"),
    (webp(b"VP8L", b"\x2f" + struct.pack("<I", 99 | 49 << 14)), "image/webp"),
    (webp(b"VP8 ", bytes(6) + struct.pack("<HH", 100, 50)), "image/webp"),
]
BAD = [
    b"",
    b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>",
    b"<!doctype html><script>alert(1)</script>",
    b"\x89PNG\r\n\x1a\n",
    png(SIDE_MAX + 1, 1),
    png(SIDE_MAX, PIXELS_MAX // SIDE_MAX + 1),
    png(0, 5),
    jpeg(0xFFFF, 0xFFFF),
    b"\xff\xd8\xff",
    b"\xff\xd8\xff\xe0\x00\x00" * 3,
    b"GIF89a\0",
    webp(b"VP8X", b""),
    webp(b"EVIL", bytes(30)),
    b"BM" + bytes(60),
]


@pytest.mark.parametrize(("body", "media"), GOOD)
def test_pictures_are_known_by_their_content(body: bytes, media: str) -> None:
    assert picture_type(body) == media
    for size in range(len(body)):  # however it is cut, it is that or none
        try:
            assert picture_type(body[:size]) == media
        except NotAPicture:
            continue


@pytest.mark.parametrize("body", BAD)
def test_anything_else_is_refused(body: bytes) -> None:
    with pytest.raises(NotAPicture):
        picture_type(body)


def test_the_demo_draws_pictures_of_its_own() -> None:
    drawn = [demo_picture(f"https://img.example/{number}.png") for number in range(60)]
    assert len(set(drawn)) == 60
    assert {picture_type(one or b"") for one in drawn} == {"image/png"}
    assert max(len(one or b"") for one in drawn) < 2_000
    assert demo_picture("https://other.example/1.png") is None


class Host:
    """A host that answers what a test says, and counts what it was asked."""

    def __init__(self) -> None:
        self.url = ""
        self.body, self.media = png(), "image/png"
        self.redirect = ""
        self.asked: list[str] = []
        self.gate: asyncio.Event | None = None

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request.path)
        if self.gate is not None:
            await self.gate.wait()
        if self.redirect:
            raise web.HTTPFound(self.redirect)
        return web.Response(body=self.body, content_type=self.media)


@asynccontextmanager
async def hosting() -> AsyncIterator[Host]:
    host = Host()
    app = web.Application()
    app.router.add_get("/{tail:.*}", host.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield host
    finally:
        if host.gate is not None:
            host.gate.set()
        await runner.cleanup()


def kept_in(
    folder: Path, *, room: int = ROOM, limits: FetchLimits | None = None, now: list[float] | None = None
) -> Pictures:
    fetcher = GuardedFetcher(allow=LOOPBACK, limits=limits or FetchLimits(total_s=30.0, size_max=100_000, at_once=4))
    wall = time.time if now is None else lambda: now[0]
    return Pictures(folder / "pictures", room, "", fetcher=fetcher, wall=wall)


def test_a_picture_is_fetched_once_and_kept_for_other_workers(tmp_path: Path) -> None:
    async def run() -> None:
        async with hosting() as host:
            first, second = kept_in(tmp_path), kept_in(tmp_path)
            found = await asyncio.gather(*(first.get(f"{host.url}/a") for _ in range(5)))
            assert set(found) == {("image/png", png())}
            assert await second.get(f"{host.url}/a") == ("image/png", png())
            assert host.asked == ["/a"]

    asyncio.run(run())


def test_an_old_or_damaged_file_is_fetched_again(tmp_path: Path) -> None:
    async def run() -> None:
        async with hosting() as host:
            now = [time.time()]
            pictures = kept_in(tmp_path, now=now)
            await pictures.get(f"{host.url}/a")
            (file,) = (tmp_path / "pictures").iterdir()
            file.write_bytes(b"<svg onload=alert(1)>")
            assert (await pictures.get(f"{host.url}/a"))[1] == png()
            now[0] += FRESH_S + 1
            host.body = png(9, 9)
            assert (await pictures.get(f"{host.url}/a"))[1] == png(9, 9)
            assert len(host.asked) == 3

    asyncio.run(run())


def test_the_oldest_are_removed_where_room_is_short(tmp_path: Path) -> None:
    async def run() -> None:
        async with hosting() as host:
            host.body = png(extra=10_000)
            pictures = kept_in(tmp_path, room=55_000)
            for name in range(12):
                await pictures.get(f"{host.url}/{name}")
                used = sum(one.stat().st_size for one in (tmp_path / "pictures").iterdir())
                assert used <= 55_000
            host.asked.clear()
            await pictures.get(f"{host.url}/11")
            assert host.asked == []
            await pictures.get(f"{host.url}/0")
            assert host.asked == ["/0"]

    asyncio.run(run())


@pytest.mark.parametrize("body", [*BAD[:3], png(60_000, 60_000), png(extra=200_000)])
def test_what_is_no_picture_is_refused_and_not_asked_for_again(body: bytes, tmp_path: Path) -> None:
    async def run() -> None:
        async with hosting() as host:
            now = [1e9]
            host.body = body  # and says that it is a PNG
            pictures = kept_in(tmp_path, now=now)
            for _ in range(3):
                with pytest.raises(NotFound):
                    await pictures.get(f"{host.url}/a")
            assert len(host.asked) == 1
            assert not list(tmp_path.rglob("pictures/*"))
            now[0] += FAILED_S + 1
            host.body = png()
            assert (await pictures.get(f"{host.url}/a"))[0] == "image/png"

    asyncio.run(run())


def test_a_slow_host_ends_and_does_not_hold_up_more_than_its_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "WAITING_MAX", 3)

    async def run() -> None:
        async with hosting() as host:
            host.gate = asyncio.Event()
            pictures = kept_in(tmp_path, limits=FetchLimits(total_s=1.0, size_max=100_000, at_once=2))
            waiting = [asyncio.create_task(pictures.get(f"{host.url}/{at}")) for at in range(3)]
            while len(host.asked) < 2:
                await asyncio.sleep(0)
            with pytest.raises(Unavailable):
                await pictures.get(f"{host.url}/more")
            for one in waiting:
                with pytest.raises(NotFound):
                    await one

    asyncio.run(run())


def test_a_redirect_into_the_own_machine_is_not_followed(tmp_path: Path) -> None:
    """The first host may be reached here, as a public one would be; where it leads is checked anew."""

    async def run() -> None:
        async with hosting() as host, hosting() as secret:
            host.redirect = secret.url.replace("127.0.0.1", "127.0.0.2")
            fetcher = GuardedFetcher(allow=["127.0.0.1/32"])
            with pytest.raises(NotFound):
                await Pictures(tmp_path, ROOM, "", fetcher=fetcher).get(f"{host.url}/a")
            assert host.asked == ["/a"]
            assert secret.asked == []
            with pytest.raises(NotFound):  # and without an allowed network nothing here is reached at all
                await Pictures(tmp_path, ROOM, "").get(f"{host.url}/b")
            assert host.asked == ["/a"]

    asyncio.run(run())


@pytest.mark.parametrize(
    "uri", ["", "file:///etc/passwd", "ftp://a/b", "javascript:alert(1)", "data:image/png,x", "ipfs://x"]
)
def test_other_addresses_are_not_fetched(uri: str, tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        asyncio.run(Pictures(tmp_path, ROOM, "").get(uri))


def test_it_can_be_switched_off(tmp_path: Path) -> None:
    async def run() -> None:
        async with hosting() as host:
            with pytest.raises(NotFound, match="picture-cache"):
                await kept_in(tmp_path, room=0).get(f"{host.url}/a")
            assert host.asked == []

    asyncio.run(run())


def test_a_caller_names_no_address() -> None:
    """A caller says which NFT or token is meant, and nothing else."""
    rows = [row for row in EXPLORER_ENDPOINTS if row.operation in ("getNftPicture", "getTokenLogo")]
    assert rows
    for row in rows:
        assert issubclass(row.params, RestParams)
        assert set(row.params.__struct_fields__) <= {"chain_id", "address", "token_id"}
