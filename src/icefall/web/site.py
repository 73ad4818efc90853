"""The pages of a listener at `/`: the Explorer on chain data, a page of links on the other two."""

import base64
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from html import escape
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import NamedTuple

from icefall import __version__

FOLDER = "/explorer/"  # the page itself is at /, and refers to these by relative addresses
MEDIA = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}


class Inlined(NamedTuple):
    """A file that is sent inside the page, in place of the tag that names it: the first paint waits for no other."""

    name: str
    tag: bytes
    element: bytes


INLINED = (
    Inlined("explorer.css", b'<link rel="stylesheet" href="explorer/explorer.css">', b"style"),
    Inlined("theme.js", b'<script src="explorer/theme.js"></script>', b"script"),
)


class WebFile(NamedTuple):
    body: bytes
    media: str
    etag: str  # weak: the same file may be sent compressed

    @classmethod
    def of(cls, body: bytes, media: str) -> "WebFile":
        return cls(body, media, f'W/"{hashlib.sha256(body).hexdigest()[:32]}"')


def explorer_files() -> dict[str, WebFile]:
    """Return the files of the Explorer by path: `/` and what is below `/explorer/`."""
    found = {FOLDER + name: WebFile.of(body, MEDIA[name.rpartition(".")[2]]) for name, body in _read()}
    page = found.pop(f"{FOLDER}index.html").body
    for one in INLINED:
        body = found.pop(FOLDER + one.name).body
        if page.count(one.tag) != 1 or b"</" in body:
            raise ValueError(f"{one.name} cannot be put into the page")
        page = page.replace(one.tag, b"<%s>%s</%s>" % (one.element, body, one.element))
    found["/"] = WebFile.of(page, MEDIA["html"])
    return found


def policy_hash(body: bytes) -> str:
    """How a Content-Security-Policy names an inline script or style."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(body).digest()).decode()}'"


def inlined_hashes() -> dict[bytes, str]:
    """Return the hashes of what is in the page itself, by element."""
    folder = files("icefall.web") / "static"
    return {one.element: policy_hash((folder / one.name).read_bytes()) for one in INLINED}


def _read() -> Iterator[tuple[str, bytes]]:
    waiting: list[tuple[str, Traversable]] = [("", files("icefall.web") / "static")]
    while waiting:
        name, place = waiting.pop()
        if place.is_dir():
            waiting += [(f"{name}/{child.name}" if name else child.name, child) for child in place.iterdir()]
        elif name.rpartition(".")[2] in MEDIA:
            yield name, place.read_bytes()


Headers = list[tuple[str, str]]
CONFIG_PATH = f"{FOLDER}config.json"
LABELS_PATH = f"{FOLDER}labels.json"
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[0-9A-Za-z._-]+)(:[0-9]+)?")
_STYLE = (
    ":root{color-scheme:light dark}body{font:16px/1.6 system-ui,sans-serif;max-width:36rem;margin:4rem auto;"
    "padding:0 1.25rem;background:light-dark(#f6f8fa,#0e141b);color:light-dark(#17212b,#e7edf3)}"
    "h1{font-size:1.5rem;margin:0}p{margin:.25rem 0 1.5rem;color:light-dark(#526070,#9fb0c0)}"
    "ul{list-style:none;margin:0;padding:0;display:grid;gap:.75rem}"
    "a{display:block;padding:.75rem 1rem;border:1px solid light-dark(#dde3ea,#283441);border-radius:12px;"
    "background:light-dark(#fff,#151d26);color:light-dark(#0b5cad,#7cc0ff);text-decoration:none}"
    "a:hover{text-decoration:underline}"
)
_COMMON: Headers = [
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
]


class Link(NamedTuple):
    """Another listener: its URL, or the port it has on the host that the browser used. Neither: it is not there."""

    url: str = ""
    port: int = 0

    def seen_from(self, host: str) -> str:
        """The base address for a browser that sent this Host header, without a slash at its end."""
        if self.url or not self.port:
            return self.url.rstrip("/")
        match = _HOST.fullmatch(host)
        return f"//{match[1]}:{self.port}" if match else ""

    def policy_source(self, host: str) -> str:
        """The same as a source of a Content-Security-Policy: with a path, everything below it."""
        base = self.seen_from(host).removeprefix("//")
        return f"{base}/" if base.count("/") > 2 else base


class Answer(NamedTuple):
    status: int
    headers: Headers
    body: bytes


class Explorer:
    """The Explorer's page, its files, and what it must know of this installation."""

    def __init__(
        self, node: Link, metrics: Link, labels: dict[str, dict[str, str]] | None = None, *, has_pictures: bool = False
    ) -> None:
        """`has_pictures`: those on other hosts are fetched by this installation."""
        self._files = explorer_files()
        self._inlined = inlined_hashes()
        self._node = node
        self._metrics = metrics
        self._has_pictures = has_pictures
        self._has_labels = bool(labels)
        self._files[LABELS_PATH] = WebFile.of(json.dumps(labels or {}).encode(), "application/json")

    def answer(self, path: str, host: str, if_none_match: str) -> Answer | None:
        """None where there is no such file."""
        if path == CONFIG_PATH:
            return Answer(
                200, [("content-type", "application/json"), ("cache-control", "no-store")], self._config(host)
            )
        file = self._files.get(path)
        if file is None:
            return None
        headers = [("content-security-policy", self._policy(host)), *_COMMON] if path == "/" else _COMMON[:1]
        return _file_answer(file, headers, if_none_match)

    def _config(self, host: str) -> bytes:
        shown = {
            "version": __version__,
            "nodeUrl": self._node.seen_from(host),
            "metricsUrl": self._metrics.seen_from(host),
            "hasPictures": self._has_pictures,
            "hasLabels": self._has_labels,
        }
        return json.dumps(shown).encode()

    def _policy(self, host: str) -> str:
        """Pictures come from this listener alone: those on other hosts are fetched by the installation."""
        others = [source for link in (self._node, self._metrics) if (source := link.policy_source(host))]
        return "; ".join((
            "default-src 'none'",
            f"script-src 'self' {self._inlined[b'script']}",
            f"style-src {self._inlined[b'style']}",
            "img-src 'self' data:",
            " ".join(("connect-src 'self'", *others)),
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        ))  # fmt: skip


class LinksPage:
    """The page at `/` of a listener without the Explorer: where the Explorer and the documentation are."""

    def __init__(self, title: str, explorer: Link) -> None:
        self._title = title
        self._explorer = explorer
        self._headers = [
            (
                "content-security-policy",
                f"default-src 'none'; style-src {policy_hash(_STYLE.encode())}; base-uri 'none'; form-action 'none'; "
                "frame-ancestors 'none'",
            ),
            *_COMMON,
        ]

    def answer(self, path: str, host: str, if_none_match: str) -> Answer | None:
        if path != "/":
            return None
        return _file_answer(WebFile.of(self._page(host).encode(), MEDIA["html"]), self._headers, if_none_match)

    def _page(self, host: str) -> str:
        links: Mapping[str, str] = {
            "Explorer": f"{base}/" if (base := self._explorer.seen_from(host)) else "",
            "Documentation of this interface": "docs",
            "The same as OpenAPI": "openapi.json",
        }
        items = "".join(f'<li><a href="{escape(to)}">{escape(name)}</a>' for name, to in links.items() if to)
        return (
            '<!doctype html><html lang="en"><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>Icefall: {escape(self._title)}</title><style>{_STYLE}</style>"
            f"<main><h1>Icefall {escape(__version__)}</h1><p>{escape(self._title)}.</p><ul>{items}</ul></main>\n"
        )


def _file_answer(file: WebFile, headers: Headers, if_none_match: str) -> Answer:
    caching = [("etag", file.etag), ("cache-control", "no-cache")]
    known = {one.strip() for one in if_none_match.split(",")}
    if file.etag in known or file.etag.removeprefix("W/") in known or "*" in known:
        return Answer(304, [*headers, *caching], b"")
    return Answer(200, [("content-type", file.media), *headers, *caching], file.body)
