"""The metrics interface does what its OpenAPI document says: nothing breaks, and what does not fit is refused."""

import random
from collections.abc import Iterator
from typing import Any

import pytest
from tests.api.schema_cases import CASES, INVALID, USUAL, VALID, cases_of, checked, operations_of
from tests.evm.recordings import derived
from tests.metrics.scene import Scene
from tests.metrics.service import Service, info

from icefall.api.describing.openapi import operation_id
from icefall.api.metrics.endpoints import METRICS_ENDPOINTS
from icefall.evm.reading.directory import ChainDirectory, EvmChain

# The series of version 1 share one handler and one shape: usually one of them is enough.
OPERATIONS = [
    operation_id(row) for row in METRICS_ENDPOINTS if CASES > USUAL or row.operation or row is METRICS_ENDPOINTS[0]
]
UNHEALTHY = "metrics-health-check"  # nothing follows the recorded chain here: strict=true is a 503
WITHOUT_PARAMETERS = {operation_id(row) for row in METRICS_ENDPOINTS if not row.params.__struct_fields__}


@pytest.fixture(scope="module")
def operations(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("schema")
    scene = Scene(folder / "1.sqlite")
    scene.put([one.rows for one in derived("berlin-1")])
    yield operations_of(Service(ChainDirectory([EvmChain(info("31337", "Berlin"), scene.file)]), folder).app)
    scene.close()


def real(case: Any) -> Any:
    """Most cases name a chain we have."""
    if (
        "chainId" in (case.path_parameters or {})
        and random.Random(repr((case.path_parameters, case.query))).random() < 0.9
    ):
        case.path_parameters["chainId"] = "31337"
    return case


@pytest.mark.parametrize("operation", OPERATIONS)
def test_what_fits_the_document(operation: str, operations: dict[str, Any]) -> None:
    cases = cases_of(operations[operation], VALID).map(real)
    assert 200 in checked(cases, VALID, may_be_503=operation == UNHEALTHY)


@pytest.mark.parametrize("operation", [one for one in OPERATIONS if one not in WITHOUT_PARAMETERS])
def test_what_does_not_fit_the_document(operation: str, operations: dict[str, Any]) -> None:
    checked(cases_of(operations[operation], INVALID), INVALID, may_be_503=operation == UNHEALTHY)
