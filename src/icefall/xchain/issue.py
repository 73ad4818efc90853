"""Issuing a transaction: from its text into the mempool."""

from icefall.wire.avm.codec import unpack_tx
from icefall.wire.avm.types import Tx
from icefall.wire.errors import WireError
from icefall.wire.text import checksum_hex
from icefall.xchain.mempool import Mempool
from icefall.xchain.model import ChainRules, LedgerState, TxRefused
from icefall.xchain.ownership import Recover
from icefall.xchain.semantics import verify_semantics
from icefall.xchain.syntax import verify_syntax


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
