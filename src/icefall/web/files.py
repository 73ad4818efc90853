"""The files of the Explorer, read once from the package, and the paths they are served at."""

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


class WebFile(NamedTuple):
    body: bytes
    media: str
    etag: str  # weak: the same file may be sent compressed

    @classmethod
    def of(cls, body: bytes, media: str) -> "WebFile":
        return cls(body, media, f'W/"{hashlib.sha256(body).hexdigest()[:32]}"')


def explorer_files() -> dict[str, WebFile]:
    """By path: `/` and what is below `/explorer/`."""
    found = {FOLDER + name: WebFile.of(body, MEDIA[name.rpartition(".")[2]]) for name, body in _read()}
    found["/"] = found.pop(f"{FOLDER}index.html")
    return found


def _read() -> Iterator[tuple[str, bytes]]:
    waiting: list[tuple[str, Traversable]] = [("", files("icefall.web") / "static")]
    while waiting:
        name, place = waiting.pop()
        if place.is_dir():
            waiting += [(f"{name}/{child.name}" if name else child.name, child) for child in place.iterdir()]
        elif name.rpartition(".")[2] in MEDIA:
            yield name, place.read_bytes()
