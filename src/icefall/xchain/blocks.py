"""Whether a block may follow its parent, and what it changes."""

from icefall.wire.avm.types import Block, Tx
from icefall.wire.ids import EMPTY_ID, id_text
from icefall.xchain.execute import Overlay, effects_of
from icefall.xchain.model import ChainRules, LedgerState, TxEffects, TxRefused
from icefall.xchain.ownership import Recover, Signers
from icefall.xchain.semantics import verify_semantics
from icefall.xchain.syntax import verify_syntax

FUTURE_MAX_S = 10


def verify_block(
    block: Block, parent: Block, rules: ChainRules, state: LedgerState, now_s: int, recover: Recover | None = None
) -> tuple[TxEffects, ...]:
    """The effects of a block's transactions, in order. `state` is the state after `parent`."""
    if block.merkle_root != EMPTY_ID:
        raise TxRefused(f"unexpected merkle root: {id_text(block.merkle_root)}")
    if block.time > now_s + FUTURE_MAX_S:
        raise TxRefused("proposed timestamp is too far in the future relative to local time")
    if not block.txs:
        raise TxRefused("block contains no transactions")
    for tx in block.txs:
        verify_syntax(tx, rules)
    if block.parent_id != parent.block_id:
        raise TxRefused(f"parent must be {id_text(parent.block_id)}, got {id_text(block.parent_id)}")
    if block.height != parent.height + 1:
        raise TxRefused(f"block has incorrect height: expected height {parent.height + 1}, got {block.height}")
    if block.time < parent.time:
        raise TxRefused("proposed timestamp before current chain time")
    overlay = Overlay(state)
    signers = Signers() if recover is None else recover
    return tuple([execute(tx, rules, overlay, now_s, signers) for tx in block.txs])


def execute(tx: Tx, rules: ChainRules, overlay: Overlay, now_s: int, recover: Recover) -> TxEffects:
    """Verifies a well-formed transaction on `overlay` and adds its effects there. If refused, nothing changes."""
    verify_semantics(tx, rules, overlay, now_s, recover)
    effects = effects_of(tx, overlay)
    overlay.add(effects)
    return effects
