"""Migrations only go forward: one that has been shipped is never changed, or stores written since would be torn."""

import hashlib
from pathlib import Path

import icefall

# The first characters of each file's hash, written down when it was shipped. A new file gets a new line.
SHIPPED = {
    "access/0001_access.postgres.sql": "808e9f8183139904",
    "access/0001_access.sqlite.sql": "7a054a09487fbc1f",
    "access/0002_usage.postgres.sql": "5a141b708419b9da",
    "access/0002_usage.sqlite.sql": "cd4153915b8d2e44",
    "access/0003_sharing.postgres.sql": "53b44b311f8d040a",
    "access/0003_sharing.sqlite.sql": "a19f1671b375a6ab",
    "evm/0001_chain.postgres.sql": "ea6606497e73b38f",
    "evm/0001_chain.sqlite.sql": "ef7351879dbef25c",
    "evm/0002_metrics.postgres.sql": "e46b89fd18571ecb",
    "evm/0002_metrics.sqlite.sql": "02abaca2dc2d7de4",
    "evm/0003_meta.postgres.sql": "9aa886e135cd7626",
    "evm/0003_meta.sqlite.sql": "f4e0d693330a1ae5",
    "evm/0004_audit.postgres.sql": "813b45fdb0f471cf",
    "evm/0004_audit.sqlite.sql": "db6e7df52284f85e",
    "evm/0005_explorer.postgres.sql": "1422867bd117c34c",
    "evm/0005_explorer.sqlite.sql": "5154ad09ac3fbcc2",
    "evm/0006_transactions.postgres.sql": "59bf245daf54bbcb",
    "evm/0006_transactions.sqlite.sql": "9733ac72001bb438",
    "evm/0007_holders.postgres.sql": "0d38e8e2d9c7f081",
    "evm/0007_holders.sqlite.sql": "ec7cce45f0c477cf",
    "evm/0008_positions.postgres.sql": "79c2d15e6062a922",
    "evm/0008_positions.sqlite.sql": "ba3a4fdb0c1fd337",
    "evm/0009_recent.postgres.sql": "959e6407ccd9884c",
    "evm/0009_recent.sqlite.sql": "da28a95936860888",
    "evm/0010_smaller_rows.postgres.sql": "493f525e0a16d890",
    "evm/0010_smaller_rows.sqlite.sql": "153b7f23fe023e4d",
    "node/0001_node.postgres.sql": "45a9ab1e7d66db7c",
    "node/0001_node.sqlite.sql": "0557f4a696b90c0e",
    "node/0002_ledger.postgres.sql": "a272545a0fc121ed",
    "node/0002_ledger.sqlite.sql": "a264cc43055fb625",
    "node/0003_index.postgres.sql": "4bcb13d71d990db8",
    "node/0003_index.sqlite.sql": "cb7c1b4db00de28e",
    "node/0004_meta.postgres.sql": "efba65f1bffb855e",
    "node/0004_meta.sqlite.sql": "06d9d1d381b1c213",
}


def test_what_was_shipped_stays_as_it_is() -> None:
    root = Path(icefall.__file__).parent
    found = {
        f"{path.parent.parent.name}/{path.name}": hashlib.sha256(path.read_bytes()).hexdigest()[:16]
        for path in sorted(root.rglob("migrations/*.sql"))
    }
    assert found == SHIPPED
