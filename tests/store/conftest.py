"""What tests of one engine share."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.store.engines import SqliteKit


@pytest.fixture
def kit(tmp_path: Path) -> Iterator[SqliteKit]:
    kit = SqliteKit(tmp_path)
    yield kit
    kit.close()
