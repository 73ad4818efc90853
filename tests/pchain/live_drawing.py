"""Random transactions for a running AvalancheGo, drawn for the P-Chain that it has and signed by those who own it."""

import random
import time
from typing import Any

import msgspec
from tests.pchain import drawn_transactions as txs
from tests.pchain.drawing import Base, Drawing, Drawn, Outputs, Surroundings
from tests.pchain.naive_chain import NaiveChain, Staker
from tests.pchain.signed_messages import signed_message
from tests.platform_wallet import ADDRESS, SECRET, genesis_signers

from icefall.primary.network import Network
from icefall.wire.avm.types import Credential, Owners, TransferInput, TransferOutput
from icefall.wire.ids import hash256
from icefall.wire.keys import address_of, sign
from icefall.wire.packer import VERSION_BYTES
from icefall.wire.pvm import types as t
from icefall.wire.pvm.bodies import pack_unsigned
from icefall.wire.pvm.codec import pack_tx
from icefall.wire.pvm.parts import pack_transferable_input, pack_transferable_output

SECRETS = [SECRET, *[hash256(b"a key of the live network, %d" % number) for number in range(4)]]
KEYS = {address_of(secret): secret for secret in SECRETS}
STAKE_S_MIN = 10  # --min-stake-duration of the node
_FEE_MIN, _FEE_MAX = 100_000, 3_000_000


def surroundings(network: Network) -> Surroundings:
    """The pre-funded key and four others own everything; nodes of the genesis and made-up ones validate."""
    nodes = [node_id for node_id, _ in genesis_signers()] + [
        hash256(b"live node %d" % number)[:20] for number in range(5)
    ]
    of_network = network.genesis
    ids = network.platform.network_id, network.platform.avax_asset_id, of_network.x_chain_id, of_network.c_chain_id
    return Surroundings(*ids, sorted(KEYS), nodes)


class LiveDrawing(Drawing):
    """Draws what the node accepts mostly: memos are gone, stakes last some seconds, signatures are real.

    `waiting` are the outputs that X and C hold for this chain, with the chain that they come from.
    """

    def __init__(
        self,
        source: random.Random,
        chain: NaiveChain,
        around: Surroundings,
        waiting: list[tuple[bytes, t.PlatformUtxo]],
        node_secret: int,
    ) -> None:
        super().__init__(source, chain, around)
        self.waiting = waiting
        self._node_secret = node_secret

    def base(self, amount: int = 0, asset: bytes | None = None) -> Base | None:
        fee = self.source.randint(_FEE_MIN, _FEE_MAX)
        base = super().base(amount + fee, asset)
        return None if base is None else (*base[:4], b"")

    def can_sign_for(self, utxo: t.PlatformUtxo) -> bool:
        return set(_owners(utxo).addresses) <= set(KEYS)

    def message(self, subnet: bytes, content: bytes) -> bytes:
        """What the manager says, signed by the node: managers are on the X-Chain, whose validators are the primary
        network's. The node is the first of them and has almost all their weight."""
        conversion: Any = self.chain.subnets[subnet].conversion
        manager = conversion.unsigned.chain_id, conversion.unsigned.address
        return signed_message(self.around.network_id, manager, content, [self._node_secret])

    def signer(self) -> t.BlsSigner:
        return self.source.choice(genesis_signers())[1]

    def period(self, host: Staker | None) -> tuple[int, int] | None:
        now = int(time.time())
        end = now + self.source.choice((15, 20, 30, 60, 600, 86_400))
        if host is not None and (host.end < end or self.source.random() < 0.2):
            end = host.end
        return (0, end) if end > now + STAKE_S_MIN else None

    def signed(self, body: t.UnsignedTx) -> t.PlatformTx:
        """Order what has an order, and sign for the owners of each input and for those who authorise."""
        body = _ordered(body)
        digest = hash256(VERSION_BYTES + pack_unsigned(body))
        signers = [self._owners_of(one) for one in getattr(body, "inputs", ())]
        signers += [self._owners_of(one) for one in getattr(body, "imported_inputs", ())]
        if (authorization := getattr(body, "authorization", None)) is not None:
            signers.append(self._authorising(body)[: len(authorization)])
        return pack_tx(body, [Credential(tuple(sign(KEYS[one], digest) for one in each)) for each in signers])

    def _owners_of(self, spending: t.PlatformInput) -> tuple[bytes, ...]:
        at = spending.txid, spending.output_index
        arrived = {(utxo.txid, utxo.output_index): utxo for _, utxo in self.waiting}
        owners = _owners(self.chain.utxos.get(at) or arrived[at])
        return owners.addresses[: owners.threshold]

    def _authorising(self, body: Any) -> tuple[bytes, ...]:
        if isinstance(body, t.DisableL1ValidatorTx):
            return self.may_disable()[body.validation_id].addresses
        return self.chain.subnets[body.subnet_id].owner.addresses

    def may_disable(self) -> dict[bytes, t.Committee]:
        """The validators of L1s, with those who may deactivate each."""
        return {name: one.disabler for name, one in self.chain.l1.items()}


def _owners(utxo: t.PlatformUtxo) -> Owners:
    inner = utxo.output.output if isinstance(utxo.output, t.StakeableOutput) else utxo.output
    return inner.owners


def _ordered(body: Any) -> Any:
    """The transaction with its lists in the order of their bytes, which the node insists on."""
    outputs = {
        name: tuple(sorted(getattr(body, name), key=pack_transferable_output))
        for name in ("outputs", "stake", "exported_outputs")
        if hasattr(body, name)
    }
    inputs = {
        name: tuple(sorted(getattr(body, name), key=pack_transferable_input))
        for name in ("inputs", "imported_inputs")
        if hasattr(body, name)
    }
    return msgspec.structs.replace(body, **outputs, **inputs)


# -- transactions that are drawn otherwise here --------------------------------------------------------------------


def transfer(draw: Drawing) -> Drawn:
    """A transfer of which a part can sometimes only be staked for some time."""
    amount = draw.source.choice((25, 2_000, 7_777)) * 10**9 + draw.source.randint(0, 10**9)
    base = draw.base(amount)
    if base is None:
        return None
    plain = TransferOutput(amount, Owners(0, 1, (ADDRESS,)))
    output: t.Output = plain
    if draw.source.random() < 0.5:
        output = t.StakeableOutput(int(time.time()) + draw.source.choice((20, 60, 10**6)), plain)
    network, chain, outputs, inputs, memo = base
    return draw.signed(t.PlatformBaseTx(network, chain, (*outputs, _out(draw, output)), inputs, memo))


def _out(draw: Drawing, output: t.Output) -> t.PlatformOutput:
    return t.PlatformOutput(draw.around.avax, output)


def import_tx(draw: Drawing) -> Drawn:
    """Up to three outputs that one chain holds for this one."""
    assert isinstance(draw, LiveDrawing)
    if not draw.waiting:
        return None
    source = draw.source.choice(draw.waiting)[0]
    taken = [utxo for chain, utxo in draw.waiting if chain == source and not _owners(utxo).locktime]
    taken = draw.source.sample(taken, min(len(taken), draw.source.randint(1, 3)))
    imported, total = [], 0
    for utxo in taken:
        assert isinstance(utxo.output, TransferOutput)
        spending = TransferInput(utxo.output.amount, tuple(range(_owners(utxo).threshold)))
        imported.append(t.PlatformInput(utxo.txid, utxo.output_index, utxo.asset_id, spending))
        total += utxo.output.amount
    left = total - draw.source.randint(_FEE_MIN, _FEE_MAX)
    if left <= 0:
        return None
    outputs: Outputs = (_out(draw, TransferOutput(left, draw.owners())),)
    return draw.signed(t.PlatformImportTx(draw.around.network_id, bytes(32), outputs, (), b"", source, tuple(imported)))


def disable(draw: Drawing) -> Drawn:
    assert isinstance(draw, LiveDrawing)
    there = sorted(draw.may_disable().items())
    base = draw.base()
    if not there or base is None:
        return None
    name, owner = draw.source.choice(there)
    return draw.signed(t.DisableL1ValidatorTx(*base, name, tuple(range(owner.threshold))))


KINDS = (
    transfer,
    transfer,
    txs.create_subnet,
    txs.create_subnet,
    txs.create_chain,
    txs.add_permissionless_validator,
    txs.add_permissionless_validator,
    txs.add_permissionless_delegator,
    txs.add_permissionless_delegator,
    txs.add_permissionless_delegator,
    txs.add_subnet_validator,
    txs.add_subnet_validator,
    txs.remove_subnet_validator,
    txs.transfer_ownership,
    txs.export_tx,
    import_tx,
    import_tx,
    txs.convert,
    txs.register,
    txs.register,
    txs.set_weight,
    txs.set_weight,
    txs.increase_balance,
    txs.increase_balance,
    disable,
)
