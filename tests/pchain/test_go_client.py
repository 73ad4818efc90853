"""AvalancheGo's own client and P-Chain wallet have Icefall for their node, which follows a real AvalancheGo.

ICEFALL_TEST_AVALANCHEGO names the program; without it nothing runs. The client is built with the Go toolchain: in some
seconds where AvalancheGo was built before, else in some minutes.
"""

import json
import shutil
import subprocess
from pathlib import Path

from tests.counterparts import CACHE, missing, program
from tests.go_node import avalanchego, go_node
from tests.pchain.live_comparison import Compared
from tests.platform_wallet import ADDRESS_TEXT
from tests.server import serving
from tests.waiting import LIMIT_S, until

SOURCE = Path(__file__).parent.parent / "e2e" / "go" / "platform"
_MODULE = "github.com/ava-labs/avalanchego"
_BUILD_LIMIT_S = 1_200
_ISSUED = {"base", "exported", "subnet", "chain", "delegation"}


def _client() -> Path:
    """The client, built unless it was built of the same source before."""
    go, folder = program("go"), CACHE / "go-platform"
    source, built = (SOURCE / "main.go").read_bytes(), folder / "platform"
    if built.exists() and (folder / "main.go").read_bytes() == source:
        return built
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "main.go").write_bytes(source)

    def run(*command: str) -> str:
        done = subprocess.run([go, *command], cwd=folder, capture_output=True, timeout=_BUILD_LIMIT_S, check=False)
        if done.returncode:
            missing(f"a build of the Go client ({done.stderr.decode()[-300:]})")
        return done.stdout.decode().strip()

    run("mod", "init", "platform")
    run("get", f"{_MODULE}@v1.14.2")
    # With the profile that the node is built with by default. With another one, all packages would be compiled again.
    profile = Path(run("list", "-m", "-f", "{{.Dir}}", _MODULE)) / "main" / "default.pgo"
    run("build", "-mod=mod", f"-pgo={profile}", "-o", "platform", ".")
    return built


def test_the_go_wallet_and_client_work_with_icefall(tmp_path: Path) -> None:
    node_program, client = avalanchego(), _client()
    with go_node(node_program, tmp_path / "go", "--min-stake-duration=10s") as node:
        following = [f"--upstream={node.url()}", "--index-enabled=true", "--network-id=local"]
        with serving("node", tmp_path / "icefall", *following) as server:
            until(lambda: "result" in server.call("/ext/bc/P", "platform.getHeight", {}), "P is served")
            done = subprocess.run([client, server.url()], capture_output=True, timeout=LIMIT_S, check=False)
            assert done.returncode == 0, done.stderr.decode()
            found = json.loads(done.stdout)
            assert set(found["issued"]) == _ISSUED
            assert set(found["statuses"].values()) == {"Committed"}
            assert (found["keys"], found["validators"], found["set"], found["chains"]) == (1, 5, 5, 1)
            there = node.call("/ext/bc/P", "platform.getBlockByHeight", {"height": found["height"]})
            assert "result" in there, "the block is one of the network"
            Compared(node, server, [ADDRESS_TEXT]).check()
