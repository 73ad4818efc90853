"""What random transactions of the P-Chain are made of, drawn so that it fits a naive chain: owners, inputs, periods."""

import random
from typing import NamedTuple

from tests.pchain.naive_chain import PRIMARY, NaiveChain, Staker

from icefall.wire.avm.types import Credential, Owners, TransferInput, TransferOutput
from icefall.wire.ids import hash256
from icefall.wire.pvm import types as t
from icefall.wire.pvm.codec import pack_tx
from icefall.wire.pvm.warp import AddressedCall, WarpMessage, pack_addressed_call, pack_message

NETWORK_ID = 424242
P_CHAIN = bytes(32)
X_CHAIN, C_CHAIN = hash256(b"x"), hash256(b"c")
AVAX = hash256(b"avax")
ADDRESSES = [hash256(b"address %d" % number)[:20] for number in range(12)]
NODES = [hash256(b"node %d" % number)[:20] for number in range(10)]
_SPENT_MAX = 3
_OF_NO_KEY = b"\xff"  # the end of a signature from which no key can be recovered


class Surroundings(NamedTuple):
    """The network that a chain is drawn for: its IDs, whose outputs are spent, and who may validate."""

    network_id: int
    avax: bytes
    x_chain: bytes
    c_chain: bytes
    addresses: list[bytes]
    nodes: list[bytes]


MADE_UP = Surroundings(NETWORK_ID, AVAX, X_CHAIN, C_CHAIN, ADDRESSES, NODES)

Drawn = t.PlatformTx | None
Outputs = tuple[t.PlatformOutput, ...]
Base = tuple[int, bytes, Outputs, tuple[t.PlatformInput, ...], bytes]  # the fields of every transaction with inputs


class Drawing:
    """Draws from `source` what fits the chain, which a caller moves on after each transaction."""

    def __init__(self, source: random.Random, chain: NaiveChain, around: Surroundings = MADE_UP) -> None:
        self.source = source
        self.chain = chain
        self.around = around

    # -- parts ----------------------------------------------------------------------------------------------------

    def owners(self) -> Owners:
        """One address mostly; else several of which some must sign, and sometimes not before a time."""
        source = self.source
        many = source.random() < 0.3
        addresses = tuple(sorted(source.sample(self.around.addresses, source.randint(2, 4) if many else 1)))
        locktime = self.chain.time + source.randint(1, 200) if source.random() < 0.05 else 0
        return Owners(locktime, source.randint(1, len(addresses)), addresses)

    def committee(self) -> t.Committee:
        owners = self.owners()
        return t.Committee(owners.threshold, owners.addresses)

    def signer(self) -> t.BlsSigner:
        return t.BlsSigner(self.source.randbytes(48), self.source.randbytes(96))

    def signed(self, body: t.UnsignedTx) -> t.PlatformTx:
        inputs = (*getattr(body, "inputs", ()), *getattr(body, "imported_inputs", ()))
        counts = [len(_plain(one.input).signature_indices) for one in inputs]
        if getattr(body, "authorization", None) is not None:
            counts.append(len(getattr(body, "authorization", ())))
        random_bytes = self.source.randbytes
        return pack_tx(body, [Credential(tuple(random_bytes(64) + _OF_NO_KEY for _ in range(n))) for n in counts])

    def message(self, subnet: bytes, content: bytes) -> bytes:
        """What the manager of an L1 tells the P-Chain, with a made-up signature."""
        call = pack_addressed_call(AddressedCall(self.source.randbytes(20), content))
        signers = self.source.choice((b"\x01", b"\x07", b"\x0f\xf0"))
        of_chain = self.around.network_id, self.around.x_chain
        return pack_message(WarpMessage(*of_chain, call, signers, self.source.randbytes(96)))

    def can_sign_for(self, utxo: t.PlatformUtxo) -> bool:
        """Whether an output can be spent: here any, as signatures are not checked."""
        return True

    def _spendable(self, asset: bytes) -> list[t.PlatformUtxo]:
        found = []
        for utxo in self.chain.utxos.values():
            locked = utxo.output.locktime if isinstance(utxo.output, t.StakeableOutput) else 0
            inner = utxo.output.output if isinstance(utxo.output, t.StakeableOutput) else utxo.output
            is_free = max(locked, inner.owners.locktime) <= self.chain.time
            if utxo.asset_id == asset and is_free and self.can_sign_for(utxo):
                found.append(utxo)
        return found

    def spend(self, amount: int, asset: bytes | None = None) -> tuple[tuple[t.PlatformInput, ...], Outputs] | None:
        """Inputs that hold the amount (of AVAX if no asset is given), and outputs with most of what is left of it."""
        asset = asset or self.around.avax
        candidates = self._spendable(asset)
        self.source.shuffle(candidates)
        inputs, total = [], 0
        for utxo in candidates[:_SPENT_MAX]:
            inner = utxo.output.output if isinstance(utxo.output, t.StakeableOutput) else utxo.output
            indices = tuple(range(inner.owners.threshold))
            at = utxo.txid, utxo.output_index, asset
            inputs.append(t.PlatformInput(*at, TransferInput(inner.amount, indices)))
            total += inner.amount
            if total > amount + 10**6:
                break
        if total <= amount + 10**6:
            return None
        left = total - amount - self.source.randint(1, 10**6)
        cut = self.source.randint(1, left - 1) if self.source.random() < 0.4 and left > 1 else 0
        outputs = [t.PlatformOutput(asset, TransferOutput(part, self.owners())) for part in (cut, left - cut) if part]
        return tuple(inputs), tuple(outputs)

    def base(self, amount: int = 0, asset: bytes | None = None) -> Base | None:
        spent = self.spend(amount, asset)
        memo = self.source.randbytes(self.source.randint(0, 9))
        return None if spent is None else (self.around.network_id, P_CHAIN, spent[1], spent[0], memo)

    def joined(self, base: Base, spent: tuple[tuple[t.PlatformInput, ...], Outputs]) -> Base:
        """The base of a transaction that spends more."""
        network, chain, outputs, inputs, memo = base
        return network, chain, (*outputs, *spent[1]), (*inputs, *spent[0]), memo

    def stake_of(self, amount: int, asset: bytes) -> tuple[Base, Outputs] | None:
        """The base and the stake of a staking transaction; locked outputs are staked, and their rest stays locked."""
        locked = [
            utxo
            for utxo in self.chain.utxos.values()
            if isinstance(utxo.output, t.StakeableOutput)
            and utxo.output.locktime > self.chain.time
            and utxo.output.output.amount > amount
            and utxo.asset_id == asset
            and self.can_sign_for(utxo)
        ]
        base = self.base(0 if locked else amount, asset)
        fee = self.spend(0) if asset != self.around.avax and self.source.random() < 0.5 else None
        if base is None:
            return None
        base = base if fee is None else self.joined(base, fee)
        if not locked:
            halves = (amount // 2, amount - amount // 2) if self.source.random() < 0.3 else (amount,)
            return base, tuple(t.PlatformOutput(asset, TransferOutput(part, self.owners())) for part in halves)
        utxo = self.source.choice(locked)
        output = utxo.output
        assert isinstance(output, t.StakeableOutput)
        indices = tuple(range(output.output.owners.threshold))
        spending = t.StakeableInput(output.locktime, TransferInput(output.output.amount, indices))
        one = t.PlatformInput(utxo.txid, utxo.output_index, asset, spending)

        def wrapped(part: int) -> t.PlatformOutput:
            inner = TransferOutput(part, output.output.owners)
            return t.PlatformOutput(asset, t.StakeableOutput(output.locktime, inner))

        network, chain, outputs, inputs, memo = base
        base = network, chain, (*outputs, wrapped(output.output.amount - amount)), (*inputs, one), memo
        return base, (wrapped(amount),)

    def authorization(self, subnet: bytes) -> tuple[int, ...]:
        return tuple(range(self.chain.subnets[subnet].owner.threshold))

    def subnet(self, *, elastic: bool = False, plain: bool = False, converted: bool = False) -> bytes | None:
        found = [
            name
            for name, one in self.chain.subnets.items()
            if (not elastic or one.transformation)
            and (not plain or not (one.transformation or one.conversion))
            and (not converted or one.conversion)
        ]
        return self.source.choice(found) if found else None

    def of_subnet(self, subnet: bytes | None) -> tuple[bytes, Base] | None:
        base = self.base()
        return None if subnet is None or base is None else (subnet, base)

    # -- who may stake when ---------------------------------------------------------------------------------------

    def period(self, host: Staker | None) -> tuple[int, int] | None:
        """Start and end of a new staker, within those of the validator that it depends on."""
        waits = self.chain.time < self.chain.rules.forks.durango
        first = self.chain.time + (1 if waits else 0)
        start = first + self.source.choice((0, 1, 5, 20)) if waits else first
        end = start + self.source.choice((7, 30, 100, 400, 3000))
        if host is not None:
            if host.start > start and not waits:
                return None  # the validator itself has not begun
            start, end = max(start, host.start), min(end, host.end)
            if self.source.random() < 0.3:
                end = host.end
            if self.source.random() < 0.3 and waits:
                start = max(first, host.start)
        return (start, end) if end > start and end > self.chain.time else None

    def validator(self, subnet: bytes) -> Staker | None:
        """A validator that one can delegate to: not one that the owner of the subnet has let in."""
        found = [one for one in self.chain.stakers if one.subnet == subnet and not one.delegates]
        found = [one for one in found if hasattr(one.body, "stake")]
        return self.source.choice(found) if found else None

    def free_host(self, subnet: bytes) -> Staker | None:
        """A validator of the primary network that does not validate the subnet."""
        taken = {one.node for one in self.chain.stakers if one.subnet == subnet}
        taken |= {one.node for one in self.chain.l1.values() if one.subnet == subnet}
        found = [one for one in self.chain.stakers if one.subnet == PRIMARY and not one.delegates]
        free = [one for one in found if one.node not in taken]
        return self.source.choice(free) if free else None


def _plain(given: t.Input) -> TransferInput:
    return given.input if isinstance(given, t.StakeableInput) else given
