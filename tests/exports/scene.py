"""A recorded chain and the export jobs of its addresses, with a clock that the test moves."""

import csv
import io
import json
import zipfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.webhooks.scene import ID, blocks
from tests.webhooks.scene import Scene as ChainScene

from icefall.compose.stores import Stores
from icefall.evm.reading.directory import ChainDirectory
from icefall.exports.model import EVM, ExportJob, ExportRequest
from icefall.exports.registry import ExportRegistry
from icefall.exports.running import ExportRunner
from icefall.exports.sources import EvmSource, JobSource
from icefall.observe.log import quiet

RUNNER = "this folder"
BYTES_MAX = 64 << 20
EXPIRY_S = 3600.0


def most_active(count: int) -> list[bytes]:
    """The addresses that take part in most transactions."""
    found = Counter(one.address for block in blocks() for one in block.participants)
    return [address for address, _ in found.most_common(count)]


class Scene(ChainScene):
    """The stores of an installation, the jobs in them, and the runner that writes their files."""

    def __init__(self, folder: Path, stores: Stores | None = None, bytes_max: int = BYTES_MAX) -> None:
        super().__init__(folder, stores)
        self.jobs = ExportRegistry(self.reader, self._written, bytes_max, EXPIRY_S)
        self.export_dir = folder / "exports"
        self.export_dir.mkdir(parents=True, exist_ok=True)

    def runner(self, sources: Mapping[str, JobSource] | None = None, **options: Any) -> ExportRunner:
        sources = sources or {EVM: EvmSource(ChainDirectory([self.chain]))}
        return ExportRunner(self.jobs, sources, self.export_dir, RUNNER, quiet(), clock=lambda: self.now, **options)

    async def order(self, addresses: Sequence[bytes], owner: str = "", **days: Any) -> ExportJob:
        shown = sorted(f"0x{one.hex()}" for one in addresses)
        return await self.jobs.order(owner, EVM, ExportRequest(addresses=shown, chains=[ID], **days), self.now)

    async def order_tokens(self, tokens: Sequence[bytes], **days: Any) -> ExportJob:
        shown = sorted(f"0x{one.hex()}" for one in tokens)
        return await self.jobs.order("", EVM, ExportRequest(addresses=[], tokens=shown, chains=[ID], **days), self.now)

    async def drain(self, runner: ExportRunner | None = None) -> None:
        used = runner or self.runner()
        while await used.step():
            self.now += 0.001

    async def known(self, job: ExportJob) -> ExportJob:
        found = await self.jobs.job(job.id)
        assert found is not None
        return found

    async def files(self, job: ExportJob) -> dict[str, list[dict[str, str]]]:
        """The rows of the files of a finished job, by the name of the file."""
        ended = await self.known(job)
        return rows_in((self.export_dir / job.id / ended.file).read_bytes())


def rows_in(archive: bytes) -> dict[str, list[dict[str, str]]]:
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        assert opened.testzip() is None
        names = [name for name in opened.namelist() if name.endswith(".csv")]
        assert json.loads(opened.read("manifest.json"))["lastBlocks"]
        texts = {name.removesuffix(".csv"): opened.read(name).decode() for name in names}
    return {name: list(csv.DictReader(io.StringIO(text, newline=""))) for name, text in texts.items()}
