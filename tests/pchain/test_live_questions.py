"""A new local network of AvalancheGo and one of Icefall on its own answer drawn questions about the P-Chain alike.

ICEFALL_TEST_AVALANCHEGO names the program; without it nothing runs. ICEFALL_FUZZ_QUESTIONS questions are drawn, with
ICEFALL_FUZZ_SEED. test_live_drawn.py asks such questions after a history that Icefall has followed.
"""

import os
import random
from pathlib import Path
from typing import Any

from tests.go_node import GoNode, avalanchego, go_node
from tests.pchain.live_questions import differences
from tests.pchain.question_drawing import Known
from tests.platform_wallet import ADDRESS, genesis_signers
from tests.server import serving

from icefall.wire.ids import id_from_text, id_text
from icefall.wire.text import checksum_hex

SEED = int(os.environ.get("ICEFALL_FUZZ_SEED", "1"))
QUESTIONS = int(os.environ.get("ICEFALL_FUZZ_QUESTIONS", "1500"))
_ONLY_THERE = "platform.issueTx needs an upstream"  # for a transaction that can be read


def test_a_new_network_answers_alike(tmp_path: Path) -> None:
    with (
        go_node(avalanchego(), tmp_path / "go") as node,
        serving("node", tmp_path / "icefall", "--dialect=live", "--network-id=local") as server,
    ):
        wrong = differences(node.url(), server.url(), _known(node), random.Random(SEED), QUESTIONS)
        wrong = [one for one in wrong if _ONLY_THERE not in one]
        assert not wrong, "\n".join(wrong)


def _known(node: GoNode) -> Known:
    def ask(method: str, **params: str | int) -> Any:
        return node.call("/ext/bc/P", f"platform.{method}", params)["result"]

    chains = [id_from_text(one["id"]) for one in ask("getBlockchains")["blockchains"]]
    stakers = ask("getCurrentValidators")["validators"]
    txids = [*chains, *(id_from_text(one["txID"]) for one in stakers)]
    raw_txs = [checksum_hex.decode(str(ask("getTx", txID=id_text(txid))["tx"])) for txid in txids]
    block = ask("getBlockByHeight", height=0, encoding="json")["block"]
    return Known(
        hrp="local",
        height=0,
        addresses=[ADDRESS, bytes(20)],
        txids=txids,
        blocks=[id_from_text(block["id"])],
        subnets=[bytes(32)],
        chains=chains,
        nodes=[node_id for node_id, _ in genesis_signers()],
        validations=[],
        raw_txs=raw_txs,
    )
