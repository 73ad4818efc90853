"""One value as somebody wrote it: where it stood, what it becomes, and how it is refused."""

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from icefall.config.kinds import FilePath, written
from icefall.config.settings import Setting
from icefall.errors import StartRefused
from icefall.wire.text.goquote import quote

DEFAULT = "default"


class ConfigError(StartRefused):
    """A setting that is unknown, malformed or at odds with another. `str(error)` is one line for the terminal."""


@dataclass(frozen=True)
class ValueSource:
    """Where values were written: what a path is relative to, what `$VAR` means, and in which file, if in one."""

    base: Path
    environ: Mapping[str, str]
    file: str = ""


@dataclass(frozen=True)
class GivenValue:
    value: Any
    origin: str


def read(row: Setting, value: object, place: ValueSource, origin: str, subject: str = "") -> GivenValue:
    """The value of one row. `subject` is what a message calls it; without one, its flag and where the value is from."""
    try:
        parsed = row.kind.accept(_sound(value))
        if isinstance(row.kind, FilePath) and row.kind.is_path(parsed):
            parsed = _path(parsed, place)
    except ValueError as error:
        source = "" if subject or origin.startswith("--") else f" (from {origin})"
        reason = f": {error}" if str(error) else ""
        said = f"{subject or row.flag} must be {row.kind.shape}, got {written(value)}{source}{reason}"
        raise ConfigError(said) from None
    return GivenValue(parsed, origin)


def _sound(value: object) -> object:
    """The value itself, unless it holds text that no file and no JSON could carry."""
    for text in value if isinstance(value, list) else [value]:
        if isinstance(text, str) and any("\ud800" <= char <= "\udfff" for char in text):
            raise ValueError("not valid UTF-8")
    return value


def _path(text: str, place: ValueSource) -> str:
    if not text:
        return text
    if re.match(r"~[^/]", text):
        raise ValueError("~ stands for a home directory only in ~ and ~/")
    if text.startswith("~"):
        home = place.environ.get("HOME", "")
        if not home:
            raise ValueError("HOME is not set")
        text = home + text[1:]
    text = re.sub(r"\$(?:\{(\w+)\}|(\w+))", lambda found: _variable(found[1] or found[2], place), text)
    if "\0" in text:
        raise ValueError("no path holds a zero byte")
    return str(_sound(str(place.base / text)))


def _variable(name: str, place: ValueSource) -> str:
    if name not in place.environ:
        raise ValueError(f"${name} is not set")
    return place.environ[name]


def nearest(name: str, valid: Iterable[str]) -> str:
    """The end of a refusal: the valid name that is nearest, put as a question only when it is near."""
    choice = difflib.get_close_matches(name[:80], list(valid), n=1, cutoff=0.0)[0]
    close = difflib.SequenceMatcher(None, choice, name[:80]).ratio() >= 0.6
    return f"did you mean {choice}?" if close else f"the nearest is {choice}"


def bare(name: str, size_max: int = 80) -> str:
    """A name as it was written; cut where it is absurdly long, quoted where a terminal could not show it."""
    short = name if len(name) <= size_max else name[: size_max - 3] + "..."
    return short if short and short.isprintable() and " " not in short else quote(short)
