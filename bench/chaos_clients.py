"""Clients for `bench/chaos.py`: they call without end, compare answers with expected ones and count what fails."""

import json
import random
import re
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from http.client import HTTPConnection, HTTPException
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from tests.server import JSON_TYPE

from bench.ledger import transfer
from icefall.demo.chains import TOUR
from icefall.wire.avm.types import Tx, Utxo
from icefall.wire.avm.utxos import produced
from icefall.wire.ids import id_text
from icefall.wire.text import checksum_hex

CALL_LIMIT_S = 60.0
ISSUE_AGAIN_S = 2.0
READ_PAUSE_S, STATUS_PAUSE_S = 0.02, 0.05
_TOKEN = re.compile(rb'"nextPageToken":"[^"]*"')  # signed with a secret of the data directory


class Call(NamedTuple):
    listener: str
    path: str
    body: bytes | None = None


class Answer(NamedTuple):
    """`status` 0: there was none, and `body` says why."""

    status: int
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


def rpc(path: str, method: str, **params: Any) -> Call:
    return Call("node", path, json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode())


# Answers that neither time nor new X-Chain transactions change.
READS = (
    rpc("/ext/info", "info.getNetworkID"),
    rpc("/ext/bc/X", "avm.getBlockByHeight", height="5", encoding="json"),
    rpc("/ext/bc/X", "avm.getAssetDescription", assetID="AVAX"),
    rpc("/ext/index/X/tx", "index.getContainerByIndex", index="7", encoding="hex"),
    *(
        Call(one.listener, one.path, None if one.body is None else json.dumps(one.body).encode())
        for one in TOUR
        if one.path != "/v1/chains" and (one.listener != "node" or "/index/" in one.path)
    ),
)


class Counts:
    """What the clients saw. Each is shared by threads."""

    def __init__(self) -> None:
        self.answers: Counter[str] = Counter()  # by listener
        self.failures: Counter[tuple[str, str]] = Counter()  # by listener and reason
        self.wrong: list[str] = []
        self.accepted: dict[str, Tx] = {}
        self.issued_again = 0
        self.gap_s: dict[str, float] = {}  # the longest time without a good answer, by listener
        self._last: dict[str, float] = {}
        self._lock = threading.Lock()

    def add(self, listener: str, answer: Answer) -> None:
        with self._lock:
            now = time.monotonic()
            if answer.status == 200:
                self.answers[listener] += 1
                gap = now - self._last.get(listener, now)
                self.gap_s[listener] = max(gap, self.gap_s.get(listener, 0.0))
                self._last[listener] = now
            else:
                self.failures[listener, _reason(answer)] += 1

    def add_wrong(self, call: Call, answer: Answer) -> None:
        self.wrong.append(f"{call.path} {call.body!r}: {answer.status} {answer.body[:500]!r}")


def _reason(answer: Answer) -> str:
    """Status and message, without what differs from call to call."""
    if not answer.status:
        return f"no answer: {answer.body.decode()}"
    try:
        content = answer.json()
        error = content.get("error")
        text = str(error["message"] if isinstance(error, dict) else content["message"])
    except (ValueError, LookupError, AttributeError):
        text = answer.body.decode(errors="replace").strip()
    return f"{answer.status} {text[:150]}"


class Client:
    """Keeps a connection to each listener for as long as that works."""

    def __init__(self, urls: Mapping[str, str], counts: Counts) -> None:
        self._urls = urls
        self._counts = counts
        self._kept: dict[str, HTTPConnection] = {}

    def ask(self, call: Call) -> Answer:
        answer = self._ask(call)
        self._counts.add(call.listener, answer)
        return answer

    def _ask(self, call: Call) -> Answer:
        connection = self._kept.pop(call.listener, None)
        if connection is None:
            parts = urlsplit(self._urls[call.listener])
            assert parts.hostname
            connection = HTTPConnection(parts.hostname, parts.port, timeout=CALL_LIMIT_S)
        headers = {} if call.body is None else {"Content-Type": JSON_TYPE}
        try:
            connection.request("GET" if call.body is None else "POST", call.path, call.body, headers)
            reply = connection.getresponse()
            answer = Answer(reply.status, reply.read())
        except ConnectionRefusedError:
            return Answer(0, b"connection refused")
        except TimeoutError:
            return Answer(0, b"nothing within %d s" % CALL_LIMIT_S)
        except (OSError, HTTPException):
            connection.close()
            return Answer(0, b"the connection ended")
        if reply.will_close:
            connection.close()
        else:
            self._kept[call.listener] = connection
        return answer

    def expected(self, call: Call) -> bytes:
        """The answer without what differs between data directories, for comparisons; empty if there was none."""
        answer = self.ask(call)
        return without_tokens(answer.body) if answer.status == 200 else b""


def without_tokens(body: bytes) -> bytes:
    return _TOKEN.sub(b'"nextPageToken":""', body)


def read_all(client: Client, counts: Counts, expected: Mapping[Call, bytes], done: threading.Event, seed: int) -> None:
    """Reads with known answers, in any order."""
    order = random.Random(seed)
    calls = list(expected)
    while not done.wait(READ_PAUSE_S):
        call = order.choice(calls)
        answer = client.ask(call)
        # A JSON-RPC error has the status 200 of its answer.
        if 200 <= answer.status < 500 and without_tokens(answer.body) != expected[call]:
            counts.add_wrong(call, answer)


def read_growing(client: Client, counts: Counts, chain_id: int, done: threading.Event) -> None:
    """The last block of a chain that is being indexed: its number never falls."""
    call = Call("data", f"/v1/chains/{chain_id}/blocks?pageSize=1")
    highest = -1
    while not done.wait(READ_PAUSE_S):
        answer = client.ask(call)
        if answer.status != 200:
            continue
        number = max((int(block["blockNumber"]) for block in answer.json()["blocks"]), default=-1)
        if number < highest:
            counts.add_wrong(call, answer)
        highest = max(highest, number)


def recheck_accepted(client: Client, counts: Counts, done: threading.Event, seed: int) -> None:
    """A transaction that was accepted once stays so."""
    order = random.Random(seed)
    while not done.wait(READ_PAUSE_S):
        if known := list(counts.accepted):
            call = status_call(order.choice(known))
            answer = client.ask(call)
            if answer.status == 200 and b'"Accepted"' not in answer.body:
                counts.add_wrong(call, answer)


def status_call(txid: str) -> Call:
    return rpc("/ext/bc/X", "avm.getTxStatus", txID=txid)


class Issuer:
    """Issues transfers one after the other, each again until it is accepted. `utxos`: what it owns."""

    def __init__(self, client: Client, counts: Counts, utxos: list[Utxo], done: Callable[[], bool]) -> None:
        self._client = client
        self._counts = counts
        self.utxos = deque(utxos)
        self._done = done

    def run(self) -> None:
        while not self._done():
            tx = transfer(self.utxos[0], 1)
            while not self._is_accepted(tx):
                time.sleep(STATUS_PAUSE_S)
            self.utxos.popleft()
            self.utxos.extend(produced(tx))

    def _is_accepted(self, tx: Tx) -> bool:
        """Issues it and waits a while for its acceptance."""
        txid = id_text(tx.txid)
        issue = rpc("/ext/bc/X", "avm.issueTx", tx=checksum_hex.encode(tx.raw))
        answer = self._client.ask(issue)
        was_issued = answer.status == 200 and answer.json().get("result", {}).get("txID") == txid
        if answer.status == 200 and not was_issued:
            self._counts.failures["node", f"issueTx: {_reason(answer)}"] += 1
        until = time.monotonic() + ISSUE_AGAIN_S
        while True:
            answer = self._client.ask(status_call(txid))
            if answer.status == 200 and answer.json().get("result", {}).get("status") == "Accepted":
                self._counts.accepted[txid] = tx
                return True
            if time.monotonic() > until:
                self._counts.issued_again += was_issued
                return False
            time.sleep(STATUS_PAUSE_S)
