"""Schemathesis reads an OpenAPI document of ours and sends valid and invalid requests to the app that serves it.

ICEFALL_FUZZ_SCHEMA_CASES sets how many of each operation, half of them valid.
"""

import os
from typing import Any

import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

USUAL = 12
CASES = int(os.environ.get("ICEFALL_FUZZ_SCHEMA_CASES", USUAL))
VALID, INVALID = GenerationMode.POSITIVE, GenerationMode.NEGATIVE
CHECKS = [
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]


def operations_of(app: Any) -> dict[str, Any]:
    """By operation ID."""
    schema = schemathesis.openapi.from_asgi("/openapi.json", app)
    found: list[Any] = [result.ok() for result in schema.get_all_operations() if isinstance(result, Ok)]
    return {one.definition.raw["operationId"]: one for one in found}


def checked(cases: st.SearchStrategy[Any], mode: GenerationMode, *, may_be_503: bool = False) -> set[int]:
    """Ask them all; the statuses that came. Each has the shape, status, headers and type of the document."""
    seen: set[int] = set()
    checks = [
        *CHECKS,
        *(() if may_be_503 else (not_a_server_error,)),
        *((negative_data_rejection,) if mode is INVALID else ()),
    ]

    @settings(
        max_examples=CASES // 2,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=cases)
    def ask(case: Any) -> None:
        response = case.call()
        seen.add(response.status_code)
        case.validate_response(response, checks=checks)

    ask()
    return seen
