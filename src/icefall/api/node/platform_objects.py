"""The objects of the platform chain as answers show them, which a worker keeps until anything is committed.

A node has its blocks, subnets and validators in memory. A worker reads them from the store: what was asked about last
is kept, so that the next question about the same object, in whatever words, needs no statement and no texts of IDs.
These are objects, not answers: each answer is put together anew (docs/decisions/0025).
"""

from collections.abc import Callable
from typing import NamedTuple

from icefall.api.node.platform_upstream import Observed
from icefall.api.node.schema.avm import GetBlockResult, GetTxResult, UtxoReference
from icefall.api.node.schema.platform import SubnetDetails
from icefall.api.node.schema.validators import AnyValidatorRow, L1ValidatorDetails, SetMember
from icefall.xchain.object_cache import ObjectCache
from icefall.xchain.reading import CACHED_MAX

_OBJECTS_MAX = 4096  # subnets, and validators of L1s
_ROWS_MAX = 8192  # validators and delegators of all lists together
_OUTPUTS_MAX = 16384  # of all balances together
_MEMBERS_MAX = 16384  # of all validator sets together
_ValidatorsKey = tuple[bytes, tuple[bytes, ...]]


class ListedValidators(NamedTuple):
    """Current validators, with what the upstream had observed of them then."""

    observed: dict[str, Observed]
    rows: list[AnyValidatorRow]


class LockedAmount(NamedTuple):
    """The sum of outputs of one asset with the same locks: `stakeable_until` is 0 for what is not only stakeable."""

    asset_id: bytes
    stakeable_until: int
    locktime: int
    amount: int


class HeldOutputs(NamedTuple):
    """What some addresses hold: sums by asset and lock, and the outputs of which they are made."""

    amounts: list[LockedAmount]
    outputs: list[UtxoReference]


class PlatformObjects:
    """Blocks by height or ID and transactions by ID, each with an encoding, subnets and validators of L1s by ID, lists
    of current validators by subnet and the nodes that were named, what addresses hold, and validator sets by subnet and
    height. `version` is that of the store."""

    def __init__(self, version: Callable[[], int]) -> None:
        self.blocks: ObjectCache[tuple[int | bytes, str], GetBlockResult] = ObjectCache(version, CACHED_MAX)
        self.txs: ObjectCache[tuple[bytes, str], GetTxResult] = ObjectCache(version, CACHED_MAX)
        self.subnets: ObjectCache[bytes, SubnetDetails] = ObjectCache(version, _OBJECTS_MAX)
        self.l1_validators: ObjectCache[bytes, L1ValidatorDetails] = ObjectCache(version, _OBJECTS_MAX)
        self.validators: ObjectCache[_ValidatorsKey, ListedValidators] = ObjectCache(version, _ROWS_MAX)
        self.holdings: ObjectCache[tuple[bytes, ...], HeldOutputs] = ObjectCache(version, _OUTPUTS_MAX)
        self.sets: ObjectCache[tuple[bytes, int], dict[str, SetMember]] = ObjectCache(version, _MEMBERS_MAX)
