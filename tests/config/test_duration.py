"""Durations and instants against texts that Go 1.26 printed."""

from datetime import UTC, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icefall.wire.text.go_text import format_duration, parse_duration, rfc3339_nano

INT64 = st.integers(-(2**63), 2**63 - 1)

PARSED = {
    "0": 0,
    "-0": 0,
    "0s": 0,
    "1h2m3.5s": 3_723_500_000_000,
    "300ms": 300_000_000,
    "1us": 1_000,
    "1µs": 1_000,
    "1μs": 1_000,
    "+2ns": 2,
    "-1s": -1_000_000_000,
    ".5s": 500_000_000,
    "5.s": 5_000_000_000,
    ".9000h": 3_240_000_000_000,
    "51ms9s": 9_051_000_000,
    "9223372036.85477580750009223372036854775808ms": 9_223_372_036_854_775,
    "9223372036.854775807s": 2**63 - 1,
    "-9223372036854775808ns": -(2**63),
    "00000000000000000000000000001s": 1_000_000_000,
}
REFUSED = {
    "": 'time: invalid duration ""',
    "-": 'time: invalid duration "-"',
    "abc": 'time: invalid duration "abc"',
    ".s": 'time: invalid duration ".s"',
    "5": 'time: missing unit in duration "5"',
    "1s2": 'time: missing unit in duration "1s2"',
    "5x": 'time: unknown unit "x" in duration "5x"',
    "5 s": 'time: unknown unit " s" in duration "5 s"',
    '1"': r'time: unknown unit "\"" in duration "1\""',
    "1é": r'time: unknown unit "\xc3\xa9" in duration "1\xc3\xa9"',
    "9223372036854775808ns": 'time: invalid duration "9223372036854775808ns"',
    "92233720368547758089": 'time: invalid duration "92233720368547758089"',
    "3000000h": 'time: invalid duration "3000000h"',
    "٣s": r'time: invalid duration "\xd9\xa3s"',
}
FORMATTED = {
    0: "0s",
    2: "2ns",
    1_500: "1.5µs",
    347_661_828: "347.661828ms",
    1_000_000_000: "1s",
    62_500_000_000: "1m2.5s",
    120_000_000_000: "2m0s",
    3_600_000_000_000: "1h0m0s",
    -1_000_000: "-1ms",
    -(2**63): "-2562047h47m16.854775808s",
}


@pytest.mark.parametrize(("text", "ns"), PARSED.items())
def test_parse(text: str, ns: int) -> None:
    assert parse_duration(text) == ns


@pytest.mark.parametrize(("text", "message"), REFUSED.items())
def test_refuse(text: str, message: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the whole text is compared
        parse_duration(text)
    assert str(caught.value) == message


@pytest.mark.parametrize(("ns", "text"), FORMATTED.items())
def test_format(ns: int, text: str) -> None:
    assert format_duration(ns) == text


@given(INT64)
def test_what_is_formatted_parses_back(ns: int) -> None:
    assert parse_duration(format_duration(ns)) == ns


@given(st.text(st.sampled_from("0159.-+hmsnuµx é"), max_size=12) | st.text(max_size=40))
def test_parsing_gives_an_int64_or_refuses(text: str) -> None:
    try:
        ns = parse_duration(text)
    except ValueError as error:
        ns, error_text = 0, str(error)
    else:
        error_text = "time: "
    assert -(2**63) <= ns < 2**63
    assert error_text.startswith("time: ")


@pytest.mark.parametrize(
    ("ns", "offset_s", "text"),
    [
        (0, 0, "1970-01-01T00:00:00Z"),
        (1_767_323_045_000_000_006, 0, "2026-01-02T03:04:05.000000006Z"),
        (1_124_912_453_595_000_000, 0, "2005-08-24T19:40:53.595Z"),
        (1_124_912_453_595_000_000, 19_800, "2005-08-25T01:10:53.595+05:30"),
        (1_124_912_453_595_000_000, -12_600, "2005-08-24T16:10:53.595-03:30"),
        (1_124_912_453_595_000_000, -30, "2005-08-24T19:40:23.595+00:00"),
        (-1, 0, "1969-12-31T23:59:59.999999999Z"),
    ],
)
def test_instants(ns: int, offset_s: int, text: str) -> None:
    assert rfc3339_nano(ns, timezone(timedelta(seconds=offset_s))) == text


def test_the_zone_is_the_local_one_unless_given(monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    monkeypatch.setenv("TZ", "XYZ-5:30")
    time.tzset()
    try:
        assert rfc3339_nano(0) == "1970-01-01T05:30:00+05:30"
        assert rfc3339_nano(0, UTC) == "1970-01-01T00:00:00Z"
    finally:
        monkeypatch.undo()
        time.tzset()
