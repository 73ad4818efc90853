"""The recorded calls of a real node, answered from PostgreSQL: after a whole recorded history, with 0 differences.

ICEFALL_FUZZ_POSTGRES_CALLS=1 compares every call, else every sixteenth.
"""

import asyncio
import os

import msgspec
import pytest
from tests.postgres.server import new_prefix, server_url
from tests.sync.history import calls, followed
from tests.sync.test_recorded_answers import compare

from icefall.api.http.asgi import AsgiApp
from icefall.cli import main
from icefall.compose.worker import build_app
from icefall.node.store import store_path

EVERY = int(os.environ.get("ICEFALL_FUZZ_POSTGRES_CALLS", "16"))


def test_recorded_calls_get_the_recorded_answers(tmp_path_factory: pytest.TempPathFactory) -> None:
    directory, prefix = tmp_path_factory.mktemp("followed"), new_prefix()
    config = asyncio.run(followed(directory))
    assert main(["copy", str(directory), server_url(), f"--store-prefix={prefix}"]) == 0
    store_path(directory).unlink()
    app = build_app("node", msgspec.structs.replace(config, store=server_url(), store_prefix=prefix), with_engine=True)
    try:
        equal, _ = asyncio.run(compare(AsgiApp(app), calls()[::EVERY]))
    finally:
        asyncio.run(app.close())
    assert equal > 11_900 / EVERY * 0.9
