"""Lists of the primary network written with the blocks of P and C: what they move between chains, and who proposed.

A data directory of an older release has blocks that were stored without. They are listed in the background, as those
of X are (`xchain/listed.py`); until all before it are, a new block is left to that too.
"""

import asyncio
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from icefall.db.engine import Store, StoreError, Transaction
from icefall.node.core_chain import put_core_blocks, put_core_txs
from icefall.node.store import SQL as NODE
from icefall.node.store import meta
from icefall.node.sync.foreign import ForeignChain
from icefall.node.sync.verify import VerifiedContainer
from icefall.observe.log import Log
from icefall.pchain.changes import Changes
from icefall.pchain.listing import SQL as PLATFORM
from icefall.primary.outbox import PrimaryOutbox
from icefall.wire.avm.codec import pack_utxo
from icefall.wire.avm.types import Utxo
from icefall.wire.container.core_txs import CoreTx, core_txs_of
from icefall.wire.container.coreth import unpack_coreth_block
from icefall.wire.container.platform import block_in_container
from icefall.wire.container.proposer import certificate_in
from icefall.wire.ids import PLATFORM_CHAIN, hash256, input_id
from icefall.wire.packer import GENESIS_SIZE_MAX
from icefall.wire.pvm.codec import pack_utxo as pack_platform_utxo
from icefall.wire.pvm.codec import unpack_block
from icefall.wire.pvm.codec import unpack_tx as unpack_platform_tx
from icefall.wire.pvm.types import PlatformBlock, PlatformExportTx, PlatformImportTx, PlatformTx, PlatformUtxo
from icefall.xchain.model import owners_of
from icefall.xchain.outputs import (
    SQL,
    ListedOutput,
    NewOutput,
    SpentOutput,
    amount_of,
    certificate_of,
    fee_asset,
    listed_until,
    put_listed,
    put_outputs,
    put_proposers,
    signers_of,
    spend_outputs,
)

_BATCH = 256
_STORE_RETRY_S = 1.0
_FIRST_P = 1  # block 0 moves nothing and has no proposer
_COMPLETE = "p_moves_in_proposals"  # whether what proposals of P moved is in the lists


class Steps(Protocol):
    """Lists what is stored, some of it at a time."""

    async def step(self) -> bool:
        """False if all is listed."""
        ...


async def list_stored(chains: Sequence[Steps], log: Log) -> None:
    """List in the background what was stored before. Runs for ever, as everything that the engine runs does."""
    for chain in chains:
        while True:
            try:
                if not await chain.step():
                    break
            except StoreError as error:
                log.error("stored blocks could not be listed; trying again", error=str(error))
                await asyncio.sleep(_STORE_RETRY_S)
            await asyncio.sleep(0)
    await asyncio.Event().wait()


# -- P -------------------------------------------------------------------------------------------------------------


class _MovingTx(NamedTuple):
    """A transaction of P that imports or exports, with its block."""

    tx: PlatformTx
    height: int
    time: int


class ListedPlatform:
    """Lists blocks of P. What a proposal moves, besides what it proposes, is listed with the block that decides it."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def put(self, tx: Transaction, changes: Changes) -> None:
        """List executed blocks in the transaction that stores them."""
        blocks = changes.blocks
        if listed_until(tx, PLATFORM_CHAIN, _FIRST_P) != blocks[0].height:
            return
        times = {block.height: block.time for block in blocks}
        moving = [
            _MovingTx(row.tx, row.height, times.get(row.height) or _stored_time(tx, row.height))
            for row in changes.txs
            if isinstance(row.tx.unsigned, PlatformImportTx | PlatformExportTx)
            if row.height in times or not is_listed(tx, row.tx)
        ]
        _list_platform(tx, moving, [(block.height, block.certificate) for block in blocks])

    async def step(self) -> bool:
        return await self._store.write(self._put_stored)

    def _put_stored(self, tx: Transaction) -> bool:
        _list_left_out(tx)
        at = listed_until(tx, PLATFORM_CHAIN, _FIRST_P)
        low = max(at - 1, _FIRST_P)  # the one before may be a proposal
        rows = tx.rows(PLATFORM.blocks, {"low": low, "below": at + _BATCH, "limit": at + _BATCH - low})
        if not rows or rows[0][0] < at:
            return False
        moving: list[_MovingTx] = []
        certificates = []
        undecided: list[_MovingTx] = []
        for height, _, time, raw, inner_at, size, *_ in reversed(rows):
            block = unpack_block(raw[inner_at : inner_at + size], GENESIS_SIZE_MAX)
            moves = _moves_of(block, height, time)
            if height >= at:
                certificates.append((height, certificate_in(raw, inner_at)))
                moving += [one for one in undecided if height > at or not is_listed(tx, one.tx)]
                moving += moves if block.proposal is None else []
            undecided = moves if block.proposal is not None else []
        _list_platform(tx, moving, certificates)
        return True


def _moves_of(block: PlatformBlock, height: int, time: int) -> list[_MovingTx]:
    moving = [one for one in block.txs if isinstance(one.unsigned, PlatformImportTx | PlatformExportTx)]
    return [_MovingTx(one, height, time) for one in moving]


def _stored_time(tx: Transaction, height: int) -> int:
    """The time of a proposal that was stored with an earlier batch than the block that decided it."""
    return int(tx.rows(PLATFORM.block_time, {"height": height})[0][0])


def _list_left_out(tx: Transaction) -> None:
    """List, once, what an older release left out: moves of proposals that were stored with an earlier batch than the
    block that decided them. Such a release may also have listed those of the last proposal before that was decided."""
    if meta(tx, _COMPLETE):
        return
    below = listed_until(tx, PLATFORM_CHAIN, _FIRST_P) - 1  # the last one may be undecided
    rows = tx.rows(PLATFORM.moves_in_proposals, {"below": below})
    moving = [_MovingTx(unpack_platform_tx(raw, GENESIS_SIZE_MAX), height, time) for raw, height, time in rows]
    _list_moves(tx, [one for one in moving if not is_listed(tx, one.tx)])
    tx.run(NODE.put_meta, {"name": _COMPLETE, "value": "1"})


def is_listed(tx: Transaction, one: PlatformTx) -> bool:
    """Tell whether the lists have what an import or export moves."""
    unsigned = one.unsigned
    if isinstance(unsigned, PlatformImportTx):
        given = unsigned.imported_inputs[0]
        utxo_id, source = input_id(given.txid, given.output_index), unsigned.source_chain
        if tx.rows(SQL.early_spent, {"utxo_id": utxo_id, "source": source}):
            return True
    else:
        assert isinstance(unsigned, PlatformExportTx)
        utxo_id, source = input_id(one.txid, len(unsigned.outputs)), PLATFORM_CHAIN
    found = [ListedOutput(*row) for row in tx.rows_of_each(SQL.output_of, [(utxo_id,)])]
    is_import = isinstance(unsigned, PlatformImportTx)
    return any(row.source == source and (not is_import or row.spent_txid == one.txid) for row in found)


def _list_platform(tx: Transaction, moving: Iterable[_MovingTx], certificates: Sequence[tuple[int, bytes]]) -> None:
    _list_moves(tx, moving)
    put_proposers(tx, PLATFORM_CHAIN, certificates)
    put_listed(tx, PLATFORM_CHAIN, certificates[-1][0] + 1, None)  # the ledger of P has its sum


def _list_moves(tx: Transaction, moving: Iterable[_MovingTx]) -> None:
    made: list[NewOutput] = []
    spent: list[SpentOutput] = []
    inputs: list[tuple[PlatformTx, int]] = []
    for one, height, time in moving:
        unsigned = one.unsigned
        if isinstance(unsigned, PlatformExportTx):
            for index, out in enumerate(unsigned.exported_outputs, len(unsigned.outputs)):
                raw = pack_platform_utxo(PlatformUtxo(one.txid, index, out.asset_id, out.output))
                utxo_id = input_id(one.txid, index)
                made.append(NewOutput(utxo_id, PLATFORM_CHAIN, unsigned.destination_chain, raw, height, time))
        elif isinstance(unsigned, PlatformImportTx):
            spent += [
                SpentOutput(input_id(given.txid, given.output_index), unsigned.source_chain, one.txid, height, time)
                for given in unsigned.imported_inputs
            ]
            first = len(unsigned.inputs)
            inputs += [(one, first + number) for number in range(len(unsigned.imported_inputs))]
    put_outputs(tx, made)
    payers: list[tuple[bytes, bytes]] = []
    for (importing, position), owners in zip(inputs, spend_outputs(tx, spent), strict=True):
        known = owners or _platform_signers(importing, position)
        payers += [(address, importing.txid) for address in dict.fromkeys(known)]
    tx.run_many(SQL.put_platform_import_owner, payers)


def _platform_signers(one: PlatformTx, position: int) -> list[bytes]:
    """Who signed for an input, where its owners are not known yet."""
    if position >= len(one.credentials):
        return []
    return signers_of(one.credentials[position].signatures, hash256(one.raw[: one.unsigned_size]))


# -- C -------------------------------------------------------------------------------------------------------------


class CoreContainer(NamedTuple):
    """A container of C with the block inside."""

    number: int
    raw: bytes
    inner: bytes
    height: int
    block_id: bytes
    time: int


class ListedCore:
    """Lists blocks of C."""

    def __init__(self, store: Store, chain: ForeignChain, outbox: PrimaryOutbox | None = None) -> None:
        self._store = store
        self._chain = chain
        self.outbox = outbox

    def put(self, tx: Transaction, number: int, batch: Sequence[VerifiedContainer]) -> None:
        """List containers, of which `number` is the first one's, in the transaction that stores them."""
        if batch and listed_until(tx, self._chain.chain_id) == number:
            rows = enumerate(batch, number)
            self._list(
                tx, [CoreContainer(at, one.raw, one.inner, one.height, one.block_id, one.time) for at, one in rows]
            )

    async def step(self) -> bool:
        chain_id, count = self._chain.chain_id, self._chain.position.count
        known = self._store.read(SQL.listed, {"chain_id": chain_id})
        at = int(known[0][0]) if known else 0
        if at >= count:
            return False
        rows = self._chain.stored(at, _BATCH)
        found = []
        for number, _, raw in rows if rows and rows[0][0] == at else ():
            inner = block_in_container(raw)
            block = unpack_coreth_block(inner)
            found.append(CoreContainer(number, raw, inner, block.height, block.block_id, block.time or 0))
        after = rows[0][0] if rows else count  # the index was off until then, so nothing can be known of them

        def put(tx: Transaction) -> None:
            if listed_until(tx, chain_id) != at:
                return
            if found:
                self._list(tx, found)
            else:
                put_listed(tx, chain_id, after, None)

        await self._store.write(put)
        return True

    def _list(self, tx: Transaction, containers: Sequence[CoreContainer]) -> None:
        chain_id = self._chain.chain_id
        put_core_blocks(tx, [(one.height, one.block_id, one.time, one.number) for one in containers])
        found: list[tuple[int, CoreTx, tuple[bytes, ...]]] = []
        for block in containers:
            own = [(one, _list_core_tx(tx, chain_id, block, one)) for one in core_txs_of(block.inner)]
            found += [(block.height, one, addresses) for one, addresses in own]
            if self.outbox is not None:
                self.outbox.put_core(tx, block.height, block.block_id, block.time, own)
        put_core_txs(tx, found)
        put_proposers(tx, chain_id, [(one.height, certificate_of(one.raw)) for one in containers])
        avax = fee_asset(tx)
        put_listed(tx, chain_id, containers[-1].number + 1, sum(burned_by(one, avax) for _, one, _ in found))


def burned_by(one: CoreTx, asset_id: bytes) -> int:
    """How much of an asset an atomic transaction consumes and does not give on."""
    of_accounts = sum(account.amount for account in one.accounts if account.asset_id == asset_id)
    taken = sum(given.input.amount for given in one.inputs if given.asset_id == asset_id)
    made = sum(amount_of(out.output) for out in one.outputs if out.asset_id == asset_id)
    return taken - of_accounts if one.is_import else of_accounts - made


def _list_core_tx(tx: Transaction, chain_id: bytes, block: CoreContainer, one: CoreTx) -> tuple[bytes, ...]:
    """List what a transaction moves; returns the addresses that it concerns."""
    touched = [account.address for account in one.accounts]
    made: list[NewOutput] = []
    for index, out in enumerate(one.outputs):
        utxo_id = input_id(one.txid, index)
        raw = pack_utxo(Utxo(one.txid, index, out.asset_id, out.output))
        made.append(NewOutput(utxo_id, chain_id, one.peer_chain, raw, block.height, block.time))
        touched += owners_of(out.output)
    put_outputs(tx, made)
    spent = [
        SpentOutput(input_id(given.txid, given.output_index), one.peer_chain, one.txid, block.height, block.time)
        for given in one.inputs
    ]
    for number, owners in enumerate(spend_outputs(tx, spent)):
        signatures = one.signatures[number] if number < len(one.signatures) else ()
        touched += owners or signers_of(signatures, one.digest)
    return tuple(touched)
