"""What blocks of P, X and C did, as webhooks ask for it: facts of transactions, and balances before and after them.

Everything is taken from what the blocks changed, transaction by transaction, never from how they were put into batches:
a chain that is executed again has the same facts.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from icefall.db.engine import Transaction
from icefall.pchain.changes import Changes, L1Move
from icefall.pchain.listing import SQL as PLATFORM
from icefall.pchain.model import L1Validator, UtxoState, balance_category
from icefall.pchain.store import unsigned as unsigned_number
from icefall.webhooks.primary_matching import (
    BALANCE_CHANGE,
    DELEGATOR_STAKE,
    L1_DISABLED,
    L1_INCREASED,
    L1_REMOVED,
    L1_THRESHOLD,
    NO_TX,
    REWARD,
    VALIDATOR_STAKE,
    BalanceStep,
    Fact,
    PrimaryBlock,
    PrimaryWatchList,
    ValidatorRef,
)
from icefall.wire.avm.codec import unpack_utxo
from icefall.wire.avm.types import TransferOutput, Utxo
from icefall.wire.container.core_txs import CoreTx
from icefall.wire.ids import PRIMARY_NETWORK, input_id
from icefall.wire.pvm import types as t
from icefall.xchain.model import AcceptedBlock, TxEffects, owners_of
from icefall.xchain.store import NEWEST
from icefall.xchain.store import SQL as ASSETS

P, X, C = "P", "X", "C"
_PIECE = 1000  # outputs read at a time
_VALIDATORS = (t.AddValidatorTx, t.AddSubnetValidatorTx, t.AddPermissionlessValidatorTx)
_DELEGATORS = (t.AddDelegatorTx, t.AddPermissionlessDelegatorTx)
_Step = tuple[str, int, bytes, BalanceStep]


class _TxPlace(NamedTuple):
    """The place of a transaction: its block and its number in that."""

    height: int
    tx_index: int
    txid: bytes


# -- P -------------------------------------------------------------------------------------------------------------


def platform_blocks(
    tx: Transaction, changes: Changes, watched: PrimaryWatchList, avax_asset_id: bytes
) -> list[PrimaryBlock]:
    """The blocks of a batch that have facts, read after the batch was written."""
    places: dict[int, _TxPlace] = {}
    counts: dict[int, int] = {}
    for row in changes.txs:
        index = counts.get(row.height, 0)
        counts[row.height] = index + 1
        places[row.seq] = _TxPlace(row.height, index, row.tx.txid)
    facts: dict[int, list[Fact]] = {}

    def note(sub_event: str, seq: int, **about: tuple[object, ...]) -> None:
        place = places[seq]
        fact = Fact(sub_event, place.tx_index, place.txid, **about)  # type: ignore[arg-type]
        facts.setdefault(place.height, []).append(fact)

    touched = _touched(changes, watched)
    for seq, addresses in sorted(touched.items()):
        note(BALANCE_CHANGE, seq, addresses=tuple(sorted(addresses)))
    _note_rewards(changes, note)
    if watched.has_validators:
        _note_stakes(changes, note)
        for height, fact in _l1_facts(changes, places, watched):
            facts.setdefault(height, []).append(fact)
    steps = _platform_steps(tx, changes, places, touched, watched, avax_asset_id)
    known = {block.height: (block.block_id, block.time) for block in changes.blocks}
    found = []
    for height in sorted({*facts, *steps}):
        block_id, time = known.get(height) or _stored_block(tx, height)
        found.append(PrimaryBlock(P, height, block_id, time, facts.get(height, ()), steps.get(height, ())))
    return found


def _stored_block(tx: Transaction, height: int) -> tuple[bytes, int]:
    """A proposal that was stored with an earlier batch than the block that decided it."""
    _, block_id, time, *_ = tx.rows(PLATFORM.blocks, {"low": height, "below": height + 1, "limit": 1})[0]
    return bytes(block_id), int(time)


def _touched(changes: Changes, watched: PrimaryWatchList) -> dict[int, set[bytes]]:
    found: dict[int, set[bytes]] = {}
    moved = changes.address_txs | changes.returned
    wanted = set(watched.addresses_in({address for address, _ in moved}))
    for address, seq in moved if wanted else ():
        if address in wanted:
            found.setdefault(seq, set()).add(address)
    return found


def _note_rewards(changes: Changes, note: Callable[..., None]) -> None:
    periods = {one.staker.seq: one.staker for one in changes.stakers.values()}
    for row, node_id in changes.rewards:
        staker = periods.get(row.reward_of if row.reward_of is not None else -1)
        subnet = staker.subnet_id if staker is not None else PRIMARY_NETWORK
        note(REWARD, row.created_seq, addresses=row.addresses, validators=(ValidatorRef(node_id, subnet),))


def _note_stakes(changes: Changes, note: Callable[..., None]) -> None:
    for row in changes.txs:
        made = row.tx.unsigned
        if row.is_committed and isinstance(made, _VALIDATORS + _DELEGATORS):
            subnet = getattr(made, "subnet_id", PRIMARY_NETWORK)
            sub_event = VALIDATOR_STAKE if isinstance(made, _VALIDATORS) else DELEGATOR_STAKE
            note(sub_event, row.seq, validators=(ValidatorRef(made.validator.node_id, subnet),))


def _ref(one: L1Validator) -> ValidatorRef:
    return ValidatorRef(one.node_id, one.subnet_id, one.validation_id)


def _l1_facts(changes: Changes, places: dict[int, _TxPlace], watched: PrimaryWatchList) -> Iterable[tuple[int, Fact]]:
    for move in changes.l1_moves:
        place = _TxPlace(move.height, 0, NO_TX) if move.seq is None else places[move.seq]
        for sub_event in _sub_events(move):
            yield place.height, Fact(sub_event, place.tx_index, place.txid, validators=(_ref(move.after),))
    if watched.has_l1_thresholds:
        yield from _l1_steps(changes, places, watched)


def _sub_events(move: L1Move) -> list[str]:
    before, after = move.before, move.after
    if after.is_removed:
        return [L1_REMOVED]
    end = before.end_accumulated_fee if before is not None else 0
    if after.end_accumulated_fee > end:
        return [L1_INCREASED]
    return [L1_DISABLED] if before is not None and before.is_active and not after.is_active else []


def _l1_steps(changes: Changes, places: dict[int, _TxPlace], watched: PrimaryWatchList) -> Iterable[tuple[int, Fact]]:
    """Balances of L1 validators that some webhook has a threshold for. They fall with time, in every block."""
    state = {key: one for key, one in changes.l1_after.items() if watched.wants_balance(_ref(one))}
    moves = [one for one in changes.l1_moves if watched.wants_balance(_ref(one.after))]
    for move in reversed(moves):  # as it was before the batch
        key = move.after.validation_id
        state.pop(key, None)
        if move.before is not None:
            state[key] = move.before
    at = 0
    for block, (before, after) in zip(changes.blocks, changes.accrued, strict=True):
        ended = {one.after.validation_id for one in moves if one.height == block.height and one.seq is None}
        for key, one in state.items():
            if one.is_active and (after > before or key in ended):
                left = 0 if key in ended else max(one.end_accumulated_fee - after, 0)
                step = BalanceStep(key, one.end_accumulated_fee - before, left)
                yield block.height, Fact(L1_THRESHOLD, 0, NO_TX, validators=(_ref(one),), balances=(step,))
        while at < len(moves) and moves[at].height == block.height:
            move, at = moves[at], at + 1
            key = move.after.validation_id
            if move.seq is not None and move.before is not None:
                place = places[move.seq]
                step = BalanceStep(key, _balance(move.before, after), _balance(move.after, after))
                refs = (_ref(move.after),)
                yield place.height, Fact(L1_THRESHOLD, place.tx_index, place.txid, validators=refs, balances=(step,))
            state[key] = move.after
            if move.after.is_removed:
                del state[key]


def _balance(one: L1Validator, accrued: int) -> int:
    return max(one.end_accumulated_fee - accrued, 0) if one.is_active else 0


def _platform_steps(
    tx: Transaction,
    changes: Changes,
    places: dict[int, _TxPlace],
    touched: dict[int, set[bytes]],
    watched: PrimaryWatchList,
    asset_id: bytes,
) -> dict[int, list[_Step]]:
    """The balances of addresses with thresholds, before and after each transaction that touched them."""
    times = {block.height: block.time for block in changes.blocks}
    found: dict[int, list[_Step]] = {}
    for address in sorted({one for addresses in touched.values() for one in addresses if one in watched.balance_types}):
        changed = [one for one in changes.utxos.values() if address in one.addresses and one.asset_id == asset_id]
        moving = [_history(tx, one.utxo_id) for one in changed]  # those that were loaded know little of themselves
        still = _still(tx, address, {one.made for one in changed}, asset_id)
        for seq in sorted(seq for seq, addresses in touched.items() if address in addresses):
            place = places[seq]
            time = times.get(place.height) or _stored_block(tx, place.height)[1]
            for balance_type in sorted(watched.balance_types[address]):
                fixed = sum(one.amount for one in still if one.type_at(time) == balance_type)
                before, after = (fixed + _moving(moving, at, time, balance_type) for at in (seq - 1, seq))
                step = BalanceStep(address, before, after)
                found.setdefault(place.height, []).append((balance_type, place.tx_index, place.txid, step))
    return found


class _Unchanged(NamedTuple):
    """An output that a batch did not change."""

    amount: int
    locktime: int
    stakeable_locktime: int
    stake: tuple[int, int] | None

    def type_at(self, time: int) -> str:
        return _type_of(self.locktime, self.stakeable_locktime, self.stake, time)


def _still(tx: Transaction, address: bytes, moving: set[int], asset_id: bytes) -> list[_Unchanged]:
    """The outputs of an address that the batch did not change."""
    found: list[_Unchanged] = []
    for state in (UtxoState.UNSPENT, UtxoState.STAKED):
        above = -1
        key = {"address": address, "state": int(state), "limit": _PIECE}
        while rows := tx.rows(PLATFORM.amounts, {**key, "above": above}):
            for made, asset, amount, locktime, stakeable, _, start, end, *_ in rows:
                if made not in moving and bytes(asset) == asset_id:
                    stake = (start, end) if state == UtxoState.STAKED else None
                    locks = unsigned_number(locktime), unsigned_number(stakeable)
                    found.append(_Unchanged(unsigned_number(amount), *locks, stake))
            above = rows[-1][0]
    return found


class _Moved(NamedTuple):
    """An output that a batch changed, with the transactions that made, returned and spent it."""

    amount: int
    locktime: int
    stakeable_locktime: int
    stake: tuple[int, int] | None
    created_seq: int
    returned_seq: int | None
    spent_seq: int | None


def _history(tx: Transaction, utxo_id: bytes) -> _Moved:
    ((amount, locktime, stakeable, start, end, *seqs),) = tx.rows(PLATFORM.utxo_history, {"utxo_id": utxo_id})
    stake = (start, end) if start is not None and end is not None else None
    locks = unsigned_number(locktime), unsigned_number(stakeable)
    return _Moved(unsigned_number(amount), *locks, stake, *seqs)


def _moving(rows: Iterable[_Moved], seq: int, time: int, balance_type: str) -> int:
    """What outputs add to a balance after transaction `seq`."""
    total = 0
    for row in rows:
        if row.created_seq > seq or (row.spent_seq is not None and row.spent_seq <= seq):
            continue
        is_returned = row.returned_seq is not None and row.returned_seq <= seq
        stake = None if is_returned else row.stake
        if _type_of(row.locktime, row.stakeable_locktime, stake, time) == balance_type:
            total += row.amount
    return total


def _type_of(locktime: int, stakeable: int, stake: tuple[int, int] | None, time: int) -> str:
    first, *rest = balance_category(locktime, stakeable, stake, time).split("_")
    return first + "".join(word.capitalize() for word in rest)


# -- X -------------------------------------------------------------------------------------------------------------


def asset_block(
    tx: Transaction, chain: int, accepted: AcceptedBlock, watched: PrimaryWatchList, avax_asset_id: bytes
) -> PrimaryBlock:
    """A block of X with its facts, read before it is written."""
    block = accepted.block
    facts, steps = [], []
    totals: dict[tuple[bytes, str], int] = {}
    for index, row in enumerate(accepted.effects):
        owners = [one for utxo in row.spent_utxos for one in owners_of(utxo.output)]
        owners += [one for new in (*row.created, *row.exported) for one in new.addresses]
        addresses = watched.addresses_in(dict.fromkeys(owners))
        if addresses:
            facts.append(Fact(BALANCE_CHANGE, index, row.tx.txid, addresses=tuple(sorted(addresses))))
        for address in (one for one in addresses if one in watched.balance_types):
            for balance_type in sorted(watched.balance_types[address]):
                key = address, balance_type
                if key not in totals:
                    totals[key] = _asset_total(tx, chain, address, balance_type, block.time, avax_asset_id)
                before = totals[key]
                totals[key] += _asset_change(row, address, balance_type, block.time, avax_asset_id)
                steps.append((balance_type, index, row.tx.txid, BalanceStep(address, before, totals[key])))
    return PrimaryBlock(X, block.height, block.block_id, block.time, facts, steps)


def _asset_total(tx: Transaction, chain: int, address: bytes, kind: str, time: int, asset_id: bytes) -> int:
    total, below = 0, NEWEST
    key = {"chain": chain, "address": address, "limit": _PIECE}
    while rows := tx.rows(ASSETS.utxos_of_address, {**key, "below": below}):
        total += sum(_amount(unpack_utxo(bytes(raw)), address, kind, time, asset_id) for _, _, raw in rows)
        below = rows[-1][0]
    return total


def _asset_change(row: TxEffects, address: bytes, kind: str, time: int, asset_id: bytes) -> int:
    made = sum(_amount(new.utxo, address, kind, time, asset_id) for new in row.created)
    own = set(row.spent)
    spent = [one for one in row.spent_utxos if input_id(one.txid, one.output_index) in own]
    return made - sum(_amount(one, address, kind, time, asset_id) for one in spent)


def _amount(utxo: Utxo, address: bytes, kind: str, time: int, asset_id: bytes) -> int:
    output = utxo.output
    if utxo.asset_id != asset_id or not isinstance(output, TransferOutput) or address not in output.owners.addresses:
        return 0
    return output.amount if kind == ("locked" if output.owners.locktime > time else "unlocked") else 0


# -- C -------------------------------------------------------------------------------------------------------------


def core_block(
    height: int,
    block_id: bytes,
    time: int,
    txs: Sequence[tuple[CoreTx, Iterable[bytes]]],
    watched: PrimaryWatchList,
) -> PrimaryBlock:
    """A block of C with the facts of its atomic transactions."""
    facts = []
    for index, (one, touched) in enumerate(txs):
        addresses = watched.addresses_in(dict.fromkeys(touched))
        if addresses:
            facts.append(Fact(BALANCE_CHANGE, index, one.txid, addresses=tuple(sorted(addresses))))
    return PrimaryBlock(C, height, block_id, time, facts)
