"""The ABIs of contracts that a worker decodes by: those of the access store, and those of the folder `--abi-dir`."""

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

from icefall.access.abis import ABIS_MAX, AbiStore
from icefall.access.store import ReopenedStore
from icefall.compose.stores import Stores
from icefall.config.settings import Config
from icefall.db.engine import BlockingReader
from icefall.errors import StartRefused
from icefall.evm.reading.abis import ContractAbis
from icefall.observe.log import Log
from icefall.wire.evm.abi_json import SIZE_MAX

_FILE = re.compile(r"0x([0-9a-fA-F]{40})\.json")


class AbiParts:
    """The ABIs of an installation. `close` closes what was opened to write."""

    def __init__(self, config: Config, stores: Stores, reader: BlockingReader, log: Log) -> None:
        self._store = ReopenedStore(stores.access_store)
        files = abi_files(Path(config.abi_dir)) if config.abi_dir else {}
        self.abis = ContractAbis(AbiStore(reader, self._store), files, log.warn)

    def close(self) -> None:
        self._store.close()


def abi_files(folder: Path) -> dict[tuple[str, bytes], Callable[[], bytes]]:
    """Find the files CHAIN/ADDRESS.json of a folder, by chain ID and address. StartRefused where it cannot be read or
    has more than are used. Other files are left alone."""
    found: dict[tuple[str, bytes], Callable[[], bytes]] = {}
    try:
        for chain in sorted(folder.iterdir()):
            for path in sorted(chain.iterdir()) if chain.name.isdigit() and chain.is_dir() else ():
                if name := _FILE.fullmatch(path.name):
                    found[chain.name, bytes.fromhex(name[1])] = partial(_start_of, path)
    except OSError as error:
        raise StartRefused(f"cannot read --abi-dir {folder}: {error.strerror}") from None
    if len(found) > ABIS_MAX:
        raise StartRefused(f"--abi-dir {folder} has {len(found)} ABIs, of which at most {ABIS_MAX} are used")
    return found


def _start_of(path: Path) -> bytes:
    """Read a file, of a larger one so much that it is refused."""
    with path.open("rb") as file:
        return file.read(SIZE_MAX + 1)
