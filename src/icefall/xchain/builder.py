"""Builds the next block from the transactions in the mempool."""

from typing import NamedTuple

from icefall.wire.avm.codec import pack_block
from icefall.wire.avm.types import Block
from icefall.xchain.execute import Overlay, execute
from icefall.xchain.mempool import Mempool
from icefall.xchain.model import ChainRules, LedgerState, TxEffects, TxRefused
from icefall.xchain.ownership import Recover, Signers
from icefall.xchain.syntax import verify_syntax

BLOCK_SIZE_TARGET = 131_072


class BuiltBlock(NamedTuple):
    """A block, unless no transaction was valid; and the transactions that were dropped from the mempool."""

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
    """The block upon `parent`, oldest transactions first, up to the first that does not fit into the bytes left, or up
    to `txs_max` of them (0: any number).

    Invalid ones leave the mempool at once. Those in the block stay until `Mempool.accepted` is called.
    """
    overlay = Overlay(state)
    signers = Signers() if recover is None else recover
    effects: list[TxEffects] = []
    dropped: list[tuple[bytes, str]] = []
    bytes_left = BLOCK_SIZE_TARGET
    for tx in mempool:
        if len(tx.raw) > bytes_left or (txs_max and len(effects) == txs_max):
            break
        try:
            verify_syntax(tx, rules)  # transactions issued through the wallet API were not verified
            effects.append(execute(tx, rules, overlay, now_s, signers))
        except TxRefused as refusal:
            dropped.append((tx.txid, str(refusal)))
        else:
            bytes_left -= len(tx.raw)
    for txid, reason in dropped:
        mempool.drop(txid, reason)
    if not effects:
        return BuiltBlock(None, (), tuple(dropped))
    time = max(now_s, parent.time)
    block = pack_block(parent.block_id, parent.height + 1, time, [row.tx for row in effects])
    return BuiltBlock(block, tuple(effects), tuple(dropped))
