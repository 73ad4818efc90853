"""Stakers in the order in which they begin or end, and the validator sets they make."""

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Iterator

from icefall.pchain.model import ExecutionFailed, L1Validator, PlatformStaker, WeightChange, is_primary
from icefall.wire.ids import EMPTY_SHORT_ID, id_text

Member = tuple[int, bytes]  # weight and public key, empty if there is none
Members = dict[bytes, Member]  # by node ID
_Key = tuple[int, int, bytes]
SNAPSHOT_CHANGES_MIN = 4


class StakerSet:
    """Current stakers by their end, or pending ones by their start; then by priority and transaction."""

    def __init__(self, *, pending: bool) -> None:
        self._pending = pending
        self._order: list[_Key] = []
        self._by_txid: dict[bytes, PlatformStaker] = {}
        self._validators: dict[tuple[bytes, bytes], PlatformStaker] = {}

    def _key(self, staker: PlatformStaker) -> _Key:
        return (staker.start if self._pending else staker.end, int(staker.priority), staker.txid)

    def add(self, staker: PlatformStaker) -> None:
        if staker.txid in self._by_txid:
            raise ExecutionFailed(f"transaction {id_text(staker.txid)} stakes already")
        insort(self._order, self._key(staker))
        self._by_txid[staker.txid] = staker
        if not staker.is_delegator:
            self._validators[staker.subnet_id, staker.node_id] = staker

    def remove(self, staker: PlatformStaker) -> None:
        index = bisect_left(self._order, self._key(staker))
        del self._order[index]
        del self._by_txid[staker.txid]
        if not staker.is_delegator:
            del self._validators[staker.subnet_id, staker.node_id]

    def first(self) -> PlatformStaker | None:
        return self._by_txid[self._order[0][2]] if self._order else None

    def validator(self, subnet_id: bytes, node_id: bytes) -> PlatformStaker | None:
        return self._validators.get((subnet_id, node_id))

    def __iter__(self) -> Iterator[PlatformStaker]:
        for _, _, txid in self._order:
            yield self._by_txid[txid]

    def __len__(self) -> int:
        return len(self._order)


class ValidatorSets:
    """The weight and key of every node in every set, and what changed since the last block.

    Inactive validators of an L1 are summed up under the empty node ID, without a key.
    """

    def __init__(self) -> None:
        self._staked: dict[tuple[bytes, bytes], int] = defaultdict(int)
        self._subnets_of_node: dict[bytes, set[bytes]] = defaultdict(set)
        self._keys: dict[bytes, bytes] = {}  # of nodes that validate the primary network
        self._active_l1: dict[tuple[bytes, bytes], L1Validator] = {}
        self._inactive_weight: dict[bytes, int] = defaultdict(int)
        self._touched: set[tuple[bytes, bytes]] = set()
        self.members: dict[bytes, Members] = defaultdict(dict)
        self.changes_since_snapshot: dict[bytes, int] = defaultdict(int)

    def add_staker(self, staker: PlatformStaker) -> None:
        at = staker.subnet_id, staker.node_id
        self._staked[at] += staker.weight
        if is_primary(staker.subnet_id):
            if staker.signer is not None:
                self._keys[staker.node_id] = staker.signer.public_key
                self._touched.update((subnet, staker.node_id) for subnet in self._subnets_of_node[staker.node_id])
        else:
            self._subnets_of_node[staker.node_id].add(staker.subnet_id)
        self._touched.add(at)

    def remove_staker(self, staker: PlatformStaker) -> None:
        at = staker.subnet_id, staker.node_id
        self._staked[at] -= staker.weight
        if not self._staked[at]:
            del self._staked[at]
            self._subnets_of_node[staker.node_id].discard(staker.subnet_id)
        if is_primary(staker.subnet_id) and not staker.is_delegator and self._keys.pop(staker.node_id, b""):
            self._touched.update((subnet, staker.node_id) for subnet in self._subnets_of_node[staker.node_id])
        if not self._subnets_of_node[staker.node_id]:
            del self._subnets_of_node[staker.node_id]
        self._touched.add(at)

    def replace_l1(self, before: L1Validator | None, after: L1Validator) -> None:
        """Take out what an L1 validator counted for, and put in what it counts for now."""
        if before is not None and not before.is_removed:
            if before.is_active:
                self._active_l1.pop((before.subnet_id, before.node_id), None)
                self._touched.add((before.subnet_id, before.node_id))
            else:
                self._inactive_weight[before.subnet_id] -= before.weight
                self._touched.add((before.subnet_id, EMPTY_SHORT_ID))
        if not after.is_removed:
            if after.is_active:
                self._active_l1[after.subnet_id, after.node_id] = after
                self._touched.add((after.subnet_id, after.node_id))
            else:
                self._inactive_weight[after.subnet_id] += after.weight
                self._touched.add((after.subnet_id, EMPTY_SHORT_ID))

    def _now(self, subnet_id: bytes, node_id: bytes) -> Member | None:
        if node_id == EMPTY_SHORT_ID:
            weight = self._inactive_weight.get(subnet_id, 0)
            return (weight, b"") if weight else None
        l1 = self._active_l1.get((subnet_id, node_id))
        staked = self._staked.get((subnet_id, node_id), 0)
        if l1 is not None:
            return l1.weight + staked, l1.public_key
        return (staked, self._keys.get(node_id, b"")) if staked else None

    @property
    def is_touched(self) -> bool:
        """Whether anything may have changed since the last block."""
        return bool(self._touched)

    def changes(self, height: int) -> list[WeightChange]:
        """What the block at `height` changed. They are counted; `snapshots_due` tells when there are many."""
        found = []
        for subnet_id, node_id in self._touched:
            now, members = self._now(subnet_id, node_id), self.members[subnet_id]
            if now == members.get(node_id):
                continue
            if now is None:
                del members[node_id]
            else:
                members[node_id] = now
            found.append(WeightChange(subnet_id, height, node_id, *(now or (0, b""))))
            self.changes_since_snapshot[subnet_id] += 1
        self._touched.clear()
        return found

    def snapshots_due(self, changed: list[WeightChange]) -> list[bytes]:
        """Subnets whose sets have changed as often as they have members: reading on from the last snapshot would cost
        more than the set itself."""
        due = []
        for subnet_id in {change.subnet_id for change in changed}:
            if self.changes_since_snapshot[subnet_id] >= max(SNAPSHOT_CHANGES_MIN, len(self.members[subnet_id])):
                self.changes_since_snapshot[subnet_id] = 0
                due.append(subnet_id)
        return due
