"""The chain data interface does what its OpenAPI document says: nothing breaks, and what does not fit is refused."""

import random
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from tests.api.data_naive import address_text, naive
from tests.api.data_scene import InProcess, put_chains
from tests.api.schema_cases import INVALID, VALID, cases_of, checked, operations_of

from icefall.api.data import endpoints

CHAIN_DATA_ENDPOINTS = [row for row in endpoints.CHAIN_DATA_ENDPOINTS if not row.is_stream]  # tests/api/test_stream.py
CHAIN = "berlin-1"
# The statuses of some operations here; of all others, 200. Nothing follows the recorded chain, so its answer to
# strict=true is a 503, and nothing can be indexed again. It has neither metadata nor a list that names pictures:
# those are in tests/api/test_pictures.py.
STATUSES = {
    "data-health-check": {200, 503},
    "reindexNft": {503},
    "getTokenLogo": {404},
    "getNftPicture": {404},
}
OPERATIONS = [row.operation for row in CHAIN_DATA_ENDPOINTS]
WITHOUT_PARAMETERS = {row.operation for row in CHAIN_DATA_ENDPOINTS if not row.params.__struct_fields__}


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcess]:
    folder = tmp_path_factory.mktemp("schema")
    put_chains(folder, {CHAIN: "http://127.0.0.1:9"})
    with InProcess(folder, {CHAIN: ""}) as app:
        yield app


@pytest.fixture(scope="module")
def operations(app: InProcess) -> dict[str, Any]:
    return operations_of(app.app)


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
    if case.operation.path.endswith("/tokens/{address}"):
        names |= {"address": [address_text(one) for one in sorted(shown.tokens)]}
    if "tokenId" in (case.path_parameters or {}):
        nft = chance.choice([move for one in shown.blocks for move in one.rows.erc721_transfers])
        names |= {"address": [address_text(nft.token)], "tokenId": [str(nft.token_id)]}
    if "timestamp" in (case.query or {}):
        case.query["timestamp"] = tx["here"]["blockTimestamp"]
    for name, values in names.items():
        if name in (case.path_parameters or {}) and chance.random() < 0.9:
            case.path_parameters[name] = chance.choice(values)
    return case


@pytest.mark.parametrize("operation", OPERATIONS)
def test_what_fits_the_document(operation: str, operations: dict[str, Any]) -> None:
    cases = cases_of(operations[operation], VALID).map(real)
    seen = checked(cases, VALID, may_be_503=503 in STATUSES.get(operation, {200}))
    assert seen >= STATUSES.get(operation, {200})


@pytest.mark.parametrize("operation", [one for one in OPERATIONS if one not in WITHOUT_PARAMETERS])
def test_what_does_not_fit_the_document(operation: str, operations: dict[str, Any]) -> None:
    checked(cases_of(operations[operation], INVALID), INVALID, may_be_503=503 in STATUSES.get(operation, {200}))


# Those whose items are written as JSON text, without a struct (api/data/render/text.py).
WRITTEN = [
    "/blocks",
    "/blocks/{blockId}",
    "/blocks:listDetails",
    "/blocks/{blockId}/details",
    "/blocks/{blockId}/transactions",
    "/transactions",
    "/transactions/{txHash}",
    "/transactions/{txHash}/transfers",
    "/addresses/{address}/transactions",
    "/addresses/{address}/transactions:listNative",
    "/addresses/{address}/transactions:listErc20",
    "/addresses/{address}/transactions:listErc721",
    "/addresses/{address}/transactions:listErc1155",
    "/addresses/{address}/transactions:listInternals",
    "/addresses/{address}/balances:listErc20",
]


@pytest.mark.parametrize("path", WRITTEN)
def test_text_is_what_the_structs_of_the_schema_are_encoded_to(path: str, app: InProcess) -> None:
    row = next(row for row in CHAIN_DATA_ENDPOINTS if row.path == f"/v1/chains/{{chainId}}{path}")
    shown, found = naive(CHAIN), 0
    for tx in shown.txs[::7]:
        for address in shown.addresses(3) if "{address}" in path else shown.addresses(1):
            values = {"address": address_text(address), "blockId": tx["here"]["blockNumber"], **tx["here"]}
            answer = app.get(f"/v1/chains/{shown.id}{path.format_map(values)}").body
            assert msgspec.json.encode(msgspec.json.decode(answer, type=row.result)) + b"\n" == answer
            found += answer.count(b"0x")
        if "txHash" not in path and "blockId" not in path:
            break
    assert found > 10
