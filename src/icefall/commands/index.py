"""`icefall index` in this process: it follows the chains, compares what is stored (`--verify`), makes balances of the
past exact (`--refold`, in refold.py), or rolls the store of one chain back to what its upstreams have now
(`--accept-reorg`), also where the indexer by itself does not: too far, to a lower head, of a final chain, or to another
genesis."""

import asyncio
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack, closing
from pathlib import Path

from icefall.commands.refold import run_refold
from icefall.compose.indexed_chain import avax_asset_of, id_or_empty, messengers_of, upstream_of
from icefall.compose.indexer import indexer_logs, proves_roots, run_indexer
from icefall.compose.node_setup import chain_log_name
from icefall.compose.process_file import left_while_indexing
from icefall.compose.shared_chains import put_chain_configs
from icefall.compose.stores import create_data_dir, stores_of
from icefall.config.settings import ChainConfig, Config
from icefall.db.engine import StoreError
from icefall.errors import StartRefused
from icefall.evm.auditing.verify import Verification, stored_blocks, summary
from icefall.evm.auditing.verify_state import StateVerification, state_summary
from icefall.evm.indexing.progress import Display
from icefall.evm.indexing.reorgs import Reorganisations, ReorgRules, roll_back
from icefall.evm.storing.store import ChainStore, Rollups
from icefall.metrics.store import RollupWriter
from icefall.observe.log import Logs
from icefall.observe.program import name_process
from icefall.upstream.client import UpstreamFailure
from icefall.upstream.evm.upstream import EvmUpstream, RequiredTraces
from icefall.webhooks.outbox import Outbox


def run_index(config: Config) -> int:
    """`icefall index`, in this process."""
    create_data_dir(Path(config.data_dir))
    try:
        if config.verify or config.verify_all:
            return asyncio.run(run_verify(config, lambda text: print(text, flush=True)))
        if config.accept_reorg:
            return asyncio.run(run_accept_reorg(config, indexer_logs(config), lambda text: print(text, flush=True)))
        if config.refold:
            display = Display()
            work = run_refold(config, indexer_logs(config, display), display, lambda text: print(text, flush=True))
            return asyncio.run(work)
        with closing(stores_of(config)) as stores:
            put_chain_configs(config, stores)
        name_process()
        with left_while_indexing(Path(config.data_dir)):
            return asyncio.run(run_indexer(config, show=True))
    except StoreError as error:
        raise StartRefused(str(error)) from error
    finally:
        sys.stderr.flush()


async def run_verify(config: Config, write_line: Callable[[str], None]) -> int:
    """`icefall index --verify`: 1 if something is stored that the upstream does not have, or nothing was compared."""
    logs, stores, agree = indexer_logs(config), stores_of(config), True
    for chain in config.chain:
        if not stores.has_chain_store(chain.id):
            raise StartRefused(f"chain {chain.id} is not indexed in {config.data_dir}: nothing to verify")
        store = ChainStore(stores.chain_store(chain.id, exclusive=False))
        upstream = upstream_of(chain, store, logs[chain_log_name(chain)])
        try:
            agree = await _verify_chain(chain, config, store, upstream, write_line) and agree
        except UpstreamFailure as error:
            raise StartRefused(f"chain {chain.id} cannot be compared: {error}") from error
        finally:
            await upstream.close()
            store.close()
    return 0 if agree else 1


async def _verify_chain(
    chain: ChainConfig, config: Config, store: ChainStore, upstream: EvmUpstream, write_line: Callable[[str], None]
) -> bool:
    """Blocks first, then state at the last of them. Whether both are as stored."""
    name = chain.name or chain.id
    compared: list[int] = []
    blocks = stored_blocks(store, config.first_block, config.last_block)
    asset = avax_asset_of(id_or_empty(store.meta("blockchain_id") or ""))
    roots = proves_roots(chain, config)
    verification = Verification(store, upstream, messengers_of(chain), asset, verify_roots=roots)
    found = await verification.run(blocks, compared.append)
    write_line(summary(name, len(compared), found))
    if not compared:
        return False
    last, block_hash = blocks[-1], store.block_hash(blocks[-1])
    if block_hash is None or await upstream.block_hash(last) != block_hash:
        write_line(f"{name}: state cannot be compared: block {last} is another one at the upstream")
        return False
    state = await StateVerification(store, upstream, last, block_hash).run(everything=config.verify_all)
    write_line(state_summary(name, state))
    return not (found or state.differences)


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
        rollups: list[Rollups] = [RollupWriter(), Outbox(chain.id)]
        store = ChainStore(stores.chain_store(chain.id), rollups, chain.cumulative_tx_offset)
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
            accepted = await Reorganisations(store, upstream, ReorgRules(chain.id, config.reorg_depth_max)).accept(tip)
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
