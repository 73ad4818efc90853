"""How many transactions one engine accepts per second through issueTx, with the CPU of worker and engine."""

import json
import socket
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol
from urllib.parse import urlsplit

from tests.server import serving

from bench.history import ADDRESS, FEE, signed_transfer
from bench.load import cpu_seconds, worker_pids
from icefall.wire.avm.codec import unpack_utxo
from icefall.wire.avm.types import TransferOutput, Tx, Utxo
from icefall.wire.avm.utxos import produced
from icefall.wire.ids import id_from_text, id_text
from icefall.wire.text import checksum_hex

ADDRESS_TEXT = "X-local18jma8ppw3nhx5r4ap8clazz0dps7rv5u00z96u"
X_CHAIN = id_from_text("2eNy1mUFdmaxXNj1eQHUe7Np4gju9sJsEtWQ4MX3ToiNKuADed")
TXS, CLIENTS, FANOUT = 3000, 8, 600


class CalledNode(Protocol):
    """Ours, or another with the same calls."""

    def call(self, path: str, method: str, params: Any = None) -> Any: ...


def transfer(utxo: Utxo, outputs: int, to: bytes = ADDRESS) -> Tx:
    """Splits one UTXO of the key into equal parts."""
    assert isinstance(utxo.output, TransferOutput)
    share = (utxo.output.amount - FEE) // outputs
    return signed_transfer(X_CHAIN, utxo, [(share, to)] * outputs)


def issue(server: CalledNode, tx: Tx) -> str:
    answer = server.call("/ext/bc/X", "avm.issueTx", {"tx": checksum_hex.encode(tx.raw)})
    txid = str(answer["result"]["txID"])
    while server.call("/ext/bc/X", "avm.getTxStatus", {"txID": txid})["result"]["status"] != "Accepted":
        time.sleep(0.005)
    return txid


def richest(server: CalledNode, address: str = ADDRESS_TEXT) -> Utxo:
    texts = server.call("/ext/bc/X", "avm.getUTXOs", {"addresses": [address]})["result"]["utxos"]
    utxos = [unpack_utxo(checksum_hex.decode(text)) for text in texts]
    return max(utxos, key=lambda utxo: utxo.output.amount if isinstance(utxo.output, TransferOutput) else 0)


def fund(server: CalledNode, outputs: int) -> str:
    """One transaction that gives the key that many outputs."""
    return issue(server, transfer(richest(server), outputs))


def _spread(server: CalledNode, count: int) -> list[Utxo]:
    """That many UTXOs, from a tree of transactions."""
    first = transfer(richest(server), -(-count // FANOUT))
    issue(server, first)
    found: list[Utxo] = []
    for utxo in produced(first):
        tx = transfer(utxo, FANOUT)
        issue(server, tx)
        found += produced(tx)
    return found[:count]


def _send(address: tuple[str, int], requests: Sequence[bytes], refused: list[bytes]) -> None:
    with socket.create_connection(address) as connection:
        for request in requests:
            connection.sendall(request)
            answer = connection.recv(1 << 16)
            if b'"txID"' not in answer:
                refused.append(answer)


def run() -> None:
    with TemporaryDirectory() as folder, serving("node", Path(folder)) as server:
        parts = urlsplit(server.url())
        assert parts.hostname
        assert parts.port
        txs = [transfer(utxo, 2) for utxo in _spread(server, TXS)]
        requests = [_request(parts.netloc, tx) for tx in txs]
        engine = server.process_info["enginePid"]
        workers = worker_pids(server)
        before = cpu_seconds([engine]), cpu_seconds(workers)
        refused: list[bytes] = []
        began = time.monotonic()
        threads = [
            threading.Thread(target=_send, args=((parts.hostname, parts.port), requests[start::CLIENTS], refused))
            for start in range(CLIENTS)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        issued = time.monotonic() - began
        last = id_text(txs[-1].txid)
        while server.call("/ext/bc/X", "avm.getTxStatus", {"txID": last})["result"]["status"] == "Processing":
            time.sleep(0.005)
        took = time.monotonic() - began
        assert not refused, refused[0]
        height = int(server.call("/ext/bc/X", "avm.getHeight")["result"]["height"])
        spent = cpu_seconds([engine]) - before[0], cpu_seconds(workers) - before[1]
    print(f"ledger: {TXS} signed transfers (1 in, 2 out) from {CLIENTS} clients, one engine, one worker")
    print(f"  issued {TXS / issued:.0f}/s, accepted {TXS / took:.0f}/s, in {height - 2 - TXS // FANOUT} blocks")
    print(f"  CPU per transaction: engine {spent[0] / TXS * 1e6:.0f} us, worker {spent[1] / TXS * 1e6:.0f} us")


def _request(host: str, tx: Tx) -> bytes:
    params = {"tx": checksum_hex.encode(tx.raw)}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "avm.issueTx", "params": params}).encode()
    head = (
        "POST /ext/bc/X HTTP/1.1",
        f"Host: {host}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
    )
    return "\r\n".join((*head, "", "")).encode() + body
