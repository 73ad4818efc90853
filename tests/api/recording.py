"""The recorded calls of a real node: which of them apply, how to send one, how to compare."""

import base64
import gzip
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from tests.server import Reply, Wire

FILE = Path(__file__).parent.parent / "vectors" / "node_api_calls.jsonl.gz"
GROUPS = ("http", "jsonrpc", "admin", "info", "health")
NOT_PLAIN = ("EXEC", "SIGNAL", "LS", "RAW", "CURL")  # process starts, directory listings, raw sockets


class Asked(msgspec.Struct, frozen=True):
    method: str
    path: str
    headers: dict[str, str]
    body: str
    body_b64: str = ""
    body_len: int = 0
    body_truncated: bool = False
    version: str = "HTTP/1.1"


class Answered(msgspec.Struct, frozen=True):
    status: int | None
    headers: dict[str, str]
    body: str
    error: str = ""
    body_b64: str = ""
    body_truncated: bool = False


class Row(msgspec.Struct, frozen=True):
    n: int
    group: str
    note: str
    part: str
    request: Asked
    response: Answered

    @property
    def rpc_method(self) -> str:
        """The method a JSON body names; empty for anything else."""
        try:
            body = json.loads(self.request.body)
        except (ValueError, RecursionError):
            return ""
        method = body.get("method") if isinstance(body, dict) else None
        return method if isinstance(method, str) else ""


@cache
def rows(groups: tuple[str, ...] = GROUPS) -> tuple[Row, ...]:
    """Every plain HTTP row of some groups, in order: by default those of admin, health, info and HTTP itself."""
    decoder = msgspec.json.Decoder(Row)
    with gzip.open(FILE) as lines:
        every = [decoder.decode(line) for line in lines]
    return tuple(row for row in every if row.group in groups and row.request.method not in NOT_PLAIN)


# -- sending -----------------------------------------------------------------------------------------------------


def body_bytes(row: Row) -> bytes:
    """The body as it was sent. Five long ones are cut in the file; they are padding, and made again here."""
    requested = row.request
    if requested.body_b64 and not requested.body_truncated:
        return base64.b64decode(requested.body_b64)
    body = requested.body.encode()
    if not requested.body_truncated:
        return body
    tail = b'"}}' if '"alias"' in requested.body[:100] else b"}"
    return body + body[-1:] * (requested.body_len - len(body) - len(tail)) + tail


def send(row: Row, wire: Wire) -> Reply:
    requested = row.request
    body = body_bytes(row)
    headers = requested.headers or {"Host": "127.0.0.1:9690"} | (
        {"Content-Type": "application/json", "Content-Length": str(len(body))} if body else {}
    )
    return wire.send(requested.method, requested.path, headers, body, version=requested.version)


# -- comparing ---------------------------------------------------------------------------------------------------

NOT_SERVED_CHECKS = ("bls", "futureupgrade", "validation")
RECORDED_HOME = "/data/n1"
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)")
_ZONE = re.compile(r"(?:Z|[+-]\d\d:\d\d)$")
_NODE_ID = re.compile(r"NodeID-[1-9A-HJ-NP-Za-km-z]{33}")
_GROWN = re.compile(r'"lastAcceptedHeight":[1-9]')


def difference(row: Row, reply: Reply, home: Path) -> str:
    """How an answer differs from the recorded one; empty when it does not."""
    want = row.response
    if reply.status != (want.status or 0):
        return f"status {reply.status}, recorded {want.status}"
    ours, theirs = _text(reply).replace(str(home), RECORDED_HOME), _recorded_text(row)
    if want.body_truncated and ours.startswith(theirs[:-1]):
        return ""
    grown = bool(_GROWN.search(theirs))
    mine, recorded = _value(ours, grown=grown), _value(theirs, grown=grown)
    if mine != recorded:
        return f"body {str(mine)[:1000]}, recorded {str(recorded)[:1000]}"
    return _header_difference(reply, {name.lower(): value for name, value in want.headers.items()})


def _header_difference(reply: Reply, recorded: dict[str, str]) -> str:
    for name in sorted({*recorded, *(key.lower() for key, _ in reply.headers)}):
        if name in ("content-type", "location") or name.startswith("access-control-"):
            shown = [recorded[name]] if name in recorded else []
            if reply.all(name) != shown:
                return f"header {name}: {reply.all(name)}, recorded {shown}"
    return ""


def _text(reply: Reply) -> str:
    packed = reply.header("content-encoding") == "gzip"
    return (gzip.decompress(reply.body) if packed else reply.body).decode("utf-8", "replace")


def _recorded_text(row: Row) -> str:
    want = row.response
    raw = base64.b64decode(want.body_b64) if want.body_b64 and not want.body_truncated else want.body.encode()
    return (gzip.decompress(raw) if raw.startswith(b"\x1f\x8b") else raw).decode("utf-8", "replace")


class Ordered(list[tuple[str, Any]]):
    """A JSON object: the order of its keys counts."""


def _value(text: str, *, grown: bool) -> Any:
    """A JSON value without what differs from run to run; any other text as it is."""
    try:
        return _settled(json.loads(text, object_pairs_hook=Ordered), grown=grown)
    except ValueError:
        return text


def _settled(value: Any, name: str = "", *, grown: bool) -> Any:
    """Times, durations, disk sizes and node IDs masked; and heights where the recorded chains had blocks."""
    if isinstance(value, Ordered):
        if name == "checks":
            return [(key, _check(key, one, grown=grown)) for key, one in value if key not in NOT_SERVED_CHECKS]
        if name == "consensus" and grown:
            return [key for key, _ in value]
        return [(key, _settled(one, key, grown=grown)) for key, one in value]
    if isinstance(value, list):
        return [_settled(one, grown=grown) for one in value]
    if isinstance(value, str):
        return _NODE_ID.sub("NodeID-", value)
    return value


def _check(name: str, check: Ordered, *, grown: bool) -> list[tuple[str, Any]]:
    masked: list[tuple[str, Any]] = []
    for key, one in check:
        match key:
            case "timestamp" | "timeOfFirstFailure":
                assert _TIME.fullmatch(one), one
                masked.append((key, one if one.startswith("0001") else _ZONE.findall(one)))
            case "duration" | "contiguousFailures":
                assert isinstance(one, int), one
                masked.append((key, one > 0))
            case "error":
                masked.append((key, re.sub(r"\d+%", "n%", one)))
            case _ if name in ("diskspace", "router") and isinstance(one, Ordered):
                masked.append((key, [(inner, type(figure)) for inner, figure in one]))
            case _:
                masked.append((key, _settled(one, key, grown=grown)))
    return masked
