"""A wallet for the P-Chain of a local network: it signs with a pre-funded key and has a running node accept that.

It spends one output after another: what is left of each belongs to the key again.
"""

import json
import time
from collections.abc import Sequence
from typing import Any, Protocol

from icefall.wire.avm.types import Credential, Owners, TransferInput, TransferOutput
from icefall.wire.genesis.network import packaged_genesis
from icefall.wire.ids import (
    LOCAL_FUNDED_ADDRESS,
    LOCAL_ID,
    PRIMARY_NETWORK,
    hash256,
    id_text,
    network_hrp,
    node_id_from_text,
)
from icefall.wire.keys import address_of, private_key_from_text, sign
from icefall.wire.packer import VERSION_BYTES
from icefall.wire.pvm import types as t
from icefall.wire.pvm.bodies import pack_unsigned
from icefall.wire.pvm.codec import pack_tx, unpack_utxo
from icefall.wire.pvm.parts import pack_transferable_output
from icefall.wire.text import checksum_hex
from icefall.wire.text.bech32 import address_text

SECRET = private_key_from_text("PrivateKey-ewoqjP7PxY4yr3iLTpLisriqt94hdyDFNgchSxGGztUrTXtNN")
ADDRESS = address_of(SECRET)
ADDRESS_TEXT = LOCAL_FUNDED_ADDRESS.replace("X-", "P-")
FEE = 2_000_000  # more than any of these transactions needs; the rest of it is lost
_POLL_S, _LIMIT_S = 0.1, 120.0

Base = tuple[int, bytes, tuple[t.PlatformOutput, ...], tuple[t.PlatformInput, ...], bytes]


class CalledNode(Protocol):
    """A node of ours, or another with the same calls."""

    def call(self, path: str, method: str, params: Any = None) -> Any: ...


def genesis_signers() -> list[tuple[bytes, t.BlsSigner]]:
    """The nodes that validate a local network from the start, with their BLS keys."""
    found = []
    for one in json.loads(packaged_genesis(LOCAL_ID))["initialStakers"]:
        key, proof = (bytes.fromhex(one["signer"][name][2:]) for name in ("publicKey", "proofOfPossession"))
        found.append((node_id_from_text(one["nodeID"]), t.BlsSigner(key, proof)))
    return sorted(found, key=lambda pair: pair[0])


class PlatformWallet:
    """`node` takes the transactions of the network. `owner` are the key alone."""

    def __init__(self, node: CalledNode, network_id: int = LOCAL_ID) -> None:
        self._node = node
        self.network_id = network_id
        self.address_text = address_text("P", network_hrp(network_id), ADDRESS)
        self.owner = Owners(0, 1, (ADDRESS,))
        self._utxo = self._richest()
        self.asset_id = self._utxo.asset_id

    def call(self, method: str, params: Any) -> Any:
        answer = self._node.call("/ext/bc/P", f"platform.{method}", params)
        assert "result" in answer, answer
        return answer["result"]

    def _richest(self) -> t.PlatformUtxo:
        texts = self.call("getUTXOs", {"addresses": [self.address_text]})["utxos"]
        plain = [utxo for utxo in map(unpack_utxo, map(checksum_hex.decode, texts)) if _amount(utxo)]
        return max(plain, key=_amount)

    def output(self, amount: int, owners: Owners | None = None) -> t.PlatformOutput:
        return t.PlatformOutput(self.asset_id, TransferOutput(amount, owners or self.owner))

    def base(self, used: int = 0, *more: t.PlatformOutput) -> Base:
        """The fields of a transaction that uses an amount besides its outputs `more`."""
        utxo, amount = self._utxo, _amount(self._utxo)
        spent = t.PlatformInput(utxo.txid, utxo.output_index, self.asset_id, TransferInput(amount, (0,)))
        paid = sum(out.output.amount for out in more if isinstance(out.output, TransferOutput))
        change = self.output(amount - used - paid - FEE)
        outputs = tuple(sorted((change, *more), key=pack_transferable_output))
        self._change = outputs.index(change)
        return self.network_id, bytes(32), outputs, (spent,), b""

    def issue(self, body: t.PlatformBaseTx) -> bytes:
        """Sign and send a transaction, and wait until it is accepted; its ID."""
        digest = hash256(VERSION_BYTES + pack_unsigned(body))
        signers = 1 + hasattr(body, "authorization")
        tx = pack_tx(body, [Credential((sign(SECRET, digest),))] * signers)
        self.call("issueTx", {"tx": checksum_hex.encode(tx.raw), "encoding": "hex"})
        deadline = time.monotonic() + _LIMIT_S
        while (status := self.call("getTxStatus", {"txID": id_text(tx.txid)}))["status"] != "Committed":
            assert time.monotonic() < deadline, status
            time.sleep(_POLL_S)
        out = body.outputs[self._change]
        self._utxo = t.PlatformUtxo(tx.txid, self._change, out.asset_id, out.output)
        return tx.txid

    # -- transactions ---------------------------------------------------------------------------------------------

    def split(self, count: int, amount: int) -> bytes:
        return self.issue(t.PlatformBaseTx(*self.base(0, *[self.output(amount)] * count)))

    def create_subnet(self) -> bytes:
        return self.issue(t.CreateSubnetTx(*self.base(), self.owner))

    def delegate(self, node_id: bytes, amount: int, end: int) -> bytes:
        stake = (self.output(amount),)
        validator = t.Validator(node_id, 0, end, amount)
        base = self.base(amount)
        return self.issue(t.AddPermissionlessDelegatorTx(*base, validator, PRIMARY_NETWORK, stake, self.owner))

    def validate(self, node_id: bytes, amount: int, end: int) -> bytes:
        """A node validates the primary network, with a key that another one has too: nothing forbids that."""
        validator = t.Validator(node_id, 0, end, amount)
        signer, stake = genesis_signers()[0][1], (self.output(amount),)
        base, owner = self.base(amount), self.owner
        body = t.AddPermissionlessValidatorTx(*base, validator, PRIMARY_NETWORK, signer, stake, owner, owner, 20_000)
        return self.issue(body)

    def export(self, chain_id: bytes, amount: int) -> bytes:
        return self.issue(t.PlatformExportTx(*self.base(amount), chain_id, (self.output(amount),)))

    def create_chain(self, subnet_id: bytes) -> bytes:
        vm_id = hash256(b"no such machine")
        return self.issue(t.CreateChainTx(*self.base(), subnet_id, "live", vm_id, (), b"{}", (0,)))

    def add_subnet_validator(self, subnet_id: bytes, node_id: bytes, end: int) -> bytes:
        validator = t.Validator(node_id, 0, end, 7)
        return self.issue(t.AddSubnetValidatorTx(*self.base(), validator, subnet_id, (0,)))

    def remove_subnet_validator(self, subnet_id: bytes, node_id: bytes) -> bytes:
        return self.issue(t.RemoveSubnetValidatorTx(*self.base(), node_id, subnet_id, (0,)))

    def transfer_ownership(self, subnet_id: bytes) -> bytes:
        return self.issue(t.TransferSubnetOwnershipTx(*self.base(), subnet_id, (0,), self.owner))

    def increase_balance(self, validation_id: bytes, balance: int) -> bytes:
        return self.issue(t.IncreaseL1ValidatorBalanceTx(*self.base(balance), validation_id, balance))

    def disable(self, validation_id: bytes) -> bytes:
        return self.issue(t.DisableL1ValidatorTx(*self.base(), validation_id, (0,)))

    def register(self, balance: int, proof: bytes, message: bytes) -> bytes:
        return self.issue(t.RegisterL1ValidatorTx(*self.base(balance), balance, proof, message))

    def set_weight(self, message: bytes) -> bytes:
        return self.issue(t.SetL1ValidatorWeightTx(*self.base(), message))

    def convert(
        self,
        subnet_id: bytes,
        balances: list[int],
        signers: Sequence[t.BlsSigner] = (),
        manager: tuple[bytes, bytes] | None = None,
    ) -> bytes:
        """Make the subnet an L1, with validators of made-up names. Without signers they have keys of the genesis; the
        manager is a chain and the address of a contract there."""
        committee = t.Committee(1, (ADDRESS,))
        names = sorted(hash256(b"validator %d" % number)[:20] for number in range(len(balances)))
        validators = tuple(
            t.ConvertedValidator(node_id, 100, balance, signer, committee, committee)
            for node_id, balance, signer in zip(
                names, balances, signers or [signer for _, signer in genesis_signers()], strict=False
            )
        )
        base = self.base(sum(balances))
        chain_id, address = manager or (subnet_id, b"manager")
        return self.issue(t.ConvertSubnetToL1Tx(*base, subnet_id, chain_id, address, validators, (0,)))


def _amount(utxo: t.PlatformUtxo) -> int:
    is_ours = isinstance(utxo.output, TransferOutput) and utxo.output.owners == Owners(0, 1, (ADDRESS,))
    return utxo.output.amount if is_ours and isinstance(utxo.output, TransferOutput) else 0
