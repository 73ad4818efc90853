"""After following scenario-1, every recorded question about the result gets the recorded answer (live dialect)."""

import asyncio
import json
import re
from collections import Counter
from typing import Any

import pytest
from tests.sync.history import calls, followed

from icefall.api.http.asgi import AsgiApp
from icefall.compose.worker import build_app

# What cannot agree, and why.
GENESIS_NULLS = "a node that made its database says null for the empty lists of its genesis until a restart"
BY_DESIGN = "X/tx is fed from blocks here, and stays empty there"
DURING = "asked while the history was being made"
ENGINE = "issueTx is the engine's: tests/xchain/test_scenario.py"
BEYOND = "avm.getAddressTxs exists here; /wallet, which skips verification, does not"
OURS = "version, ID and address of the node itself"


def explained(row: dict[str, Any]) -> str | None:
    body, path = row["request"].get("body") or "", row["request"]["path"]
    if row["group"] == "live":
        return DURING
    if path == "/ext/index/X/tx":
        return BY_DESIGN
    if re.search(r'"(txs|credentials)":null', row["response"]["body"]):
        return GENESIS_NULLS
    if "getAddressTxs" in body or path.endswith("/wallet"):
        return BEYOND
    if "issueTx" in body:
        return ENGINE
    if re.search(r"getNodeVersion|getNodeID|getNodeIP", body):
        return OURS
    return None


def comparable(text: str) -> Any:
    """Timestamps are ours; the order of balances is random there."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return _masked(value)


def _masked(value: Any) -> Any:
    if isinstance(value, dict):
        masked = {key: "*" if key == "timestamp" else _masked(inner) for key, inner in value.items()}
        if "balances" in masked and isinstance(masked["balances"], list):
            masked["balances"] = sorted(masked["balances"], key=json.dumps)
        return masked
    return [_masked(inner) for inner in value] if isinstance(value, list) else value


async def ask(app: AsgiApp, request: dict[str, Any]) -> tuple[int, str]:
    body, sent = (request.get("body") or "").encode("utf-8", "surrogateescape"), []
    headers = {"host": "127.0.0.1:9650"} | {name.lower(): value for name, value in request["headers"].items()}
    path, _, query = request["path"].partition("?")
    scope = {
        "type": "http",
        "method": request["method"],
        "path": path,
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await app(scope, receive, send)
    return sent[0]["status"], sent[1]["body"].decode("utf-8", "surrogateescape")


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> AsgiApp:
    config = asyncio.run(followed(tmp_path_factory.mktemp("followed")))
    return AsgiApp(build_app("node", config, with_engine=True))


def test_every_recorded_call_gets_the_recorded_answer(app: AsgiApp) -> None:
    equal, reasons = asyncio.run(compare(app, calls()))
    assert equal > 11_900
    assert reasons[GENESIS_NULLS] == 3


async def compare(app: AsgiApp, rows: list[dict[str, Any]]) -> tuple[int, Counter[str]]:
    """How many answers are the recorded ones, and why others are not; fails if there is no reason."""
    reasons: Counter[str] = Counter()
    wrong: list[str] = []
    equal = 0
    for row in rows:
        reason = explained(row)
        if reason is not None:
            reasons[reason] += 1
            continue
        status, body = await ask(app, row["request"])
        expected = row["response"]
        if status == expected["status"] and comparable(body) == comparable(expected["body"]):
            equal += 1
        else:
            wrong.append(
                f"{row['n']} {row['group']} {row['request']} -> {body[:300]} expected {expected['body'][:300]}"
            )
    print(f"{equal} equal, {dict(reasons)}")
    assert not wrong, f"{len(wrong)} differ:\n" + "\n".join(wrong[:10])
    return equal, reasons
