"""Handlers of what addresses did last, and on which chains they are known."""

from collections.abc import Sequence
from typing import NamedTuple

from icefall.api.networks.handlers.transactions import SCAN_MAX
from icefall.api.networks.network import C_CHAIN, P_CHAIN, X_CHAIN, Networks, PrimaryNetwork
from icefall.api.networks.render.c_chain import c_transactions
from icefall.api.networks.render.transactions import rendered_txs
from icefall.api.networks.render.utxos import stored_utxo
from icefall.api.networks.render.x_chain import x_transactions
from icefall.api.networks.schema.assets import PlatformUtxoResult
from icefall.api.networks.schema.c_chain import (
    ActivityParams,
    AddressesBody,
    ChainIdsParams,
    ChainsOfAddress,
    ChainsOfAddressesResult,
    LastActivity,
    NetworkChainParams,
)
from icefall.api.networks.schema.x_chain import UtxoResult
from icefall.errors import NotFound
from icefall.pchain.model import UtxoState
from icefall.wire.ids import id_text
from icefall.xchain.store import NEWEST

_PIECE = 4  # transactions read at a time
_ACTIVITY_NAMES = {"testnet": "fuji"}  # this answer has fewer names than others, as clients check it
_Utxos = Sequence[UtxoResult] | Sequence[PlatformUtxoResult]


class _Newest(NamedTuple):
    """The newest transaction of addresses, with what it consumed and made."""

    time: int
    height: int
    tx_hash: str
    consumed: _Utxos
    made: _Utxos


async def last_activity(params: ActivityParams, networks: Networks) -> LastActivity:
    chain = networks.which(params.network, params.blockchain_id)
    network = await networks.listed(params.network, chain)
    addresses = network.parsed(params.addresses, with_accounts=chain == C_CHAIN)
    newest = await {P_CHAIN: _on_p, X_CHAIN: _on_x, C_CHAIN: _on_c}[chain](network, addresses)
    if newest is None:
        raise NotFound(f"the addresses were not active on the {chain[0].upper()}-Chain")
    owners = set(network.addresses(addresses))
    made = [one for one in newest.made if owners.intersection(one.addresses)]
    consumed = [one for one in newest.consumed if owners.intersection(one.addresses)]
    shown = made or consumed or newest.made or newest.consumed
    return LastActivity(
        timestamp=newest.time,
        block_number=str(newest.height),
        tx_hash=newest.tx_hash,
        utxo_id=shown[-1].utxo_id if shown else "",
        is_consumed=not made and bool(consumed or not newest.made),
        chain_name=chain,  # type: ignore[arg-type]
        network=_ACTIVITY_NAMES.get(network.public_name, network.public_name),
    )


async def posted_last_activity(params: NetworkChainParams, body: AddressesBody, networks: Networks) -> LastActivity:
    addresses = body.read()
    asked = ActivityParams(network=params.network, blockchain_id=params.blockchain_id, addresses=addresses)
    return await last_activity(asked, networks)


async def _on_x(network: PrimaryNetwork, addresses: Sequence[bytes]) -> _Newest | None:
    rows = await network.x_lists.txs_of(addresses, 0, NEWEST, 1, upwards=False)
    if not rows:
        return None
    (tx,) = await x_transactions(network, rows)
    return _Newest(rows[0].time, rows[0].height, tx.tx_hash, tx.consumed_utxos, tx.emitted_utxos)


async def _on_c(network: PrimaryNetwork, addresses: Sequence[bytes]) -> _Newest | None:
    rows = await network.c_lists.txs_of(addresses, 0, NEWEST, 1, upwards=False)
    if not rows:
        return None
    (tx,) = await c_transactions(network, rows)
    return _Newest(rows[0].time, rows[0].height, tx.tx_hash, tx.consumed_utxos or [], tx.emitted_utxos or [])


async def _on_p(network: PrimaryNetwork, addresses: Sequence[bytes]) -> _Newest | None:
    """Transactions that only promise the addresses a reward do not count. Outputs of the genesis were made by no
    transaction."""
    owners, below = set(network.addresses(addresses)), NEWEST
    for _ in range(SCAN_MAX // _PIECE):
        rows = await network.lists.txs_of(addresses, 0, below, _PIECE, upwards=False)
        for row, tx in zip(rows, await rendered_txs(network, rows), strict=True):
            if any(owners.intersection(one.addresses) for one in (*tx.consumed_utxos, *tx.emitted_utxos)):
                return _Newest(row.time, row.height, tx.tx_hash, tx.consumed_utxos, tx.emitted_utxos)
        if len(rows) < _PIECE:
            break
        below = rows[-1].seq
    found = await network.lists.utxos_of(addresses, tuple(UtxoState), None, 1, upwards=False)
    if not found:
        return None
    made = [stored_utxo(network, found[0])]
    return _Newest(found[0].created_time, found[0].height or 0, made[0].tx_hash, [], made)


async def chain_ids(params: ChainIdsParams, networks: Networks) -> ChainsOfAddressesResult:
    """Chains on which each address ever owned an output; of C, one in the shared memory."""
    network = await networks.listed(params.network, P_CHAIN, X_CHAIN, C_CHAIN)
    found = []
    for address in network.parsed(params.addresses):
        chains = [
            network.chain_id(chain)
            for chain in (P_CHAIN, X_CHAIN, C_CHAIN)
            if await network.outputs.owns_on(network.chain_id(chain), address)
            or (chain == P_CHAIN and await network.lists.owns(address))
        ]
        found.append(ChainsOfAddress(address=network.address(address), blockchain_ids=[id_text(one) for one in chains]))
    return ChainsOfAddressesResult(addresses=found)
