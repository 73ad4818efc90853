"""A page of transactions of the P-Chain: what they consumed, made, burned and staked, read in few statements."""

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from icefall.api.networks.network import PrimaryNetwork
from icefall.api.networks.params import TX_NAMES
from icefall.api.networks.render.details import details_of, moved_l1
from icefall.api.networks.render.utxos import exported_utxo, imported_utxo, stored_utxo, sums
from icefall.api.networks.schema.assets import NetworkAsset, PlatformUtxoResult
from icefall.api.networks.schema.transactions import PlatformTransaction
from icefall.pchain.listing import ListedL1Move, ListedStaker, ListedTx, ListedUtxo
from icefall.pchain.model import plain_output
from icefall.pchain.transactions import stake_of
from icefall.wire.ids import PLATFORM_CHAIN, id_text, input_id
from icefall.wire.packer import GENESIS_SIZE_MAX
from icefall.wire.pvm import types as t
from icefall.wire.pvm.codec import unpack_tx
from icefall.xchain.outputs import ListedOutput

_REFUNDING = (t.SetL1ValidatorWeightTx, t.DisableL1ValidatorTx)
_MOVING = (*_REFUNDING, t.IncreaseL1ValidatorBalanceTx)  # of others, their own bytes tell


class TxContext(msgspec.Struct, frozen=True):
    """Everything that a page of transactions refers to."""

    utxos: dict[bytes, ListedUtxo]
    rewards: dict[int, list[ListedUtxo]]  # by the number of the transaction that paid them
    stakers: dict[bytes, ListedStaker]
    reward_txids: dict[bytes, bytes]  # by the staking transaction
    l1_moves: dict[int, list[ListedL1Move]]  # by the number of the transaction
    shared: dict[tuple[bytes, bytes], ListedOutput]  # imported and exported: by the ID and the chain that made it


async def rendered_txs(
    network: PrimaryNetwork, rows: list[ListedTx], *, with_genesis: bool = False
) -> list[PlatformTransaction]:
    txs = [unpack_tx(row.raw, GENESIS_SIZE_MAX) for row in rows]
    context = await _context(network, rows, txs)
    await network.assets.load({asset for tx in txs for asset in _assets_of(tx.unsigned)})
    return [_rendered(network, context, row, tx, with_genesis=with_genesis) for row, tx in zip(rows, txs, strict=True)]


def _assets_of(unsigned: t.UnsignedTx) -> set[bytes]:
    if not isinstance(unsigned, t.PlatformBaseTx):
        return set()
    parts = (*unsigned.inputs, *getattr(unsigned, "imported_inputs", ()), *unsigned.outputs, *stake_of(unsigned))
    return {one.asset_id for one in parts}


async def _context(network: PrimaryNetwork, rows: list[ListedTx], txs: list[t.PlatformTx]) -> TxContext:
    lists = network.lists
    utxo_ids = [utxo_id for tx in txs for utxo_id in (*_consumed(tx), *_made(tx))]
    utxos = await lists.utxos_with_ids(list(dict.fromkeys(utxo_ids)))
    staking = [tx.txid for tx in txs if hasattr(tx.unsigned, "validator")]
    stakers = await lists.stakers_with_ids(staking)
    rewarded = [tx.unsigned.staking_txid for tx in txs if isinstance(tx.unsigned, t.RewardValidatorTx)]
    rewards: dict[int, list[ListedUtxo]] = {}
    for one in (await lists.txs_with_ids(rewarded)).values():
        for paid in await lists.rewards_of(one.seq):
            rewards.setdefault(paid.created_seq, []).append(paid)
    reward_txids = {}
    for tx in txs:
        if stake := stake_of(tx.unsigned):
            assert isinstance(tx.unsigned, t.PlatformBaseTx)
            first = utxos.get(input_id(tx.txid, len(tx.unsigned.outputs)))
            if stake and first is not None and first.returned_seq is not None:
                reward_txids[tx.txid] = await lists.txid_at(first.returned_seq)
    for utxo in (paid for group in rewards.values() for paid in group):
        await network.assets.load([utxo.raw[_ASSET_AT : _ASSET_AT + 32]])
    shared = await network.outputs.with_ids([utxo_id for tx in txs for utxo_id in (*_imported(tx), *_exported(tx))])
    moving = [row.seq for row, tx in zip(rows, txs, strict=True) if isinstance(tx.unsigned, _MOVING)]
    return TxContext(utxos, rewards, stakers, reward_txids, await lists.l1_moves_of(moving), shared)


_ASSET_AT = 2 + 32 + 4  # in a UTXO's bytes: behind the version, the transaction and the index


def _consumed(tx: t.PlatformTx) -> list[bytes]:
    unsigned = tx.unsigned
    if not isinstance(unsigned, t.PlatformBaseTx):
        return []
    return [input_id(one.txid, one.output_index) for one in unsigned.inputs]


def _imported(tx: t.PlatformTx) -> list[bytes]:
    unsigned = tx.unsigned
    if not isinstance(unsigned, t.PlatformImportTx):
        return []
    return [input_id(one.txid, one.output_index) for one in unsigned.imported_inputs]


def _exported(tx: t.PlatformTx) -> list[bytes]:
    unsigned = tx.unsigned
    if not isinstance(unsigned, t.PlatformExportTx):
        return []
    first = len(unsigned.outputs)
    return [input_id(tx.txid, index) for index in range(first, first + len(unsigned.exported_outputs))]


def _made(tx: t.PlatformTx) -> list[bytes]:
    """The IDs of outputs that the transaction made on this chain: its own, its stake, and a refund behind them."""
    unsigned = tx.unsigned
    if not isinstance(unsigned, t.PlatformBaseTx):
        return []
    count = len(unsigned.outputs) + len(stake_of(unsigned)) + isinstance(unsigned, _REFUNDING)
    return [input_id(tx.txid, index) for index in range(count)]


def _rendered(
    network: PrimaryNetwork, context: TxContext, row: ListedTx, tx: t.PlatformTx, *, with_genesis: bool
) -> PlatformTransaction:
    unsigned = tx.unsigned
    consumed, emitted = _utxos(network, context, row, tx)
    burned: list[tuple[bytes, int]] = []
    staked = [(out.asset_id, plain_output(out.output)[0]) for out in stake_of(unsigned)]
    balance = [(network.platform.parameters.avax_asset_id, _l1_balance(unsigned))]
    if isinstance(unsigned, t.PlatformBaseTx):
        inputs = (*unsigned.inputs, *getattr(unsigned, "imported_inputs", ()))
        outputs = (*unsigned.outputs, *getattr(unsigned, "exported_outputs", ()))
        burned = [(one.asset_id, _input_amount(one)) for one in inputs]
        burned += [(one.asset_id, -plain_output(one.output)[0]) for one in outputs]
        burned += [(asset_id, -amount) for asset_id, amount in (*staked, *balance)]
    reward_txid = context.reward_txids.get(tx.txid)
    return PlatformTransaction(
        tx_hash=id_text(row.txid),
        tx_type=TX_NAMES[type(unsigned)],  # type: ignore[arg-type]
        block_timestamp=row.time,
        block_number=str(row.height),
        block_hash=id_text(row.block_id),
        consumed_utxos=consumed,
        emitted_utxos=emitted,
        value=_value(emitted),
        amount_burned=sums(network, burned),
        amount_staked=sums(network, staked),
        amount_l1_validator_balance_burned=sums(network, balance),
        reward_tx_hash=UNSET if reward_txid is None else id_text(reward_txid),
        memo=f"0x{unsigned.memo.hex()}" if isinstance(unsigned, t.PlatformBaseTx) else UNSET,
        **details_of(network, context.stakers.get(tx.txid), row, tx, with_genesis=with_genesis),
        **moved_l1(context.l1_moves.get(row.seq, [])),
    )


def _value(emitted: list[PlatformUtxoResult]) -> list[NetworkAsset]:
    """The sums of outputs by asset; those that are nothing are left out."""
    totals: dict[str, NetworkAsset] = {}
    for one in emitted:
        before = totals.get(one.asset_id)
        amount = int(one.amount) + (int(before.amount) if before is not None else 0)
        totals[one.asset_id] = replace(one.asset, amount=str(amount)) if before is not None else one.asset
    return [one for one in totals.values() if one.amount != "0"]


def _utxos(
    network: PrimaryNetwork, context: TxContext, row: ListedTx, tx: t.PlatformTx
) -> tuple[list[PlatformUtxoResult], list[PlatformUtxoResult]]:
    """What a transaction consumed, and what it made."""
    unsigned = tx.unsigned
    consumed = [stored_utxo(network, context.utxos[one], in_tx=True) for one in _consumed(tx) if one in context.utxos]
    if isinstance(unsigned, t.PlatformImportTx):
        source, first = unsigned.source_chain, len(unsigned.inputs)
        for position, (utxo_id, one) in enumerate(zip(_imported(tx), unsigned.imported_inputs, strict=True), first):
            made = context.shared.get((utxo_id, source))
            consumed.append(imported_utxo(network, row, tx, position, one, source, made))
    emitted = [stored_utxo(network, one, in_tx=True, made=True) for one in _stored_emitted(context, row, tx)]
    if isinstance(unsigned, t.PlatformExportTx):
        exported = zip(_exported(tx), unsigned.exported_outputs, strict=True)
        emitted += [
            exported_utxo(
                network, row, index, one, unsigned.destination_chain, context.shared.get((utxo_id, PLATFORM_CHAIN))
            )
            for index, (utxo_id, one) in enumerate(exported, len(unsigned.outputs))
        ]
    return consumed, emitted


def _stored_emitted(context: TxContext, row: ListedTx, tx: t.PlatformTx) -> list[ListedUtxo]:
    if isinstance(tx.unsigned, t.RewardValidatorTx):
        return context.rewards.get(row.seq, [])
    found = [context.utxos[one] for one in _made(tx) if one in context.utxos]
    return [one for one in found if one.created_seq == row.seq]


def _input_amount(given: t.PlatformInput) -> int:
    return given.input.input.amount if isinstance(given.input, t.StakeableInput) else given.input.amount


def _l1_balance(unsigned: t.UnsignedTx) -> int:
    """What a transaction pays into the balances of L1 validators."""
    if isinstance(unsigned, t.ConvertSubnetToL1Tx):
        return sum(one.balance for one in unsigned.validators)
    if isinstance(unsigned, t.RegisterL1ValidatorTx | t.IncreaseL1ValidatorBalanceTx):
        return unsigned.balance
    return 0
