"""Resolving of token URIs."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from icefall.evm.enriching.nft_metadata import (
    URI_SIZE_MAX,
    WEB_URI_SIZE_MAX,
    checked,
    content_of,
    scheme_of,
    storable,
    web_url_of,
)
from icefall.evm.enriching.nft_outcomes import NftOutcome, UnusableNft

GATEWAY = "http://127.0.0.1:8080/ipfs/"
CID = "QmYwAPJzv5CZsnA625s3Xf2nemtYgPpHdWEz79ojWKPbdG"


def outcome_of(uri: str | None, gateway: str = GATEWAY) -> NftOutcome | str | bytes:
    try:
        valid = checked(uri)
        content = content_of(valid)
        return web_url_of(valid, gateway) if content is None else content
    except UnusableNft as unusable:
        return unusable.outcome


B64 = base64.b64encode(b'{"name":"\xc3\xa9"}').decode()
CASES: list[tuple[str | None, NftOutcome | str | bytes]] = [
    ("https://a.example/1?x=y", "https://a.example/1?x=y"),
    ("HTTP://a.example/1", "HTTP://a.example/1"),
    (f"ipfs://{CID}/10", f"{GATEWAY}{CID}/10"),
    (f"ipfs://ipfs/{CID}/10", f"{GATEWAY}{CID}/10"),
    (f"ipfs:/{CID}", f"{GATEWAY}{CID}"),
    (f"ipfs://{CID}/a b?c=d#e", f"{GATEWAY}{CID}/a b?c=d"),
    ("ipfs://../../admin", NftOutcome.NO_URI),
    (f"ipfs://{CID}/../../admin", NftOutcome.NO_URI),
    (f"ipfs://{CID}/%2e%2e/%2E./admin", NftOutcome.NO_URI),
    (f"ipfs://{CID}/%252e%252e/admin", NftOutcome.NO_URI),
    (f"ipfs://{CID}/..%2f..%2fadmin", NftOutcome.NO_URI),
    (f"ipfs://{CID}/..\\..\\admin", NftOutcome.NO_URI),
    ("ipfs://", NftOutcome.NO_URI),
    ("ipfs://a@b/", NftOutcome.NO_URI),
    ("ipfs://bafybase/1", f"{GATEWAY}bafybase/1"),
    ("", NftOutcome.NO_URI),
    (None, NftOutcome.NO_URI),
    (CID, NftOutcome.NO_URI),
    ("www.example.com/1", NftOutcome.NO_URI),
    ("https://a/\x01", NftOutcome.NO_URI),
    ("https://a/" + "x" * WEB_URI_SIZE_MAX, NftOutcome.NO_URI),
    ("ftp://other.example/1", NftOutcome.OTHER_SCHEME),
    ("ar://abc", NftOutcome.OTHER_SCHEME),
    ("file:///etc/passwd", NftOutcome.OTHER_SCHEME),
    (f"data:application/json;base64,{B64}", b'{"name":"\xc3\xa9"}'),
    (f"DATA:application/json;charset=utf-8;BASE64,{B64.rstrip('=')}", b'{"name":"\xc3\xa9"}'),
    (f"data:;base64,{B64[:5]}%0A {B64[5:]}", b'{"name":"\xc3\xa9"}'),
    ("data:;base64,_-8=", b"\xff\xef"),
    ('data:application/json;utf8,{"name":"é 100%"}', '{"name":"é 100%"}'.encode()),
    ("data:application/json,%7B%22name%22%3A%22%C3%A9%22%7D", b'{"name":"\xc3\xa9"}'),
    ('data:application/json,{\n"a":"b,c"}', b'{\n"a":"b,c"}'),
    ("data:,", b""),
    ("data:application/json", NftOutcome.NO_URI),
    ("data:;base64,!!!!", NftOutcome.NO_URI),
    ("data:;base64,A", NftOutcome.NO_URI),
    ("data:,\0", NftOutcome.NO_URI),
    ("data:," + "x" * URI_SIZE_MAX, NftOutcome.URI_TOO_LONG),
]


@pytest.mark.parametrize(("uri", "expected"), CASES)
def test_resolved_uris(uri: str | None, expected: NftOutcome | str | bytes) -> None:
    assert outcome_of(uri) == expected


def test_ipfs_without_a_gateway_is_switched_off() -> None:
    assert outcome_of(f"ipfs://{CID}/1", "") is NftOutcome.SWITCHED_OFF
    assert outcome_of("https://a/1", "") == "https://a/1"


def test_what_is_stored_of_invalid_uris() -> None:
    assert storable(CID) == CID
    assert storable(None) == storable("x" * (WEB_URI_SIZE_MAX + 1)) == storable("data:" + "x" * URI_SIZE_MAX) == ""
    assert storable("a\0b") == "ab"


PIECES = st.sampled_from(["..", ".", "/", "%2e", "%2f", "%25", "\\", "?", "#", "@", ":", CID, "a", "ipfs", "//"])


@given(st.lists(PIECES, max_size=12).map("".join))
def test_no_path_leaves_the_gateway_prefix(path: str) -> None:
    found = outcome_of("ipfs://" + path)
    if isinstance(found, str):
        url = URL(found)
        assert (url.host, url.port, url.user) == ("127.0.0.1", 8080, None)
        assert url.path.startswith("/ipfs/")


@given(st.text(max_size=200))
def test_arbitrary_text(uri: str) -> None:
    for text in (uri, "data:" + uri, "data:;base64," + uri, "ipfs://" + uri):
        assert outcome_of(text) is not None
        assert scheme_of(text) == scheme_of(text).lower()
