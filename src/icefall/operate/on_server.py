"""Where `backup`, `restore` and `forget` refuse: they handle files of a data directory, not schemas of a server."""

from icefall.config.settings import ChainConfig, Config
from icefall.errors import StartRefused


def refuse_server(config: Config, verb: str) -> None:
    """StartRefused where any store is on a server: a copy of the files alone would not be all of it."""
    if config.store or any(chain.store for chain in config.chain):
        tool = "psql with what pg_dump wrote" if verb == "restore" else "pg_dump"
        raise StartRefused(
            f"icefall {verb} handles the files of a data directory, and a PostgreSQL server is configured: use {tool}, "
            f"for all schemas that begin with {config.store_prefix}_ (docs/scaling.md)"
        )


def refuse_chain_on_server(config: Config, chain: ChainConfig | None, chain_id: str) -> None:
    """StartRefused where the store of this chain is a schema of a server."""
    if config.store or (chain is not None and chain.store):
        schema = f"{config.store_prefix}_chain_{chain_id}"
        raise StartRefused(
            f"chain {chain_id} is stored on a PostgreSQL server: stop its indexers, keep a copy with "
            f"`pg_dump --schema={schema}` if you want one, then run `drop schema {schema} cascade` there"
        )
