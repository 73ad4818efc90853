"""The settings of indexed chains, shared through the access store: an indexer stores them, and readers serve the chains
without a config file."""

from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from icefall.access.store import stored_chain_configs
from icefall.compose.stores import Stores, create_data_dir, stores_of
from icefall.config.load import with_chains
from icefall.config.settings import ChainConfig, Config
from icefall.db.engine import StoreError
from icefall.errors import StartRefused

_NOT_SHARED = {"store": "", "store_file": ""}  # its URL may hold the password of the writer


def put_chain_configs(config: Config, stores: Stores) -> None:
    """Share the settings of the indexed chains with readers; called by the process that indexes them."""
    shared = {chain.id: msgspec.structs.replace(chain, **_NOT_SHARED) for chain in config.chain}
    if shared:
        texts = {chain_id: msgspec.json.encode(chain).decode() for chain_id, chain in shared.items()}
        stores.access_writer().put_chain_configs(texts)


def with_stored_chains(config: Config, stores: Stores) -> Config:
    """Add the chains that are indexed into the same stores."""
    try:
        with closing(stores.access_reader()) as reader:
            return with_chain_texts(config, stored_chain_configs(reader))
    except StoreError:
        return config  # the first start


def ready_to_run_alone(config: Config) -> Config:
    """Create the data directory and the access store for a program of its own, and add the chains that are stored."""
    create_data_dir(Path(config.data_dir))
    with closing(stores_of(config)) as stores:
        try:
            stores.access_writer().ensure()
        except StoreError as error:
            raise StartRefused(str(error)) from error
        return with_stored_chains(config, stores)


def with_chain_texts(config: Config, texts: Iterable[str]) -> Config:
    """Add chains whose settings were stored, perhaps by another release with other settings."""
    known = {chain.id for chain in config.chain}
    added = []
    for settings in [msgspec.json.decode(text, type=dict[str, Any]) for text in texts]:
        if settings["id"] not in known:
            least = {"id": settings["id"], "rpc": list(settings["rpc"])}
            defaults = msgspec.to_builtins(with_chains(config, [least], "stored").chain[-1])
            values = {name: settings.get(name, value) for name, value in defaults.items()}
            added.append(msgspec.convert(values, ChainConfig))
    return msgspec.structs.replace(config, chain=(*config.chain, *added))
