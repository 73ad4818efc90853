"""The parts of export jobs: what workers need to order and serve them, and the process that writes their files.

One process writes into a folder: it holds the folder's lock. The folder has an ID, by which the store knows whose job
is whose.
"""

import asyncio
import fcntl
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

from icefall.access.store import ReopenedStore, page_token_secret
from icefall.api.data.handlers.operations import ExportFolder, PublicAddress
from icefall.api.networks.exporting import COLUMNS, PrimaryExports
from icefall.api.networks.network import Networks
from icefall.compose.app_parts import service_logs
from icefall.compose.child import watch_stop
from icefall.compose.served_chains import ServedChains
from icefall.compose.served_network import served_network
from icefall.compose.stores import Stores, stores_of
from icefall.config.settings import Config
from icefall.db.engine import BlockingReader
from icefall.errors import StartRefused
from icefall.evm.enriching.selectors import method_names
from icefall.exports.model import EVM, ExportLinks, PrimaryNaming
from icefall.exports.registry import ExportRegistry
from icefall.exports.running import ExportRunner
from icefall.exports.sources import EvmSource, JobSource

_MIB = 1 << 20


class ExportJobs:
    """The jobs of an installation. `close` closes what was opened to write."""

    def __init__(self, config: Config, stores: Stores, reader: BlockingReader) -> None:
        self._store = ReopenedStore(stores.access_store)
        self.registry = ExportRegistry(
            reader, self._store, config.export_disk_max * _MIB, config.export_expiry / 1_000_000_000
        )

    def close(self) -> None:
        self._store.close()


def export_services(config: Config, jobs: ExportJobs, reader: BlockingReader, networks: Networks) -> dict[type, Any]:
    """The services that the handlers of exports take."""
    return {
        PrimaryNaming: PrimaryExports(networks),
        ExportRegistry: jobs.registry,
        ExportLinks: ExportLinks(page_token_secret(reader)),
        ExportFolder: ExportFolder(Path(config.export_dir)),
        PublicAddress: PublicAddress(config.data_url),
    }


async def run_exports(config: Config, *, supervised: bool, with_engine: bool) -> int:
    """Write files of exports until stopped; return the process's exit code. Those of the primary network are left to a
    program with an engine."""
    stopped: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def stop(code: int) -> None:
        if not stopped.done():
            stopped.set_result(code)

    watch_stop(stop, supervised=supervised)
    log = service_logs(config, with_engine=with_engine)["main"]
    stores = stores_of(config)
    with ExitStack() as opened:
        runner = opened.enter_context(locked_folder(Path(config.export_dir)))
        reader = stores.access_reader()
        opened.callback(reader.close)
        jobs = ExportJobs(config, stores, reader)
        opened.callback(jobs.close)
        served = ServedChains(
            config, stores, method_names(config.method_signatures), None if with_engine else reader, log
        )
        folder, rows_max = Path(config.export_dir), config.export_rows_max
        sources: dict[str, JobSource] = {EVM: EvmSource(served.directory)}
        if with_engine:  # only a program with the network's settings reads the primary network
            sources |= dict.fromkeys(COLUMNS, PrimaryExports(Networks(served_network(config, stores))))
        writing = ExportRunner(jobs.registry, sources, folder, runner, log, rows_max=rows_max)
        running = asyncio.create_task(writing.run())
        following = asyncio.create_task(served.refresh_forever())
        either: set[asyncio.Future[Any]] = {running, stopped}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        for task in (running, following):
            task.cancel()
        await asyncio.gather(running, following, return_exceptions=True)
        await served.directory.close()
    if stopped.done():
        return stopped.result()
    log.fatal("exports cannot be written", error=repr(running.exception()))
    return 1


@contextmanager
def locked_folder(folder: Path) -> Iterator[str]:
    """Hold the lock of a folder of exports; yield its ID. StartRefused if another process writes there."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StartRefused(f"{folder} cannot be written: {error.strerror}; use another --export-dir") from error
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StartRefused(f"another process writes exports to {folder}") from None
        known = os.pread(lock, 64, 0).decode()
        if not known:
            known = str(uuid4())
            os.pwrite(lock, known.encode(), 0)
            os.fsync(lock)
        yield known
    finally:
        os.close(lock)
