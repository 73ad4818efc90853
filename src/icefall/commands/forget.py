"""`icefall forget CHAIN`: deletes what is stored of an EVM chain.

It handles the files of a data directory, as `backup` and `restore` do; the refusals of all three for stores on a server
are here too.
"""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from icefall.access.store import drop_chain_command, is_chain_shared
from icefall.compose.process_file import running_programs
from icefall.compose.stores import Stores, chain_files, stores_of
from icefall.config.settings import ChainConfig, Config
from icefall.config.values import bare
from icefall.db.disk import StoreLock
from icefall.db.engine import StoreError
from icefall.errors import StartRefused
from icefall.evm.storing.store import store_path


def forget(config: Config, name: str, confirm: Callable[[str], bool]) -> str:
    """The text to print. `name` is the chain's ID, or its name or an alias in the configuration. `confirm` is asked
    before anything is deleted. StartRefused where nothing is stored or a program uses it."""
    configured, data_dir = configured_chain(config.chain, name), Path(config.data_dir)
    chain_id = configured.id if configured else name
    is_id = chain_id.isascii() and chain_id.isdigit()
    if config.store and not is_id:  # it would become part of a command to copy
        raise StartRefused(f"chain {bare(name)} is not in the configuration: name it by its EVM chain ID")
    refuse_chain_on_server(config, configured, chain_id)
    path, stores = store_path(data_dir, chain_id), stores_of(config)
    is_shared = _is_shared(stores, chain_id)
    if not is_id or not (path.exists() or is_shared):
        stored = sorted(bare(one.stem) for one in (data_dir / "chains").glob("*.sqlite"))
        known = f"stored are {', '.join(stored)}" if stored else "no chain is"
        raise StartRefused(f"chain {bare(name)} is not stored in {data_dir}: {known}")
    program = next((one for one in running_programs(data_dir) if one.urls), None)
    if program is not None:  # its workers would go on serving the deleted file; an indexer holds the lock of its chains
        raise StartRefused(f"Icefall runs on {data_dir} as process {program.pid}: stop it first")
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        lock = StoreLock(path.with_suffix(".lock"))
    except (StoreError, OSError) as error:
        raise StartRefused(str(error)) from error
    try:
        files = [file for file in chain_files(data_dir, chain_id) if file.exists()]
        size = sum(file.stat().st_size for file in files)
        if not confirm(f"This deletes {size / 1e6:,.1f} MB: everything stored of chain {chain_id} in {data_dir}."):
            return "Nothing was deleted."
        for file in files:
            file.unlink()
        if is_shared:  # last: a full disk has room for it only now
            stores.access_writer().drop_chain_config(chain_id)
        path.with_suffix(".lock").unlink()
    except (StoreError, OSError) as error:
        raise StartRefused(f"chain {chain_id} cannot be deleted: {error}") from error
    finally:
        lock.release()
    again = " It is in the configuration: the next start indexes it from its first block." if configured else ""
    return f"Chain {chain_id} is forgotten.{again}"


def _is_shared(stores: Stores, chain_id: str) -> bool:
    """Whether readers without a config file list the chain."""
    try:
        with closing(stores.access_reader()) as reader:
            return is_chain_shared(reader, chain_id)
    except StoreError:
        return False  # there is no such store yet


def configured_chain(chains: tuple[ChainConfig, ...], name: str) -> ChainConfig | None:
    """Find a chain of the configuration by its ID, its name or an alias, in upper or lower case."""

    def names(chain: ChainConfig) -> list[str]:
        return [chain.id, chain.name.casefold(), *(alias.casefold() for alias in chain.aliases)]

    return next((chain for chain in chains if name.casefold() in names(chain)), None)


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
        delete = drop_chain_command(f"{config.store_prefix}_access", chain_id)
        unlist = (
            f" and `{delete}` there"  # else readers would go on listing it
            if config.store
            else f" there; take the chain out of icefall.toml and run `icefall forget {chain_id}` again"
        )
        raise StartRefused(
            f"chain {chain_id} is stored on a PostgreSQL server: stop its indexers, keep a copy with "
            f"`pg_dump --schema={schema}` if you want one, then run `drop schema {schema} cascade`{unlist}"
        )
