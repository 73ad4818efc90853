"""The settings of indexed chains, kept with the keys: workers without a config file learn from there what to serve.

A worker's own config file wins, chain by chain.
"""

from contextlib import closing
from typing import Any

import msgspec

from icefall.access.store import stored_chain_configs
from icefall.config.load import with_chains
from icefall.config.settings import ChainConfig, Config
from icefall.db.engine import StoreError
from icefall.run.stores import Stores

_NOT_SHARED = {"store": "", "store_file": ""}  # its URL may hold the password of the writer


def put_chain_configs(config: Config, stores: Stores) -> None:
    """By the process that indexes them."""
    shared = {chain.id: msgspec.structs.replace(chain, **_NOT_SHARED) for chain in config.chain}
    if shared:
        texts = {chain_id: msgspec.json.encode(chain).decode() for chain_id, chain in shared.items()}
        stores.access_writer().put_chain_configs(texts)


def with_stored_chains(config: Config, stores: Stores) -> Config:
    """With the chains that are indexed into the same stores, perhaps by another release with other settings."""
    try:
        with closing(stores.access_reader()) as reader:
            stored = [msgspec.json.decode(text, type=dict[str, Any]) for text in stored_chain_configs(reader)]
    except StoreError:
        return config  # the first start
    known = {chain.id for chain in config.chain}
    added = []
    for settings in stored:
        if settings["id"] not in known:
            least = {"id": settings["id"], "rpc": list(settings["rpc"])}
            defaults = msgspec.to_builtins(with_chains(config, [least], "stored").chain[-1])
            values = {name: settings.get(name, value) for name, value in defaults.items()}
            added.append(msgspec.convert(values, ChainConfig))
    return msgspec.structs.replace(config, chain=(*config.chain, *added))
