"""Profiles read back by a reader that shares nothing with the writer, and by Go's own tool where it is installed."""

import gzip
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.counterparts import program

from icefall.node.admin.pprof import Measure, Profile, Sample, StackFrame, encode

OUTER = StackFrame("icefall.follow.run", "/src/follow.py", 12, 10)
INNER = StackFrame("icefall.follow.step", "/src/follow.py", 31, 30)
INNER_LATER = StackFrame("icefall.follow.step", "/src/follow.py", 34, 30)
CPU = Measure("cpu", "nanoseconds")
SAMPLES = (
    Sample((INNER, OUTER), (3, 30_000_000)),
    Sample((INNER_LATER, OUTER), (1, 10_000_000)),
    Sample((OUTER,), (1, 9_000_000)),
)
PROFILE = Profile(
    measures=(Measure("samples", "count"), CPU),
    samples=SAMPLES,
    time_ns=1_700_000_000_123_456_789,
    duration_ns=2_000_000_000,
    period_measure=CPU,
    period=10_000_000,
    comments=("made by a test",),
)


def fields(message: bytes) -> Iterator[tuple[int, Any]]:
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(message):
        key = varint()
        assert key & 7 in (0, 2), "only varints and length-delimited fields are expected"
        if key & 7 == 0:
            yield key >> 3, varint()
        else:
            size = varint()
            yield key >> 3, message[at : at + size]
            at += size
    assert at == len(message)


def varints(packed: bytes) -> list[int]:
    values, value, shift = [], 0, 0
    for byte in packed:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            values.append(value - (1 << 64) if value >> 63 else value)
            value = shift = 0
    return values


def read_profile(file: bytes) -> dict[str, Any]:
    """A pprof file as plain values: measures, samples ([(function, file, line, first line)], values), times, period."""
    top = list(fields(gzip.decompress(file)))
    strings = [body.decode() for field, body in top if field == 6]
    numbers = {field: body for field, body in top if field in (9, 10, 12)}
    assert strings[0] == ""

    def measure(body: bytes) -> tuple[str, str]:
        parts = dict(fields(body))
        return strings[parts[1]], strings[parts[2]]

    functions, locations = {}, {}
    for body in (dict(fields(body)) for field, body in top if field == 5):
        assert body[3] == body[2]
        functions[body[1]] = strings[body[2]], strings[body.get(4, 0)], body.get(5, 0)
    for body in (dict(fields(body)) for field, body in top if field == 4):
        line = dict(fields(body[4]))
        name, path, first_line = functions[line[1]]
        locations[body[1]] = name, path, line.get(2, 0), first_line
    samples = []
    for body in (dict(fields(body)) for field, body in top if field == 2):
        samples.append(([locations[at] for at in varints(body.get(1, b""))], varints(body[2])))
    return {
        "measures": [measure(body) for field, body in top if field == 1],
        "samples": samples,
        "time_ns": numbers.get(9, 0),
        "duration_ns": numbers.get(10, 0),
        "period": (*[measure(body) for field, body in top if field == 11], numbers.get(12, 0)),
        "comments": [strings[at] for field, body in top if field == 13 for at in varints(body)],
        "functions": len(functions),
        "locations": len(locations),
    }


def go_top(file: Path, *options: str) -> str:
    """What `go tool pprof -top` prints about a profile."""
    program("go")
    run = subprocess.run(
        ["go", "tool", "pprof", "-top", *options, str(file)], capture_output=True, text=True, timeout=120, check=False
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_an_independent_reader_finds_every_value() -> None:
    read = read_profile(encode(PROFILE))
    assert read == {
        "measures": [("samples", "count"), ("cpu", "nanoseconds")],
        "samples": [(list(sample.stack), list(sample.values)) for sample in SAMPLES],
        "time_ns": PROFILE.time_ns,
        "duration_ns": PROFILE.duration_ns,
        "period": (("cpu", "nanoseconds"), 10_000_000),
        "comments": ["made by a test"],
        "functions": 2,
        "locations": 3,
    }


def test_equal_profiles_give_equal_bytes() -> None:
    assert encode(PROFILE) == encode(PROFILE)


def test_a_profile_without_samples_is_whole() -> None:
    read = read_profile(encode(PROFILE._replace(samples=(), comments=(), duration_ns=0)))
    assert read["samples"] == []
    assert read["duration_ns"] == 0
    assert read["measures"] == [("samples", "count"), ("cpu", "nanoseconds")]


@pytest.mark.parametrize("value", [0, 1, 127, 128, 16_383, 16_384, 2**63 - 1, -1, -(2**63)])
def test_every_int64_survives(value: int) -> None:
    read = read_profile(encode(PROFILE._replace(samples=(Sample((INNER,), (value, 0)),))))
    assert read["samples"][0][1] == [value, 0]


def test_names_of_any_text_survive() -> None:
    odd = StackFrame("größe.<lambda>", "/tmp/\udcff.py", 1, 1)  # an undecodable byte of a path
    read = read_profile(encode(PROFILE._replace(samples=(Sample((odd,), (1, 1)),))))
    assert read["samples"][0][0] == [("größe.<lambda>", "/tmp/?.py", 1, 1)]


def test_go_opens_it(tmp_path: Path) -> None:
    file = tmp_path / "cpu.profile"
    file.write_bytes(encode(PROFILE))
    top = go_top(file)
    assert "Type: cpu" in top
    assert "Duration: 2s" in top
    assert [line.split()[0] for line in top.splitlines() if "icefall.follow.step" in line] == ["40ms"]
    assert "icefall.follow.run" in top
    assert "Type: samples" in go_top(file, "-sample_index=samples")
