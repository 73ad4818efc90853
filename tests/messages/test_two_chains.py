"""Two real chains whose messenger emits the events of messages in every order, indexed by the real program: its answers
equal a naive join of the logs that the two nodes have now.

The messenger is a contract of our own that emits the logs it is called with, because the real one's licence forbids to
ship its code. Another one answers as the precompile that tells a chain its blockchain ID.
"""

import json
import random
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.counterparts import npm_project, program
from tests.evm.adversarial.nodes import Node, anvil
from tests.messages import logs
from tests.messages.logs import MESSENGER, Emitted, Log, Sample, naive, word
from tests.metrics.synthetic import address
from tests.server import Server, serving
from tests.waiting import LIMIT_S, until

from icefall.wire.ids import id_text

CHAINS = ("71001", "71002")
IDS = {bytes([number]) * 32: chain for number, chain in enumerate(CHAINS, 1)}
OUTSIDE = b"\x09" * 32
WARP = "0x0200000000000000000000000000000000000005"
SDK = Path(__file__).parents[1] / "e2e" / "avacloud"
ROUNDS = 15

# Calldata: records of three words (how many topics, how long the data is, how long the record is), four topics, data.
EMITTER = (
    "5b600051803611600b57005b"  # go on at the place in memory word 0, or stop at the end of the calldata
    "8060200135808260e0016020378135"  # copy the data to memory word 1
    "828060400135016000528260c001358360a0013584608001358560600135856020"  # the next place, the topics, the data
    "86600214604e5786600314605357a4600056"  # LOG4, and again
    "5ba26000565ba3600056"  # LOG2 and LOG3
)


def recorded(log: Log) -> bytes:
    """A log as a record of the emitter's calldata."""
    topics, data = log
    padded = data + bytes(-len(data) % 32)
    head = word(len(topics)) + word(len(data)) + word(7 * 32 + len(padded))
    return head + b"".join(topics).ljust(4 * 32, b"\0") + padded


class Network:
    """Two chains, and the messages between them and a third that is not indexed."""

    def __init__(self, nodes: dict[str, Node], seed: int) -> None:
        self.nodes = nodes
        self.chance = random.Random(seed)
        self.samples: list[Sample] = []
        for blockchain_id, chain in IDS.items():
            node = nodes[chain]
            node.call("anvil_setCode", f"0x{MESSENGER.hex()}", f"0x{EMITTER}")
            node.call("anvil_setCode", WARP, f"0x7f{blockchain_id.hex()}60005260206000f3")

    # -- what happens --------------------------------------------------------------------------------------------

    def send(self, source: bytes, destination: bytes) -> Sample:
        chance, number = self.chance, len(self.samples) + 1
        sender, recipient = address(chance.randrange(20, 24)), address(chance.randrange(22, 26))
        receipts = tuple((n, address(50 + n)) for n in range(chance.randrange(3)))
        data, fee = chance.randbytes(chance.randrange(70)), chance.choice((0, 5))
        made = Sample(source, destination, number, sender, recipient, data, receipts, (address(1),), address(40), fee)
        self.samples.append(made)
        return self.samples[-1]

    def emit(self, chain: str, *txs: list[Log]) -> None:
        """A block with these transactions, each of which emits some logs."""
        node = self.nodes[chain]
        sender = node.call("eth_accounts")[0]
        common = {"from": sender, "to": f"0x{MESSENGER.hex()}", "gas": hex(2_000_000)}
        node.put_block([{**common, "data": f"0x{b''.join(map(recorded, one)).hex()}"} for one in txs])

    def round(self) -> None:
        """New messages of one chain, and other events of those that there are."""
        own, chain = self.chance.choice(list(IDS.items()))
        self.emit(chain, *([self._log(own) for _ in range(self.chance.randrange(1, 4))] for _ in range(3)))

    def _log(self, own: bytes) -> Log:
        here = [one for one in self.samples if own in (one.source, one.destination)]
        if not here or self.chance.random() < 0.4:
            other = self.chance.choice([one for one in (*IDS, OUTSIDE) if one != own])
            here = [self.send(*((own, other) if self.chance.random() < 0.6 else (other, own)))]
        one = self.chance.choice(here)
        if one.source == own:
            raised = logs.raised(one, self.chance.randrange(1, 99))
            return self.chance.choice((logs.sent(one), logs.sent(one), raised, logs.receipt(one, address(60))))
        delivery = logs.received(one, address(61), address(62))
        return self.chance.choice((delivery, delivery, logs.executed(one), logs.failed(one)))

    # -- what the nodes have now -----------------------------------------------------------------------------------

    def expected(self) -> list[dict[str, Any]]:
        emitted = [one for chain in CHAINS for one in self._emitted(chain)]
        return naive(self.samples, emitted, IDS)

    def _emitted(self, chain: str) -> Iterator[Emitted]:
        node = self.nodes[chain]
        wanted = {"address": f"0x{MESSENGER.hex()}", "fromBlock": "0x0", "toBlock": "latest"}
        found = node.call("eth_getLogs", wanted)
        receipts = {tx: node.call("eth_getTransactionReceipt", tx) for tx in {one["transactionHash"] for one in found}}
        times = {one: node.call("eth_getBlockByNumber", one, False) for one in {log["blockNumber"] for log in found}}
        for one in found:
            receipt = receipts[one["transactionHash"]]
            paid = int(receipt["gasUsed"], 16) * int(receipt["effectiveGasPrice"], 16)
            place = int(one["blockNumber"], 16), int(one["logIndex"], 16)
            log = tuple(bytes.fromhex(topic[2:]) for topic in one["topics"]), bytes.fromhex(one["data"][2:])
            time = int(times[one["blockNumber"]]["timestamp"], 16)
            tx_hash = bytes.fromhex(one["transactionHash"][2:])
            yield Emitted(chain, place, time, -CHAINS.index(chain), tx_hash, paid, log)

    def heads(self) -> dict[str, str]:
        return {chain: node.call("eth_getBlockByNumber", "latest", False)["hash"] for chain, node in self.nodes.items()}


@pytest.fixture(scope="module")
def network() -> Iterator[Network]:
    with ExitStack() as opened:
        yield Network({chain: opened.enter_context(anvil(int(chain))) for chain in CHAINS}, 5)


@pytest.fixture(scope="module")
def server(network: Network, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("two-chains")
    chains = [f'[[chain]]\nid = "{one}"\nrpc = "{node.url}"\n' for one, node in network.nodes.items()]
    (folder / "icefall.toml").write_text("".join(f"{one}development = true\n" for one in chains))
    settings = (f"--config-file={folder / 'icefall.toml'}", "--no-demo", "--poll-interval=50ms", "--no-nft-metadata")
    with serving("up", folder, *settings) as server:
        yield server


def pages(server: Server, target: str, size: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    token = ""
    while True:
        reply = server.ask("GET", f"{target}{'&' if '?' in target else '?'}pageSize={size}{token}", listener="data")
        assert reply.status == 200, reply
        answer = reply.json()
        found += answer["messages"]
        if "nextPageToken" not in answer:
            return found
        token = f"&pageToken={answer['nextPageToken']}"


def is_indexed(server: Server, network: Network) -> bool:
    """Whether the newest stored block of each chain is the newest of its node."""
    for chain, head in network.heads().items():
        answer = server.ask("GET", f"/v1/chains/{chain}/blocks?pageSize=1", listener="data").json()
        if not answer.get("blocks") or answer["blocks"][0]["blockHash"] != head:
            return False
    return True


def transactions(server: Server, chain: str) -> tuple[int, ...]:
    """How many transactions of a chain sent messages, received some, and both together."""
    paths = (
        f"/v2/chains/{chain}/teleporterMetrics/teleporter{one}TxnCount" for one in ("Source", "Destination", "Total")
    )
    return tuple(server.ask("GET", path, listener="metrics").json()["result"]["value"] for path in paths)


def compare(server: Server, network: Network) -> list[dict[str, Any]]:
    until(lambda: is_indexed(server, network), "both chains are indexed")
    expected = network.expected()
    assert pages(server, "/v1/icm/messages", 7) == expected
    for name in (id_text(OUTSIDE), *CHAINS):
        shown = [one for one in expected if name in (one["sourceBlockchainId"], one["sourceEvmChainId"])]
        assert pages(server, f"/v1/icm/messages?sourceBlockchainId={name}", 100) == shown
    return expected


def test_events_in_every_order_and_reorganisations_of_either_side(server: Server, network: Network) -> None:
    there, back = tuple(IDS), tuple(reversed(IDS))
    delivered, undone, retried = network.send(*there), network.send(*back), network.send(*there)
    acknowledged, received_first = network.send(*back), network.send(*there)

    def sides(one: Sample) -> tuple[str, str]:
        return IDS[one.source], IDS[one.destination]

    def delivery(one: Sample) -> Log:
        return logs.received(one, address(61), address(62))

    def state(one: Sample) -> tuple[str, bool, bool]:
        shown = next(found for found in compare(server, network) if found["messageId"] == one.id.hex())
        return shown["status"], shown["messageExecuted"], shown["receiptDelivered"]

    def new_transactions() -> list[tuple[int, ...]]:
        return [
            tuple(now - then for now, then in zip(transactions(server, chain), earlier, strict=True))
            for chain, earlier in before.items()
        ]

    compare(server, network)
    before = {chain: transactions(server, chain) for chain in CHAINS}
    # Sent, sent again, then received and executed in one transaction.
    network.emit(sides(delivered)[0], [logs.sent(delivered)], [logs.raised(delivered, 77)], [logs.sent(delivered)])
    assert state(delivered) == ("pending", False, False)
    network.emit(sides(delivered)[1], [delivery(delivered), logs.executed(delivered)])
    assert state(delivered) == ("delivered", True, False)
    # Received before its sending is seen.
    network.emit(sides(received_first)[1], [delivery(received_first), logs.executed(received_first)])
    assert state(received_first) == ("delivered_source_not_indexed", True, False)
    network.emit(sides(received_first)[0], [logs.sent(received_first)])
    assert state(received_first) == ("delivered", True, False)
    # Failed, and executed by a later try.
    network.emit(sides(retried)[0], [logs.sent(retried)])
    network.emit(sides(retried)[1], [delivery(retried), logs.failed(retried)])
    assert state(retried) == ("delivered", False, False)
    network.emit(sides(retried)[1], [logs.executed(retried)])
    assert state(retried) == ("delivered", True, False)
    # Its receipt comes back.
    network.emit(sides(acknowledged)[0], [logs.sent(acknowledged)])
    network.emit(sides(acknowledged)[1], [delivery(acknowledged), logs.executed(acknowledged)])
    network.emit(sides(acknowledged)[0], [logs.receipt(acknowledged, address(60))])
    assert state(acknowledged) == ("delivered", True, True)
    # The receiving chain replaces the block that received it, then the sending chain the one that sent it.
    network.emit(sides(undone)[0], [logs.sent(undone)])
    network.emit(sides(undone)[1], [delivery(undone)])
    assert state(undone) == ("delivered", False, False)
    # Counted by hand: sent, received and both. What raises a fee, executes later or brings a receipt is none of them.
    assert new_transactions() == [(4, 2, 6), (2, 3, 5)]
    network.nodes[sides(undone)[1]].reorganise(1)
    assert state(undone) == ("pending", False, False)
    network.emit(sides(undone)[1], [delivery(undone)])
    network.nodes[sides(undone)[0]].reorganise(1)
    assert state(undone) == ("delivered_source_not_indexed", False, False)
    network.nodes[sides(undone)[1]].reorganise(1)
    assert undone.id.hex() not in {one["messageId"] for one in compare(server, network)}
    assert new_transactions() == [(4, 1, 5), (1, 3, 4)]


def test_random_histories_equal_a_naive_join(server: Server, network: Network) -> None:
    for number in range(ROUNDS):
        network.round()
        if number % 5 == 4:  # one chain and then the other takes some of its newest blocks back
            network.nodes[CHAINS[number % 2]].reorganise(network.chance.randrange(1, 4))
        if number % 3 == 2:
            compare(server, network)
    found = compare(server, network)
    assert {one["status"] for one in found} == {"pending", "delivered", "delivered_source_not_indexed"}
    counted = server.ask("GET", "/v2/icm/summary", listener="metrics").json()["result"][0]["allTime"]
    assert counted == sum("sourceTransaction" in one or one["sourceEvmChainId"] not in CHAINS for one in found)
    for shown in found[:5]:
        for path in (f"/v1/icm/messages/{shown['messageId']}", f"/v1/icm/messages/0x{shown['messageId']}"):
            assert server.ask("GET", path, listener="data").json() == shown


def test_the_real_client_reads_messages(server: Server, network: Network) -> None:
    """The SDK of the hosted service lists messages, and one of them; it checks every answer against its schemas."""
    there, back = tuple(IDS), tuple(reversed(IDS))
    network.emit(IDS[there[0]], [logs.sent(network.send(*there))])
    network.emit(IDS[there[0]], [logs.received(network.send(*back), address(61), address(62))])
    expected = compare(server, network)
    project = npm_project(SDK)
    first = expected[0]
    own = [one for one in expected if first["from"] in (one["from"], one["to"])]
    calls = [
        ("data.teleporter.listTeleporterMessages", {"pageSize": 7}),
        ("data.teleporter.listTeleporterMessagesByAddress", {"address": first["from"], "pageSize": 100}),
        ("data.teleporter.getTeleporterMessage", {"messageId": first["messageId"]}),
        ("data.icm.list", {"pageSize": 7}),
        ("data.icm.listByAddress", {"address": first["from"], "pageSize": 100}),
        ("data.icm.get", {"messageId": first["messageId"]}),
    ]
    command = [program("node"), str(project / "drive.js"), server.url("data"), json.dumps(calls)]
    done = subprocess.run(command, capture_output=True, timeout=LIMIT_S, check=True)
    answers = json.loads(done.stdout)
    assert [one.get("error") for one in answers] == [None] * len(calls)
    for every, of_address, one in (answers[:3], answers[3:]):
        assert listed(every) == [message["messageId"] for message in expected]
        assert listed(of_address) == [message["messageId"] for message in own]
        assert one["pages"][0]["messageId"] == first["messageId"]


def listed(answer: Any) -> list[str]:
    return [message["messageId"] for page in answer["pages"] for message in page["messages"]]
