"""Which process writes which exports: `icefall up` all of them, also without EVM chains, and `icefall exports` those of
EVM chains."""

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest
from tests.exports.scene import RUNNER, Scene, most_active, rows_in
from tests.exports.test_jobs import in_scene
from tests.server import Server, serving
from tests.waiting import until
from tests.webhooks.scene import ID, blocks

from icefall.errors import Unavailable
from icefall.exports.model import COMPLETED, EVM, PRIMARY, RUNNING, SIMPLE, ExportRequest
from icefall.exports.running import ExportRunner

EWOQ = "local18jma8ppw3nhx5r4ap8clazz0dps7rv5u00z96u"  # has outputs in the genesis of the local network
OF_NETWORK = ExportRequest(addresses=[EWOQ], chains=["p-chain", "x-chain"])


def asked(server: Server, verb: str, path: str, body: Any = None) -> Any:
    sent = b"" if body is None else json.dumps(body).encode()
    reply = server.ask(verb, f"/v1/{path}", sent, listener="data")
    assert reply.status < 300, reply
    return reply.json()


def ended(server: Server, operation: str) -> Any:
    """The operation, when it is no longer running."""

    def now() -> Any:
        return asked(server, "GET", f"operations/{operation}")

    until(lambda: now()["operationStatus"] != "RUNNING", "the end of the export")
    return now()


def test_up_without_evm_chains_writes_exports_of_the_primary_network(tmp_path: Path) -> None:
    with serving("up", tmp_path, "--no-demo") as server:
        options = {"addresses": [f"P-{EWOQ}"], "includeChains": ["p-chain", "x-chain"]}
        made = asked(server, "POST", "operations/transactions:export", {"type": PRIMARY, "options": options})
        done = ended(server, made["operationId"])
        assert done["operationStatus"] == "COMPLETED", done
        path = done["metadata"]["downloadUrl"].partition("/v1/operations/")[2]
        files = rows_in(server.ask("GET", f"/v1/operations/{path}", listener="data").body)
        listed = [
            tx
            for chain in options["includeChains"]
            for tx in asked(
                server, "GET", f"networks/fuji/blockchains/{chain}/transactions?addresses={EWOQ}&sortOrder=asc"
            )["transactions"]
        ]
        listed.sort(key=lambda tx: tx.get("blockTimestamp") or tx["timestamp"])  # of one time: first those of P
        expected = [(tx["txHash"], tx["txType"]) for tx in listed]
        assert [(row["txHash"], row["txType"]) for row in files["transactions"]] == expected
        assert listed


def test_exports_alone_writes_those_of_evm_chains_and_up_those_it_left(tmp_path: Path) -> None:
    config = tmp_path / "icefall.toml"
    config.write_text(f'[[chain]]\nid = "{ID}"\nrpc = "http://127.0.0.1:1"\n')
    alone, every = Scene(tmp_path / "data"), []

    async def ordered() -> None:
        await alone.put(blocks())
        alone.now = time.time()
        every.append(await alone.jobs.order("", SIMPLE, OF_NETWORK, alone.now))
        every.append(await alone.order(most_active(1)))

    asyncio.run(ordered())
    of_network, of_chain = every

    def status(job: Any) -> str:
        return asyncio.run(alone.known(job)).status

    with serving("exports", tmp_path, f"--config-file={config}", "--export-rows-max=100000", started=False):
        until(lambda: status(of_chain) != RUNNING, "the export of the EVM chain")
    assert (status(of_chain), status(of_network)) == (COMPLETED, RUNNING)
    alone.close()
    with serving("up", tmp_path, "--no-demo") as server:
        assert ended(server, of_network.id)["operationStatus"] == "COMPLETED"


def test_a_job_waits_while_its_chain_is_bootstrapping(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run(scene: Scene) -> None:
        await scene.put(blocks())
        job = await scene.order(most_active(1))
        runner: ExportRunner = scene.runner()
        source = runner._sources[EVM]
        begin, waits = source.begin, 2

        async def bootstrapping(*args: Any) -> Any:
            nonlocal waits
            if waits:
                waits -= 1
                raise Unavailable("the P-Chain is still bootstrapping: try again later")
            return await begin(*args)

        monkeypatch.setattr(source, "begin", bootstrapping)
        for _ in range(2):
            with pytest.raises(Unavailable):
                await runner.step()
            waiting = await scene.known(job)
            assert (waiting.status, waiting.runner) == (RUNNING, RUNNER)
        await scene.drain(runner)
        assert (await scene.known(job)).status == COMPLETED

    in_scene(tmp_path, run)
