"""Everything a worker reads of the P-Chain. What is returned is of the last executed block, except sets at a height."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence

import msgspec

from icefall.db.changes import LastRead, unknown_version
from icefall.db.engine import Reader, Row, StatementParams, StoreError
from icefall.db.statements import load
from icefall.errors import Unavailable
from icefall.pchain.fees import FeeState
from icefall.pchain.model import DELEGATORS, ChainRow, L1Validator, PlatformStaker, Priority, Subnet
from icefall.pchain.parameters import PlatformParameters
from icefall.pchain.stakers import Members
from icefall.pchain.store import l1_validator_of_row, staker_of_row, subnet_of, unpacked_members, unsigned, whole_sum
from icefall.wire.ids import EMPTY_ID
from icefall.wire.pvm.codec import unpack_utxo
from icefall.xchain.object_cache import ObjectCache
from icefall.xchain.reading import CACHED_MAX, OVERHEAD, OutputsCache, OutputsKey
from icefall.xchain.store import NEWEST, StoredUtxo

_SETS_MAX = 64  # validator sets that a worker keeps
SQL = load("icefall.pchain", "reading.sql")
_StakeKey = tuple[bool, int, int, bytes, int]  # the order of stakers, then of their outputs


class LedgerRow(msgspec.Struct, frozen=True, gc=False):
    """The position of the chain: `time` is the chain time. The balance of an active L1 validator is its
    `end_accumulated_fee` less `accrued_fees`. Burned fees, paid rewards and fees of L1 validators are sums in nAVAX."""

    height: int
    block_id: bytes
    time: int
    fee: FeeState
    l1_excess: int
    accrued_fees: int
    burned: int
    rewards_paid: int
    l1_fees: int


class StoredTx(msgspec.Struct, frozen=True, gc=False):
    """An accepted transaction; one that is not committed was proposed and aborted."""

    raw: bytes
    is_committed: bool
    height: int


class CurrentStaker(msgspec.Struct, frozen=True, gc=False):
    """A staker, and what a validator has earned from delegators so far."""

    staker: PlatformStaker
    delegatee_reward: int


class Delegations(msgspec.Struct, frozen=True, gc=False):
    """How many delegations a validator has, and their sum."""

    count: int
    weight: int


class PlatformReader:
    """`version`: the ledger's row, and what was read last of blocks, transactions and outputs, is read once per version
    of the store. Without a `reader` the chain is not executed here, and every read is refused.
    """

    def __init__(
        self, reader: Reader | None, parameters: PlatformParameters, version: Callable[[], int] = unknown_version
    ) -> None:
        self._reader = reader
        self.parameters = parameters
        self._ledger = LastRead(version, self._read_ledger)
        self._sets: OrderedDict[tuple[bytes, int], Members] = OrderedDict()
        self._txs: ObjectCache[bytes, StoredTx] = ObjectCache(version, CACHED_MAX)
        self._outputs = OutputsCache(version, CACHED_MAX)

    async def _rows(self, statement: str, params: StatementParams = ()) -> list[Row]:
        if self._reader is None:
            raise Unavailable(
                "the P-Chain of this network is not executed here, because its genesis is not known: give it with "
                "--genesis-file"
            )
        return await self._reader.rows(statement, params)

    async def ledger(self) -> LedgerRow:
        known = self._ledger.known()
        return known if known is not None else await self._ledger.get()

    async def _read_ledger(self) -> LedgerRow:
        rows = await self._rows(SQL.ledger)
        if not rows:
            raise StoreError("the P-Chain is not executed here")
        height, block_id, time, capacity, excess, *sums = rows[0]
        return LedgerRow(height, block_id, time, FeeState(capacity, unsigned(excess)), *map(unsigned, sums))

    # -- blocks and transactions ----------------------------------------------------------------------------------

    async def block_at(self, height: int) -> bytes | None:
        """The bytes of a block without its proposer's wrapping."""
        if height > NEWEST:
            return None
        rows = await self._rows(SQL.block_at, {"height": height})
        return rows[0][0] if rows else None

    async def block(self, block_id: bytes) -> bytes | None:
        rows = await self._rows(SQL.block, {"block_id": block_id})
        return rows[0][0] if rows else None

    async def tx(self, txid: bytes) -> StoredTx | None:
        cached = self._txs.now()
        known = cached.get(txid)
        if known is not None:
            return known
        rows = await self._rows(SQL.tx, {"txid": txid})
        if not rows:
            return None
        raw, is_committed, height = rows[0]
        stored = StoredTx(raw, bool(is_committed), height)
        self._txs.put(cached, txid, stored, len(raw) + OVERHEAD)
        return stored

    # -- outputs --------------------------------------------------------------------------------------------------

    async def utxos(self, address: bytes, below: int, limit: int) -> list[StoredUtxo]:
        """List the unspent outputs of an address, newest first."""
        return await self._outputs.of((b"", address, below, limit), self._read_outputs)

    async def _read_outputs(self, key: OutputsKey) -> list[Row]:
        source, address, below, limit = key
        page = {"address": address, "below": below, "limit": limit}
        if source:
            return await self._rows(SQL.atomic_of_address, {"destination": EMPTY_ID, "source": source, **page})
        return await self._rows(SQL.utxos_of_address, page)

    async def stakes(self, addresses: Iterable[bytes], *, validators_only: bool) -> list[bytes]:
        """Outputs at stake that name one of the addresses: of current stakers in their order, then of pending ones."""
        found: dict[bytes, _StakeKey] = {}
        for address in addresses:
            for raw, priority, start, end, txid in await self._rows(SQL.stakes, {"address": address}):
                is_pending = priority <= Priority.PENDING_PERMISSIONED
                if not (validators_only and priority in DELEGATORS):
                    index = unpack_utxo(raw).output_index
                    found[raw] = is_pending, start if is_pending else end, priority, txid, index
        return sorted(found, key=found.__getitem__)

    async def position(self, address: bytes, utxo_id: bytes) -> int | None:
        """The position of an unspent output in the list of an address."""
        rows = await self._rows(SQL.utxo_position, {"address": address, "utxo_id": utxo_id})
        return rows[0][0] if rows else None

    async def atomic_utxos(self, source: bytes, address: bytes, below: int, limit: int) -> list[StoredUtxo]:
        """List what another chain has exported to this one and was not imported yet, newest first."""
        return await self._outputs.of((source, address, below, limit), self._read_outputs)

    async def atomic_position(self, source: bytes, address: bytes, utxo_id: bytes) -> int | None:
        key = {"destination": EMPTY_ID, "source": source, "address": address, "utxo_id": utxo_id}
        rows = await self._rows(SQL.atomic_position, key)
        return rows[0][0] if rows else None

    async def reward_utxos(self, staking_txid: bytes) -> list[bytes]:
        """What was paid for a stake, the stake itself left out."""
        return [raw for (raw,) in await self._rows(SQL.reward_utxos, {"txid": staking_txid})]

    # -- subnets and chains ---------------------------------------------------------------------------------------

    async def subnet(self, subnet_id: bytes) -> Subnet | None:
        rows = await self._rows(SQL.subnet, {"subnet_id": subnet_id})
        return self._subnet(rows[0]) if rows else None

    async def subnets(self) -> list[Subnet]:
        """All subnets, oldest first. The primary network is not one of them."""
        return [self._subnet(row) for row in await self._rows(SQL.subnets)]

    def _subnet(self, row: Sequence[object]) -> Subnet:
        assert isinstance(row[0], bytes)
        return subnet_of(row[0], tuple(row[1:]), self.parameters.rewards.minting_period_s)

    async def supply(self, subnet_id: bytes) -> int | None:
        """How much of its asset there is: of the primary network and of elastic subnets."""
        rows = await self._rows(SQL.supply, {"subnet_id": subnet_id})
        return unsigned(rows[0][0]) if rows else None

    async def blockchains(self) -> list[ChainRow]:
        """All chains, oldest first; X and C are the first two."""
        return [ChainRow(*row) for row in await self._rows(SQL.blockchains)]

    async def blockchain(self, chain_id: bytes) -> ChainRow | None:
        rows = await self._rows(SQL.blockchain, {"chain_id": chain_id})
        return ChainRow(*rows[0]) if rows else None

    async def blockchains_of(self, subnet_id: bytes) -> list[ChainRow]:
        return [ChainRow(*row) for row in await self._rows(SQL.blockchains_of, {"subnet_id": subnet_id})]

    # -- stakers --------------------------------------------------------------------------------------------------

    async def validators(self, subnet_id: bytes) -> list[CurrentStaker]:
        """Current validators of the primary network or a subnet (those of an L1 are not stakers), in their order."""
        rows = await self._rows(SQL.validators, {"subnet_id": subnet_id})
        return [CurrentStaker(*staker_of_row(row)) for row in rows]

    async def stakers_of_node(self, subnet_id: bytes, node_id: bytes) -> list[CurrentStaker]:
        """The current validator on a node and its delegators, in their order."""
        rows = await self._rows(SQL.stakers_of_node, {"subnet_id": subnet_id, "node_id": node_id})
        return [CurrentStaker(*staker_of_row(row)) for row in rows]

    async def delegations(self, subnet_id: bytes) -> dict[bytes, Delegations]:
        """The delegations to each node; nodes without any are left out."""
        rows = await self._rows(SQL.delegations, {"subnet_id": subnet_id})
        return {node_id: Delegations(count, whole_sum(high, low)) for node_id, count, high, low in rows}

    async def l1_validators(self, subnet_id: bytes) -> list[L1Validator]:
        """The validators of an L1, by node ID."""
        rows = await self._rows(SQL.l1_validators, {"subnet_id": subnet_id})
        return [l1_validator_of_row(row) for row in rows]

    async def l1_validator(self, validation_id: bytes) -> L1Validator | None:
        rows = await self._rows(SQL.l1_validator, {"validation_id": validation_id})
        return l1_validator_of_row(rows[0]) if rows else None

    # -- validator sets at a height -------------------------------------------------------------------------------

    async def validators_at(self, subnet_id: bytes, height: int) -> Members:
        """The validator set after a block that was executed. It never changes, so the last ones are kept.

        It is read from the last whole set on; between two of those there are as many changes as members.
        """
        known = self._sets.get((subnet_id, height))
        if known is not None:
            self._sets.move_to_end((subnet_id, height))
            return known
        rows = await self._rows(SQL.validator_set, {"subnet_id": subnet_id, "height": height})
        above, members = (rows[0][0], unpacked_members(rows[0][1])) if rows else (-1, {})
        key = {"subnet_id": subnet_id, "above": above, "height": height}
        for node_id, weight, public_key in await self._rows(SQL.weight_changes, key):
            if weight:
                members[node_id] = unsigned(weight), public_key
            else:
                members.pop(node_id, None)
        self._sets[subnet_id, height] = members
        if len(self._sets) > _SETS_MAX:
            self._sets.popitem(last=False)
        return members

    async def all_validators_at(self, height: int) -> dict[bytes, Members]:
        """The validator sets of all subnets that have one then."""
        rows = await self._rows(SQL.subnets_with_validators, {"height": height})
        sets = {subnet_id: await self.validators_at(subnet_id, height) for (subnet_id,) in rows}
        return {subnet_id: members for subnet_id, members in sets.items() if members}
