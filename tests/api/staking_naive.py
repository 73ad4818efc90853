"""A second, naive reading of a recorded P-Chain: simple loops over its containers, everything in memory, no store.

It shares the decoding of bytes with the package, and nothing of its rules. It knows what the recordings have: fewer
active L1 validators than the target, so that each pays the least price, of 1 nAVAX per second.
"""

from dataclasses import dataclass, field
from typing import Any

from tests.pchain.recorded import Playback, recorded_containers

from icefall.wire.container.platform import block_in_container
from icefall.wire.ids import id_text, input_id
from icefall.wire.pvm import types as t
from icefall.wire.pvm.codec import unpack_block, unpack_genesis
from icefall.wire.pvm.warp import first_validation_id, registration_in, weight_in

PRIMARY = bytes(32)
YEAR_NS = 365 * 24 * 3600 * 10**9
DELEGATING = (t.AddDelegatorTx, t.AddPermissionlessDelegatorTx)
STAKING = (t.AddValidatorTx, t.AddSubnetValidatorTx, t.AddPermissionlessValidatorTx, *DELEGATING)


@dataclass
class Stake:
    """A staking period."""

    tx: Any
    number: int
    status: str = "pending"
    start: int = 0
    reward: int = 0
    was_rewarded: bool = False
    ended: tuple[bytes, int] | None = None
    validator: "Stake | None" = None
    delegations: list["Stake"] = field(default_factory=list)
    accrued: int = 0  # what the validator gets for delegations that have ended
    at_once: int = 0  # what of it was paid when they ended

    @property
    def body(self) -> Any:
        return self.tx.unsigned

    @property
    def subnet(self) -> Any:
        return getattr(self.body, "subnet_id", PRIMARY)

    @property
    def node(self) -> Any:
        return self.body.validator.node_id

    @property
    def weight(self) -> Any:
        return self.body.validator.weight

    @property
    def end(self) -> Any:
        return self.body.validator.end

    @property
    def is_delegator(self) -> bool:
        return isinstance(self.body, DELEGATING)

    @property
    def owner(self) -> Any:
        return getattr(self.body, "validation_rewards_owner", None) or getattr(self.body, "rewards_owner", None)

    @property
    def fee_owner(self) -> Any:
        return getattr(self.body, "delegation_rewards_owner", None) or getattr(self.body, "rewards_owner", None)

    @property
    def fee(self) -> Any:
        """The validator's share of a delegation's reward."""
        assert self.validator is not None
        return self.reward - (1_000_000 - self.validator.body.shares) * self.reward // 1_000_000


@dataclass
class Paid:
    """A reward that was paid."""

    stake: Stake
    kind: str
    owner: Any
    amount: int
    index: int
    reward_txid: bytes
    asset: bytes


@dataclass
class L1:
    """A validator of an L1. Its balance is what is left of it now."""

    subnet: bytes
    node: bytes
    key: bytes
    weight: int
    start: int
    balance: int
    remaining_owner: Any
    deactivation_owner: Any
    status: str = "active"
    proof: bytes = b""


class NaiveNetwork:
    """The chain after all of its recorded blocks."""

    def __init__(self, playback: Playback) -> None:
        network = playback.network
        genesis = unpack_genesis(network.genesis.p_genesis)
        self.forks, self.avax = network.platform.forks, network.platform.avax_asset_id
        self.genesis_time = self.time = genesis.timestamp
        self.initial_supply = genesis.initial_supply
        self.supply = {PRIMARY: genesis.initial_supply}
        self.rates = {PRIMARY: (100_000, 120_000, 720_000_000 * 10**9)}
        self.asset = {PRIMARY: self.avax}
        self.stakes: list[Stake] = []
        self.paid: list[Paid] = []
        self.l1: dict[bytes, L1] = {}
        self.subnets: dict[bytes, dict[str, Any]] = {}
        self.chains: list[dict[str, Any]] = []
        self.burned = self.l1_fees = 0
        self.by_day: dict[int, list[int]] = {}
        self.height = 0
        self.number = 0
        first: list[Any] = list(genesis.validators)
        for tx in first:
            self._stake(tx, tx.unsigned.validator.start)
        for tx in genesis.chains:
            self._chain(tx, 0)
            self.number += 1
        raws = [one.fetched.raw for one in recorded_containers(playback.recording) if one.chain == "P"]
        proposed: t.PlatformBlock | None = None
        for raw in raws:
            block = unpack_block(block_in_container(raw))
            self.height = block.height
            if block.proposal is not None:
                proposed = block
            elif proposed is not None:
                self._standard(proposed)
                self._decide(proposed, committed=block.block_type in t.COMMITS)
                proposed = None
            else:
                self._standard(block)

    # -- blocks and time ------------------------------------------------------------------------------------------

    def _standard(self, block: t.PlatformBlock) -> None:
        if block.time is not None:
            self._advance(block.time)
        elif block.proposal is not None:
            return
        for tx in block.txs:
            self._execute(tx, block.height)
        for one in self.l1.values():
            if one.status == "active" and one.balance < 1:  # it cannot pay another second
                one.status, one.balance = "inactive", 0

    def _advance(self, new: int) -> None:
        starting = [one for one in self.stakes if one.status == "pending" and one.body.validator.start <= new]
        for one in sorted(starting, key=lambda one: (one.body.validator.start, _priority(one), one.tx.txid)):
            self._begin(one, one.body.validator.start)
        for one in self.stakes:
            if isinstance(one.body, t.AddSubnetValidatorTx) and one.status == "active" and one.end <= new:
                one.status = "completed"
        for validator in self.l1.values():
            if validator.status == "active" and new >= self.forks.etna:
                self.l1_fees += new - self.time
                validator.balance -= new - self.time
                if validator.balance <= 0:
                    validator.status = "inactive"
        self.time = new

    def _decide(self, block: t.PlatformBlock, *, committed: bool) -> None:
        tx: Any = block.proposal
        if isinstance(tx.unsigned, t.AdvanceTimeTx):
            self.number += 1
            if committed:
                self._advance(tx.unsigned.time)
        elif isinstance(tx.unsigned, t.RewardValidatorTx):
            self.number += 1
            self._reward(tx, committed=committed)
        elif committed:
            self._execute(tx, block.height)
        else:
            self._burn(tx)
            self.number += 1

    # -- stakers --------------------------------------------------------------------------------------------------

    def _stake(self, tx: t.PlatformTx, start: int | None) -> None:
        one = Stake(tx, self.number)
        self.number += 1
        self.stakes.append(one)
        if start is not None:
            self._begin(one, start)

    def _begin(self, one: Stake, start: int) -> None:
        one.status, one.start = "active", start
        if one.owner is not None:
            low, high, cap = self.rates[one.subnet]
            supply, length = self.supply[one.subnet], (one.end - start) * 10**9
            rate = (high - low) * length + low * YEAR_NS
            most = cap - supply
            one.reward = min(most, most * rate * one.weight * length // (YEAR_NS * 1_000_000) // supply // YEAR_NS)
            self.supply[one.subnet] += one.reward
        if one.is_delegator:
            one.validator = self.validator_of(one)
            one.validator.delegations.append(one)

    def validator_of(self, delegator: Stake) -> Stake:
        at = delegator.subnet, delegator.node
        return next(v for v in self.stakes if not v.is_delegator and (v.subnet, v.node) == at and v.status == "active")

    def _reward(self, tx: Any, *, committed: bool) -> None:
        one = next(one for one in self.stakes if one.tx.txid == tx.unsigned.staking_txid)
        one.status, one.was_rewarded, one.ended = "completed", committed, (tx.txid, self.time)
        index = len(one.body.outputs) + len(one.body.stake)
        due: list[tuple[str, Any, int]] = []
        if one.is_delegator and committed:
            assert one.validator is not None
            due.append(("DELEGATOR", one.owner, one.reward - one.fee))
            one.validator.accrued += one.fee
            if one.validator.start < self.forks.cortina:
                one.validator.at_once += one.fee
                due.append(("VALIDATOR_FEE", one.validator.fee_owner, one.fee))
        elif not one.is_delegator:
            due.append(("VALIDATOR", one.owner, one.reward if committed else 0))
            due.append(("VALIDATOR_FEE", one.fee_owner, one.accrued - one.at_once))
        for kind, owner, amount in due:
            if amount:
                asset = one.body.stake[0].asset_id
                self.paid.append(Paid(one, kind, owner, amount, index, tx.txid, asset))
                index += 1
        if not committed:
            self.supply[one.subnet] -= one.reward

    # -- transactions ---------------------------------------------------------------------------------------------

    def _burn(self, tx: t.PlatformTx) -> None:
        body: Any = tx.unsigned
        for one in (*body.inputs, *getattr(body, "imported_inputs", ())):
            self.burned += getattr(one.input, "input", one.input).amount * (one.asset_id == self.avax)
        made = (*body.outputs, *getattr(body, "exported_outputs", ()), *getattr(body, "stake", ()))
        for out in made:
            self.burned -= getattr(out.output, "output", out.output).amount * (out.asset_id == self.avax)
        if isinstance(body, t.ConvertSubnetToL1Tx):
            self.burned -= sum(one.balance for one in body.validators)
        self.burned -= getattr(body, "balance", 0)

    def _chain(self, tx: t.PlatformTx, height: int) -> None:
        self.chains.append({"tx": tx, "height": height, "time": self.time})

    def _execute(self, tx: t.PlatformTx, height: int) -> None:
        body: Any = tx.unsigned
        self._burn(tx)
        if isinstance(body, STAKING):
            self._stake(tx, self.time if self.time >= self.forks.durango else None)
            return
        self.number += 1
        if isinstance(body, t.CreateSubnetTx):
            self.subnets[tx.txid] = {"owner": body.owner, "height": height, "time": self.time}
        elif isinstance(body, t.CreateChainTx):
            self._chain(tx, height)
        elif isinstance(body, t.TransferSubnetOwnershipTx):
            self.subnets[body.subnet_id]["owner"] = body.owner
        elif isinstance(body, t.TransformSubnetTx):
            self.supply[body.subnet_id] = body.initial_supply
            self.rates[body.subnet_id] = (body.min_consumption_rate, body.max_consumption_rate, body.maximum_supply)
            self.asset[body.subnet_id] = body.asset_id
        elif isinstance(body, t.RemoveSubnetValidatorTx):
            at = body.subnet_id, body.node_id
            one = next(
                one for one in self.stakes if (one.subnet, one.node) == at and one.status in ("active", "pending")
            )
            one.status, one.ended = "removed", (tx.txid, self.time)
        elif isinstance(body, t.ConvertSubnetToL1Tx):
            self.subnets[body.subnet_id] |= {"converted": tx.txid, "manager": (body.chain_id, body.address)}
            for position, new in enumerate(body.validators):
                owners = new.remaining_balance_owner, new.deactivation_owner
                validation = first_validation_id(body.subnet_id, position)
                key = new.signer.public_key
                self._add_l1(validation, body.subnet_id, new.node_id, key, new.weight, new.balance, owners)
                self.l1[validation].proof = new.signer.proof_of_possession
        elif isinstance(body, t.RegisterL1ValidatorTx):
            said = registration_in(body.message)
            owners = said.remaining_balance_owner, said.deactivation_owner
            given = said.subnet_id, said.node_id, said.public_key, said.weight, body.balance
            self._add_l1(said.validation_id, *given, owners)
            self.l1[said.validation_id].proof = body.proof_of_possession
        elif isinstance(body, t.SetL1ValidatorWeightTx):
            said_weight = weight_in(body.message)
            self.l1[said_weight.validation_id].weight = said_weight.weight
            if said_weight.weight == 0:
                self.l1[said_weight.validation_id].status = "removed"
                self.l1[said_weight.validation_id].balance = 0
        elif isinstance(body, t.IncreaseL1ValidatorBalanceTx):
            self.l1[body.validation_id].balance += body.balance
            self.l1[body.validation_id].status = "active"
        elif isinstance(body, t.DisableL1ValidatorTx):
            self.l1[body.validation_id].status, self.l1[body.validation_id].balance = "inactive", 0

    def _add_l1(
        self, validation: bytes, subnet: bytes, node: bytes, key: bytes, weight: int, balance: int, owners: Any
    ) -> None:
        status = "active" if balance else "inactive"
        self.l1[validation] = L1(subnet, node, key, weight, self.time, balance, owners[0], owners[1], status)

    def current(self, subnet: bytes, *, delegators: bool) -> list[Stake]:
        return [s for s in self.stakes if (s.status, s.subnet, s.is_delegator) == ("active", subnet, delegators)]


def _priority(one: Stake) -> int:
    """The order of stakers that begin at the same second."""
    order: dict[Any, int] = {
        (t.AddDelegatorTx, True): 1,
        (t.AddValidatorTx, True): 2,
        (t.AddPermissionlessValidatorTx, True): 2,
        (t.AddPermissionlessDelegatorTx, True): 3,
        (t.AddPermissionlessValidatorTx, False): 4,
        (t.AddPermissionlessDelegatorTx, False): 5,
        (t.AddSubnetValidatorTx, False): 6,
    }
    return order[type(one.body), one.subnet == PRIMARY]


def utxo_text(txid: bytes, index: int) -> str:
    return id_text(input_id(txid, index))
