"""A real AvalancheGo followed by Icefall: after every transaction both have the same P-Chain.

ICEFALL_TEST_AVALANCHEGO names the program (bench/peers/avalanchego.py says how it is built); without it nothing runs.
Transactions are sent through Icefall, as by a client that has it for its node.
"""

import json
import subprocess
import time
from pathlib import Path

from tests.counterparts import npm_project, program
from tests.go_node import GoNode, avalanchego, go_node
from tests.pchain.live_comparison import Compared
from tests.platform_wallet import ADDRESS_TEXT, PlatformWallet, genesis_signers
from tests.server import Server, serving
from tests.waiting import LIMIT_S

from icefall.wire.ids import NODE_ID_PREFIX, hash256, id_from_text, id_text, short_id_text
from icefall.wire.pvm.warp import first_validation_id

SCRIPTS = Path(__file__).parent.parent / "e2e" / "js"
AVAX = 10**9
_FLAGS = ("--min-stake-duration=10s", "--uptime-requirement=0")
_POLL_S = 0.2


def test_both_have_the_same_chain_after_every_transaction(tmp_path: Path) -> None:
    with go_node(avalanchego(), tmp_path / "go", *_FLAGS) as node:
        following = [f"--upstream={node.url()}", "--index-enabled=true", "--network-id=local"]
        with serving("node", tmp_path / "icefall", *following) as server:
            compared = Compared(node, server, [ADDRESS_TEXT])
            compared.check()
            _issue_all(node, PlatformWallet(server), compared)
            _issue_by_javascript(server)
            _await_rewards(compared)


def _issue_by_javascript(server: Server) -> None:
    """The JavaScript client builds, signs and sends transactions of four types with Icefall for its node."""
    folder = npm_project(SCRIPTS)
    node_id = NODE_ID_PREFIX + short_id_text(genesis_signers()[0][0])
    command = [program("node"), str(folder / "platform.js"), "issue", server.url(), node_id]
    done = subprocess.run(command, capture_output=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 0, done.stderr.decode()
    assert len(json.loads(done.stdout)) == 4


def _issue_all(node: GoNode, wallet: PlatformWallet, compared: Compared) -> None:
    nodes = [node_id for node_id, _ in genesis_signers()]
    chains = [
        id_from_text(node.call("/ext/info", "info.getBlockchainID", {"alias": alias})["result"]["blockchainID"])
        for alias in ("X", "C")
    ]

    def soon(seconds: int) -> int:
        return int(time.time()) + seconds

    wallet.split(12, AVAX)
    compared.check()
    for chain_id in chains:
        wallet.export(chain_id, 3 * AVAX)
        compared.check()
    wallet.delegate(nodes[0], 25 * AVAX, soon(30))
    compared.check()
    made = hash256(b"a node that is not there")[:20]
    wallet.validate(made, 2_000 * AVAX, soon(60))
    compared.check()
    wallet.delegate(made, 26 * AVAX, soon(40))
    compared.check()
    subnet_id = wallet.create_subnet()
    compared.subnets.append(subnet_id)
    compared.check()
    wallet.create_chain(subnet_id)
    wallet.add_subnet_validator(subnet_id, nodes[0], soon(25))
    compared.check()
    wallet.add_subnet_validator(subnet_id, nodes[1], soon(4_000))
    compared.check()
    wallet.remove_subnet_validator(subnet_id, nodes[1])
    wallet.transfer_ownership(subnet_id)
    compared.check()
    wallet.convert(subnet_id, [AVAX, 15, 0])
    compared.validations = [first_validation_id(subnet_id, position) for position in range(3)]
    compared.check()
    wallet.increase_balance(compared.validations[0], AVAX)
    compared.check()
    _await_eviction(wallet, compared)
    wallet.increase_balance(compared.validations[1], AVAX)
    compared.check()
    wallet.disable(compared.validations[0])
    compared.check()


def _await_eviction(wallet: PlatformWallet, compared: Compared) -> None:
    """The second validator of the L1 has a balance for some seconds only."""
    asked = {"validationID": id_text(compared.validations[1])}
    deadline = time.monotonic() + LIMIT_S
    while wallet.call("getL1Validator", asked)["balance"] != "0":
        assert time.monotonic() < deadline
        time.sleep(_POLL_S)
        compared.check()


def _await_rewards(compared: Compared) -> None:
    """All that was staked here ends; each end is a block or two."""
    deadline = time.monotonic() + LIMIT_S
    while True:
        compared.check()
        current = compared.ask_go("getCurrentValidators", {})["result"]["validators"]
        if len(current) == len(genesis_signers()) and not any(int(one.get("delegatorCount") or 0) for one in current):
            return
        assert time.monotonic() < deadline, "a staker does not end"
        time.sleep(_POLL_S)
