"""Schemathesis reads our OpenAPI document and sends valid and invalid requests.

Nothing breaks, every answer has the shape, status and type that the document promises, and what does not fit is
refused.
"""

import os
import random
from collections.abc import Iterator
from typing import Any

import pytest
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
from tests.api.data_naive import address_text, naive
from tests.api.data_scene import InProcess, put_chains

from icefall.api.endpoints import chain_data

CHAIN_DATA_ENDPOINTS = [row for row in chain_data.CHAIN_DATA_ENDPOINTS if not row.is_stream]  # tests/api/test_stream.py
CHAIN = "berlin-1"
CASES = 200 if os.environ.get("CI") else 40  # of each operation, half of them fitting
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
OPERATIONS = [row.operation for row in CHAIN_DATA_ENDPOINTS]
WITHOUT_PARAMETERS = {row.operation for row in CHAIN_DATA_ENDPOINTS if not row.params.__struct_fields__}


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcess]:
    folder = tmp_path_factory.mktemp("schema")
    put_chains(folder, tmp_path_factory, {CHAIN: "http://127.0.0.1:9"})
    with InProcess(folder, {CHAIN: ""}) as requested:
        yield requested


@pytest.fixture(scope="module")
def operations(app: InProcess) -> dict[str, Any]:
    schema = schemathesis.openapi.from_asgi("/openapi.json", app.app)
    found: list[Any] = [result.ok() for result in schema.get_all_operations() if isinstance(result, Ok)]
    return {one.definition.raw["operationId"]: one for one in found}


def real(case: Any) -> Any:
    """Most cases name a chain we have, and an address, block or transaction of it."""
    shown, chance = naive(CHAIN), random.Random(repr(case.path_parameters))
    tx = chance.choice(shown.txs)
    names = {
        "chainId": [shown.id, CHAIN],
        "address": [address_text(one) for one in (*shown.addresses(3), *sorted(shown.tokens))],
        "blockId": [tx["here"]["blockNumber"], tx["here"]["blockHash"]],
        "txHash": [tx["here"]["txHash"]],
    }
    if "tokenId" in (case.path_parameters or {}):
        nft = chance.choice([move for one in shown.blocks for move in one.rows.erc721_transfers])
        names |= {"address": [address_text(nft.token)], "tokenId": [str(nft.token_id)]}
    if "timestamp" in (case.query or {}):
        case.query["timestamp"] = tx["here"]["blockTimestamp"]
    for name, values in names.items():
        if name in (case.path_parameters or {}) and chance.random() < 0.9:
            case.path_parameters[name] = chance.choice(values)
    return case


def checked(cases: st.SearchStrategy[Any], checks: list[Any]) -> set[int]:
    """Ask them all; the statuses that came."""
    seen: set[int] = set()

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


def checks_of(operation: str) -> list[Any]:
    """A strict health check answers 503 here, and reindexing needs an indexer."""
    return CHECKS[1:] if operation in ("data-health-check", "reindexNft") else CHECKS


@pytest.mark.parametrize("operation", OPERATIONS)
def test_what_fits_the_document(operation: str, operations: dict[str, Any]) -> None:
    cases = operations[operation].as_strategy(generation_mode=GenerationMode.POSITIVE).map(real)
    seen = checked(cases, checks_of(operation))
    assert seen & ({200} if operation != "reindexNft" else {503})  # no indexer runs here


@pytest.mark.parametrize("operation", [one for one in OPERATIONS if one not in WITHOUT_PARAMETERS])
def test_what_does_not_fit_the_document(operation: str, operations: dict[str, Any]) -> None:
    cases = operations[operation].as_strategy(generation_mode=GenerationMode.NEGATIVE)
    checked(cases, [*checks_of(operation), negative_data_rejection])
