"""A second, naive P-Chain: every block folded into plain lists and dictionaries in memory, with no index and no
shortcut. It is written from the facts about the chain, not from our implementation, and only reads the same codec."""

import copy
from dataclasses import dataclass, field, replace
from typing import Any

from tests.pchain.naive_fees import cost_of, gas_used, reward_of, shares_of

from icefall.pchain.parameters import PlatformParameters
from icefall.wire.avm.types import Owners, TransferOutput
from icefall.wire.ids import hash256
from icefall.wire.pvm import types as t
from icefall.wire.pvm.warp import unpack_addressed_call, unpack_l1_payload, unpack_message

PRIMARY = bytes(32)
INACTIVE = bytes(20)  # under which inactive validators of an L1 are summed up
Outpoint = tuple[bytes, int]
Set = dict[bytes, tuple[int, bytes]]
_PERMISSIONED, _PENDING_MAX = 7, 6


@dataclass
class Staker:
    """Who stakes, named by its transaction. `accrued` is what its delegators have earned it so far."""

    tx: t.PlatformTx
    subnet: bytes
    start: int
    end: int
    priority: int
    reward: int = 0
    accrued: int = 0

    @property
    def body(self) -> Any:
        return self.tx.unsigned

    @property
    def node(self) -> bytes:
        return bytes(self.body.validator.node_id)

    @property
    def weight(self) -> int:
        return int(self.body.validator.weight)

    @property
    def delegates(self) -> bool:
        return isinstance(self.body, t.AddDelegatorTx | t.AddPermissionlessDelegatorTx)


@dataclass
class L1:
    """A validator of an L1. `until`: where the accrued fees of the chain end its balance; 0 if it is inactive."""

    subnet: bytes
    node: bytes
    key: bytes
    weight: int
    start: int
    nonce: int
    until: int
    payee: t.Committee
    disabler: t.Committee


@dataclass
class SubnetFacts:
    owner: Owners
    transformation: t.PlatformTx | None = None
    conversion: t.PlatformTx | None = None


def _priority(body: Any, subnet: bytes, *, pending: bool) -> int:
    if isinstance(body, t.AddSubnetValidatorTx):
        return 6 if pending else 7
    if isinstance(body, t.AddDelegatorTx):
        return 1 if pending else 10
    if isinstance(body, t.AddPermissionlessDelegatorTx):
        if subnet == PRIMARY:
            return 3 if pending else 10
        return 5 if pending else 8
    if subnet == PRIMARY:
        return 2 if pending else 11
    return 4 if pending else 9


_BEGUN = {1: 10, 2: 11, 3: 10, 4: 9, 5: 8, 6: 7}


@dataclass
class NaiveChain:
    """The whole state, and of every height the validator sets after it."""

    rules: PlatformParameters
    time: int = 0
    utxos: dict[Outpoint, t.PlatformUtxo] = field(default_factory=dict)  # in the order of their appearance
    stakers: list[Staker] = field(default_factory=list)  # pending and current
    supply: dict[bytes, int] = field(default_factory=dict)
    subnets: dict[bytes, SubnetFacts] = field(default_factory=dict)
    chains: list[tuple[bytes, bytes, str]] = field(default_factory=list)
    l1: dict[bytes, L1] = field(default_factory=dict)
    status: dict[bytes, bool] = field(default_factory=dict)  # whether a transaction was committed
    rewards: dict[bytes, list[t.PlatformUtxo]] = field(default_factory=dict)
    exported: list[tuple[bytes, t.PlatformUtxo]] = field(default_factory=list)
    imported: list[tuple[bytes, Outpoint]] = field(default_factory=list)
    capacity: int = 0
    excess: int = 0
    l1_excess: int = 0
    accrued: int = 0
    paid_in: int = 0  # into balances of L1 validators, less what was refunded
    paid_rewards: int = 0
    burned: int = 0  # of AVAX, what transactions took and neither gave, staked, sent away nor paid into balances
    undecided: t.PlatformBlock | None = None
    sets: list[dict[bytes, Set]] = field(default_factory=list)

    def copied(self) -> "NaiveChain":
        """A chain that goes its own way from here; what it shares is never changed."""
        other = copy.copy(self)
        for name in ("utxos", "supply", "chains", "status", "rewards", "exported", "imported", "sets"):
            setattr(other, name, getattr(self, name).copy())
        other.stakers = [replace(one) for one in self.stakers]
        other.l1 = {key: replace(one) for key, one in self.l1.items()}
        other.subnets = {key: replace(one) for key, one in self.subnets.items()}
        return other

    # -- blocks ---------------------------------------------------------------------------------------------------

    def begin(self, genesis: t.PlatformGenesis) -> None:
        self.time, self.supply[PRIMARY] = genesis.timestamp, genesis.initial_supply
        for utxo, _ in genesis.utxos:
            self._appear(utxo)
        for tx in genesis.validators:
            validator: Any = tx.unsigned
            self.status[tx.txid] = True
            staker = Staker(tx, PRIMARY, validator.validator.start, validator.validator.end, 11)
            staker.reward = self._mint(PRIMARY, staker.end - staker.start, staker.weight)
            self.stakers.append(staker)
        for tx in genesis.chains:
            self.execute(tx)
        self.sets.append(self.sets_now())

    def accept(self, block: t.PlatformBlock) -> None:
        """A proposal has no effect before the option that follows it."""
        if block.proposal is not None:
            self.undecided = block
        elif self.undecided is not None:
            before, self.undecided = self.undecided, None
            committed = block.block_type in (t.BlockType.APRICOT_COMMIT, t.BlockType.BANFF_COMMIT)
            if before.time is not None:
                self._decisions(before)
            assert before.proposal is not None
            self._decide(before.proposal, committed=committed)
        else:
            self._decisions(block)
        self.sets.append(self.sets_now())

    def _decisions(self, block: t.PlatformBlock) -> None:
        if block.time is not None:
            self.advance(block.time)
        if self.time >= self.rules.forks.etna:
            self.use_gas(sum(gas_used(tx, self.rules.fees) for tx in block.txs))
        for tx in block.txs:
            self.execute(tx)
        self.deactivate_poor()

    def use_gas(self, gas: int) -> None:
        assert gas <= self.capacity
        self.capacity -= gas
        self.excess += gas

    def active(self) -> list[L1]:
        return [one for one in self.l1.values() if one.until]

    def deactivate_poor(self) -> None:
        next_second = cost_of(self.rules.validator_fees, len(self.active()), self.l1_excess, 1)
        for one in self.active():
            if one.until < self.accrued + next_second:
                one.until = 0

    def advance(self, time: int) -> None:
        """Move the chain's time: pending stakers begin, permissioned ones end, fees are paid."""
        for staker in self.pending():
            if staker.start <= time:
                staker.priority = _BEGUN[staker.priority]
                if staker.priority != _PERMISSIONED:
                    staker.reward = self._mint(staker.subnet, staker.end - staker.start, staker.weight)
        while (current := self.current()) and current[0].priority == _PERMISSIONED and current[0].end <= time:
            self.stakers.remove(current[0])
        if time >= self.rules.forks.etna:
            fees, seconds = self.rules.fees, time - self.time
            self.capacity = min(self.capacity + fees.max_per_second * seconds, fees.max_capacity)
            self.excess = max(0, self.excess - fees.target_per_second * seconds)
            active = self.active()
            self.accrued += cost_of(self.rules.validator_fees, len(active), self.l1_excess, seconds)
            for one in active:
                if one.until <= self.accrued:
                    one.until = 0
            moved = self.l1_excess + (len(active) - self.rules.validator_fees.target) * seconds
            self.l1_excess = max(0, moved)
        self.time = time

    # -- stakers --------------------------------------------------------------------------------------------------

    def pending(self) -> list[Staker]:
        found = [one for one in self.stakers if one.priority <= _PENDING_MAX]
        return sorted(found, key=lambda one: (one.start, one.priority, one.tx.txid))

    def current(self) -> list[Staker]:
        found = [one for one in self.stakers if one.priority > _PENDING_MAX]
        return sorted(found, key=lambda one: (one.end, one.priority, one.tx.txid))

    def _mint(self, subnet: bytes, seconds: int, weight: int) -> int:
        rates = self.rules.rewards
        low, high, cap = rates.min_consumption_rate, rates.max_consumption_rate, rates.supply_cap
        if subnet != PRIMARY:
            transformation = self.subnets[subnet].transformation
            assert transformation is not None
            body: Any = transformation.unsigned
            low, high, cap = body.min_consumption_rate, body.max_consumption_rate, body.maximum_supply
        found = reward_of((low, high, rates.minting_period_s, cap), seconds, weight, self.supply[subnet])
        self.supply[subnet] += found
        return found

    def sets_now(self) -> dict[bytes, Set]:
        """The validator sets, added up from nothing."""
        keys: dict[bytes, bytes] = {}
        for one in self.current():
            signer = getattr(one.body, "signer", None)
            if one.subnet == PRIMARY and signer is not None:
                keys[one.node] = signer.public_key
        sets: dict[bytes, Set] = {}
        for one in self.current():
            members = sets.setdefault(one.subnet, {})
            weight = members.get(one.node, (0, b""))[0]
            members[one.node] = weight + one.weight, keys.get(one.node, b"")
        for l1 in self.l1.values():
            members = sets.setdefault(l1.subnet, {})
            if l1.until:
                members[l1.node] = l1.weight, l1.key
            else:
                members[INACTIVE] = members.get(INACTIVE, (0, b""))[0] + l1.weight, b""
        return sets

    # -- transactions ---------------------------------------------------------------------------------------------

    def _appear(self, utxo: t.PlatformUtxo) -> None:
        at = utxo.txid, utxo.output_index
        assert at not in self.utxos
        self.utxos[at] = utxo

    def _outputs(self, txid: bytes, outputs: Any, first: int = 0) -> None:
        for index, out in enumerate(outputs, first):
            self._appear(t.PlatformUtxo(txid, index, out.asset_id, out.output))

    def execute(self, tx: t.PlatformTx, *, committed: bool = True) -> None:
        """Apply a transaction; one that is not committed is a proposal to stake, which only gives back its stake."""
        body: Any = tx.unsigned
        self.status[tx.txid] = committed
        self._burn(body)
        for one in body.inputs:
            del self.utxos[one.txid, one.output_index]
        self._outputs(tx.txid, body.outputs)
        if not committed:
            self._outputs(tx.txid, getattr(body, "stake", ()), len(body.outputs))
        elif hasattr(body, "validator"):
            self._stake(tx)
        elif isinstance(body, t.PlatformImportTx):
            self.imported += [(body.source_chain, (one.txid, one.output_index)) for one in body.imported_inputs]
        elif isinstance(body, t.PlatformExportTx):
            for index, out in enumerate(body.exported_outputs, len(body.outputs)):
                moved = t.PlatformUtxo(tx.txid, index, out.asset_id, out.output)
                self.exported.append((body.destination_chain, moved))
        elif isinstance(body, t.CreateChainTx):
            self.chains.append((tx.txid, body.subnet_id, body.chain_name))
        elif isinstance(body, t.CreateSubnetTx):
            self.subnets[tx.txid] = SubnetFacts(body.owner)
        elif isinstance(body, t.TransferSubnetOwnershipTx):
            self.subnets[body.subnet_id].owner = body.owner
        elif isinstance(body, t.TransformSubnetTx):
            self.subnets[body.subnet_id].transformation = tx
            self.supply[body.subnet_id] = body.initial_supply
        elif isinstance(body, t.RemoveSubnetValidatorTx):
            there = [one for one in self.stakers if (one.subnet, one.node) == (body.subnet_id, body.node_id)]
            self.stakers.remove(max(there, key=lambda one: one.priority))
        else:
            self._of_l1(tx)

    def _burn(self, body: Any) -> None:
        avax = self.rules.avax_asset_id
        taken = [one for one in (*body.inputs, *getattr(body, "imported_inputs", ())) if one.asset_id == avax]
        made = (*body.outputs, *getattr(body, "stake", ()), *getattr(body, "exported_outputs", ()))
        self.burned += sum(getattr(one.input, "input", one.input).amount for one in taken)
        self.burned -= sum(getattr(one.output, "output", one.output).amount for one in made if one.asset_id == avax)
        self.burned -= getattr(body, "balance", 0)
        if isinstance(body, t.ConvertSubnetToL1Tx):
            self.burned -= sum(one.balance for one in body.validators)

    def _stake(self, tx: t.PlatformTx) -> None:
        body: Any = tx.unsigned
        subnet = getattr(body, "subnet_id", PRIMARY)
        staker = Staker(tx, subnet, body.validator.start, body.validator.end, 0)
        waits = self.time < self.rules.forks.durango
        staker.priority = _priority(body, subnet, pending=waits)
        if not waits:
            staker.start = self.time
            if staker.priority != _PERMISSIONED:
                staker.reward = self._mint(subnet, staker.end - self.time, staker.weight)
        self.stakers.append(staker)

    def _of_l1(self, tx: t.PlatformTx) -> None:
        body: Any = tx.unsigned
        if isinstance(body, t.ConvertSubnetToL1Tx):
            self.subnets[body.subnet_id].conversion = tx
            for index, one in enumerate(body.validators):
                name = hash256(body.subnet_id + index.to_bytes(4, "big"))
                self._add_l1(name, body.subnet_id, one, one.signer.public_key, one.balance)
        elif isinstance(body, t.RegisterL1ValidatorTx):
            payload = unpack_addressed_call(unpack_message(body.message).payload).payload
            message: Any = unpack_l1_payload(payload)
            self._add_l1(hash256(payload), message.subnet_id, message, message.public_key, body.balance)
        elif isinstance(body, t.SetL1ValidatorWeightTx):
            change: Any = unpack_l1_payload(unpack_addressed_call(unpack_message(body.message).payload).payload)
            validator = self.l1[change.validation_id]
            validator.weight, validator.nonce = change.weight, change.nonce + 1
            if not change.weight:
                self._refund(tx, validator)
                del self.l1[change.validation_id]
        elif isinstance(body, t.IncreaseL1ValidatorBalanceTx):
            validator = self.l1[body.validation_id]
            validator.until = (validator.until or self.accrued) + body.balance
            self.paid_in += body.balance
        elif isinstance(body, t.DisableL1ValidatorTx):
            self._refund(tx, self.l1[body.validation_id])
            self.l1[body.validation_id].until = 0

    def _add_l1(self, name: bytes, subnet: bytes, given: Any, key: bytes, balance: int) -> None:
        until = self.accrued + balance if balance else 0
        owners = given.remaining_balance_owner, given.deactivation_owner
        self.l1[name] = L1(subnet, given.node_id, key, given.weight, self.time, 0, until, *owners)
        self.paid_in += balance

    def _refund(self, tx: t.PlatformTx, validator: L1) -> None:
        if validator.until:
            left, payee = validator.until - self.accrued, validator.payee
            output = TransferOutput(left, Owners(0, payee.threshold, payee.addresses))
            body: Any = tx.unsigned
            self._appear(t.PlatformUtxo(tx.txid, len(body.outputs), self.rules.avax_asset_id, output))
            self.paid_in -= left

    # -- proposals ------------------------------------------------------------------------------------------------

    def _decide(self, tx: t.PlatformTx, *, committed: bool) -> None:
        if isinstance(tx.unsigned, t.AdvanceTimeTx):
            self.status[tx.txid] = committed
            if committed:
                self.advance(tx.unsigned.time)
        elif isinstance(tx.unsigned, t.RewardValidatorTx):
            self.status[tx.txid] = committed
            self._reward(tx.unsigned.staking_txid, committed=committed)
        else:
            self.execute(tx, committed=committed)

    def _reward(self, txid: bytes, *, committed: bool) -> None:
        staker = self.current()[0]
        assert (staker.tx.txid, staker.end) == (txid, self.time)
        body = staker.body
        self._outputs(txid, body.stake, len(body.outputs))
        owner = body.rewards_owner if hasattr(body, "rewards_owner") else body.validation_rewards_owner
        paid: list[tuple[Owners, int]] = []
        if not committed:
            self.supply[staker.subnet] -= staker.reward
        if staker.delegates and committed:
            at = staker.subnet, staker.node
            host = next(one for one in self.current() if not one.delegates and (one.subnet, one.node) == at)
            fee, net = shares_of(staker.reward, host.body.shares)
            paid.append((owner, net))
            if host.start >= self.rules.forks.cortina:
                host.accrued += fee
            else:
                paid.append((_delegation_owner(host.body), fee))
        elif not staker.delegates:
            paid = [(owner, staker.reward if committed else 0), (_delegation_owner(body), staker.accrued)]
        first, asset = len(body.outputs) + len(body.stake), body.stake[0].asset_id
        for index, (payee, amount) in enumerate([one for one in paid if one[1]], first):
            utxo = t.PlatformUtxo(txid, index, asset, TransferOutput(amount, payee))
            self._appear(utxo)
            self.rewards.setdefault(txid, []).append(utxo)
            self.paid_rewards += amount if asset == self.rules.avax_asset_id else 0
        self.stakers.remove(staker)


def _delegation_owner(body: Any) -> Owners:
    found: Owners = body.rewards_owner if isinstance(body, t.AddValidatorTx) else body.delegation_rewards_owner
    return found
