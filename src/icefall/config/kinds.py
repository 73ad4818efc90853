"""What a setting may hold: how each kind of value is read from text or TOML, refused, and shown."""

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import urlsplit

from icefall.wire.genesis.networks import network_id_from_text, network_name
from icefall.wire.ids import id_from_text
from icefall.wire.text.duration import format_duration, parse_duration
from icefall.wire.text.goquote import quote

UINT32_MAX, UINT64_MAX = 2**32 - 1, 2**64 - 1


class SettingKind:
    """What a setting may hold. `parse` and `accept` raise ValueError, saying more only where `shape` is not enough."""

    @property
    def shape(self) -> str:
        raise NotImplementedError

    def parse(self, text: str) -> Any:
        raise NotImplementedError

    def accept(self, value: object) -> Any:
        """A value from TOML: the native type where there is one, else what the command line would take."""
        if not isinstance(value, str):
            raise ValueError
        return self.parse(value)

    def show(self, value: Any) -> str:
        return str(value)


@dataclass(frozen=True)
class Flag(SettingKind):
    shape: str = "true or false"

    _WORDS: ClassVar[Mapping[str, bool]] = dict.fromkeys(("1", "t", "T", "true", "True", "TRUE"), True) | dict.fromkeys(
        ("0", "f", "F", "false", "False", "FALSE"), False
    )

    def parse(self, text: str) -> bool:
        if text not in self._WORDS:
            raise ValueError
        return self._WORDS[text]

    def accept(self, value: object) -> bool:
        return value if isinstance(value, bool) else bool(super().accept(value))

    def show(self, value: Any) -> str:
        return "true" if value else "false"


@dataclass(frozen=True)
class Whole(SettingKind):
    low: int
    high: int

    @property
    def shape(self) -> str:
        return f"{self.low}..{self.high}"

    def parse(self, text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,20}", text):
            raise ValueError
        return self.accept(int(text))

    def accept(self, value: object) -> int:
        if isinstance(value, str):
            return self.parse(value)
        if not isinstance(value, int) or isinstance(value, bool) or not self.low <= value <= self.high:
            raise ValueError
        return value


@dataclass(frozen=True)
class MaybeWhole(SettingKind):
    """A whole number, or nothing."""

    low: int
    high: int

    @property
    def shape(self) -> str:
        return f"{self.low}..{self.high}, or nothing"

    def parse(self, text: str) -> int | None:
        return Whole(self.low, self.high).parse(text) if text else None

    def accept(self, value: object) -> int | None:
        return None if value == "" else Whole(self.low, self.high).accept(value)

    def show(self, value: Any) -> str:
        return "" if value is None else str(value)


@dataclass(frozen=True)
class Duration(SettingKind):
    """Nanoseconds, written as Go writes them."""

    low_ns: int = 0
    high_ns: int = 2**63 - 1
    shape: str = "a Go duration such as 30s"

    def parse(self, text: str) -> int:
        ns = parse_duration(text)
        if not self.low_ns <= ns <= self.high_ns:
            raise ValueError
        return ns

    def show(self, value: Any) -> str:
        return format_duration(value)


@dataclass(frozen=True)
class Choice(SettingKind):
    words: tuple[str, ...]
    or_empty: bool = False

    @property
    def shape(self) -> str:
        return f"{', '.join(self.words[:-1])} or {self.words[-1]}"

    def parse(self, text: str) -> str:
        word = text.lower()
        if word not in self.words and not (self.or_empty and not word):
            raise ValueError
        return word


@dataclass(frozen=True)
class Text(SettingKind):
    shape: str = "text"
    pattern: str = r"[^\x00-\x1f\x7f]*"

    def parse(self, text: str) -> str:
        if not re.fullmatch(self.pattern, text):
            raise ValueError
        return text


@dataclass(frozen=True)
class FilePath(SettingKind):
    """A path; whoever loads it expands `~` and `$VAR` and makes it absolute."""

    or_empty: bool = True
    shape: str = "a path"

    def parse(self, text: str) -> str:
        if re.search(r"[\x00-\x1f\x7f]", text) or (not text and not self.or_empty):
            raise ValueError
        return text

    def is_path(self, value: str) -> bool:
        return bool(value)


@dataclass(frozen=True)
class Url(SettingKind):
    schemes: tuple[str, ...] = ("http", "https")
    or_empty: bool = False

    @property
    def shape(self) -> str:
        return f"a URL of scheme {' or '.join(self.schemes)}"

    def parse(self, text: str) -> str:
        if not text and self.or_empty:
            return text
        try:
            split = urlsplit(text)
            sound = split.scheme in self.schemes and split.hostname and split.port != 0
        except ValueError:  # its text may quote a password
            sound = False
        if not sound or re.search(r"[\x00-\x20\x7f]", text):
            raise ValueError
        return text

    def show(self, value: Any) -> str:
        return masked(value)


@dataclass(frozen=True)
class IpNetwork(SettingKind):
    """An IP address or a network of them, kept as text."""

    shape: str = "an IP address or a network such as 10.0.0.0/8"

    def parse(self, text: str) -> str:
        try:
            return str(ipaddress.ip_network(text, strict=False))
        except ValueError:
            raise ValueError from None


@dataclass(frozen=True)
class FileOrUrl(FilePath):
    """A path, or where the same is to be had over HTTP."""

    shape: str = "a path or a URL of scheme http or https"

    def parse(self, text: str) -> str:
        return super().parse(text) if self.is_path(text) else Url(or_empty=True).parse(text)

    def is_path(self, value: str) -> bool:
        return bool(value) and "://" not in value

    def show(self, value: Any) -> str:
        return masked(value)


@dataclass(frozen=True)
class Several(SettingKind):
    """A list: comma separated text (spaces count as commas), or a TOML array."""

    item: SettingKind
    shape: str = "a list"
    least: int = 0

    def parse(self, text: str) -> tuple[Any, ...]:
        return self.accept([word for word in re.split(r"[,\s]+", text) if word])

    def accept(self, value: object) -> tuple[Any, ...]:
        if isinstance(value, str):
            return self.parse(value)
        if not isinstance(value, list) or len(value) < self.least:
            raise ValueError
        return tuple(self._item(item) for item in value)

    def _item(self, item: object) -> Any:
        try:
            return self.item.accept(item)
        except ValueError:
            raise ValueError(f"{written(item)} is not {self.item.shape}") from None

    def show(self, value: Any) -> str:
        return ",".join(self.item.show(item) for item in value)


@dataclass(frozen=True)
class NetworkIdKind(SettingKind):
    shape: str = "mainnet, cascade, denali, everest, fuji, testnet, testing, local, network-<n> or 0..4294967295"

    def parse(self, text: str) -> int:
        try:
            return network_id_from_text(text)
        except ValueError:
            raise ValueError from None

    def accept(self, value: object) -> int:
        return Whole(0, UINT32_MAX).accept(value) if isinstance(value, int) else int(super().accept(value))

    def show(self, value: Any) -> str:
        return network_name(value)


@dataclass(frozen=True)
class Id(SettingKind):
    """A 32-byte ID in CB58, kept as its text."""

    or_empty: bool = False
    shape: str = "a 32-byte ID in CB58"

    def parse(self, text: str) -> str:
        if text or not self.or_empty:
            id_from_text(text)
        return text


@dataclass(frozen=True)
class ChainNumber(SettingKind):
    """An EVM chain ID: kept as text, because that is how every interface writes it."""

    shape: str = 'a chain ID such as "43112"'

    def parse(self, text: str) -> str:
        return str(Whole(1, UINT64_MAX).parse(text))

    def accept(self, value: object) -> str:
        return str(Whole(1, UINT64_MAX).accept(value))


def masked(text: str) -> str:
    """The text with what may be secret inside URLs replaced by ***: passwords, and the values of queries."""
    text = re.sub(r"(://[^/?#\s:@]*:)[^/?#\s]*@", r"\1***@", text)
    return re.sub(r"([?&][^=&#\s]*=)[^&#\s,]+", r"\1***", text) if "://" in text else text


def written(value: object) -> str:
    """A refused value, short and on one line, for the message that refuses it."""
    match value:
        case str():
            return quote(masked(value) if len(value) <= 80 else masked(value)[:77] + "...")
        case bool():
            return "true" if value else "false"
        case int() if abs(value) > UINT64_MAX:  # Python refuses to print really long ones
            return "a number beyond 64 bits"
        case int() | float():
            return str(value)
        case list():
            return "a list"
        case dict():
            return "a table"
        case _:
            return "a date or time"
