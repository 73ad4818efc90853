"""Data of the demo's chains that earlier releases recorded under another ID: it is deleted, nothing refers to it.

The ID was one that anvil takes by default. The genesis distinguishes the recorded chain from one of the user's own.
"""

from pathlib import Path

from icefall.compose.stores import Stores, chain_files
from icefall.db.disk import StoreLock
from icefall.db.engine import StoreError
from icefall.evm.reading.chain import SQL

EARLIER = {"31337": "0x093b3f80a039ba4b3d504a97f9cfeb3c0dec28543b7491df72c5c79064833dec"}  # genesis hashes by chain ID


def drop_earlier_demo(data_dir: Path) -> list[str]:
    """The IDs of the chains that were deleted."""
    dropped = []
    for chain_id, genesis in EARLIER.items():
        if _stored_genesis(data_dir, chain_id) != genesis:
            continue
        files = chain_files(data_dir, chain_id)
        try:
            lock = StoreLock(files[0].with_suffix(".lock"))
        except StoreError:  # a running program of that release uses it: this one will be refused
            continue
        for path in files:
            path.unlink(missing_ok=True)
        lock.release()
        dropped.append(chain_id)
    return dropped


def _stored_genesis(data_dir: Path, chain_id: str) -> str:
    """Empty if there is none, or it cannot be read."""
    try:
        reader = Stores(data_dir).chain_blocking_reader(chain_id)
        if reader is None:
            return ""
        try:
            rows = reader.read(SQL.meta, {"name": "genesis_hash"})
        finally:
            reader.close()
    except StoreError:
        return ""
    return str(rows[0][0]) if rows else ""
