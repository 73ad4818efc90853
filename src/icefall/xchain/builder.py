"""Makes the next block of what waits in the mempool."""

from typing import NamedTuple

from icefall.wire.avm.codec import pack_block
from icefall.wire.avm.types import Block
from icefall.xchain.blocks import execute
from icefall.xchain.execute import Overlay
from icefall.xchain.mempool import Mempool
from icefall.xchain.model import ChainRules, LedgerState, TxEffects, TxRefused
from icefall.xchain.ownership import Recover, Signers
from icefall.xchain.syntax import verify_syntax

BLOCK_SIZE_TARGET = 131_072


class BuiltBlock(NamedTuple):
    """A block, unless no transaction was fit for one; and what was thrown out on the way."""

    block: Block | None
    effects: tuple[TxEffects, ...]
    dropped: tuple[tuple[bytes, str], ...]  # transaction ID, reason


def build(
    mempool: Mempool,
    parent: Block,
    rules: ChainRules,
    state: LedgerState,
    now_s: int,
    txs_max: int = 0,
    recover: Recover | None = None,
) -> BuiltBlock:
    """The block upon `parent`, oldest transactions first, up to the first that is too large for what room is left, or
    up to `txs_max` of them (0: any number).

    Invalid ones leave the mempool at once. Those in the block stay until `Mempool.accepted` is told of it.
    """
    overlay = Overlay(state)
    signers = Signers() if recover is None else recover
    effects: list[TxEffects] = []
    dropped: list[tuple[bytes, str]] = []
    room = BLOCK_SIZE_TARGET
    for tx in mempool:
        if len(tx.raw) > room or (txs_max and len(effects) == txs_max):
            break
        try:
            verify_syntax(tx, rules)  # what came through the wallet was never looked at
            effects.append(execute(tx, rules, overlay, now_s, signers))
        except TxRefused as refusal:
            dropped.append((tx.txid, str(refusal)))
        else:
            room -= len(tx.raw)
    for txid, reason in dropped:
        mempool.drop(txid, reason)
    if not effects:
        return BuiltBlock(None, (), tuple(dropped))
    time = max(now_s, parent.time)
    block = pack_block(parent.block_id, parent.height + 1, time, [row.tx for row in effects])
    return BuiltBlock(block, tuple(effects), tuple(dropped))
