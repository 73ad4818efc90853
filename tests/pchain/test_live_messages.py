"""Registrations and weights of L1 validators on a real AvalancheGo that Icefall follows: the test has the keys of those
who sign them. After every transaction both nodes have the same P-Chain.

ICEFALL_TEST_AVALANCHEGO names the program; without it nothing runs. Transactions are sent through Icefall.
"""

from pathlib import Path

from tests.bls import public_key_of, secret_of, signer_of, sorts_at
from tests.go_node import GoNode, avalanchego
from tests.pchain.live_comparison import Compared
from tests.pchain.signed_messages import Manager, signed_message
from tests.platform_wallet import ADDRESS, PlatformWallet
from tests.server import serving
from tests.validated_network import NETWORK_ID, ValidatedNetwork
from tests.waiting import until

from icefall.wire.ids import hash256, id_from_text, id_text
from icefall.wire.pvm.types import Committee
from icefall.wire.pvm.warp import L1ValidatorWeight, first_validation_id, pack_registration, pack_weight

AVAX = 10**9
_PAID_S = 12  # one nAVAX a second: the validator that is to be evicted
_SECRETS = sorted(
    (secret_of(b"an L1 validator %d" % number) for number in range(7)),
    key=lambda secret: sorts_at(public_key_of(secret)),
)
_FOUNDERS, _LATER = _SECRETS[:3], _SECRETS[3:]  # who comes later is behind them in the order of signers


class _L1:
    """A converted subnet whose manager's messages are signed with `secrets`."""

    def __init__(
        self, wallet: PlatformWallet, compared: Compared, subnet_id: bytes, manager: Manager, secrets: list[int]
    ) -> None:
        self._wallet = wallet
        self._compared = compared
        self._subnet_id = subnet_id
        self._manager = manager
        self._secrets = secrets
        signers = [signer_of(secret) for secret in _FOUNDERS]
        wallet.convert(subnet_id, [AVAX] * len(signers), signers, manager)
        compared.subnets.append(subnet_id)
        self.founders = [first_validation_id(subnet_id, position) for position in range(len(signers))]
        compared.validations += self.founders
        self.height = compared.check()

    def _signed(self, content: bytes) -> bytes:
        return signed_message(NETWORK_ID, self._manager, content, self._secrets)

    def register(self, name: bytes, secret: int, balance: int, weight: int, expiry: int) -> bytes:
        """Add a validator; its ID."""
        owner, signer = Committee(1, (ADDRESS,)), signer_of(secret)
        content = pack_registration(
            self._subnet_id, hash256(name)[:20], signer.public_key, expiry, (owner, owner), weight
        )
        self._wallet.register(balance, signer.proof_of_possession, self._signed(content))
        validation_id = hash256(content)
        self._compared.validations.append(validation_id)
        self._compared.check()
        return validation_id

    def set_weight(self, validation_id: bytes, nonce: int, weight: int) -> None:
        self._wallet.set_weight(self._signed(pack_weight(L1ValidatorWeight(validation_id, nonce, weight))))
        self._compared.check()


def test_both_have_the_same_l1_validators_after_every_message(tmp_path: Path) -> None:
    network = ValidatedNetwork(tmp_path / "network")
    with network.node(avalanchego(), "--min-stake-duration=10s") as node:
        following = [f"--upstream={node.url()}", "--index-enabled=true", "--dialect=live", *network.shared_flags]
        with serving("node", tmp_path / "icefall", *following) as server:
            wallet = PlatformWallet(server, NETWORK_ID)
            compared = Compared(node, server, [wallet.address_text])
            _of_the_c_chain(node, wallet, compared, network.node_secret)
            _of_its_own_chain(node, wallet, compared)


def _of_the_c_chain(node: GoNode, wallet: PlatformWallet, compared: Compared, secret: int) -> None:
    """Validators of the primary network sign: the node alone."""
    answer = node.call("/ext/info", "info.getBlockchainID", {"alias": "C"})
    manager = id_from_text(answer["result"]["blockchainID"]), b"\x0c" * 20
    l1 = _L1(wallet, compared, wallet.create_subnet(), manager, [secret])
    soon = _soon(compared)
    added = l1.register(b"added", _LATER[0], AVAX, 33, soon)
    l1.set_weight(added, 0, 44)
    l1.set_weight(added, 7, 0)  # with a refund
    l1.set_weight(l1.founders[1], 0, 1)
    wallet.disable(l1.founders[2])
    compared.check()
    l1.set_weight(l1.founders[2], 0, 2**40)  # while it is inactive
    l1.set_weight(l1.founders[2], 1, 0)  # without one


def _of_its_own_chain(node: GoNode, wallet: PlatformWallet, compared: Compared) -> None:
    """Validators of the L1 sign, with some that come and go meanwhile."""
    subnet_id = wallet.create_subnet()
    chain_id = wallet.create_chain(subnet_id)
    l1 = _L1(wallet, compared, subnet_id, (chain_id, b"manager"), _FOUNDERS)
    _await_epoch(node, wallet, compared, l1.height)
    soon = _soon(compared)
    evicted = l1.register(b"evicted", _LATER[0], _PAID_S, 20, soon)
    unpaid = l1.register(b"unpaid", _LATER[1], 0, 10, soon)
    wallet.increase_balance(unpaid, AVAX)
    compared.check()
    l1.set_weight(unpaid, 3, 15)
    wallet.disable(unpaid)
    compared.check()
    until(lambda: _is_inactive(compared, evicted), "its balance is used up")
    l1.set_weight(evicted, 0, 0)
    again = l1.register(b"evicted", _LATER[2], AVAX, 5, soon + 1)
    l1.set_weight(unpaid, 4, 0)
    l1.set_weight(again, 0, 0)


def _soon(compared: Compared) -> int:
    """An expiry that the node takes: within a day of the chain's time."""
    return compared.chain_time() + 3600


def _is_inactive(compared: Compared, validation_id: bytes) -> bool:
    compared.check()
    found = compared.ask_go("getL1Validator", {"validationID": id_text(validation_id)})["result"]
    return bool(found["balance"] == "0")


def _await_epoch(node: GoNode, wallet: PlatformWallet, compared: Compared, height: int) -> None:
    """Send transfers until messages are checked against the validators of a height: each epoch has one."""

    def is_reached() -> bool:
        wallet.split(1, AVAX)
        compared.check()
        epoch = node.call("/ext/bc/P/proposervm", "proposervm.getCurrentEpoch")["result"]
        return int(epoch["pChainHeight"]) >= height

    until(is_reached, f"an epoch with height {height}")
