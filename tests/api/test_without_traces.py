"""An index without call traces says so where it has no answer, and no other index does."""

import asyncio
from pathlib import Path

import pytest
from tests.api.data_naive import naive
from tests.api.data_scene import InProcess, chain_id, put_chains
from tests.evm.indexed import open_store

from icefall.evm.storing.store import store_path

CHAIN = "berlin-1"
UNSEEN = "0x" + "99" * 20


async def begun_without_traces(folder: Path) -> None:
    store = open_store(store_path(folder / "data", chain_id(CHAIN)))
    await store.put_meta({"has_calls": "0"})
    store.close()


@pytest.mark.parametrize("has_calls", [True, False])
@pytest.mark.parametrize("path", ["contracts/{}/transactions:getDeployment", "addresses/{}"])
def test_a_contract_that_is_not_found(has_calls: bool, path: str, tmp_path: Path) -> None:
    put_chains(tmp_path, {CHAIN: ""})
    if not has_calls:
        asyncio.run(begun_without_traces(tmp_path))
    with InProcess(tmp_path, {CHAIN: ""}) as app:
        reply = app.get(f"/v1/chains/{naive(CHAIN).id}/{path.format(UNSEEN)}")
        assert reply.status == 404
        assert ("no call traces" in reply.json()["message"]) is not has_calls
