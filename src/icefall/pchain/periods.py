"""Lists of staking periods (validators and delegators, past ones included) and of rewards, page by page."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from icefall.db.statements import load
from icefall.pchain.listing import PlatformLists
from icefall.pchain.model import StakerState, UtxoKind
from icefall.pchain.store import unpacked_owner, unsigned
from icefall.pchain.sums import StakeTotal
from icefall.wire.avm.types import Owners
from icefall.xchain.store import NEWEST

SQL = load("icefall.pchain", "periods.sql")
SORTED_BY = ("end", "fee", "capacity")


class Period(msgspec.Struct, frozen=True, gc=False):
    """A staking period. `shares` are what the validator takes of its delegators' rewards, in millionths, of a delegator
    those of its validator, and `fee_owner` who gets them. `ended_txid` and `ended_time` are absent while it lasts, and
    where time alone ended it."""

    txid: bytes
    subnet_id: bytes
    node_id: bytes
    state: StakerState
    start: int
    end: int
    weight: int
    potential_reward: int
    delegatee_reward: int
    shares: int
    validation_owner: Owners | None
    delegation_owner: Owners | None
    public_key: bytes | None
    proof_of_possession: bytes | None
    seq: int
    is_delegator: bool
    delegator_count: int
    delegator_weight: int
    delegator_fees: int
    ever_count: int
    ever_weight: int
    prepaid: int
    capacity: int
    ended_txid: bytes | None
    ended_time: int | None
    fee_owner: Owners | None


class PaidReward(NamedTuple):
    """An output that was paid for a staking period, and the transaction that paid it."""

    position: int
    utxo_id: bytes
    raw: bytes
    kind: UtxoKind
    staking_txid: bytes
    node_id: bytes
    weight: int
    start: int
    end: int
    reward_txid: bytes
    subnet_id: bytes


class PeriodSource(NamedTuple):
    """A place to look for periods: `name` is listed, of_subnet, of_node or of_owner; `key` the ID or address."""

    name: str
    key: bytes = b""
    is_delegator: bool = False
    role: int = 0


class PeriodLists(PlatformLists):
    """The lists of the P-Chain with those of staking periods. Numbers of staking transactions order them."""

    async def periods(
        self,
        sources: Iterable[PeriodSource],
        states: Iterable[StakerState],
        low: int,
        below: int,
        limit: int,
        *,
        upwards: bool,
    ) -> list[Period]:
        """Periods in one of the states, of any of the sources, whose numbers are in a range."""
        found: dict[int, Period] = {}
        wanted = tuple(states)
        for source in sources:
            statement = SQL.named(f"{source.name}_{'up' if upwards else 'down'}")
            for state in wanted:
                key: dict[str, Any] = {"state": int(state), "low": low, "below": below, "limit": limit}
                if source.name == "of_owner":
                    key |= {"key": source.key, "role": source.role}
                else:
                    key |= {"is_delegator": int(source.is_delegator)}
                    key |= {"key": source.key} if source.name != "listed" else {}
                rows = await self._store.rows(statement, key)
                found.update((one.seq, one) for one in map(_period, rows))
        return [found[seq] for seq in sorted(found, reverse=not upwards)][:limit]

    async def current_by(
        self, sort: str, subnet_id: bytes, beyond: Sequence[int] | None, limit: int, *, upwards: bool
    ) -> list[Period]:
        """Current validators of a subnet by their end, fee or capacity, beyond a value and a number."""
        value, seq = beyond or ((-NEWEST, -1) if upwards else (NEWEST, NEWEST))
        key = {"key": subnet_id, "value": value, "seq": seq, "limit": limit}
        statement = SQL.named(f"by_{sort}_{'up' if upwards else 'down'}")
        return [_period(row) for row in await self._store.rows(statement, key)]

    async def paid_rewards(
        self, owners: Iterable[bytes], low: int, below: int, limit: int, *, are_nodes: bool, upwards: bool
    ) -> list[PaidReward]:
        """Rewards that were paid to one of the addresses, or for one of the nodes."""
        found: dict[int, PaidReward] = {}
        statement = SQL.named(f"rewards_{'up' if upwards else 'down'}")
        for owner in owners:
            key = {"owner": owner, "is_node": int(are_nodes), "low": low, "below": below, "limit": limit}
            for row in await self._store.rows(statement, key):
                one = PaidReward(*row)
                found[one.position] = one._replace(
                    kind=UtxoKind(one.kind), weight=unsigned(one.weight), end=unsigned(one.end)
                )
        return [found[position] for position in sorted(found, reverse=not upwards)][:limit]

    async def stake_total(self, subnet_id: bytes) -> StakeTotal:
        """What is staked in a subnet after the last block."""
        rows = await self._store.rows(SQL.stake_total, {"subnet_id": subnet_id})
        return StakeTotal(*map(int, rows[0])) if rows else StakeTotal()

    async def locked(self, asset_id: bytes, at: int) -> int:
        """How much of an asset is in outputs that cannot be spent at a time because they are locked."""
        rows = await self._store.rows(SQL.locked, {"asset_id": asset_id})
        return sum(unsigned(amount) for amount, *locks in rows if max(map(unsigned, locks)) > at)


def _period(row: tuple[Any, ...]) -> Period:
    txid, subnet_id, node_id, state, start, end, weight, reward, delegatee, shares, own, fee, key, proof, *rest = row
    seq, is_delegator, count, delegated, fees, ever_count, ever_weight, prepaid, capacity, *ended = rest
    ended_txid, ended_time, fee_owner = ended
    return Period(
        txid,
        subnet_id,
        node_id,
        StakerState(state),
        start,
        unsigned(end),
        unsigned(weight),
        unsigned(reward),
        unsigned(delegatee),
        shares,
        unpacked_owner(own),
        unpacked_owner(fee),
        key,
        proof,
        seq,
        bool(is_delegator),
        count,
        int(delegated),
        int(fees),
        ever_count,
        int(ever_weight),
        int(prepaid),
        unsigned(capacity),
        ended_txid,
        ended_time,
        unpacked_owner(fee_owner),
    )
