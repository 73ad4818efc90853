"""Kinds of setting value: how each is read from text or TOML, described when a value is refused, and shown.

A setting names its type in its annotation (`http_port: Annotated[Port, Setting(...)]`); settings.py collects them.
"""

import ipaddress
import re
from collections.abc import Callable
from typing import Annotated, Any, get_args
from urllib.parse import urlsplit

import msgspec

from icefall.wire.ids import network_id_from_text, network_name
from icefall.wire.text.go_text import SECOND_NS, format_duration, parse_duration, quote

UINT32_MAX, UINT64_MAX = 2**32 - 1, 2**64 - 1
_STORE_SCHEMES = ("postgresql", "postgres")
BLOCK_MAX = 2**39 - 1  # the store keeps a block number and an index in one integer
SHUTDOWN_MAX_NS = 9 * SECOND_NS  # a stopped process must be gone within 10 s


class SettingType(msgspec.Struct, frozen=True):
    """`shape` describes the expected value in a refusal. `parse` takes a string or a value of the TOML type `native`;
    its ValueError has a text only where `shape` is not enough. A value that `is_path` is made absolute. The values of a
    flag that `is_repeatable` are added up; of any other flag that is given twice, the last one counts."""

    shape: str
    parse: Callable[[Any], Any]
    is_valid: Callable[[Any], object] = lambda _: True
    native: type = str
    show: Callable[[Any], str] = str
    is_path: Callable[[str], bool] = lambda _: False
    is_choice: bool = False
    is_repeatable: bool = False

    def accept(self, value: object) -> Any:
        """The parsed value; ValueError if it is not of this type."""
        if type(value) not in (str, self.native):
            raise ValueError
        parsed = self.parse(value)
        if not self.is_valid(parsed):
            raise ValueError
        return parsed


def whole(low: int, high: int) -> SettingType:
    return SettingType(f"{low}..{high}", _int, lambda number: low <= number <= high, int)


def duration(low_ns: int, high_ns: int, shape: str) -> SettingType:
    """Nanoseconds, written as in Go."""
    return SettingType(shape, parse_duration, lambda ns: low_ns <= ns <= high_ns, show=format_duration)


def choice(literal: Any) -> SettingType:
    """One of the words of a `Literal[...]`, in any case."""
    words = get_args(literal)
    return SettingType(f"{', '.join(words[:-1])} or {words[-1]}", str.lower, words.__contains__, is_choice=True)


def matching(pattern: str, shape: str) -> SettingType:
    return SettingType(shape, str, re.compile(pattern).fullmatch)


def url(*schemes: str) -> SettingType:
    def is_url(text: str) -> bool:
        try:
            split = urlsplit(text)
            valid = split.scheme in schemes and split.hostname and split.port != 0
        except ValueError:  # its text may quote a password
            return False
        return bool(valid) and not re.search(r"[\x00-\x20\x7f]", text)

    return SettingType(f"a URL of scheme {' or '.join(schemes)}", str, is_url, show=masked)


def _is_store_url(text: str) -> bool:
    """Tell whether a URL names no host, one, or several with commas between: a server and its stand-ins."""
    try:
        split = urlsplit(text)
        hosts = split.netloc.rpartition("@")[2].split(",")
        valid = split.scheme in _STORE_SCHEMES and all(urlsplit(f"//{host}").port != 0 for host in hosts)
    except ValueError:
        return False
    return valid and not re.search(r"[\x00-\x20\x7f]|%(?![0-9a-fA-F]{2})", text)  # the driver would quote a password


def _hosts(url: str) -> int:
    return len(urlsplit(url).netloc.rpartition("@")[2].split(","))


def several(item: SettingType, shape: str, least: int = 0) -> SettingType:
    """A list: comma separated text (spaces count as commas), or a TOML array."""

    def parse(value: str | list[object]) -> tuple[Any, ...]:
        items = [word for word in re.split(r"[,\s]+", value) if word] if isinstance(value, str) else value
        return tuple(map(parse_item, items))

    def parse_item(value: object) -> Any:
        try:
            return item.accept(value)
        except ValueError:
            raise ValueError(f"{written(value)} is not {item.shape}") from None

    return SettingType(
        shape, parse, lambda items: len(items) >= least, list, lambda items: ",".join(map(item.show, items))
    )


def or_empty(value_type: SettingType, empty: Any = "") -> SettingType:
    """The same type, but an empty text is accepted too, and becomes `empty`."""
    return msgspec.structs.replace(
        value_type,
        parse=lambda value: empty if value == "" else value_type.accept(value),
        is_valid=lambda _: True,
        show=lambda value: "" if value == empty else value_type.show(value),
    )


def _int(value: str | int) -> int:
    if isinstance(value, str) and not re.fullmatch(r"[0-9]{1,20}", value):
        raise ValueError
    return int(value)


def _id_text(text: str) -> str:
    from icefall.wire.ids import id_from_text  # noqa: PLC0415 - loads a hash library that few settings need

    id_from_text(text)
    return text


def _network_id(value: str | int) -> int:
    try:
        return network_id_from_text(value) if isinstance(value, str) else value
    except ValueError:
        raise ValueError from None


def masked(text: str) -> str:
    """The text with possible secrets inside URLs replaced by ***: passwords, and the values of queries."""
    text = re.sub(r"(password\s*=\s*)\S+", r"\1***", text)  # of a server, not as a URL
    text = re.sub(r"(://[^/?#\s:@]*:)(?!\d+[/?#])\S*@", r"\1***@", text)  # also one that should be percent-encoded
    return re.sub(r"([?&][^=&#\s]*=)[^&#\s,]+", r"\1***", text) if "://" in text else text


def written(value: object) -> str:
    """A refused value, short and on one line, for the message that refuses it."""
    if isinstance(value, str):
        return quote(masked(value) if len(value) <= 80 else masked(value)[:77] + "...")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and abs(value) > UINT64_MAX:  # Python does not print very long ones
        return "a number beyond 64 bits"
    if isinstance(value, int | float):
        return str(value)
    return "a list" if isinstance(value, list) else "a table" if isinstance(value, dict) else "a date or time"


_FLAGS = dict.fromkeys((True, "t", "T", "true", "True", "TRUE", "1"), True)
_FLAGS |= dict.fromkeys((False, "f", "F", "false", "False", "FALSE", "0"), False)
FLAG = SettingType("true or false", _FLAGS.get, lambda value: value is not None, bool, written)
TEXT = matching(r"[^\x00-\x1f\x7f]*", "text")
WORD = matching(r"[^\x00-\x20\x7f,]+", "a word")
PATH = msgspec.structs.replace(matching(r"[^\x00-\x1f\x7f]+", "a path"), is_path=bool)
URL = url("http", "https")
STORE_URL = SettingType(
    f"a URL of scheme {' or '.join(_STORE_SCHEMES)}, with / @ # ? % of a password as %2F %40 %23 %3F %25",
    str,
    _is_store_url,
    show=masked,
)
REPLICA_URLS = SettingType(
    f"URLs of scheme {' or '.join(_STORE_SCHEMES)}, each with one host",
    lambda value: tuple(re.split(r"[,\s]+(?=postgres(?:ql)?://)", value.strip()) if isinstance(value, str) else value),
    lambda urls: all(isinstance(one, str) and _is_store_url(one) and _hosts(one) == 1 for one in urls),
    list,
    lambda urls: ",".join(map(masked, urls)),
    is_repeatable=True,
)
PUBLIC_URL = matching(  # it goes into a Content-Security-Policy, which has no quoting
    r"https?://([0-9A-Za-z._-]+|\[[0-9A-Fa-f:.]+\])(:[1-9][0-9]{0,4})?(/[0-9A-Za-z._~%/-]*)?",
    "a URL of scheme http or https without user, query and fragment",
)
PATH_OR_URL = SettingType(
    f"a path or {URL.shape}",
    lambda text: (URL if "://" in text else PATH).accept(text),
    show=masked,
    is_path=lambda text: bool(text) and "://" not in text,
)
ID = SettingType("a 32-byte ID in CB58", _id_text)
IP_NETWORK = SettingType(
    "an IP address or a network such as 10.0.0.0/8", lambda text: str(ipaddress.ip_network(text, strict=False))
)
NETWORK_ID = SettingType(
    f"mainnet, cascade, denali, everest, fuji, testnet, testing, local, network-<n> or 0..{UINT32_MAX}",
    _network_id,
    lambda number: 0 <= number <= UINT32_MAX,
    int,
    network_name,
)
CHAIN_ID = SettingType('a chain ID such as "43112"', lambda value: str(whole(1, UINT64_MAX).accept(value)), native=int)
TABLE = SettingType("a table", str, lambda _: False)  # of keys that are settings too; read by config/file.py

# The types of the fields of Config and its tables. `Required`: an empty value is refused.
Flag = Annotated[bool, FLAG]
OptionalFlag = Annotated[bool | None, or_empty(FLAG, None)]
Count = Annotated[int, whole(0, UINT32_MAX)]
Port = Annotated[int, whole(0, 65535)]
Percent = Annotated[int, whole(0, 50)]
Amount = Annotated[int, whole(0, UINT64_MAX)]
ComputeUnits = Annotated[int, whole(1, 2**63 - 1)]
BlockNumber = Annotated[int, whole(0, BLOCK_MAX)]
OptionalBlock = Annotated[int | None, or_empty(whole(0, BLOCK_MAX), None)]
Duration = Annotated[int, duration(0, 2**63 - 1, "a Go duration such as 30s")]
PositiveDuration = Annotated[int, duration(1, 2**63 - 1, "a Go duration above zero, such as 30s")]
PollInterval = Annotated[int, duration(SECOND_NS // 100, 3600 * SECOND_NS, "a Go duration from 10ms to 1h")]
ReplicaLag = Annotated[int, duration(SECOND_NS // 10, 86400 * SECOND_NS, "a Go duration from 100ms to 24h")]
ShutdownTime = Annotated[int, duration(0, SHUTDOWN_MAX_NS, "a Go duration from 0s to 9s")]
Text = Annotated[str, TEXT]
Path = Annotated[str, or_empty(PATH)]
RequiredPath = Annotated[str, PATH]
PathOrUrl = Annotated[str, or_empty(PATH_OR_URL)]
Url = Annotated[str, or_empty(URL)]
PublicUrl = Annotated[str, or_empty(PUBLIC_URL)]
StoreUrl = Annotated[str, or_empty(STORE_URL)]
ReplicaUrls = Annotated[tuple[str, ...], or_empty(REPLICA_URLS, ())]
StorePrefix = Annotated[str, matching("[a-z][a-z0-9_]{0,23}", "up to 24 letters, digits and _")]
WebSocketUrl = Annotated[str, or_empty(url("ws", "wss"))]
Urls = Annotated[tuple[str, ...], several(URL, "http or https URLs")]
RequiredUrls = Annotated[tuple[str, ...], several(URL, "one or more http or https URLs", least=1)]
Host = Annotated[str, matching(r"[0-9A-Za-z._:%-]*", "a host name or an IP address")]
HostNames = Annotated[tuple[str, ...], several(WORD, "host names")]
Origins = Annotated[tuple[str, ...], several(WORD, "origins")]
Words = Annotated[tuple[str, ...], several(WORD, "a list of words")]
IpNetworks = Annotated[tuple[str, ...], several(IP_NETWORK, "IP addresses or networks such as 10.0.0.0/8")]
NetworkId = Annotated[int, NETWORK_ID]
ChainId = Annotated[str, CHAIN_ID]
OptionalChain = Annotated[str, or_empty(CHAIN_ID)]
Id = Annotated[str, or_empty(ID)]
RequiredId = Annotated[str, ID]
ADDRESS = matching("0x[0-9a-fA-F]{40}", "an address: 0x and 40 hex digits")
Address = Annotated[str, or_empty(ADDRESS)]
Addresses = Annotated[tuple[str, ...], several(ADDRESS, "addresses, each 0x and 40 hex digits")]
