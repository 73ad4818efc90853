"""Schemathesis reads an OpenAPI document of ours and sends valid and invalid requests to the app that serves it.

ICEFALL_FUZZ_SCHEMA_CASES sets how many of each operation, half of them valid.
"""

import os
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

USUAL = 8
CASES = int(os.environ.get("ICEFALL_FUZZ_SCHEMA_CASES", USUAL))
VALID, INVALID = "positive", "negative"  # as Schemathesis names them

# Schemathesis and the validator are imported where they are used: every test process reads this file, and few of them
# the second and a half of imports.


def validate_openapi(document: dict[str, Any]) -> None:
    from openapi_spec_validator import OpenAPIV31SpecValidator

    OpenAPIV31SpecValidator(document).validate()


def operations_of(app: Any) -> dict[str, Any]:
    """By operation ID."""
    import schemathesis
    from schemathesis.core.result import Ok

    schema = schemathesis.openapi.from_asgi("/openapi.json", app)
    found: list[Any] = [result.ok() for result in schema.get_all_operations() if isinstance(result, Ok)]
    return {one.definition.raw["operationId"]: one for one in found}


def cases_of(operation: Any, mode: str) -> st.SearchStrategy[Any]:
    from schemathesis.generation import GenerationMode

    found: st.SearchStrategy[Any] = operation.as_strategy(generation_mode=GenerationMode(mode))
    return found


def checked(cases: st.SearchStrategy[Any], mode: str, *, may_be_503: bool = False) -> set[int]:
    """Ask them all; the statuses that came. Each has the shape, status, headers and type of the document."""
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi import checks as of_document

    seen: set[int] = set()
    checks = [
        of_document.status_code_conformance,
        of_document.content_type_conformance,
        of_document.response_headers_conformance,
        of_document.response_schema_conformance,
        *(() if may_be_503 else (not_a_server_error,)),
        *((of_document.negative_data_rejection,) if mode == INVALID else ()),
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
