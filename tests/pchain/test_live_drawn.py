"""Random transactions on a real AvalancheGo that Icefall follows: at every height both give the same answers.

ICEFALL_TEST_AVALANCHEGO names the program; without it nothing runs. ICEFALL_FUZZ_LIVE_STEPS steps are drawn, with
ICEFALL_FUZZ_SEED.
"""

import os
import random
import time
from collections import Counter
from pathlib import Path

from bench.history import signed_export
from bench.ledger import X_CHAIN, issue, richest
from tests.go_node import GoNode, avalanchego, go_node
from tests.pchain.live_comparison import Compared
from tests.pchain.live_drawing import KEYS, KINDS, STAKE_S_MIN, LiveDrawing, surroundings
from tests.pchain.naive_chain import NaiveChain
from tests.server import serving
from tests.waiting import LIMIT_S

from icefall.primary.network import NetworkSettings, network_of
from icefall.wire.avm.types import Owners
from icefall.wire.ids import LOCAL_ID, id_text
from icefall.wire.pvm import types as t
from icefall.wire.pvm.codec import unpack_block, unpack_genesis, unpack_utxo
from icefall.wire.text import checksum_hex
from icefall.wire.text.bech32 import address_text

SEED = int(os.environ.get("ICEFALL_FUZZ_SEED", "1"))
STEPS = int(os.environ.get("ICEFALL_FUZZ_LIVE_STEPS", "15"))
AVAX = 10**9
_EXPORTED = 12
_POLL_S = 0.1
_TOGETHER_MAX = 4


class LiveChain:
    """The network, and a naive chain that folds the blocks it makes. `accepted` counts types of transactions."""

    def __init__(self, node: GoNode, compared: Compared, seed: int) -> None:
        self._node = node
        self.compared = compared
        self.source = random.Random(seed)
        genesis_stakers = compared.ask_go("getCurrentValidators", {})["result"]["validators"]
        settings = NetworkSettings(LOCAL_ID, "", 1_000_000, 1_000_000)
        network = network_of(settings, int(genesis_stakers[0]["startTime"]))
        self.around = surroundings(network)
        self.naive = NaiveChain(network.platform)
        self.naive.begin(unpack_genesis(network.genesis.p_genesis))
        self.accepted: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()

    def export_from_x(self) -> None:
        """Give the P-Chain something to import, of one owner and of several."""
        owners = [self._owners() for _ in range(_EXPORTED)]
        tx = signed_export(
            X_CHAIN, richest(self._node), bytes(32), [(self.source.randint(1, 9) * AVAX, one) for one in owners]
        )
        issue(self._node, tx)

    def _owners(self) -> Owners:
        return LiveDrawing(self.source, self.naive, self.around, []).owners()

    def step(self) -> None:
        """Send one transaction, or some at once, and compare the nodes when they are decided."""
        chain, sent = self.naive.copied(), []
        for _ in range(self.source.choice((1, 1, 1, _TOGETHER_MAX))):
            tx = self.source.choice(KINDS)(LiveDrawing(self.source, chain, self.around, self._waiting()))
            if tx is not None and self._issue(tx):
                chain.execute(tx)
                sent.append(tx)
        for tx in sent:
            self._await_decision(tx)
        self.follow()

    def follow(self) -> None:
        """Compare the nodes at the newest height, and read the blocks up to it."""
        height = self.compared.check()
        while len(self.naive.sets) <= height:
            asked = {"height": len(self.naive.sets), "encoding": "hex"}
            raw = self.compared.ask_go("getBlockByHeight", asked)["result"]["block"]
            block = unpack_block(checksum_hex.decode(raw))
            self.naive.accept(block)
            self.accepted.update(type(tx.unsigned).__name__ for tx in block.txs)
            self.accepted[block.block_type.name] += 1
        self.compared.subnets = [bytes(32), *self.naive.subnets]
        self.compared.validations = list(self.naive.l1)

    def _issue(self, tx: t.PlatformTx) -> bool:
        """Send a transaction; False: the node does not take it, or something that was sent before spent its input."""
        answer = self.compared.ask_go("issueTx", {"tx": checksum_hex.encode(tx.raw), "encoding": "hex"})
        if "result" not in answer:
            self.refused[f"{type(tx.unsigned).__name__}: {answer['error']['message'][-90:]}"] += 1
            return False
        if hasattr(tx.unsigned, "stake"):
            self.compared.stakes.append(tx.txid)
        return True

    def _await_decision(self, tx: t.PlatformTx) -> None:
        deadline = time.monotonic() + LIMIT_S
        while self.compared.ask_go("getTxStatus", {"txID": id_text(tx.txid)})["result"]["status"] == "Processing":
            assert time.monotonic() < deadline, f"{type(tx.unsigned).__name__} is not decided"
            time.sleep(_POLL_S)

    def _waiting(self) -> list[tuple[bytes, t.PlatformUtxo]]:
        asked = {"addresses": self.compared.addresses, "sourceChain": "X", "limit": 1024}
        texts = self.compared.ask_go("getUTXOs", asked)["result"]["utxos"]
        return [(self.around.x_chain, unpack_utxo(checksum_hex.decode(text))) for text in texts]

    def await_ends(self) -> None:
        """Follow until all short stakes have ended, and been rewarded."""
        deadline = time.monotonic() + LIMIT_S
        while any(one.end < time.time() + 2 * STAKE_S_MIN for one in self.naive.current()):
            assert time.monotonic() < deadline, "a staker does not end"
            time.sleep(_POLL_S)
            self.follow()


def test_a_drawn_history_is_the_same_in_both(tmp_path: Path) -> None:
    with go_node(
        avalanchego(), tmp_path / "go", f"--min-stake-duration={STAKE_S_MIN}s", "--uptime-requirement=0"
    ) as node:
        following = [f"--upstream={node.url()}", "--index-enabled=true", "--network-id=local"]
        with serving("node", tmp_path / "icefall", *following) as server:
            addresses = [address_text("P", "local", address) for address in KEYS]
            chain = LiveChain(node, Compared(node, server, addresses), SEED)
            chain.export_from_x()
            for _ in range(STEPS):
                chain.step()
            chain.await_ends()
            print(dict(chain.accepted), dict(chain.refused), sep="\n")
            assert sum(chain.accepted.values()) >= STEPS, chain.refused
