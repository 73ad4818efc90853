"""The files of the Explorer, read once from the package, and the paths they are served at."""

import base64
import hashlib
from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import NamedTuple

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
