"""Profiles in the format `go tool pprof`, speedscope and the pprof web viewers open: gzipped protobuf, profile.proto.

The numbers next to each field are profile.proto's. Only what those viewers need is written: no mappings, no addresses.
"""

import gzip
from collections.abc import Iterable
from typing import NamedTuple

from icefall.wire.packer import pack_varints


class StackFrame(NamedTuple):
    """One line of a stack; `first_line` is where the function starts."""

    function: str
    file: str = ""
    line: int = 0
    first_line: int = 0


class Measure(NamedTuple):
    """What a value counts, and its unit: ("cpu", "nanoseconds")."""

    name: str
    unit: str


class Sample(NamedTuple):
    """A stack, innermost frame first, and one value per measure of its profile."""

    stack: tuple[StackFrame, ...]
    values: tuple[int, ...]


class Profile(NamedTuple):
    """Viewers open on the last measure. One event of `period_measure` was looked at in every `period` of them."""

    measures: tuple[Measure, ...]
    samples: Iterable[Sample]
    time_ns: int
    duration_ns: int
    period_measure: Measure
    period: int
    comments: tuple[str, ...] = ()


def encode(profile: Profile) -> bytes:
    """The profile as a file's bytes; equal profiles give equal bytes."""
    strings: dict[str, int] = {"": 0}
    functions: dict[tuple[str, str, int], int] = {}
    locations: dict[StackFrame, int] = {}

    def string(text: str) -> int:
        return strings.setdefault(text, len(strings))

    def measure(measured: Measure) -> bytes:
        return _number(1, string(measured.name)) + _number(2, string(measured.unit))

    def location(frame: StackFrame) -> int:
        functions.setdefault((frame.function, frame.file, frame.first_line), len(functions) + 1)
        return locations.setdefault(frame, len(locations) + 1)

    out = bytearray()
    for measured in profile.measures:
        out += _nested(1, measure(measured))
    for sample in profile.samples:
        stack = _numbers(1, [location(frame) for frame in sample.stack])
        out += _nested(2, stack + _numbers(2, sample.values))
    for frame, location_id in locations.items():
        function_id = functions[frame.function, frame.file, frame.first_line]
        line = _number(1, function_id) + _number(2, frame.line)
        out += _nested(4, _number(1, location_id) + _nested(4, line))
    for (name, file, first_line), function_id in functions.items():
        named = _number(2, string(name)) + _number(3, string(name)) + _number(4, string(file))
        out += _nested(5, _number(1, function_id) + named + _number(5, first_line))
    out += _number(9, profile.time_ns) + _number(10, profile.duration_ns)
    out += _nested(11, measure(profile.period_measure)) + _number(12, profile.period)
    out += _numbers(13, [string(comment) for comment in profile.comments])
    for text in strings:
        out += _nested(6, text.encode("utf-8", "replace"))
    return gzip.compress(bytes(out), compresslevel=6, mtime=0)


def _varint(value: int) -> bytes:
    return pack_varints([value & 0xFFFF_FFFF_FFFF_FFFF])  # a negative int64 travels as its two's complement


def _number(field: int, value: int) -> bytes:
    """Zero is the default and is left out, as protobuf writers do."""
    return _varint(field << 3) + _varint(value) if value else b""


def _nested(field: int, payload: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(payload)) + payload


def _numbers(field: int, values: Iterable[int]) -> bytes:
    payload = b"".join(map(_varint, values))
    return _nested(field, payload) if payload else b""
