"""The lines of docs/sdk.md, run as they are written against the demo: only the addresses are this test's own."""

import json
import re
import subprocess
from pathlib import Path

from tests.counterparts import npm_project, program
from tests.demo.prepared import demo_serving
from tests.waiting import LIMIT_S

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "sdk.md").read_text()
PROJECT = Path(__file__).parent / "avacloud"
START, INSTALL = re.findall(r"^```sh\n(.*?)\n```\n", PAGE, re.MULTILINE | re.DOTALL)
[SCRIPT] = re.findall(r"^```js\n(.*?)^```\n", PAGE, re.MULTILINE | re.DOTALL)


def test_the_page_installs_the_client_that_is_tested() -> None:
    package, _, version = INSTALL.split()[-1].rpartition("@")
    assert json.loads((PROJECT / "package.json").read_text())["dependencies"] == {package: version}


def test_the_lines_work_as_shown(tmp_path: Path) -> None:
    folder = npm_project(PROJECT)
    name, verb, *settings = START.split()
    assert (Path(name).name, verb) == ("icefall", "up")
    with demo_serving(tmp_path, *settings) as server:
        script = SCRIPT
        for listener, port in (("data", 9652), ("metrics", 9653)):
            assert f"http://127.0.0.1:{port}" in script
            script = script.replace(f"http://127.0.0.1:{port}", server.url(listener))
        command = [program("node"), "--input-type=module", "--eval", script]
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False, cwd=folder)
    assert done.returncode == 0, done.stderr
    block, *balances, points = done.stdout.splitlines()
    assert block == "0xa82c7a8e7f851c1d07d95eadca9ed610c4f0417bb70cbae55312416059300f6e"
    assert len(balances) > 1
    assert "WNAT 11171049753607437" in balances
    assert points == "3"
