"""A real anvil that runs recorded, signed transactions again, block by block."""

import json
import platform
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from tests.counterparts import missing, npm_project
from tests.evm.recordings import full_blocks, meta
from tests.ports import held_port
from tests.waiting import LIMIT_S

from icefall.wire.evm.hashes import tx_bytes

HERE = Path(__file__).parent


class Anvil:
    def __init__(self, url: str, chain: str) -> None:
        self.url = url
        self.chain_id = int(meta(chain)["chainId"])
        self._full = full_blocks(chain)
        self._ids = count(1)

    def ask(self, method: str, *params: Any) -> Any:
        body = json.dumps({"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": params}).encode()
        request = Request(self.url, body, {"content-type": "application/json"})
        answer = json.loads(urlopen(request, timeout=LIMIT_S).read())
        assert "error" not in answer, (method, answer)
        return answer["result"]

    def balances(self, addresses: list[bytes], block: int) -> list[int]:
        calls = [
            {"jsonrpc": "2.0", "id": index, "method": "eth_getBalance", "params": ["0x" + one.hex(), hex(block)]}
            for index, one in enumerate(addresses)
        ]
        if not calls:
            return []
        request = Request(self.url, json.dumps(calls).encode(), {"content-type": "application/json"})
        answer = {one["id"]: int(one["result"], 16) for one in json.loads(urlopen(request, timeout=LIMIT_S).read())}
        return [answer[index] for index in range(len(addresses))]

    def fund(self, last: int) -> None:
        """What accounts had before their first transaction."""
        seen: set[bytes] = set()
        for full in self._full[: last + 1]:
            for account in (account for diff in full.diffs or () for account in diff.accounts):
                if account.address not in seen and account.balance_before and not account.had_code:
                    self.ask("anvil_setBalance", "0x" + account.address.hex(), hex(account.balance_before))
                seen.add(account.address)

    def mine(self, number: int) -> None:
        """The recorded block again, with a hash of its own."""
        block = self._full[number].block
        for tx in block.txs:
            self.ask("eth_sendRawTransaction", "0x" + tx_bytes(tx).hex())
        if block.base_fee is not None:
            self.ask("anvil_setNextBlockBaseFeePerGas", hex(block.base_fee))
        self.ask("evm_setNextBlockTimestamp", block.time)
        self.ask("evm_mine")


@contextmanager
def anvil(chain: str = "anvil-1", hardfork: str = "shanghai") -> Iterator[Anvil]:
    binary = shutil.which("anvil")
    if binary is None:
        if platform.machine() != "x86_64":
            missing("anvil (npm has it for x86-64 only)")
        folder = npm_project(HERE / "anvil")
        binary = str(folder / "node_modules" / "@foundry-rs" / "anvil-linux-amd64" / "bin" / "anvil")
    first = full_blocks(chain)[0].block
    with held_port() as port:
        command = [binary, "--port", str(port), "--chain-id", str(meta(chain)["chainId"]), "--hardfork", hardfork]
        command += ["--timestamp", str(first.time), "--order", "fifo", "--no-mining", "--silent"]
        process = subprocess.Popen([*command, "--gas-limit", str(first.gas_limit)], stdout=subprocess.DEVNULL)
        client = Anvil(f"http://127.0.0.1:{port}", chain)
        try:
            _await(client, process)
            yield client
        finally:
            process.kill()
            process.wait()


def _await(client: Anvil, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + LIMIT_S
    while True:
        assert process.poll() is None, f"anvil ended with {process.returncode}"
        try:
            client.ask("eth_chainId")
            return
        except OSError:
            assert time.monotonic() < deadline, "anvil does not answer"
            time.sleep(0.05)
