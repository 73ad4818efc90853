"""What tests of the engine share."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.store.engines import PostgresKit


@pytest.fixture
def kit(tmp_path: Path) -> Iterator[PostgresKit]:
    kit = PostgresKit(tmp_path)
    yield kit
    kit.close()
