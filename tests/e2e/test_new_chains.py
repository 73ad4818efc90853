"""Readers that run learn of chains that are indexed, changed and forgotten, without a restart."""

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
from tests.server import Server, serving, store_settings
from tests.upstream.evm_replay import EvmReplay
from tests.upstream.threaded import in_thread
from tests.waiting import until

from icefall.cli import main
from icefall.compose.stores import stores_of
from icefall.config.load import load

CHAIN = "berlin-1"
OWN = '[[chain]]\nid = "7"\nrpc = "http://127.0.0.1:9"\nname = "Own"\n'


class Scene:
    """A reader of chain data and one of metrics, with a chain of their own, and an indexer of others."""

    def __init__(self, folder: Path, settings: list[str], servers: dict[str, Server], replay: EvmReplay) -> None:
        self._folder = folder
        self._settings = settings
        self.servers = servers
        self.replay = replay

    def index(self, text: str) -> None:
        """Run `icefall index` with a chain that is described like this, until its second block is stored."""
        config = self._folder / "index.toml"
        config.write_text(f'[[chain]]\nid = "{self.replay.chain_id}"\nrpc = "{self.replay.url}"\n{text}\n')
        file = [f"--config-file={config}", "--to=2", "--no-nft-metadata"]
        assert main(["index", *file, f"--log-dir={self._folder / 'logs'}", *self._settings]) == 0

    def share(self, texts: dict[str, str]) -> None:
        """Store settings of chains."""
        with closing(stores_of(load("data", self._settings, {}, self._folder).config)) as stores:
            stores.access_writer().put_chain_configs(texts)

    def forget(self) -> None:
        with closing(stores_of(load("data", self._settings, {}, self._folder).config)) as stores:
            stores.access_writer().drop_chain_config(str(self.replay.chain_id))

    def get(self, target: str, listener: str = "data") -> tuple[int, Any]:
        reply = self.servers[listener].ask("GET", target, listener=listener)
        return reply.status, reply.json()

    def names(self) -> list[str]:
        return [chain["chainName"] for chain in self.get("/v1/chains")[1]["chains"]]


@pytest.fixture(params=["", "postgres"])
def scene(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Scene]:
    data_dir = tmp_path / "data"
    settings = [f"--data-dir={data_dir}", *(store_settings(data_dir) if request.param else [])]
    own = tmp_path / "own.toml"
    own.write_text(OWN)
    with ExitStack() as stack:
        replay = stack.enter_context(in_thread(EvmReplay(CHAIN)))
        servers = {
            verb: stack.enter_context(serving(verb, tmp_path, f"--config-file={own}", store=request.param))
            for verb in ("data", "metrics")
        }
        yield Scene(tmp_path, settings, servers, replay)


def test_chains_come_change_and_go(scene: Scene) -> None:
    chain = f"/v1/chains/{scene.replay.chain_id}"
    assert scene.names() == ["Own"]
    assert scene.get(chain)[0] == scene.get("/v1/chains/new-one/blocks")[0] == 404

    scene.index('name = "New"\naliases = ["new-one"]')
    until(lambda: scene.names() == ["Own", "New"], "the reader knows the chain")
    status, answer = scene.get("/v1/chains/new-one/blocks")
    assert (status, [block["blockNumber"] for block in answer["blocks"]]) == (200, ["2", "1", "0"])
    measured = f"/v2/chains/{scene.replay.chain_id}"
    until(lambda: scene.get(measured, "metrics")[0] == 200, "the reader of metrics knows it too")

    native = f"{chain}/addresses/0x{1:040x}/balances:getNative"
    for _ in range(3):  # what is asked for again is cached
        assert scene.get(native)[1]["nativeTokenBalance"]["symbol"] == "NATIVE"
    scene.share({"7": '{"id": "7", "rpc": ["http://127.0.0.1:9"], "name": "Not own"}'})
    scene.index('name = "Changed"\ntoken = { symbol = "CHG" }')
    until(lambda: scene.names() == ["Own", "Changed"], "the reader knows the name; its own file wins")
    assert scene.get(native)[1]["nativeTokenBalance"]["symbol"] == "CHG"
    assert scene.get("/v1/chains/new-one/blocks")[0] == 404
    assert "the chains that are served have changed" in scene.servers["data"].output()

    scene.forget()
    until(lambda: scene.get(chain)[0] == 404, "the reader no longer knows the chain")
    until(lambda: scene.get(measured, "metrics")[0] == 404, "nor does that of metrics")
    assert scene.get("/v1/chains/7")[1]["chainName"] == "Own"
