"""Parsing of NFT metadata from any JSON, and retries per outcome."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icefall.evm.enriching.nft_metadata import (
    DESCRIPTION_SIZE_MAX,
    STORED_SIZE_MAX,
    NftMetadata,
    metadata_of,
    pack,
    unpack,
)
from icefall.evm.enriching.nft_outcomes import OUTCOMES, POSTPONED, IndexStatus, NftOutcome, UnusableNft, next_try


def read(document: Any) -> NftMetadata:
    return metadata_of(json.dumps(document).encode())


def refused(body: bytes) -> NftOutcome:
    with pytest.raises(UnusableNft) as caught:
        metadata_of(body)
    return caught.value.outcome


def ended(body: bytes) -> NftMetadata | NftOutcome:
    try:
        return metadata_of(body)
    except UnusableNft as unusable:
        return unusable.outcome


def test_all_fields() -> None:
    body = b"""\xef\xbb\xbf{"name": "Art 11", "symbol": "ART", "description": "line\\nline", "image": "https://img/1.png",
     "animation_url": "ipfs://a/b", "external_url": "https://a", "background_color": "ffffff",
     "attributes": [ {"trait_type": "n", "value": 1.10} , 12345678901234567890123 ], "decimals": 18,
     "properties": {"a": "\\u00e9"}, "other": null}"""
    assert metadata_of(body) == NftMetadata(
        name="Art 11",
        symbol="ART",
        description="line\nline",
        image_uri="https://img/1.png",
        animation_uri="ipfs://a/b",
        external_url="https://a",
        background="ffffff",
        attributes='[{"trait_type":"n","value":1.10},12345678901234567890123]',
        decimals=18,
        properties='{"a":"\\u00e9"}',
    )


@pytest.mark.parametrize(
    ("document", "field", "value"),
    [
        ({"name": 7}, "name", "7"),
        ({"title": "T"}, "name", "T"),
        ({"name": "a\nb\0\u202e"}, "name", "ab"),
        ({"name": "n" * 999}, "name", "n" * 256),
        ({"description": "d" * 9999}, "description", "d" * DESCRIPTION_SIZE_MAX),
        ({"image_url": "ipfs://QmImg/26"}, "image_uri", "ipfs://QmImg/26"),
        ({"image": "", "image_url": "x.png"}, "image_uri", "x.png"),
        ({"image": "data:image/svg+xml;utf8,<svg/>"}, "image_uri", "data:image/svg+xml;utf8,<svg/>"),
        ({"image_data": "<svg/>"}, "image_uri", "data:image/svg+xml;base64,PHN2Zy8+"),
        ({"image_data": "https://a/b.png"}, "image_uri", "https://a/b.png"),
        ({"traits": []}, "attributes", "[]"),
        ({"attributes": {"a": 1}}, "attributes", '{"a":1}'),
        ({"decimals": 0}, "decimals", 0),
    ],
)
def test_one_field(document: Any, field: str, value: Any) -> None:
    assert read(document) == NftMetadata(**{field: value})


@pytest.mark.parametrize(
    "document",
    [{}, [], "text", 7, None, {"a": 1}, {"name": ["x"]}, {"name": None}, {"name": True}, {"attributes": "x"}]
    + [{"decimals": 256}, {"decimals": -1}, {"decimals": True}, {"decimals": 1.5}, {"properties": 1}]
    + [{"image": link} for link in ("javascript:x()", " java\nscript:x", "JAVASCRIPT:x", "vbscript:x", "file:///x")]
    + [{"external_url": "data:text/html,x"}],
)
def test_documents_that_are_not_metadata(document: Any) -> None:
    assert refused(json.dumps(document).encode()) is NftOutcome.NOT_METADATA


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>",
        b"{",
        b"[tru",
        b"NaN",
        b'{"name":"a"} x',
        b'{"name":tru}',
        b'{"name":"\xff"}',
        b'{"name":"\\ud800"}',
        b'{"x":' + b"[" * 5000 + b"]" * 5000 + b"}",
        b"[" * 100_000,
    ],
)
def test_bodies_that_are_not_json(body: bytes) -> None:
    assert refused(body) is NftOutcome.NOT_JSON


def test_too_large_to_store() -> None:
    assert refused(json.dumps({"image": "data:," + "x" * STORED_SIZE_MAX}).encode()) is NftOutcome.TOO_LARGE


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(["name", "image", "image_data", "attributes", "properties", "decimals", "description", "x"])


@given(st.dictionaries(KEYS, VALUES, max_size=6))
def test_any_document(document: dict[str, Any]) -> None:
    metadata = ended(json.dumps(document).encode())
    if isinstance(metadata, NftOutcome):
        assert metadata is NftOutcome.NOT_METADATA
        return
    assert unpack(pack(metadata)) == metadata
    if metadata.attributes is not None:
        assert json.loads(metadata.attributes) == document["attributes"]


@given(st.binary(max_size=100))
def test_any_bytes(body: bytes) -> None:
    assert ended(body) in (NftOutcome.NOT_JSON, NftOutcome.NOT_METADATA) or isinstance(ended(body), NftMetadata)


def test_every_outcome_has_a_status_and_every_status_an_outcome() -> None:
    assert set(OUTCOMES) == set(NftOutcome)
    assert {row.status for row in OUTCOMES.values()} == set(IndexStatus)


def test_retries_are_bounded_and_pauses_grow() -> None:
    for outcome, row in OUTCOMES.items():
        times = [next_try(outcome, failures, 0) for failures in range(20)]
        if row.until_settings_change:
            assert set(times) == {POSTPONED}
            continue
        tried = [at for at in times if at is not None]
        assert len(tried) == row.retries
        assert tried == sorted(tried)
        assert all(60 <= at <= 86_400 for at in tried)
    assert next_try(NftOutcome.THROTTLED, 0, 100, after_s=600) == 700
