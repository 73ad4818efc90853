"""Resolves token URIs: https and http as they are, ipfs through a gateway, data: decoded in place. Pure."""

import base64
import binascii
import re
from urllib.parse import unquote, unquote_to_bytes

from icefall.evm.enriching.nft_outcomes import NftOutcome, UnusableNft

URI_SIZE_MAX = 64 << 10  # of data: URIs, in bytes
WEB_URI_SIZE_MAX = 8 << 10  # of all others
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_CONTROL = re.compile("[\x00-\x1f\x7f]")
_CONTENT_ID = re.compile(r"[A-Za-z0-9]{1,128}")  # the gateway validates it
_WEB = ("http", "https")


def scheme_of(uri: str) -> str:
    """The scheme in lower case; empty if there is none."""
    found = _SCHEME.match(uri)
    return found[1].lower() if found else ""


def storable(uri: str | None) -> str:
    """The URI as it is stored, even if it is invalid; empty if it is too long."""
    limit = URI_SIZE_MAX if uri and scheme_of(uri) == "data" else WEB_URI_SIZE_MAX
    return uri.replace("\0", "") if uri and len(uri.encode()) <= limit else ""


def checked(uri: str | None) -> str:
    """Raises UnusableNft unless it has a scheme and is not too long."""
    if not uri or not scheme_of(uri):
        raise UnusableNft(NftOutcome.NO_URI)
    if scheme_of(uri) == "data":
        if len(uri.encode()) > URI_SIZE_MAX:
            raise UnusableNft(NftOutcome.URI_TOO_LONG)
        if "\0" in uri:
            raise UnusableNft(NftOutcome.NO_URI)
    elif len(uri.encode()) > WEB_URI_SIZE_MAX or _CONTROL.search(uri):
        raise UnusableNft(NftOutcome.NO_URI)
    return uri


def content_of(uri: str) -> bytes | None:
    """The content of a data: URI; None for other schemes."""
    if scheme_of(uri) != "data":
        return None
    head, comma, body = uri.partition(",")
    if not comma:
        raise UnusableNft(NftOutcome.NO_URI)
    if not head.lower().rstrip().endswith(";base64"):
        # "utf8" content is often not escaped: a percent sign that begins no escape is taken literally
        return unquote_to_bytes(body)
    packed = re.sub(r"\s+", "", unquote(body)).replace("-", "+").replace("_", "/").rstrip("=")
    try:
        return base64.b64decode(packed + "=" * (-len(packed) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise UnusableNft(NftOutcome.NO_URI) from None


def web_url_of(uri: str, gateway: str) -> str:
    """The http(s) URL to fetch a URI from. `gateway` is the prefix of a content ID and a path; it may be empty."""
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
    """Content ID and path, without dot segments that would leave the gateway's prefix."""
    path, mark, query = uri.partition(":")[2].partition("#")[0].partition("?")
    path = path.lstrip("/").removeprefix("ipfs/").lstrip("/")
    first, *rest = path.split("/")
    has_dot_segment = any(unquote(unquote(part)) in (".", "..") for part in rest)
    if (
        not _CONTENT_ID.fullmatch(first)
        or has_dot_segment
        or "\\" in unquote(path)
        or "/../" in f"/{unquote(unquote(path))}/"
    ):
        raise UnusableNft(NftOutcome.NO_URI)
    return path + mark + query
