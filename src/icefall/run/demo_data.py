"""What is stored of the demo's chains, where a chain of the user has the same ID: 31337 is what anvil takes by default.

Only a chain whose genesis is its own can be recognised this way: every local network has the C-Chain's genesis.
"""

from pathlib import Path

from icefall.config.settings import Config
from icefall.db.engine import StoreError
from icefall.db.lock import StoreLock
from icefall.demo.chains import own_genesis
from icefall.evm.reading.chain import SQL
from icefall.run.stores import chain_files, open_chain_blocking_reader


def drop_demo_data(config: Config) -> list[str]:
    """Deletes stored demo chains whose IDs are configured for other chains; their IDs. Before the demo is added."""
    data_dir, recorded, dropped = Path(config.data_dir), own_genesis(), []
    for chain in config.chain:
        if chain.id in recorded and _stored_genesis(data_dir, chain.id) == recorded[chain.id]:
            files = chain_files(data_dir, chain.id)
            try:
                lock = StoreLock(files[0].with_suffix(".lock"))
            except StoreError:  # a running program indexes the demo: this one will be refused
                continue
            for path in files:
                path.unlink(missing_ok=True)
            lock.release()
            dropped.append(chain.id)
    return dropped


def taken_ids(data_dir: Path) -> set[str]:
    """IDs of demo chains under which another chain is stored: it was configured once, and is kept."""
    recorded = own_genesis()
    stored = {chain_id: _stored_genesis(data_dir, chain_id) for chain_id in recorded}
    return {chain_id for chain_id, genesis in stored.items() if genesis not in ("", recorded[chain_id])}


def _stored_genesis(data_dir: Path, chain_id: str) -> str:
    """Empty if there is none, or it cannot be read."""
    try:
        reader = open_chain_blocking_reader(data_dir, chain_id)
        if reader is None:
            return ""
        try:
            rows = reader.read(SQL.meta, {"name": "genesis_hash"})
        finally:
            reader.close()
    except StoreError:
        return ""
    return str(rows[0][0]) if rows else ""
