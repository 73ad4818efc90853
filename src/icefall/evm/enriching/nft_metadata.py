"""Reads NFT metadata: resolves token URIs, and parses the JSON documents at them into the fields of the API. Pure.

URIs of https and http are fetched as they are, those of ipfs through a gateway, and those of data are decoded in place.
Fields of an unexpected type are left out; a document without any known field is not metadata. Where text is expected,
a number is taken as text. Links keep only schemes that execute nothing in a browser.
"""

import base64
import binascii
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote, unquote_to_bytes

import msgspec

from icefall.evm.contract_calls import TEXT_SIZE_MAX, printable
from icefall.evm.enriching.nft_outcomes import NftOutcome, UnusableNft
from icefall.evm.model import DECIMALS_MAX
from icefall.upstream.client import MALFORMED

URI_SIZE_MAX = 64 << 10  # of data: URIs, in bytes
WEB_URI_SIZE_MAX = 8 << 10  # of all others
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_CONTROL = re.compile("[\x00-\x1f\x7f]")
_CONTENT_ID = re.compile(r"[A-Za-z0-9]{1,128}")  # the gateway validates it
_WEB = ("http", "https")
DESCRIPTION_SIZE_MAX = 8 << 10
STORED_SIZE_MAX = 64 << 10
_LINKS = ("", "http", "https", "ipfs", "ipns", "ar")
_MEDIA = (*_LINKS, "data")
_BOM = b"\xef\xbb\xbf"
_Document = dict[str, msgspec.Raw]


# -- token URIs --------------------------------------------------------------------------------------------------


def scheme_of(uri: str) -> str:
    """The scheme in lower case; empty if there is none."""
    found = _SCHEME.match(uri)
    return found[1].lower() if found else ""


def storable(uri: str | None) -> str:
    """The URI as it is stored, even if it is invalid; empty if it is too long."""
    limit = URI_SIZE_MAX if uri and scheme_of(uri) == "data" else WEB_URI_SIZE_MAX
    return uri.replace("\0", "") if uri and len(uri.encode()) <= limit else ""


def checked(uri: str | None) -> str:
    """The same URI; raises UnusableNft unless it has a scheme and is not too long."""
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
    """The content ID and path of a URI, without dot segments that would leave the gateway's prefix."""
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


# -- documents ---------------------------------------------------------------------------------------------------


class NftMetadata(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """The metadata of one NFT; missing fields are None. `attributes` and `properties` are JSON text."""

    name: str | None = None
    symbol: str | None = None
    description: str | None = None
    image_uri: str | None = None
    animation_uri: str | None = None
    external_url: str | None = None
    background: str | None = None
    attributes: str | None = None
    decimals: int | None = None
    properties: str | None = None


def metadata_of(body: bytes) -> NftMetadata:
    """Parse a document; raises UnusableNft where the body is not JSON, not metadata, or too large to store."""
    try:
        whole = msgspec.json.decode(body.removeprefix(_BOM))
        document = msgspec.json.decode(body.removeprefix(_BOM), type=_Document) if isinstance(whole, dict) else {}
    except msgspec.ValidationError:  # a number out of range
        raise UnusableNft(NftOutcome.NOT_METADATA) from None
    except MALFORMED:
        raise UnusableNft(NftOutcome.NOT_JSON) from None
    metadata = NftMetadata(**{name: read(document, keys) for name, (read, keys) in _FIELDS.items()})
    if metadata == NftMetadata():
        raise UnusableNft(NftOutcome.NOT_METADATA)
    if len(pack(metadata)) > STORED_SIZE_MAX:
        raise UnusableNft(NftOutcome.TOO_LARGE)
    return metadata


def pack(metadata: NftMetadata) -> str:
    return msgspec.json.encode(metadata).decode()


def unpack(text: str) -> NftMetadata:
    return msgspec.json.decode(text, type=NftMetadata)


def _value(document: _Document, key: str) -> Any:
    raw = document.get(key)
    return None if raw is None else msgspec.json.decode(raw)


def _string(document: _Document, key: str) -> str:
    match _value(document, key):
        case str() as text:
            return "\n".join(printable(line) for line in text.split("\n"))
        case int() | float() as number if not isinstance(number, bool):
            return bytes(document[key]).decode().strip()
        case _:
            return ""


def _line(document: _Document, keys: tuple[str, ...]) -> str | None:
    found = (printable(_string(document, key))[:TEXT_SIZE_MAX] for key in keys)
    return next(filter(None, found), None)


def _lines(document: _Document, keys: tuple[str, ...]) -> str | None:
    return _string(document, keys[0])[:DESCRIPTION_SIZE_MAX] or None


def _link(schemes: tuple[str, ...]) -> Callable[[_Document, tuple[str, ...]], str | None]:
    def read(document: _Document, keys: tuple[str, ...]) -> str | None:
        for key in keys:
            text = _value(document, key)
            if isinstance(text, str):
                link = printable(text).strip()
                if key == "image_data" and link and scheme_of(link) not in schemes[1:]:
                    link = "data:image/svg+xml;base64," + base64.b64encode(text.encode()).decode()
                if link and scheme_of(link) in schemes:
                    return link
        return None

    return read


def _json(document: _Document, keys: tuple[str, ...]) -> str | None:
    for key in keys:
        if isinstance(_value(document, key), list | dict):
            return msgspec.json.format(document[key], indent=-1).decode()
    return None


def _decimals(document: _Document, keys: tuple[str, ...]) -> int | None:
    value = _value(document, keys[0])
    is_valid = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= DECIMALS_MAX
    return value if is_valid else None


# Per field: the function that reads it, and the keys to read; the first key with a value counts.
_FIELDS: dict[str, tuple[Callable[[_Document, tuple[str, ...]], Any], tuple[str, ...]]] = {
    "name": (_line, ("name", "title")),
    "symbol": (_line, ("symbol",)),
    "description": (_lines, ("description",)),
    "image_uri": (_link(_MEDIA), ("image", "image_url", "imageUrl", "image_data")),
    "animation_uri": (_link(_MEDIA), ("animation_url",)),
    "external_url": (_link(_LINKS), ("external_url",)),
    "background": (_line, ("background_color",)),
    "attributes": (_json, ("attributes", "traits")),
    "decimals": (_decimals, ("decimals",)),
    "properties": (_json, ("properties",)),
}
