"""Transactions that wait for a block: how one is issued, and the pool that holds them.

The pool is ordered by arrival, no two of its transactions spend the same UTXO, and it is limited in bytes. Final
refusals are remembered for a while: the same transaction gets the same answer without being verified again.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from icefall.wire.avm.codec import unpack_tx
from icefall.wire.avm.types import Tx
from icefall.wire.errors import WireError
from icefall.wire.ids import id_text
from icefall.wire.text import checksum_hex
from icefall.xchain.execute import input_ids
from icefall.xchain.model import ChainRules, LedgerState, TxRefused
from icefall.xchain.ownership import Recover
from icefall.xchain.semantics import verify_semantics
from icefall.xchain.syntax import verify_syntax

TX_SIZE_MAX = 65_536
SIZE_MAX = 64 * 2**20
REFUSALS_MAX = 64

Value = TypeVar("Value")


class Refusal(NamedTuple):
    """A transaction that was refused, and why. `is_final` is explained at `TxRefused`."""

    txid: bytes
    reason: str
    is_final: bool


class Mempool:
    """Plain memory, no clock and no I/O. `in` takes an ID; iterating gives the transactions, oldest first.

    `remembers_all`: refusals that are not final are remembered too, so that such a transaction is refused until enough
    others were.
    """

    __slots__ = ("_conflicts", "_refusals", "_remembers_all", "_size_max", "_spenders", "_txs", "size")

    def __init__(self, size_max: int = SIZE_MAX, *, remembers_all: bool = False) -> None:
        self.size = 0  # bytes of all waiting transactions
        self._size_max = size_max
        self._remembers_all = remembers_all
        self._txs: dict[bytes, Tx] = {}
        self._spenders: dict[bytes, bytes] = {}  # UTXO ID -> ID of the transaction that spends it
        self._refusals: dict[bytes, str] = {}  # the most recently used last
        self._conflicts: dict[bytes, Tx] = {}  # refused for a conflict that is not decided yet

    def add(self, tx: Tx, verify: Callable[[Tx], None]) -> None:
        """Adds a transaction after verifying it, or raises TxRefused. Adding one that is already there does nothing."""
        if tx.txid in self._txs:
            return
        reason = self._refusals.pop(tx.txid, None)
        if reason is not None:
            self._refusals[tx.txid] = reason
            raise TxRefused(reason)
        try:
            verify(tx)
        except TxRefused as refusal:
            self.drop(Refusal(tx.txid, str(refusal), refusal.is_final))
            raise
        self.put(tx)

    def put(self, tx: Tx) -> None:
        """Adds a transaction without verifying it, even if it was refused before."""
        if tx.txid in self._txs:
            return
        size, available = len(tx.raw), self._size_max - self.size
        spent = input_ids(tx)
        if size > TX_SIZE_MAX:
            raise self._refused(tx, f"tx too large: {id_text(tx.txid)} size ({size}) > max size ({TX_SIZE_MAX})")
        if size > available:  # not the fault of the transaction, so it is not remembered
            text = f"mempool is full: {id_text(tx.txid)} size ({size}) > available space ({available})"
            raise TxRefused(text, is_final=False)
        if not self._spenders.keys().isdisjoint(spent):
            _put_bounded(self._conflicts, tx.txid, tx)
            raise self._refused(tx, _conflict(tx), is_final=False)
        self._txs[tx.txid] = tx
        self.size += size
        for utxo_id in spent:
            self._spenders[utxo_id] = tx.txid
        self._refusals.pop(tx.txid, None)
        self._conflicts.pop(tx.txid, None)

    def drop(self, refusal: Refusal) -> None:
        """Removes a transaction that turned out invalid, and remembers why if that is final."""
        self._take(refusal.txid)
        if refusal.is_final or self._remembers_all:
            _put_bounded(self._refusals, refusal.txid, refusal.reason)

    def accepted(self, txs: Sequence[Tx]) -> list[Refusal]:
        """Removes transactions that are in a block now, and those that spend the same UTXOs. Returns the refusals that
        became final (`conflicts_with`)."""
        refusals = self.conflicts_with(txs)
        for tx in txs:
            if not self._take(tx.txid):
                for utxo_id in input_ids(tx):
                    conflicting = self._spenders.get(utxo_id)
                    if conflicting is not None:
                        self._take(conflicting)
        for refusal in refusals:
            del self._conflicts[refusal.txid]
            self.drop(refusal)
        return refusals

    def conflicts_with(self, txs: Sequence[Tx]) -> list[Refusal]:
        """The refusals that become final when `txs` are accepted: of transactions refused for a conflict with them."""
        spent = {utxo_id for tx in txs for utxo_id in input_ids(tx)}
        losers = [tx for tx in self._conflicts.values() if not spent.isdisjoint(input_ids(tx))]
        return [Refusal(tx.txid, _conflict(tx), is_final=True) for tx in losers]

    def __contains__(self, txid: bytes) -> bool:
        return txid in self._txs

    def refusal(self, txid: bytes) -> str | None:
        """Why a transaction was refused, if that is still remembered."""
        return self._refusals.get(txid)

    def __iter__(self) -> Iterator[Tx]:
        return iter(self._txs.values())

    def __len__(self) -> int:
        return len(self._txs)

    def _take(self, txid: bytes) -> bool:
        tx = self._txs.pop(txid, None)
        if tx is None:
            return False
        self.size -= len(tx.raw)
        for utxo_id in input_ids(tx):
            self._spenders.pop(utxo_id, None)
        return True

    def _refused(self, tx: Tx, reason: str, *, is_final: bool = True) -> TxRefused:
        self.drop(Refusal(tx.txid, reason, is_final))
        return TxRefused(reason, is_final=is_final)


def _conflict(tx: Tx) -> str:
    return f"tx conflicts with other tx: {id_text(tx.txid)}"


def _put_bounded(known: dict[bytes, Value], txid: bytes, value: Value) -> None:
    """Puts the newest entry last and drops the oldest above the limit."""
    known.pop(txid, None)
    known[txid] = value
    if len(known) > REFUSALS_MAX:
        del known[next(iter(known))]


def parse_issue(tx_text: str, encoding: str = "hex") -> Tx:
    """A transaction as `issueTx` receives it. `encoding` is a canonical name (`checksum_hex.encoding_name`)."""
    try:
        raw = checksum_hex.decode(tx_text, encoding)
    except WireError as error:
        raise TxRefused(f"problem decoding transaction: {error}") from error
    try:
        return unpack_tx(raw)
    except WireError as error:
        raise TxRefused(str(error)) from error


def verify_tx(tx: Tx, rules: ChainRules, state: LedgerState, now_s: int, recover: Recover | None = None) -> None:
    """Refuses a transaction that could not go into a block upon `state`."""
    verify_syntax(tx, rules)
    verify_semantics(tx, rules, state, now_s, recover)


def issue(
    tx: Tx, mempool: Mempool, rules: ChainRules, state: LedgerState, now_s: int, recover: Recover | None = None
) -> None:
    """Puts a transaction into the mempool. `state` is the last accepted one, without the mempool."""
    mempool.add(tx, lambda fresh: verify_tx(fresh, rules, state, now_s, recover))
