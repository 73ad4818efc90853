"""Page tokens are valid for their own query for a day; nothing else is valid."""

import base64
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.api.rest_scene import ADDRESS, LIST, AddressPage

from icefall.access.page_tokens import CURSOR_SIZE_MAX, ISSUE_STEP_S, LIFETIME_S, NUMBER_MAX, NumberTokens, PageTokens
from icefall.api.http.paging import NumberPaging, Paging
from icefall.api.http.rest_params import PAGE_TOKEN, PAGE_TOKEN_SIZE_MAX, RestBinder
from icefall.api.metrics.schema import HoldersAboveParams
from icefall.errors import BadRequest

SECRET = bytes(range(32))
TOKENS, NUMBERS = PageTokens(SECRET), NumberTokens(SECRET)
NOW = 1_800_000_000
SCOPE = b"listErc20 43112 0x71"

cursors = st.binary(max_size=CURSOR_SIZE_MAX)
numbers = st.integers(0, NUMBER_MAX)
scopes = st.binary(max_size=100)
times = st.integers(0, NUMBER_MAX)


def refused(token: str, scope: bytes | str = SCOPE, now: int = NOW) -> str:
    with pytest.raises(BadRequest) as caught:
        TOKENS.read(token, scope, now)
    return str(caught.value)


def number_refused(token: str, scope: bytes | str = SCOPE, now: int = NOW) -> str:
    with pytest.raises(BadRequest) as caught:
        NUMBERS.read(token, scope, now)
    return str(caught.value)


# -- chain data ----------------------------------------------------------------------------------------------------


@given(scopes, cursors, times, st.integers(0, LIFETIME_S))
def test_a_token_is_valid_for_its_query(scope: bytes, cursor: bytes, now: int, later: int) -> None:
    token = TOKENS.issue(scope, cursor, now)
    assert TOKENS.read(token, scope, now + later) == cursor
    assert PAGE_TOKEN.read(token) == token
    assert len(token) <= PAGE_TOKEN_SIZE_MAX


@given(cursors, st.data())
def test_any_altered_byte_is_refused(cursor: bytes, data: st.DataObject) -> None:
    raw = bytearray(base64.urlsafe_b64decode(TOKENS.issue(SCOPE, cursor, NOW) + "=="))
    raw[data.draw(st.integers(0, len(raw) - 1))] ^= data.draw(st.integers(1, 255))
    assert "altered" in refused(base64.urlsafe_b64encode(raw).decode().rstrip("="))


@given(cursors, st.data())
def test_any_other_text_is_refused(cursor: bytes, data: st.DataObject) -> None:
    """Including those that a lenient decoder accepts: padding, spaces, unused bits, another alphabet."""
    token = TOKENS.issue(SCOPE, cursor, NOW)
    at = data.draw(st.integers(0, len(token) - 1))
    letter = data.draw(st.sampled_from("ABCDwxyz0189-_+/= \n\x00é"))
    for other in (token[:at] + letter + token[at + 1 :], token[:at] + letter + token[at:], token[:at], token + letter):
        if other != token:
            assert "altered" in refused(other)


@given(st.text(max_size=80))
def test_arbitrary_text_is_not_a_token(text: str) -> None:
    assert "altered" in refused(text)


@given(cursors, scopes)
def test_a_token_of_another_query_is_refused(cursor: bytes, scope: bytes) -> None:
    if scope != SCOPE:
        assert "belongs to another query" in refused(TOKENS.issue(scope, cursor, NOW))


def test_a_token_expires_after_a_day_of_our_clock() -> None:
    token = TOKENS.issue(SCOPE, b"x", NOW)
    assert TOKENS.read(token, SCOPE, NOW + LIFETIME_S) == b"x"
    assert "expired after 24 hours" in refused(token, now=NOW + LIFETIME_S + ISSUE_STEP_S)
    assert TOKENS.read(token, SCOPE, NOW - 3 * LIFETIME_S) == b"x"  # the clock was set back: no token expires


def test_tokens_of_the_same_page_and_minute_are_the_same() -> None:
    minute = NOW - NOW % ISSUE_STEP_S
    times = (minute - 1, minute, minute + ISSUE_STEP_S - 1, minute + ISSUE_STEP_S)
    for tokens in ([TOKENS.issue(SCOPE, b"x", now) for now in times], [NUMBERS.issue(SCOPE, 7, now) for now in times]):
        assert tokens[1] == tokens[2]
        assert len(set(tokens)) == 3


def test_a_token_of_another_secret_is_refused() -> None:
    assert "altered" in refused(PageTokens(bytes(32)).issue(SCOPE, b"x", NOW))


def test_text_and_bytes_are_one_scope() -> None:
    assert TOKENS.read(TOKENS.issue("é", b"x", NOW), "é".encode(), NOW) == b"x"


def test_the_size_of_a_cursor_is_limited() -> None:
    with pytest.raises(ValueError, match="256"):
        TOKENS.issue(SCOPE, bytes(CURSOR_SIZE_MAX + 1), NOW)


# -- metrics -------------------------------------------------------------------------------------------------------


@given(scopes, numbers, times, st.integers(0, LIFETIME_S))
def test_a_number_token_is_a_uuid_and_valid_for_its_query(scope: bytes, cursor: int, now: int, later: int) -> None:
    token = NUMBERS.issue(scope, cursor, now)
    assert (uuid.UUID(token).version, uuid.UUID(token).variant, len(token)) == (8, uuid.RFC_4122, 36)
    assert NUMBERS.read(token, scope, now + later) == cursor
    assert PAGE_TOKEN.read(token) == token


@given(numbers, st.integers(0, 127))
def test_any_altered_bit_of_a_uuid_is_refused(cursor: int, bit: int) -> None:
    token = uuid.UUID(NUMBERS.issue(SCOPE, cursor, NOW))
    assert "not one that this service issued" in number_refused(str(uuid.UUID(int=token.int ^ 1 << bit)))


@given(numbers, scopes)
def test_a_uuid_of_another_query_is_refused(cursor: int, scope: bytes) -> None:
    if scope != SCOPE:
        assert "for this query" in number_refused(NUMBERS.issue(scope, cursor, NOW))


def test_a_uuid_has_one_spelling_and_expires() -> None:
    token = NUMBERS.issue(SCOPE, 0xABCDEF, NOW)
    for other in (
        token.upper(),
        f"{{{token}}}",
        f"urn:uuid:{token}",
        token.replace("-", ""),
        "",
        "x",
        str(uuid.uuid4()),
    ):
        assert "not one that this service issued" in number_refused(other)
    assert "expired after 24 hours" in number_refused(token, now=NOW + LIFETIME_S + ISSUE_STEP_S)
    with pytest.raises(ValueError, match="32 bits"):
        NUMBERS.issue(SCOPE, 2**32, NOW)


def test_a_token_of_one_kind_is_invalid_as_the_other() -> None:
    assert "altered" in refused(NUMBERS.issue(SCOPE, 1, NOW))
    assert "not one" in number_refused(TOKENS.issue(SCOPE, b"1", NOW))


# -- as handlers use them ------------------------------------------------------------------------------------------


def ask(query: str = "", address: str = ADDRESS) -> AddressPage:
    bound: AddressPage = RestBinder(AddressPage, LIST).bind(("43112", address), query)
    return bound


def test_the_scope_does_not_depend_on_spelling() -> None:
    clock = [float(NOW)]
    for paging, cursor in ((Paging(TOKENS, lambda: clock[0]), b"\x01"), (NumberPaging(NUMBERS, lambda: clock[0]), 1)):
        assert paging.after("list", ask()) is None
        token = paging.token("list", ask("startBlock=5"), cursor)  # type: ignore[arg-type]
        for same in (ask(f"pageToken={token}&startBlock=5"),
                     ask(f"startBlock=005&pageToken={token}&pageSize=99&x=1", ADDRESS.lower())):  # fmt: skip
            assert paging.after("list", same) == cursor
        for route, other in (("list", ask(f"pageToken={token}")), ("list", ask(f"pageToken={token}&startBlock=6")),
                             ("other", ask(f"pageToken={token}&startBlock=5")),
                             ("list", ask(f"pageToken={token}&startBlock=5", "0x" + "00" * 20))):  # fmt: skip
            with pytest.raises(BadRequest):
                paging.after(route, other)
        clock[0] += LIFETIME_S + ISSUE_STEP_S
        with pytest.raises(BadRequest, match="expired"):
            paging.after("list", ask(f"pageToken={token}&startBlock=5"))


def test_a_query_may_have_an_amount_of_256_bits() -> None:
    def above(threshold: int, token: str = "") -> HoldersAboveParams:
        return HoldersAboveParams(
            chain_id="1", address=bytes(20), threshold=threshold, page_token=token, page_size=1000
        )

    paging = NumberPaging(NUMBERS, lambda: NOW)
    token = paging.token("above", above(2**256 - 1), 7)
    assert paging.after("above", above(2**256 - 1, token)) == 7
    with pytest.raises(BadRequest):
        paging.after("above", above(2**256 - 2, token))
