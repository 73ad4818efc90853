"""One value as it was written: where it comes from, what it becomes, and how it is refused."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from icefall.config.settings import Setting
from icefall.config.types import written
from icefall.errors import StartRefused
from icefall.wire.text.go_text import quote

DEFAULT = "default"


class ConfigError(StartRefused):
    """A setting that is unknown, malformed or in conflict with another. `str(error)` is one line for the terminal."""


class ValueSource(msgspec.Struct, frozen=True):
    """The place where values are written: what a path is relative to, what `$VAR` means, and the file, if it is one."""

    base: Path
    environ: Mapping[str, str]
    file: str = ""


class GivenValue(msgspec.Struct, frozen=True):
    setting: Setting
    value: Any
    origin: str


def read(setting: Setting, value: object, source: ValueSource, origin: str, subject: str = "") -> GivenValue:
    """The value of a setting. Messages call it `subject`; without one, by its flag and the origin of the value."""
    try:
        parsed = setting.value_type.accept(_utf8(value))
        if setting.value_type.is_path(parsed):
            parsed = _absolute(parsed, source)
    except ValueError as error:
        origin_note = "" if subject or origin.startswith("--") else f" (from {origin})"
        reason = f": {error}" if str(error) else ""
        expected = f"{subject or setting.flag} must be {setting.value_type.shape}"
        raise ConfigError(f"{expected}, got {written(value)}{origin_note}{reason}") from None
    return GivenValue(setting, parsed, origin)


def _utf8(value: object) -> object:
    """The value itself, unless it holds text that no file and no JSON could carry."""
    for text in value if isinstance(value, list) else [value]:
        if isinstance(text, str) and any("\ud800" <= char <= "\udfff" for char in text):
            raise ValueError("not valid UTF-8")
    return value


def _absolute(text: str, source: ValueSource) -> str:
    if re.match(r"~[^/]", text):
        raise ValueError("~ stands for a home directory only in ~ and ~/")
    if text.startswith("~"):
        home = source.environ.get("HOME", "")
        if not home:
            raise ValueError("HOME is not set")
        text = home + text[1:]
    try:
        text = re.sub(r"\$(?:\{(\w+)\}|(\w+))", lambda found: source.environ[found[1] or found[2]], text)
    except KeyError as error:
        raise ValueError(f"${error.args[0]} is not set") from None
    if "\0" in text:
        raise ValueError("a path cannot hold a zero byte")
    return str(_utf8(str(source.base / text)))


def nearest(name: str, valid: Iterable[str]) -> str:
    """The end of a refusal: the nearest valid name, as a question if it is close."""
    names = list(valid)
    choice = _closest(name, names, 0.0)[0]
    return f"did you mean {choice}?" if close_match(name, names) else f"the nearest is {choice}"


def close_match(name: str, valid: Iterable[str]) -> str:
    """The valid name that was probably meant; empty if none is close."""
    return next(iter(_closest(name, list(valid), 0.6)), "")


def _closest(name: str, names: list[str], cutoff: float) -> list[str]:
    import difflib  # noqa: PLC0415 - only a refusal needs it

    return difflib.get_close_matches(name[:80], names, n=1, cutoff=cutoff)


def bare(name: str, size_max: int = 80) -> str:
    """A name as it was written; cut if it is too long, quoted if a terminal could not show it."""
    short = name if len(name) <= size_max else name[: size_max - 3] + "..."
    return short if short and short.isprintable() and " " not in short else quote(short)
