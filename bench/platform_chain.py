"""A long synthetic P-Chain: blocks of one transaction each, a second apart, in their containers.

Most are transfers; among them delegations that are rewarded when they end, and balances and weights of L1 validators.
"""

from collections import deque
from collections.abc import Iterator
from random import Random

from icefall.wire.avm.types import Credential, Owners, TransferInput, TransferOutput
from icefall.wire.container.proposer import Container, next_epoch, pack_container
from icefall.wire.genesis.network import NetworkGenesis, network_genesis, packaged_genesis
from icefall.wire.ids import hash256
from icefall.wire.pvm import types as t
from icefall.wire.pvm.codec import genesis_block, pack_block, pack_tx, unpack_genesis
from icefall.wire.pvm.warp import (
    AddressedCall,
    L1ValidatorWeight,
    WarpMessage,
    first_validation_id,
    pack_addressed_call,
    pack_message,
    pack_weight,
)

NETWORK_ID = 12345
_START = 1_794_753_768
_FANOUT, _RECIPIENTS, _FEE, _PAYMENT = 400, 5_000, 100_000, 1_000
_DELEGATE_EVERY, _DELEGATED_S, _DELEGATED = 20, 2_000, 25 * 10**9
_L1_EVERY, _L1_VALIDATORS, _L1_BALANCE = 33, 20, 10**12

_Output = tuple[bytes, int, int]  # transaction, index, amount


def genesis() -> NetworkGenesis:
    return network_genesis(packaged_genesis(NETWORK_ID), NETWORK_ID, _START)


class PlatformBlocks:
    """Makes blocks, each upon the last. Nothing is signed: an accepted block's signatures are not verified again."""

    def __init__(self) -> None:
        network = genesis()
        known = unpack_genesis(network.p_genesis)
        self._random = Random(1)
        self._signature = self._random.randbytes(65)
        self._asset = network.avax_asset_id
        richest = max((utxo for utxo, _ in known.utxos if isinstance(utxo.output, TransferOutput)), key=_amount)
        assert isinstance(richest.output, TransferOutput)
        self._owner = richest.output.owners
        self._ours: deque[_Output] = deque([(richest.txid, richest.output_index, _amount(richest))])
        self._recipients = [Owners(0, 1, (hash256(b"recipient %d" % number)[:20],)) for number in range(_RECIPIENTS)]
        self._nodes = [tx.unsigned.validator.node_id for tx in known.validators if isinstance(tx.unsigned, _VALIDATORS)]
        self._delegations: deque[tuple[int, bytes]] = deque()
        self._time = known.timestamp + 60  # so that there is gas for the first transaction
        self._tip = genesis_block(network.p_genesis)
        self._parent: Container | None = None
        self._subnet = b""
        self._nonces = [0] * _L1_VALIDATORS

    def containers(self, count: int) -> Iterator[tuple[Container, t.PlatformBlock]]:
        made = 0
        while made < count:
            self._time += 1
            for block in self._blocks():
                yield self._wrapped(block), block
                made += 1

    def _wrapped(self, block: t.PlatformBlock) -> Container:
        before = self._parent
        if before is None:
            self._parent = pack_container(self._tip.parent_id, self._time, 0, block.raw)
        else:
            at = before.container_id, self._time, block.height - 1
            self._parent = pack_container(*at, block.raw, epoch=next_epoch(before))
        return self._parent

    def _block(self, kind: t.BlockType, *txs: t.PlatformTx, proposal: t.PlatformTx | None = None) -> t.PlatformBlock:
        tip = self._tip
        self._tip = pack_block(kind, tip.block_id, tip.height + 1, time=self._time, txs=txs, proposal=proposal)
        return self._tip

    def _blocks(self) -> Iterator[t.PlatformBlock]:
        if self._delegations and self._delegations[0][0] == self._time:
            _, txid = self._delegations.popleft()
            reward = pack_tx(t.RewardValidatorTx(txid))
            yield self._block(t.BlockType.BANFF_PROPOSAL, proposal=reward)
            yield self._block(t.BlockType.BANFF_COMMIT)
            return
        yield self._block(t.BlockType.BANFF_STANDARD, self._tx(self._tip.height + 1))

    def _tx(self, height: int) -> t.PlatformTx:
        if height == 1:
            return self._split()
        if height == 2:
            tx = self._signed(t.CreateSubnetTx(*self._base(), self._owner))
            self._subnet = tx.txid
            return tx
        if height == 3:
            return self._convert()
        if height % _DELEGATE_EVERY == 0:
            return self._delegate()
        if height % _L1_EVERY == 0:
            return self._of_l1(height)
        return self._signed(t.PlatformBaseTx(*self._base(_PAYMENT)))

    # -- transactions ---------------------------------------------------------------------------------------------

    def _base(self, paid: int = 0, burned: int = 0) -> "_Base":
        """Spend the oldest of our outputs: what is left of it is ours, what is paid belongs to a recipient."""
        txid, index, amount = self._ours.popleft()
        given = (t.PlatformInput(txid, index, self._asset, TransferInput(amount, (0,))),)
        self._left = amount - paid - burned - _FEE
        outputs = [self._output(self._left, self._owner)]
        if paid:
            outputs.append(self._output(paid, self._random.choice(self._recipients)))
        return NETWORK_ID, bytes(32), tuple(outputs), given, b""

    def _output(self, amount: int, owner: Owners) -> t.PlatformOutput:
        return t.PlatformOutput(self._asset, TransferOutput(amount, owner))

    def _signed(self, body: t.PlatformBaseTx, credentials: int = 1) -> t.PlatformTx:
        tx = pack_tx(body, [Credential((self._signature,))] * credentials)
        self._ours.append((tx.txid, 0, self._left))
        return tx

    def _split(self) -> t.PlatformTx:
        txid, index, amount = self._ours.popleft()
        given = (t.PlatformInput(txid, index, self._asset, TransferInput(amount, (0,))),)
        share = (amount - _FEE) // _FANOUT
        outputs = (self._output(share, self._owner),) * _FANOUT
        tx = pack_tx(t.PlatformBaseTx(NETWORK_ID, bytes(32), outputs, given, b""), [Credential((self._signature,))])
        self._ours.extend((tx.txid, at, share) for at in range(_FANOUT))
        return tx

    def _delegate(self) -> t.PlatformTx:
        """Stake for a while; the stake comes back to a recipient, who spends nothing."""
        end = self._time + _DELEGATED_S
        validator = t.Validator(self._random.choice(self._nodes), self._time, end, _DELEGATED)
        payee = self._random.choice(self._recipients)
        stake = (self._output(_DELEGATED, payee),)
        base = self._base(0, _DELEGATED)
        tx = self._signed(t.AddPermissionlessDelegatorTx(*base, validator, bytes(32), stake, payee))
        self._delegations.append((end, tx.txid))
        return tx

    def _convert(self) -> t.PlatformTx:
        committee = t.Committee(1, self._owner.addresses)
        validators = tuple(
            t.ConvertedValidator(
                bytes([number]) * 20,
                1_000,
                _L1_BALANCE,
                t.BlsSigner(bytes([number]) * 48, bytes(96)),
                committee,
                committee,
            )
            for number in range(1, _L1_VALIDATORS + 1)
        )
        base = self._base(0, _L1_VALIDATORS * _L1_BALANCE)
        return self._signed(t.ConvertSubnetToL1Tx(*base, self._subnet, bytes(32), b"", validators, (0,)), 2)

    def _of_l1(self, height: int) -> t.PlatformTx:
        """More balance for one of the L1 validators, or another weight."""
        number = height // _L1_EVERY % _L1_VALIDATORS
        name = first_validation_id(self._subnet, number)
        if height % 2:
            base = self._base(0, _PAYMENT)
            return self._signed(t.IncreaseL1ValidatorBalanceTx(*base, name, _PAYMENT))
        change = L1ValidatorWeight(name, self._nonces[number], self._random.randint(1, 1_000_000))
        self._nonces[number] += 1
        payload = pack_addressed_call(AddressedCall(b"", pack_weight(change)))
        message = pack_message(WarpMessage(NETWORK_ID, bytes(32), payload, b"\xff", bytes(96)))
        return self._signed(t.SetL1ValidatorWeightTx(*self._base(), message))


_Base = tuple[int, bytes, tuple[t.PlatformOutput, ...], tuple[t.PlatformInput, ...], bytes]
_VALIDATORS = t.AddValidatorTx | t.AddPermissionlessValidatorTx


def _amount(utxo: t.PlatformUtxo) -> int:
    return utxo.output.amount if isinstance(utxo.output, TransferOutput) else 0
