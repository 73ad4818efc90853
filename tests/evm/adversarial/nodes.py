"""Real EVM nodes, driven over JSON-RPC: transactions are signed here, and a node only executes them."""

import fcntl
import hashlib
import json
import platform
import shutil
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from coincurve import PrivateKey
from tests.counterparts import CACHE, missing
from tests.counterparts import npm_project as npm_folder
from tests.counterparts import program as installed_program
from tests.evm.adversarial.scenario import ACCOUNTS, Step, Tx
from tests.ports import held_port

from icefall.wire.evm.rlp import encode, keccak256, number

CHAIN_ID = 1337  # the one of geth --dev
GETH = "github.com/ethereum/go-ethereum/cmd/geth@v1.16.9"
GETH_BUILD_LIMIT_S = 1800
START_LIMIT_S = 120.0
MINE_LIMIT_S = 120.0
FIRST_BLOCK_TIME = 1_700_000_000
FUNDS = 1_000 * 10**18
GAS = 3_000_000
GAS_PRICE = 20 * 10**9
REPLACEMENT_PRICE = 10 * GAS_PRICE
BATCH = 200

KEYS = [PrivateKey(hashlib.sha256(f"icefall adversarial {place}".encode()).digest()) for place in range(ACCOUNTS)]
ADDRESSES = [keccak256(key.public_key.format(compressed=False)[1:])[12:] for key in KEYS]


class RpcError(Exception):
    pass


class Node(ABC):
    """A node, and the accounts that act on it."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._nonces = [0] * ACCOUNTS

    def call(self, method: str, *params: Any) -> Any:
        answer = self._post({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        if "error" in answer:
            raise RpcError(method, answer["error"])
        return answer["result"]

    def batch(self, calls: Sequence[tuple[str, list[Any]]]) -> list[Any]:
        """The results in order; None where a call failed."""
        results: list[Any] = []
        for start in range(0, len(calls), BATCH):
            some = calls[start : start + BATCH]
            body = [
                {"jsonrpc": "2.0", "id": i, "method": name, "params": given} for i, (name, given) in enumerate(some)
            ]
            by_id = {one["id"]: one.get("result") for one in self._post(body)}
            results += [by_id[place] for place in range(len(some))]
        return results

    def _post(self, body: Any) -> Any:
        request = Request(self.url, json.dumps(body).encode(), {"content-type": "application/json"})
        with urlopen(request, timeout=START_LIMIT_S) as response:
            return json.loads(response.read())

    def newest(self) -> int:
        return int(self.call("eth_blockNumber"), 16)

    def fund(self) -> None:
        """What the accounts spend, from the first account of the node. A node that mines meanwhile may give one nonce
        twice, so they are given here."""
        rich = self.call("eth_accounts")[0]
        first = int(self.call("eth_getTransactionCount", rich, "latest"), 16)
        paid = {"from": rich, "value": hex(FUNDS)}
        sent = [
            self.call("eth_sendTransaction", {**paid, "to": "0x" + address.hex(), "nonce": hex(nonce)})
            for nonce, address in enumerate(ADDRESSES, first)
        ]
        self._mine(12, sent)

    def run(self, step: Step) -> None:
        """Executes the transactions of a step, each of which must succeed."""
        sent = [self.call("eth_sendRawTransaction", "0x" + self._signed(tx).hex()) for tx in step.txs]
        self._mine(step.seconds, sent)

    @abstractmethod
    def put_block(self, txs: Sequence[dict[str, Any]]) -> None:
        """Send transactions of one account of the node, in the order of their nonces, and return once they are in
        blocks: one block as far as they fit."""

    @abstractmethod
    def reorganise(self, depth: int) -> None:
        """Replace the newest blocks by others, which are almost empty."""

    @abstractmethod
    def _mine(self, seconds: int, sent: list[str]) -> None:
        """Returns once the transactions are in blocks, the last one `seconds` after the one before if possible."""

    def _receipts(self, sent: list[str]) -> list[Any]:
        return self.batch([("eth_getTransactionReceipt", [tx]) for tx in sent])

    def _signed(self, tx: Tx) -> bytes:
        """An EIP-155 transaction."""
        nonce = self._nonces[tx.sender]
        self._nonces[tx.sender] += 1
        fields = [number(nonce), number(GAS_PRICE), number(GAS), tx.to or b"", number(tx.value), tx.data]
        digest = keccak256(encode([*fields, number(CHAIN_ID), b"", b""]))
        signature = KEYS[tx.sender].sign_recoverable(digest, hasher=None)
        r, s = int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:64], "big")
        return encode([*fields, number(CHAIN_ID * 2 + 35 + signature[64]), number(r), number(s)])


class Anvil(Node):
    """A block holds exactly the transactions of a step."""

    def _mine(self, seconds: int, sent: list[str]) -> None:
        parent = self.call("eth_getBlockByNumber", "latest", False)
        self.call("evm_setNextBlockTimestamp", int(parent["timestamp"], 16) + seconds)
        self.call("evm_mine")
        for receipt in self._receipts(sent):
            assert receipt is not None, "a transaction was not mined"
            assert receipt["status"] == "0x1", receipt

    def put_block(self, txs: Sequence[dict[str, Any]]) -> None:
        hashes = self.batch([("eth_sendTransaction", [tx]) for tx in txs])
        assert None not in hashes, "a transaction was refused"
        self.call("evm_mine")
        while int(self.call("txpool_status")["pending"], 16):
            self.call("evm_mine")
        assert all(one["status"] == "0x1" for one in self._receipts(hashes))

    def reorganise(self, depth: int) -> None:
        self.call("anvil_reorg", depth, [])


class Geth(Node):
    """Mines each transaction in a block of its own; its clock is the machine's, or a second a block."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._price = GAS_PRICE

    def put_block(self, txs: Sequence[dict[str, Any]]) -> None:
        """The first one is sent last: until then the others wait for it."""
        calls = [("eth_sendTransaction", [tx]) for tx in (*txs[1:], *txs[:1])]
        sent = self.batch(calls)
        assert None not in sent, "a transaction was refused"
        self._mine(1, sent)

    def reorganise(self, depth: int) -> None:
        """One block more than there was: a lower head alone is no reorganisation. Transactions of replaced blocks may
        be in the pool again, so each that takes the place of one pays more."""
        self.call("debug_setHead", hex(self.newest() - depth))
        account = self.call("eth_accounts")[0]
        self._price += REPLACEMENT_PRICE
        paid = {"gas": hex(21_000), "maxFeePerGas": hex(self._price), "maxPriorityFeePerGas": hex(self._price)}
        for _ in range(depth + 1):
            nonce = self.call("eth_getTransactionCount", account, "latest")
            self.put_block([{"from": account, "to": account, "nonce": nonce, **paid}])
        deadline = time.monotonic() + MINE_LIMIT_S
        while int(self.call("txpool_status")["pending"], 16):  # those of the blocks before, which are mined again
            assert time.monotonic() < deadline, "geth does not mine"
            nonce = self.call("eth_getTransactionCount", account, "pending")
            self.call("eth_sendTransaction", {"from": account, "to": account, "gas": hex(21_000), "nonce": nonce})
            time.sleep(0.1)

    def run(self, step: Step) -> None:
        for tx in step.txs:
            super().run(Step(step.seconds, (tx,), step.does))

    def _mine(self, seconds: int, sent: list[str]) -> None:
        deadline = time.monotonic() + MINE_LIMIT_S
        while None in (receipts := self._receipts(sent)):
            assert time.monotonic() < deadline, "geth does not mine"
            time.sleep(0.02)
        assert all(receipt["status"] == "0x1" for receipt in receipts), receipts


@contextmanager
def anvil(chain_id: int = CHAIN_ID) -> Iterator[Node]:
    binary = shutil.which("anvil")
    if binary is None:
        if platform.machine() != "x86_64":
            missing("anvil (npm has it for x86-64 only)")
        folder = npm_folder(Path(__file__).parent.parent / "anvil")
        binary = str(folder / "node_modules" / "@foundry-rs" / "anvil-linux-amd64" / "bin" / "anvil")
    # Shanghai: the last rules under which a contract can be destroyed and made again.
    command = [binary, "--chain-id", str(chain_id), "--hardfork", "shanghai", "--silent"]
    command += ["--timestamp", str(FIRST_BLOCK_TIME), "--order", "fifo", "--no-mining"]
    with held_port() as port:
        own = Anvil(f"http://127.0.0.1:{port}")
        with _running(own, [*command, "--port", str(port)], chain_id) as node:
            yield node


@contextmanager
def geth(folder: Path) -> Iterator[Node]:
    command = [_geth_binary(), "--dev", "--dev.period=0", "--gcmode=archive", f"--datadir={folder / 'geth'}"]
    command += ["--http", "--http.api=eth,net,web3,debug,txpool", "--verbosity=1"]
    command += ["--dev.gaslimit=200000000", "--miner.gaslimit=200000000"]
    # Local transactions of replaced blocks would be sent again by geth itself, once a minute.
    command += ["--txpool.accountslots=2000", "--txpool.accountqueue=2000", "--txpool.nolocals"]
    command += ["--nodiscover", "--maxpeers=0", "--port=0", "--ipcdisable", "--authrpc.port=0"]
    with held_port() as port, _running(Geth(f"http://127.0.0.1:{port}"), [*command, f"--http.port={port}"]) as node:
        yield node


def _geth_binary() -> str:
    """The one of this machine, else built once from its source."""
    found = shutil.which("geth")
    if found is not None:
        return found
    go = installed_program("go")
    own = subprocess.run([go, "env", "GOPATH"], capture_output=True, text=True, check=True).stdout.strip()
    folder = CACHE / "go"
    folder.mkdir(parents=True, exist_ok=True)
    for binary in (Path(own) / "bin" / "geth", folder / "geth"):
        if binary.exists():
            return str(binary)
    with (CACHE / "go.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "geth").exists():
            command = ["env", f"GOBIN={folder}", go, "install", GETH]
            done = subprocess.run(command, capture_output=True, timeout=GETH_BUILD_LIMIT_S, check=False)
            if done.returncode:
                missing(f"geth ({done.stderr.decode()[-200:]})")
    return str(folder / "geth")


@contextmanager
def _running(node: Node, command: list[str], chain_id: int = CHAIN_ID) -> Iterator[Node]:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + START_LIMIT_S
        while True:
            assert process.poll() is None, f"{command[0]} ended with {process.returncode}"
            try:
                assert int(node.call("eth_chainId"), 16) == chain_id
                break
            except OSError:
                assert time.monotonic() < deadline, f"{command[0]} does not answer"
                time.sleep(0.05)
        yield node
    finally:
        process.kill()
        process.wait()
