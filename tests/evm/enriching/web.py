"""A web server on any loopback address, whose pages may redirect, send slowly or never answer."""

import asyncio
import datetime
import ipaddress
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

Page = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Web:
    """`pages` by path; anything else is 404. `requests` records what was requested."""

    def __init__(self, host: str = "127.0.0.1", port: int = 0, tls: ssl.SSLContext | None = None) -> None:
        self.host = host
        self.port = port
        self.pages: dict[str, Page] = {}
        self.requests: list[web.Request] = []
        self._tls = tls
        self._runner: web.AppRunner | None = None
        self._ended = asyncio.Event()

    async def __aenter__(self) -> "Web":
        app = web.Application()
        app.router.add_route("*", "/{tail:.*}", self._serve)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.01)
        await self._runner.setup()
        await web.TCPSite(self._runner, self.host, self.port, ssl_context=self._tls).start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._ended.set()
        assert self._runner is not None
        await self._runner.cleanup()

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://{self.host}:{self.port}"

    @property
    def paths(self) -> list[str]:
        return [request.path for request in self.requests]

    def page(self, path: str, body: bytes | str = b"", status: int = 200, **headers: str) -> None:
        async def answer(_: web.Request) -> web.Response:
            raw = body.encode() if isinstance(body, str) else body
            return web.Response(body=raw, status=status, headers={k.replace("_", "-"): v for k, v in headers.items()})

        self.pages[path] = answer

    def moved(self, path: str, to: str, status: int = 302) -> None:
        self.page(path, status=status, Location=to)

    def dripping(self, path: str, every_s: float, chunk: bytes = b" ") -> None:
        """An endless body, sent in small chunks."""

        async def answer(request: web.Request) -> web.StreamResponse:
            response = web.StreamResponse()
            await response.prepare(request)
            while not self._ended.is_set():
                await response.write(chunk)
                await asyncio.sleep(every_s)
            return response

        self.pages[path] = answer

    def silent(self, path: str) -> None:
        async def answer(_: web.Request) -> web.Response:
            await self._ended.wait()
            return web.Response()

        self.pages[path] = answer

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(request)
        page = self.pages.get(request.path)
        return await page(request) if page else web.Response(status=404)


class Names:
    """A DNS lookup with scripted answers: one after the other, the last one stays. `lookups` records the names."""

    def __init__(self, **answers: list[list[str]]) -> None:
        self.answers = {name.replace("_", "."): replies for name, replies in answers.items()}
        self.lookups: list[str] = []

    async def __call__(self, host: str) -> list[str]:
        self.lookups.append(host)
        if host not in self.answers:
            raise OSError(-2, "Name or service not known")
        replies = self.answers[host]
        return replies.pop(0) if len(replies) > 1 else replies[0]


def certified(folder: Path, *names: str) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A server's TLS context for these names, and a client's that trusts it."""
    key = ec.generate_private_key(ec.SECP256R1())
    issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    now = datetime.datetime.now(datetime.UTC)
    alternatives: list[Any] = [
        x509.IPAddress(ipaddress.ip_address(name)) if name[0].isdigit() else x509.DNSName(name) for name in names
    ]
    signed = (
        x509.CertificateBuilder()
        .subject_name(issuer)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    certificate, private = folder / "cert.pem", folder / "key.pem"
    certificate.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(certificate, private)
    return server, ssl.create_default_context(cafile=str(certificate))
