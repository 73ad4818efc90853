"""`icefall index --accept-reorg=<chain ID>`: rolls the store of one chain back to what its upstreams have now.

Also where the indexer by itself does not: too far, to a lower head, of a final chain, or to another genesis.
"""

from collections.abc import Callable
from contextlib import AsyncExitStack

from icefall.config.settings import Config
from icefall.errors import StartRefused
from icefall.evm.following.reorgs import Reorganisations, ReorgRules, roll_back
from icefall.evm.storing.store import ChainStore
from icefall.metrics.store import RollupWriter
from icefall.observe.log import Logs
from icefall.run.stores import stores_of
from icefall.upstream.client import UpstreamFailure
from icefall.upstream.evm.upstream import EvmUpstream, RequiredTraces


async def run_accept_reorg(config: Config, logs: Logs, write_line: Callable[[str], None]) -> int:
    """StartRefused while the store is in use (StoreError), or if the upstreams do not agree with each other."""
    chain = next((chain for chain in config.chain if chain.id == config.accept_reorg), None)
    if chain is None:
        raise StartRefused(f"--accept-reorg: no [[chain]] has the id {config.accept_reorg}")
    stores, name = stores_of(config), chain.name or chain.id
    if not stores.has_chain_store(chain.id):
        stores.close()
        raise StartRefused(f"chain {chain.id} is not indexed in {config.data_dir}: nothing to roll back")
    async with AsyncExitStack() as opened:
        opened.callback(stores.close)
        store = ChainStore(stores.chain_store(chain.id), [RollupWriter()], chain.cumulative_tx_offset)
        opened.callback(store.close)
        no_traces = RequiredTraces(calls=False, diffs=False)  # no block is fetched
        upstream = EvmUpstream(chain.rpc, int(chain.id), logs[f"chain-{chain.id}"], required=no_traces, genesis=None)
        opened.push_async_callback(upstream.close)
        tip = store.tip()
        if tip is None:
            write_line(f"{name}: no block is stored: nothing to roll back")
            return 0
        try:
            await upstream.probe_all()
            accepted = await Reorganisations(store, upstream, ReorgRules(chain.id)).accept(tip)
            if accepted is not None:
                await roll_back(store, upstream, accepted)
        except UpstreamFailure as error:
            raise StartRefused(f"chain {chain.id} was not rolled back: {error}") from error
        now = store.tip()
        if accepted is None:
            write_line(f"{name}: block {tip.number} is part of the upstream's chain: nothing to roll back")
        elif now is None:
            write_line(f"{name}: all blocks up to {tip.number} were dropped; `icefall index` begins anew")
        else:
            write_line(
                f"{name}: rolled back from block {tip.number} to {now.number}; `icefall index` goes on from there"
            )
    return 0
