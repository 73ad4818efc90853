"""How a local network begins: with nothing but its genesis, or with the history recorded for the demo."""

import time
from functools import partial

from icefall.db.engine import Store, Transaction
from icefall.demo import history
from icefall.errors import StartRefused
from icefall.node.store import SQL, read_meta
from icefall.node.sync.foreign import ForeignChain
from icefall.node.sync.verify import ChainLinks, FollowedChain
from icefall.observe.log import Log
from icefall.primary.chains import FollowedForeignChain, XChain
from icefall.xchain.ledger import Ledger


def genesis_time(store: Store, *, with_history: bool) -> tuple[int, bool]:
    """When the network began, and whether the demo history is to be imported.

    Only into a data directory that was never started: an existing network keeps what it has.
    """
    known = read_meta(store, "genesis_time")
    if known is not None:
        return int(known), False
    return (history.GENESIS_TIME, True) if with_history else (int(time.time()), False)


def put_state(state: str, tx: Transaction) -> None:
    """How far the import of the demo history is."""
    tx.run(SQL.put_meta, {"name": history.META_NAME, "value": state})


async def import_history(store: Store, ledger: Ledger, foreign: dict[str, ForeignChain], log: Log) -> None:
    """Imports the demo history if that was begun and is not done, also after a kill and also without --demo."""
    if read_meta(store, history.META_NAME) != history.BEGUN:
        return
    x_id, began = ledger.rules.chain_id, time.monotonic()
    chains: dict[str, FollowedChain] = {name: FollowedForeignChain(chain, x_id) for name, chain in foreign.items()}
    chains["X"] = XChain(ledger)
    links = {name: ChainLinks(name, x_id) for name in chains}

    def report(name: str, count: int) -> None:
        log.debug("importing the demo history", chain=name, has=count)

    try:
        await history.import_into(chains, links, report)
    except history.InvalidHistory as error:
        raise StartRefused(f"{error}. Use another --data-dir, with --no-demo to begin with nothing") from error
    await store.write(partial(put_state, history.DONE))
    counts = {name: chain.count for name, chain in chains.items()}
    log.info("demo history imported", containers=counts, seconds=round(time.monotonic() - began, 2))
