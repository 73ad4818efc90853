"""What a naive P-Chain was: every output with what became of it, and every staking period, for lists."""

from dataclasses import dataclass, field
from typing import Any

from tests.pchain.drawing import P_CHAIN
from tests.pchain.naive_chain import L1, PRIMARY, NaiveChain, Outpoint, Staker
from tests.pchain.naive_fees import shares_of

from icefall.wire.ids import input_id
from icefall.wire.pvm import types as t


@dataclass
class Made:
    """An output. `stake` is its period while it is staked."""

    utxo: t.PlatformUtxo
    time: int
    height: int
    destination: bytes = P_CHAIN
    stake: Staker | None = None
    spent: tuple[bytes, int, int] | None = None  # by which transaction, when and in which block
    returned: int | None = None  # when a stake was given back
    was_staked: Staker | None = None

    @property
    def utxo_id(self) -> bytes:
        return input_id(self.utxo.txid, self.utxo.output_index)

    @property
    def inner(self) -> Any:
        return getattr(self.utxo.output, "output", self.utxo.output)

    @property
    def lock(self) -> int:
        return getattr(self.utxo.output, "locktime", 0)


@dataclass
class Period:
    """A staking period."""

    staker: Staker
    status: str = ""  # of one that is over
    ended: tuple[bytes, int] | None = None
    rewarded: bool = False
    host: "Period | None" = None
    delegations: list["Period"] = field(default_factory=list)
    at_once: int = 0  # what was paid for delegations when they ended


class NaiveHistory(NaiveChain):
    """A chain that remembers. `made` are outputs in the order in which they were made, `periods` by transaction."""

    def __init__(self, rules: Any) -> None:
        super().__init__(rules)
        self.made: dict[Outpoint, Made] = {}
        self.periods: dict[bytes, Period] = {}
        self.paid: list[tuple[bytes, bytes, t.PlatformUtxo]] = []  # for which stake, by which transaction
        self.height = 0
        self.after: list[tuple[int, int, int]] = []  # each block: supply, active L1 validators, accrued fees
        self.moves: list[tuple[bytes, bytes, int, int, int]] = []  # of L1 validators: by what, which, to what

    def accept(self, block: t.PlatformBlock) -> None:
        self.height = self.undecided.height if self.undecided is not None else block.height
        super().accept(block)
        self.after.append((self.supply[PRIMARY], len(self.active()), self.accrued))

    def begin(self, genesis: t.PlatformGenesis) -> None:
        super().begin(genesis)
        for one in self.stakers:
            self._remember_stake(one)

    def _appear(self, utxo: t.PlatformUtxo) -> None:
        super()._appear(utxo)
        known = self.made.get((utxo.txid, utxo.output_index))
        if known is None:
            self.made[utxo.txid, utxo.output_index] = Made(utxo, self.time, self.height)
        else:
            known.stake, known.returned = None, self.time

    def execute(self, tx: t.PlatformTx, *, committed: bool = True) -> None:
        body: Any = tx.unsigned
        spent = tx.txid, self.time, self.height
        for one in body.inputs:
            self.made[one.txid, one.output_index].spent = spent
        before = list(self.stakers)
        l1 = {name: (one.weight, self._left(one)) for name, one in self.l1.items()}
        super().execute(tx, committed=committed)
        now = {name: (one.weight, self._left(one)) for name, one in self.l1.items()}
        for name in sorted({*l1, *now}):
            was, is_now = l1.get(name, (0, 0)), now.get(name, (0, 0))
            if name not in l1 or was != is_now:
                self.moves.append((tx.txid, name, *is_now, is_now[1] - was[1]))
        if committed and isinstance(body, t.PlatformExportTx):
            for index, out in enumerate(body.exported_outputs, len(body.outputs)):
                utxo = t.PlatformUtxo(tx.txid, index, out.asset_id, out.output)
                self.made[tx.txid, index] = Made(utxo, self.time, self.height, body.destination_chain)
        if isinstance(body, t.RemoveSubnetValidatorTx):
            (gone,) = [one for one in before if one not in self.stakers]
            self.periods[gone.tx.txid].status, self.periods[gone.tx.txid].ended = "removed", (tx.txid, self.time)

    def _left(self, one: L1) -> int:
        return one.until - self.accrued if one.until else 0

    def _stake(self, tx: t.PlatformTx) -> None:
        super()._stake(tx)
        self._remember_stake(self.stakers[-1])
        self._attach()

    def _remember_stake(self, staker: Staker) -> None:
        body = staker.body
        for index, out in enumerate(getattr(body, "stake", ()), len(body.outputs)):
            utxo = t.PlatformUtxo(staker.tx.txid, index, out.asset_id, out.output)
            self.made[staker.tx.txid, index] = Made(utxo, self.time, self.height, stake=staker, was_staked=staker)
        self.periods[staker.tx.txid] = Period(staker)

    def advance(self, time: int) -> None:
        before = list(self.stakers)
        super().advance(time)
        for gone in [one for one in before if one not in self.stakers]:
            self.periods[gone.tx.txid].status = "completed"
        self._attach()

    def _attach(self) -> None:
        """Delegations that have begun belong to their validator of now."""
        current = self.current()
        for one in current:
            period = self.periods[one.tx.txid]
            if one.delegates and period.host is None:
                at = one.subnet, one.node
                host = next(v for v in current if not v.delegates and (v.subnet, v.node) == at)
                period.host = self.periods[host.tx.txid]
                period.host.delegations.append(period)

    def _decide(self, tx: t.PlatformTx, *, committed: bool) -> None:
        if isinstance(tx.unsigned, t.RewardValidatorTx):
            txid = tx.unsigned.staking_txid
            period, count = self.periods[txid], len(self.rewards.get(txid, ()))
            super()._decide(tx, committed=committed)
            period.status, period.ended, period.rewarded = "completed", (tx.txid, self.time), committed
            new = self.rewards.get(txid, [])[count:]
            self.paid += [(txid, tx.txid, utxo) for utxo in new]
            if period.host is not None and period.host.staker.start < self.rules.forks.cortina and committed:
                period.host.at_once += self.fee(period)
            return
        super()._decide(tx, committed=committed)

    def fee(self, delegation: Period) -> int:
        """The validator's share of a delegation's reward."""
        assert delegation.host is not None
        return shares_of(delegation.staker.reward, delegation.host.staker.body.shares)[0]

    # -- what is asked for ----------------------------------------------------------------------------------------

    def owned(self, address: bytes) -> list[Made]:
        """Outputs of an address alone, in the order of their making; those that went elsewhere behind those of the same
        time that stayed, by ID."""
        found = [one for one in self.made.values() if address in one.inner.owners.addresses]
        numbered = {id(one): number for number, one in enumerate(found)}

        def order(one: Made) -> tuple[int, bool, int, bytes]:
            away = one.destination != P_CHAIN
            return one.time, away, 0 if away else numbered[id(one)], one.utxo_id if away else b""

        return sorted(found, key=order)
