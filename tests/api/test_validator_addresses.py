"""The reward addresses of a subnet's validators, against a naive second reading of recorded networks."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.api.networks_scene import NetworkScene, network_scene
from tests.api.staking_naive import NaiveNetwork

from icefall.access.page_tokens import PageTokens
from icefall.api.http.paging import Paging
from icefall.api.networks.handlers.reward_addresses import validator_addresses
from icefall.api.networks.network import Networks
from icefall.api.networks.schema.subnets import ValidatorAddressesParams
from icefall.errors import BadRequest
from icefall.wire.ids import id_text
from icefall.wire.text import bech32


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NetworkScene]:
    folder: Path = tmp_path_factory.mktemp("network")
    with network_scene("p-forks-1", folder) as found:
        yield found


def walked(scene: NetworkScene, subnet_id: bytes, **where: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    token: Any = ""
    paging = Paging(PageTokens(bytes(32)))
    while token is not msgspec.UNSET:
        params = ValidatorAddressesParams(subnet_id=subnet_id, page_token=token, page_size=2, **where)
        page = scene.run(validator_addresses(params, Networks(scene.network), paging))
        found += msgspec.to_builtins(page.addresses)
        token = page.next_page_token
    return found


def test_addresses_equal_a_naive_reading(scene: NetworkScene) -> None:
    naive = NaiveNetwork(scene.playback)
    subnets = {one.subnet for one in naive.stakes}
    assert len(subnets) > 1
    for subnet in subnets:
        expected: list[dict[str, Any]] = []
        for one in naive.stakes:
            if one.subnet == subnet and not one.is_delegator and one.owner is not None:
                tx = scene.result(f"/blockchains/p-chain/transactions/{id_text(one.tx.txid)}")
                shown = [bech32.encode("custom", address) for address in one.owner.addresses]
                expected.append({"addresses": shown, "sortKey": str(tx["blockTimestamp"])})
        assert walked(scene, subnet) == walked(scene, subnet, network="fuji") == expected
        times = sorted({int(one["sortKey"]) for one in expected})
        for middle in times[len(times) // 2 : len(times) // 2 + 1]:
            later = [one for one in expected if int(one["sortKey"]) >= middle]
            assert walked(scene, subnet, start_timestamp=middle) == later
            assert walked(scene, subnet, end_timestamp=middle) == expected[: len(expected) - len(later)]
    with pytest.raises(BadRequest, match="startTimestamp must not be after endTimestamp"):
        walked(scene, bytes(32), start_timestamp=2, end_timestamp=1)
