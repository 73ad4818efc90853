"""How a local network begins: with nothing but its genesis, or with the demo's recorded history."""

import time
from functools import partial

from icefall.config.load import Config
from icefall.db.engine import Store, Transaction
from icefall.demo import history
from icefall.errors import StartRefused
from icefall.node.following.foreign import ForeignChain
from icefall.node.following.verify import ChainLinks, FollowedChain
from icefall.node.index import BLOCKS_OF
from icefall.node.store import SQL, read_fact
from icefall.observe.log import Log
from icefall.primary.following import OtherChain, XChain
from icefall.primary.network import Network
from icefall.xchain.ledger import Ledger


def genesis_time(config: Config, store: Store) -> tuple[int, bool]:
    """When the network began, and whether it is to begin with the recorded history.

    Only a data directory that was never started does: what somebody has begun otherwise is theirs.
    """
    known = read_fact(store, "genesis_time")
    if known is not None:
        return int(known), False
    fees = config.tx_fee, config.create_asset_tx_fee
    recorded = config.demo and history.fits(config.network_id, config.genesis_file, config.upstream, fees)
    return (history.GENESIS_TIME, True) if recorded else (int(time.time()), False)


def put_state(state: str, tx: Transaction) -> None:
    """How far this data directory is with the recorded history."""
    tx.run(SQL.put_fact, {"name": history.FACT, "value": state})


def foreign_chains(config: Config, network: Network, store: Store) -> dict[str, ForeignChain]:
    """P and C, which nobody moves here: they stand where the recorded history has left them."""
    return {
        chain.name: ForeignChain(
            store,
            chain.name,
            chain.chain_id,
            chain.genesis_block_id,
            BLOCKS_OF[chain.name] if config.index_enabled else None,
        )
        for chain in network.chains
        if chain.name in ("P", "C")
    }


async def take_over_history(store: Store, ledger: Ledger, foreign: dict[str, ForeignChain], log: Log) -> None:
    """What was begun is finished, also after a kill and also without --demo; then never again."""
    if read_fact(store, history.FACT) != history.BEGUN:
        return
    x_id, began = ledger.rules.chain_id, time.monotonic()
    chains: dict[str, FollowedChain] = {name: OtherChain(chain, x_id) for name, chain in foreign.items()}
    chains["X"] = XChain(ledger)
    links = {name: ChainLinks(name, x_id) for name in chains}
    try:
        await history.bring_in(chains, links, lambda name, count: log.debug("recorded history", chain=name, has=count))
    except history.InvalidHistory as spoilt:
        raise StartRefused(f"{spoilt}. Use another --data-dir, with --no-demo to begin with nothing") from spoilt
    await store.write(partial(put_state, history.DONE))
    counts = {name: chain.count for name, chain in chains.items()}
    log.info("the recorded history is taken over", containers=counts, seconds=round(time.monotonic() - began, 2))
