"""Where token URIs lead. Pure: https and http as they are, ipfs through a gateway, data: without going anywhere."""

import base64
import binascii
import re
from urllib.parse import unquote, unquote_to_bytes

from icefall.evm.enriching.outcomes import NftOutcome, UnusableNft

URI_SIZE_MAX = 64 << 10  # of data: URIs, in bytes
ADDRESS_SIZE_MAX = 8 << 10  # of all others
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_CONTROL = re.compile("[\x00-\x1f\x7f]")
_CONTENT_ID = re.compile(r"[A-Za-z0-9]{1,128}")  # whether it is one, the gateway knows
_WEB = ("http", "https")


def scheme_of(uri: str) -> str:
    """In lower case; empty where there is none."""
    found = _SCHEME.match(uri)
    return found[1].lower() if found else ""


def storable(uri: str | None) -> str:
    """What is kept of what a contract said, even if it is no URI."""
    limit = URI_SIZE_MAX if uri and scheme_of(uri) == "data" else ADDRESS_SIZE_MAX
    return uri.replace("\0", "") if uri and len(uri.encode()) <= limit else ""


def checked(uri: str | None) -> str:
    """Unfit unless it is a URI of some scheme, and not too long."""
    if not uri or not scheme_of(uri):
        raise UnusableNft(NftOutcome.NO_URI)
    if scheme_of(uri) == "data":
        if len(uri.encode()) > URI_SIZE_MAX:
            raise UnusableNft(NftOutcome.URI_TOO_LONG)
        if "\0" in uri:
            raise UnusableNft(NftOutcome.NO_URI)
    elif len(uri.encode()) > ADDRESS_SIZE_MAX or _CONTROL.search(uri):
        raise UnusableNft(NftOutcome.NO_URI)
    return uri


def content_of(uri: str) -> bytes | None:
    """What a data: URI carries; None for a URI that leads elsewhere."""
    if scheme_of(uri) != "data":
        return None
    head, comma, body = uri.partition(",")
    if not comma:
        raise UnusableNft(NftOutcome.NO_URI)
    if not head.lower().rstrip().endswith(";base64"):
        # "utf8" content is often written as it is: a per cent sign that begins no escape stands for itself
        return unquote_to_bytes(body)
    packed = re.sub(r"\s+", "", unquote(body)).replace("-", "+").replace("_", "/").rstrip("=")
    try:
        return base64.b64decode(packed + "=" * (-len(packed) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise UnusableNft(NftOutcome.NO_URI) from None


def address_of(uri: str, gateway: str) -> str:
    """The web address to fetch a URI from. `gateway` is followed by a content ID and a path; it may be empty."""
    scheme = scheme_of(uri)
    if scheme in _WEB:
        return uri
    if scheme != "ipfs":
        raise UnusableNft(NftOutcome.OTHER_SCHEME)
    path = _ipfs_path(uri)
    if not gateway:
        raise UnusableNft(NftOutcome.SWITCHED_OFF)
    return gateway.rstrip("/") + "/" + path


def _ipfs_path(uri: str) -> str:
    """Content ID and path. Nothing in it may climb out of the gateway's own folder."""
    path, mark, query = uri.partition(":")[2].partition("#")[0].partition("?")
    path = path.lstrip("/").removeprefix("ipfs/").lstrip("/")
    first, *rest = path.split("/")
    climbs = any(unquote(unquote(part)) in (".", "..") for part in rest)
    if not _CONTENT_ID.fullmatch(first) or climbs or "\\" in unquote(path) or "/../" in f"/{unquote(unquote(path))}/":
        raise UnusableNft(NftOutcome.NO_URI)
    return path + mark + query
