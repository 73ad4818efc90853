"""Random transactions on a real AvalancheGo that Icefall follows: at every height both give the same answers.

ICEFALL_TEST_AVALANCHEGO names the program; without it nothing runs. ICEFALL_FUZZ_LIVE_STEPS steps are drawn, with
ICEFALL_FUZZ_SEED; in the end ICEFALL_FUZZ_QUESTIONS right and wrong questions about what there is.
"""

import os
import random
import time
from collections import Counter
from pathlib import Path

from bench.history import signed_export
from bench.ledger import issue, richest
from tests.go_node import GoNode, avalanchego
from tests.pchain.live_comparison import Compared
from tests.pchain.live_drawing import KEYS, KINDS, STAKE_S_MIN, LiveDrawing, surroundings
from tests.pchain.live_questions import differences
from tests.pchain.naive_chain import NaiveChain
from tests.pchain.question_drawing import Known
from tests.platform_wallet import ADDRESS
from tests.server import serving
from tests.validated_network import HRP, NETWORK_ID, ValidatedNetwork
from tests.waiting import LIMIT_S

from icefall.primary.network import NetworkSettings, PlatformSettings, network_of
from icefall.wire.avm.types import Owners
from icefall.wire.ids import id_text
from icefall.wire.pvm import types as t
from icefall.wire.pvm.codec import unpack_block, unpack_genesis, unpack_utxo
from icefall.wire.text import checksum_hex
from icefall.wire.text.bech32 import address_text

SEED = int(os.environ.get("ICEFALL_FUZZ_SEED", "1"))
STEPS = int(os.environ.get("ICEFALL_FUZZ_LIVE_STEPS", "15"))
QUESTIONS = int(os.environ.get("ICEFALL_FUZZ_QUESTIONS", "1500"))
AVAX = 10**9
_EXPORTED = 12
_POLL_S = 0.1
_TOGETHER_MAX = 4


class LiveChain:
    """The network, and a naive chain that folds the blocks it makes. `accepted` counts types of transactions."""

    def __init__(self, node: GoNode, made: ValidatedNetwork, compared: Compared, seed: int) -> None:
        self._node = node
        self._node_secret = made.node_secret
        self.compared = compared
        self.source = random.Random(seed)
        platform = PlatformSettings(upgrade_file=str(made.upgrade_file))
        settings = NetworkSettings(NETWORK_ID, str(made.genesis_file), 1_000_000, 1_000_000, platform=platform)
        network = network_of(settings, 0)
        self.around = surroundings(network)
        self.naive = NaiveChain(network.platform)
        self.naive.begin(unpack_genesis(network.genesis.p_genesis))
        self.blocks: list[t.PlatformBlock] = []
        self.accepted: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()

    def export_from_x(self) -> None:
        """Give the P-Chain something to import, of one owner and of several."""
        owners = [self._owners() for _ in range(_EXPORTED)]
        pays = [(self.source.randint(1, 9) * AVAX, one) for one in owners]
        utxo = richest(self._node, address_text("X", HRP, ADDRESS))
        tx = signed_export(self.around.x_chain, utxo, bytes(32), pays, NETWORK_ID)
        issue(self._node, tx)

    def _owners(self) -> Owners:
        return self._drawing(self.naive, []).owners()

    def _drawing(self, chain: NaiveChain, waiting: list[tuple[bytes, t.PlatformUtxo]]) -> LiveDrawing:
        return LiveDrawing(self.source, chain, self.around, waiting, self._node_secret)

    def step(self) -> None:
        """Send one transaction, or some at once, and compare the nodes when they are decided."""
        chain, sent = self.naive.copied(), []
        for _ in range(self.source.choice((1, 1, 1, _TOGETHER_MAX))):
            tx = self.source.choice(KINDS)(self._drawing(chain, self._waiting()))
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
            self.blocks.append(block)
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

    def known(self) -> Known:
        """What there is to ask about."""
        txs = [tx for block in self.blocks for tx in block.txs]
        chains = [tx.txid for tx in txs if isinstance(tx.unsigned, t.CreateChainTx)]
        return Known(
            hrp=HRP,
            height=self.blocks[-1].height,
            addresses=list(KEYS),
            txids=[tx.txid for tx in txs],
            blocks=[block.block_id for block in self.blocks],
            subnets=self.compared.subnets,
            chains=[self.around.x_chain, self.around.c_chain, *chains],
            nodes=self.around.nodes,
            validations=self.compared.validations,
            raw_txs=[tx.raw for tx in txs],
        )


def test_a_drawn_history_is_the_same_in_both(tmp_path: Path) -> None:
    made = ValidatedNetwork(tmp_path / "network")
    with made.node(avalanchego(), f"--min-stake-duration={STAKE_S_MIN}s", "--uptime-requirement=0") as node:
        following = [f"--upstream={node.url()}", "--index-enabled=true", "--dialect=live", *made.shared_flags]
        with serving("node", tmp_path / "icefall", *following) as server:
            addresses = [address_text("P", HRP, address) for address in KEYS]
            chain = LiveChain(node, made, Compared(node, server, addresses), SEED)
            chain.export_from_x()
            for _ in range(STEPS):
                chain.step()
            chain.await_ends()
            print(dict(chain.accepted), dict(chain.refused), sep="\n")
            assert sum(chain.accepted.values()) >= STEPS // 2, chain.refused
            wrong = differences(node.url(), server.url(), chain.known(), chain.source, QUESTIONS)
            assert not wrong, "\n".join(wrong)
