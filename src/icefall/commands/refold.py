"""`icefall index --refold`: it makes balances exact that were stored before the layout of their token was known."""

import time
from collections.abc import Callable
from contextlib import AsyncExitStack

from icefall.compose.indexed_chain import upstream_of
from icefall.compose.node_setup import chain_log_name
from icefall.compose.stores import stores_of
from icefall.config.settings import Config
from icefall.errors import StartRefused
from icefall.evm.indexing.follower import FollowerStatus
from icefall.evm.indexing.progress import Display
from icefall.evm.indexing.refold import Refold
from icefall.evm.layouts.proof import Prover
from icefall.evm.status import RefoldProgress
from icefall.evm.storing.store import ChainStore
from icefall.metrics.store import RollupWriter
from icefall.observe.log import Logs
from icefall.upstream.client import UpstreamFailure


async def run_refold(config: Config, logs: Logs, display: Display, write_line: Callable[[str], None]) -> int:
    """Run to the end: 1 if a token stays as it was. StoreError while the store is in use."""
    chain = next((chain for chain in config.chain if chain.id == config.refold), None)
    if chain is None:
        raise StartRefused(f"--refold: no [[chain]] has the id {config.refold}")
    stores, name = stores_of(config), chain.name or chain.id
    if not stores.has_chain_store(chain.id):
        stores.close()
        raise StartRefused(f"chain {chain.id} is not indexed in {config.data_dir}: nothing to refold")
    async with AsyncExitStack() as opened:
        opened.callback(stores.close)
        store = ChainStore(stores.chain_store(chain.id), [RollupWriter()], chain.cumulative_tx_offset)
        opened.callback(store.close)
        if store.meta("has_diffs") == "0":
            raise StartRefused(f"chain {chain.id} was indexed without state diffs: no token has a known layout")
        upstream = upstream_of(chain, store, logs[chain_log_name(chain)])
        opened.push_async_callback(upstream.close)
        status = FollowerStatus()

        def show(progress: RefoldProgress) -> None:
            blocks = progress.next - 1
            status.blocks += 0 if status.tip is None else blocks - status.tip
            status.tip, status.target = blocks, progress.end - 1
            display.show(time.monotonic(), {name: status}, {name: upstream.source_name()})

        try:
            await upstream.probe_all()
            done = await Refold(store, upstream, Prover(upstream, upstream.is_avalanche), show).run()
        except UpstreamFailure as error:
            raise StartRefused(f"chain {chain.id} is not refolded yet: {error}; run it again to go on") from error
        write_line(_summary(name, done))
    return 0 if done is None or not done.failed else 1


def _summary(name: str, done: RefoldProgress | None) -> str:
    if done is None:
        return f"{name}: no block is stored: nothing to refold"
    text = f"{name}: the balances of {done.done} tokens are those of their storage, {done.corrected} were corrected"
    if not done.failed:
        return text
    shown = ", ".join("0x" + address for address in done.failed[:5])
    more = f" and {len(done.failed) - 5} more" if len(done.failed) > 5 else ""
    return f"{text}; {len(done.failed)} tokens stay as they were, because their past cannot be followed: {shown}{more}"
