"""The index API on a long X-Chain: each call compared with a bare granian worker that sends the same bytes."""

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.server import serving

from bench import history
from bench.serving import call, compare

BLOCKS = 1200


def run() -> None:
    print(f"index: X/block with {BLOCKS} containers, one worker; CPU is the server's, per request")
    with TemporaryDirectory() as folder:
        data_dir = Path(folder) / "data"
        data_dir.mkdir()
        asyncio.run(history.store(data_dir, list(history.containers(BLOCKS))))
        with serving("node", Path(folder), "--index-enabled=true") as server:
            compare(
                server,
                [
                    ("index.getLastAccepted", "/ext/index/X/block", call("index.getLastAccepted")),
                    ("index.getContainerByIndex", "/ext/index/X/block", _by_index(700)),
                    ("index.getContainerRange (64)", "/ext/index/X/block", _range(64)),
                    ("index.getContainerRange (1024)", "/ext/index/X/block", _range(1024)),
                    ("X/tx getContainerRange (64)", "/ext/index/X/tx", _range(64)),
                ],
            )


def _by_index(number: int) -> bytes:
    return call("index.getContainerByIndex", {"index": str(number), "encoding": "hex"})


def _range(count: int) -> bytes:
    """From the second container on: the first is a large one."""
    return call("index.getContainerRange", {"startIndex": "1", "numToFetch": str(count), "encoding": "hex"})
