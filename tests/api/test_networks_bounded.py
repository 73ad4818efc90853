"""A page costs the same whatever the address, the validator or the chain has: steps of the engine are counted on two
chains, of which one has ten times the transactions, outputs, validations, rewards and delegations of the other."""

import asyncio
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from bench import networks
from tests.api.networks_scene import plain_networks_app
from tests.pchain.replay import config_of
from tests.steps import Steps
from tests.store.counted_statements import LocalRequest
from tests.store.opened import open_store

from icefall.api.networks.network import Networks
from icefall.compose.served_network import served_network
from icefall.compose.stores import stores_of
from icefall.db.engine import Transaction
from icefall.node.store import PACKAGE, store_path
from icefall.pchain.store import SQL
from icefall.wire.text import bech32, cb58

FEW, MANY = 400, 4000


def put_delegations(count: int, tx: Transaction) -> bytes:
    """Delegations to the newest copied validation, on a node that has no other; returns the node's ID."""
    node = sha256(b"node").digest()[:20]
    row = tx.rows(
        "select subnet_id, state, priority, start_time, end_time, weight, potential_reward, shares, validation_owner, "
        "delegation_owner, public_key, proof_of_possession, height, seq from p_staker order by seq desc limit 1"
    )[0]
    subnet, *rest = row[:-2]
    height, seq = row[-2:]
    tx.run("update p_staker set node_id = ?, delegator_count = ? where seq = ?", (node, count, seq))
    rows = [
        (sha256(b"delegation %d" % at).digest(), subnet, node, *rest, height, 10_000_000 + at, 1, seq, None)
        for at in range(count)
    ]
    tx.run_many(SQL.put_staker, rows)
    return node


def steps_of(folder: Path, rows: int) -> dict[str, tuple[int, int]]:
    """How many steps the first and the last page of each list take."""

    async def counted() -> dict[str, tuple[int, int]]:
        owner = await networks._fill(folder, rows)
        store = open_store(store_path(folder), PACKAGE)
        node = await store.write(partial(put_delegations, rows))
        store.close()
        config = config_of(networks.RECORDING, folder)
        network = served_network(config, stores_of(config))
        app = plain_networks_app(Networks(network))
        reader: Any = network.outputs._reader

        async def pages(first: str, last: str) -> tuple[int, int]:
            found = []
            for target in (first, first, last):  # the first time more is read: what never changes
                with Steps(reader) as steps:
                    answer = await app.respond(LocalRequest("GET", target))
                if first != of_node:  # the one that is no list
                    assert networks.rows_in(answer) == networks.PAGE, target
                found.append(steps.count)
            return found[1], found[2]

        base, shown = "/v1/networks/fuji", f"NodeID-{cb58.encode(node)}"
        utxos = f"{base}/blockchains/p-chain/utxos?addresses={bech32.encode(networks.HRP, owner)}"
        delegators, of_node = f"{base}/delegators?nodeIds={shown}", f"{base}/validators/{shown}"
        pending, spent = f"{base}/rewards:listPending?nodeIds={shown}", f"{utxos}&includeSpent=true"
        lists: list[tuple[str, str, str]] = [
            *networks._lists(owner),
            ("delegators", delegators, f"{delegators}&delegationStatus=active"),
            ("its validator", of_node, of_node),
            ("pending rewards", pending, pending),
            ("by amount", f"{utxos}&sortBy=amount&sortOrder=desc", f"{utxos}&sortBy=amount&sortOrder=asc"),
            ("spent too", spent, spent),
        ]
        return {name: await pages(first, last) for name, first, last in lists}

    return asyncio.run(counted())


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, tuple[int, int]]]:
    return [steps_of(tmp_path_factory.mktemp(f"of-{rows}"), rows) for rows in (FEW, MANY)]


def test_no_page_costs_more_where_there_is_more(both: list[dict[str, tuple[int, int]]]) -> None:
    few, many = both
    assert len(few) == 11
    assert min(first for first, _ in few.values()) > 10
    assert many == few
