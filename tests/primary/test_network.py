"""The network that a configuration describes."""

from pathlib import Path

import pytest

from icefall.compose.node_setup import configured_network
from icefall.config.load import load
from icefall.errors import StartRefused
from icefall.primary.network import Network
from icefall.wire.genesis.network import network_genesis, packaged_genesis
from icefall.wire.ids import LOCAL_ID

OTHER_ID = "2CA6j5zYzasynPsFeNoqWkmTCt3VScMvXUZHbfDJ8k3oGzAPtU"


def with_another(directory: Path, chain_id: str, aliases: str) -> Network:
    """A local network with a second instance of the asset chain."""
    genesis = network_genesis(packaged_genesis(LOCAL_ID), LOCAL_ID, 0)
    (directory / "genesis.hex").write_text("0x" + genesis.x_genesis.hex())
    table = f'[[asset_chain]]\nid = "{chain_id}"\ngenesis = "genesis.hex"\naliases = "{aliases}"\n'
    (directory / "icefall.toml").write_text(table)
    return configured_network(load("node", [f"--data-dir={directory}"], {}, directory).config, 0)


def test_another_asset_chain(tmp_path: Path) -> None:
    network = with_another(tmp_path, OTHER_ID, "dex,second")
    assert [chain.name for chain in network.chains] == ["P", "X", "C", "dex"]


@pytest.mark.parametrize("name", ["X", "evm", "health", "index", "database", "main"])
def test_a_name_that_is_taken(tmp_path: Path, name: str) -> None:
    with pytest.raises(StartRefused, match=f"{OTHER_ID}: the name {name} is taken already"):
        with_another(tmp_path, OTHER_ID, f"dex,{name}")


def test_a_chain_id_that_is_taken(tmp_path: Path) -> None:
    x_id = with_another(tmp_path, OTHER_ID, "dex").asset_chains[0].chain.id_text
    with pytest.raises(StartRefused, match="is taken already"):
        with_another(tmp_path, x_id, "dex")
