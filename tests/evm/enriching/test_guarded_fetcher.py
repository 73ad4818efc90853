"""GuardedFetcher with real servers on loopback: no private addresses, no large bodies, no slow answers."""

import asyncio
import gzip
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
from aiohttp.web import Response
from tests.evm.enriching.web import Names, Web, certified
from tests.waiting import LIMIT_S

from icefall.evm.enriching.allowed_addresses import SystemLookup
from icefall.evm.enriching.guarded_fetcher import (
    AddressForbidden,
    FetchFailed,
    FetchLimits,
    GuardedFetcher,
    Throttled,
    TooLarge,
)

LOOPBACK = ["127.0.0.0/8"]
BRIEF = FetchLimits(total_s=0.3)
SMALL = FetchLimits(total_s=LIMIT_S, size_max=100_000)


def scene(work: Callable[..., Awaitable[None]], *webs: str, **options: Any) -> None:
    """`work` with a running web server on each of these addresses; the second and later share the first one's port."""

    async def run() -> None:
        async with AsyncExitStack() as stack:
            await work(*await started(stack, *(webs or ("127.0.0.1",)), **options))

    asyncio.run(run())


async def started(stack: AsyncExitStack, first: str, *others: str, **options: Any) -> list[Web]:
    """On another port where the first one's is taken at another address."""
    while True:
        async with AsyncExitStack() as tried:
            running = [await tried.enter_async_context(Web(first, **options))]
            with suppress(OSError):
                for host in others:
                    running.append(await tried.enter_async_context(Web(host, running[0].port, **options)))
                await stack.enter_async_context(tried.pop_all())
                return running


async def refusal(guard: GuardedFetcher, url: str) -> Exception:
    with pytest.raises((FetchFailed, TooLarge)) as caught:
        await guard.get(url)
    return caught.value


async def refusal_of_trusted(guard: GuardedFetcher, url: str) -> Exception:
    with pytest.raises(FetchFailed) as caught:
        await guard.get(url, trusted=True)
    return caught.value


def test_loopback_is_refused_unless_allowed() -> None:
    async def work(web: Web) -> None:
        web.page("/1", '{"name":"x"}')
        names = Names(inside=[["127.0.0.1"]], mixed=[["93.184.216.34", "127.0.0.1"]], v6=[["::ffff:127.0.0.1"]])
        guard = GuardedFetcher(lookup=names)
        for host in ("127.0.0.1", "inside", "mixed", "v6", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0"):
            assert isinstance(await refusal(guard, f"http://{host}:{web.port}/1"), AddressForbidden)
        assert web.requests == []
        for host in ("127.0.0.1", "inside"):
            allowing = GuardedFetcher(lookup=names, allow=LOOPBACK)
            assert await allowing.get(f"http://{host}:{web.port}/1") == b'{"name":"x"}'
        assert isinstance(await refusal(GuardedFetcher(allow=["127.0.0.2"]), f"{web.url}/1"), AddressForbidden)

    scene(work)


def test_non_canonical_loopback_addresses() -> None:
    async def work(web: Web) -> None:
        guard = GuardedFetcher(lookup=SystemLookup())
        for host in ("2130706433", "127.1", "0x7f.1", "0x7f000001", "017700000001", "localhost", "localhost.", "[::]"):
            assert isinstance(await refusal(guard, f"http://{host}:{web.port}/1"), FetchFailed), host
        assert web.requests == []

    scene(work)


def test_a_trusted_prefix_may_be_at_any_address() -> None:
    async def work(web: Web) -> None:
        web.page("/ipfs/x", "here")
        web.moved("/ipfs/within", "/ipfs/x")
        web.moved("/ipfs/out", "/admin")
        web.moved("/ipfs/up", "/ipfs/%2e%2e/admin")
        web.moved("/ipfs/away", f"http://127.0.0.1:{web.port + 1}/ipfs/x")
        web.page("/admin", "secret")
        for prefix in ("/ipfs/", "/ipfs"):
            guard = GuardedFetcher(trusted=[web.url + prefix])
            assert await guard.get(f"{web.url}/ipfs/x", trusted=True) == b"here"
            assert await guard.get(f"{web.url}/ipfs/within", trusted=True) == b"here"
            for path in (
                "/ipfs/out",
                "/ipfs/up",
                "/ipfs/away",
                "/admin",
                "/ipfs/../admin",
                "/ipfs/%2e%2e/admin",
                "/ipfsx",
            ):
                assert isinstance(await refusal_of_trusted(guard, web.url + path), AddressForbidden), path
            assert isinstance(await refusal(guard, f"{web.url}/ipfs/x"), AddressForbidden)  # not called as trusted
        assert "/admin" not in web.paths

    scene(work)


def test_the_target_of_a_redirect_is_checked() -> None:
    async def work(public: Web, private: Web) -> None:
        private.page("/secret", "secret")
        names = Names(a_example=[["127.0.0.2"]], b_example=[["127.0.0.1"]])
        guard = GuardedFetcher(lookup=names, allow=["127.0.0.2"])
        for number, status in enumerate((301, 302, 303, 307, 308)):
            for to in (
                f"{private.url}/secret",
                f"http://b.example:{private.port}/secret",
                f"//127.0.0.1:{private.port}/",
            ):
                public.moved("/x", to, status)
                assert isinstance(await refusal(guard, f"http://a.example:{public.port}/x"), AddressForbidden), number
        for to in ("file:///etc/passwd", "ftp://a.example/", "gopher://127.0.0.1", "http://u:p@a.example/", "http://["):
            public.moved("/x", to)
            assert isinstance(await refusal(guard, f"http://a.example:{public.port}/x"), FetchFailed)
        assert private.requests == []
        public.moved("/x", "/y")
        public.moved("/y", f"http://a.example:{public.port}/z")
        public.page("/z", "end")
        assert await guard.get(f"http://a.example:{public.port}/x") == b"end"

    scene(work, "127.0.0.2", "127.0.0.1")


def test_the_number_of_redirects_is_limited() -> None:
    async def work(web: Web) -> None:
        web.moved("/x", "/x")
        assert "redirects" in str(await refusal(GuardedFetcher(allow=LOOPBACK), f"{web.url}/x"))
        assert len(web.requests) == 4

    scene(work)


def test_a_name_is_resolved_once_per_fetch() -> None:
    """The connection goes to the address that was checked."""

    async def work(public: Web, private: Web) -> None:
        public.page("/x", "public")
        private.page("/x", "private")
        names = Names(rebinding_example=[["127.0.0.2"], ["127.0.0.1"]])
        guard = GuardedFetcher(lookup=names, allow=["127.0.0.2"])
        url = f"http://rebinding.example:{public.port}/x"
        assert await guard.get(url) == b"public"
        assert names.lookups == ["rebinding.example"]
        assert public.requests[0].host == f"rebinding.example:{public.port}"
        assert isinstance(await refusal(guard, url), AddressForbidden)  # the next lookup returns the other address
        assert private.requests == []

    scene(work, "127.0.0.2", "127.0.0.1")


def test_tls_is_verified_against_the_name(tmp_path: Path) -> None:
    server, client = certified(tmp_path, "nft.example")

    async def work(web: Web) -> None:
        web.page("/x", "safe")
        names = Names(nft_example=[["127.0.0.1"]], other_example=[["127.0.0.1"]])
        trusting, default = (GuardedFetcher(lookup=names, allow=LOOPBACK, tls=tls) for tls in (client, None))
        assert await trusting.get(f"https://nft.example:{web.port}/x") == b"safe"
        for guard, host in ((trusting, "other.example"), (trusting, "127.0.0.1"), (default, "nft.example")):
            assert isinstance(await refusal(guard, f"https://{host}:{web.port}/x"), FetchFailed)
        assert len(web.requests) == 1

    scene(work, tls=server)


def test_other_ports_only_where_allowed() -> None:
    async def work() -> None:
        guard = GuardedFetcher(lookup=Names(a_example=[["93.184.216.34"]]))
        for url in ("http://a.example:8080/", "https://a.example:22/", "http://a.example:443/", "http://8.8.8.8:25/"):
            refused = await refusal(guard, url)
            assert isinstance(refused, AddressForbidden)
            assert "port" in str(refused)
        for url in (
            "ftp://a.example/",
            "file:///etc/passwd",
            "http:///x",
            "x",
            "",
            "http://u:p@a.example/",
            "http://a@b/",
        ):
            assert isinstance(await refusal(guard, url), FetchFailed), url

    asyncio.run(work())


def test_statuses() -> None:
    async def work(web: Web) -> None:
        guard = GuardedFetcher(allow=LOOPBACK)
        for status in (201, 204, 304, 400, 401, 403, 404, 410, 500, 502, 503):
            web.page("/x", "no", status)
            failed = await refusal(guard, f"{web.url}/x")
            assert type(failed) is FetchFailed
            assert not failed.host_down
        for status, after, expected in ((429, "", 0), (429, "90", 90), (429, "9999999", 3600), (503, "5", 5)):
            web.page("/x", "no", status, **({"Retry_After": after} if after else {}))
            throttled = await refusal(guard, f"{web.url}/x")
            assert isinstance(throttled, Throttled)
            assert throttled.after_s == expected

    scene(work)


def test_a_host_that_does_not_answer_is_down() -> None:
    async def work(web: Web) -> None:
        port = web.port
        await web.__aexit__()
        for url in (f"http://127.0.0.1:{port}/", "http://nowhere.example/"):
            failed = await refusal(GuardedFetcher(allow=LOOPBACK, lookup=Names()), url)
            assert isinstance(failed, FetchFailed)
            assert failed.host_down
        await web.__aenter__()

    scene(work)


def test_sizes() -> None:
    async def work(web: Web) -> None:
        guard = GuardedFetcher(allow=LOOPBACK, limits=SMALL)
        web.page("/fits", b"x" * 100_000)
        web.page("/more", b"x" * 100_001)
        web.dripping("/endless", 0, b"x" * 10_000)
        web.page("/gzip", gzip.compress(b"y" * 100_000), Content_Encoding="gzip")
        web.page("/bomb", gzip.compress(b"y" * 50_000_000), Content_Encoding="gzip")
        web.page("/truncated", gzip.compress(b"y" * 1000)[:-9], Content_Encoding="gzip")
        web.page("/damaged", b"\x1f\x8b" + b"no gzip at all", Content_Encoding="gzip")
        web.page("/brotli", b"xx", Content_Encoding="br")
        assert await guard.get(f"{web.url}/fits") == b"x" * 100_000
        assert await guard.get(f"{web.url}/gzip") == b"y" * 100_000
        for path in ("/more", "/endless", "/bomb"):
            assert isinstance(await refusal(guard, web.url + path), TooLarge), path
        for path in ("/truncated", "/damaged", "/brotli"):
            assert isinstance(await refusal(guard, web.url + path), FetchFailed), path

    scene(work)


def test_slow_bodies_and_lookups_time_out() -> None:
    async def work(web: Web) -> None:
        web.dripping("/drip", 0.02)
        web.silent("/silent")
        web.moved("/slow-redirect", "/silent")

        async def never(host: str) -> list[str]:
            await asyncio.sleep(60)
            return []

        reading, resolving = GuardedFetcher(allow=LOOPBACK, limits=BRIEF), GuardedFetcher(lookup=never, limits=BRIEF)
        urls = [(reading, web.url + path) for path in ("/drip", "/silent", "/slow-redirect")]
        for guard, url in (*urls, (resolving, "http://a.example/")):
            failed = await refusal(guard, url)
            assert isinstance(failed, FetchFailed)
            assert failed.host_down

    scene(work)


def test_concurrent_fetches_are_limited() -> None:
    async def work(web: Web) -> None:
        in_flight = most = served = 0
        three = asyncio.Event()

        async def lookup(_: str) -> list[str]:
            nonlocal in_flight, most
            in_flight += 1  # without a limit all twelve get here before any page is served
            most = max(most, in_flight)
            return ["127.0.0.1"]

        async def page(_: Any) -> Any:
            nonlocal served
            served += 1
            if served == 3:
                three.set()
            await three.wait()
            return Response()

        async def fetch() -> None:
            nonlocal in_flight
            await guard.get(f"http://a.example:{web.port}/x")
            in_flight -= 1

        web.pages["/x"] = page
        guard = GuardedFetcher(allow=LOOPBACK, limits=FetchLimits(at_once=3, total_s=LIMIT_S), lookup=lookup)
        await asyncio.gather(*(fetch() for _ in range(12)))
        assert (most, served, in_flight) == (3, 12, 0)

    scene(work)


def test_what_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """No cookies between fetches, no proxy of the environment, no credentials."""

    async def work(web: Web) -> None:
        for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, "http://127.0.0.1:9")
        web.page("/x", "x", Set_Cookie="a=b; Path=/")
        guard = GuardedFetcher(allow=LOOPBACK)
        for _ in range(2):
            await guard.get(f"{web.url}/x#fragment")
        for request in web.requests:
            assert "cookie" not in request.headers
            assert "authorization" not in request.headers
            assert request.headers["accept-encoding"] == "gzip"
            assert request.headers["user-agent"].startswith("icefall/")

    scene(work)


def test_names_are_resolved_on_separate_threads() -> None:
    async def work() -> None:
        lookup = SystemLookup(at_once=2)
        assert "127.0.0.1" in await lookup("localhost")
        with pytest.raises(OSError, match=r"."):
            await lookup("a..b")
        with pytest.raises(OSError, match=r"."):
            await lookup("x" * 300)
        resolved = await asyncio.gather(*(lookup("localhost") for _ in range(8)))
        assert all(resolved)

    asyncio.run(work())
