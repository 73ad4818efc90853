"""Parses NFT metadata, the JSON document at a token URI, into the fields of the API. Pure.

Fields of an unexpected type are left out; a document without any known field is not metadata. Where text is expected,
a number is taken as text. Links keep only schemes that execute nothing in a browser.
"""

import base64
from collections.abc import Callable
from typing import Any

import msgspec

from icefall.evm.enriching.contract_calls import TEXT_SIZE_MAX, printable
from icefall.evm.enriching.nft_outcomes import NftOutcome, UnusableNft
from icefall.evm.enriching.token_uris import scheme_of
from icefall.evm.model import DECIMALS_MAX
from icefall.upstream.client import MALFORMED

DESCRIPTION_SIZE_MAX = 8 << 10
STORED_SIZE_MAX = 64 << 10
_LINKS = ("", "http", "https", "ipfs", "ipns", "ar")
_MEDIA = (*_LINKS, "data")
_BOM = b"\xef\xbb\xbf"
_Document = dict[str, msgspec.Raw]


class NftMetadata(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Metadata of one NFT; missing fields are None. `attributes` and `properties` are JSON text."""

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
    """Raises UnusableNft where the body is not JSON, not metadata, or too large to store."""
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
