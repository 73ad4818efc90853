"""Objects of P that a worker keeps: asked about in other words, they need no statement, until anything is committed."""

import asyncio
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.pchain.replay import Replay, ask
from tests.wire.platform_vectors import p_rows

from icefall.api.node.addresses import AddressParser
from icefall.db.engine import Row, StatementParams, Transaction
from icefall.db.sqlite import SqliteReader
from icefall.errors import CallFailed
from icefall.node.chains import Chains, primary_chains
from icefall.node.store import SQL, NodeReader
from icefall.wire.ids import LOCAL_ID, PLATFORM_CHAIN, network_hrp
from icefall.wire.text.bech32 import address_text

RECORDING = "p-local-1"
METHODS = (
    "getHeight", "getTx", "getBlockByHeight", "getUTXOs", "getBalance", "getCurrentValidators", "getValidatorsAt",
    "getSubnet", "getL1Validator",
)  # fmt: skip


def questions() -> list[tuple[str, dict[str, Any]]]:
    """The last recorded question of each method that was answered with a result, of outputs of P's own."""
    found: dict[str, dict[str, Any]] = {}
    for row in p_rows(RECORDING, "calls"):
        is_answered = isinstance(row["response"], dict) and "result" in row["response"]
        if is_answered and isinstance(row["params"], dict) and "sourceChain" not in row["params"]:
            found[row["method"]] = row["params"]
    return [(f"platform.{name}", found[f"platform.{name}"]) for name in METHODS]


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The statements that workers run from now on."""
    run: list[str] = []
    read = SqliteReader.read

    def counted(self: SqliteReader, statement: str, params: StatementParams = ()) -> list[Row]:
        run.append(statement)
        return read(self, statement, params)

    monkeypatch.setattr(SqliteReader, "read", counted)
    return run


def _touch(tx: Transaction) -> None:
    tx.run(SQL.put_meta, {"name": "touched", "value": "1"})


def test_what_was_asked_about_needs_no_statement_until_a_commit(tmp_path: Path, statements: list[str]) -> None:
    async def scene() -> None:
        replay = Replay(RECORDING, tmp_path / "node")
        await replay.start()
        await replay.finish()
        app = replay.app()

        async def asked(number: int) -> list[Any]:
            answers = [await ask(app, method, {**params, "number": number}) for method, params in questions()]
            assert all("result" in json.loads(text) for _, text in answers), answers
            return answers

        first = await asked(1)
        del statements[:]
        assert await asked(2) == first
        assert statements == []
        await replay.store.write(_touch)
        assert await asked(3) == first
        tables = ("p_ledger", "p_tx", "p_block", "p_utxo", "p_staker", "p_subnet", "p_l1_validator")
        assert all(any(f"from {table}" in one for one in statements) for table in tables), "all was read anew"
        replay.store.close()

    asyncio.run(scene())


class _Names(NodeReader):
    """Names that an administrator gave, and may give to another chain."""

    def __init__(self) -> None:
        self.given: dict[str, bytes] = {}

    async def chain_of(self, alias: str) -> bytes | None:
        return self.given.get(alias)


def test_only_addresses_with_a_built_in_name_are_parsed_once() -> None:
    names = _Names()
    chains = Chains(primary_chains(b"x" * 32, b"c" * 32, bytes(32), bytes(32), bytes(32)), names)
    hrp = network_hrp(LOCAL_ID)
    parse: Callable[[str], Any] = AddressParser(chains, PLATFORM_CHAIN, "P", hrp).parse
    own, given = (partial(address_text, name, hrp)(b"a" * 20) for name in ("P", "mine"))
    names.given["mine"] = PLATFORM_CHAIN
    for text in (own, given, own, given):
        assert asyncio.run(parse(text)) == b"a" * 20
    names.given["mine"] = b"x" * 32
    assert asyncio.run(parse(own)) == b"a" * 20
    with pytest.raises(CallFailed, match="mismatched chainIDs"):
        asyncio.run(parse(given))
