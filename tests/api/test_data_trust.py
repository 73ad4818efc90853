"""How balances of a token are known, as answers say it, while blocks come and go; and what audits left out."""

import asyncio
from pathlib import Path

from msgspec.structs import replace
from tests.api.data_naive import address_text
from tests.api.data_scene import InProcess
from tests.api.made_chain import (
    ANN,
    BEN,
    ID,
    TOKEN,
    ZERO_ADDRESS,
    erc20,
    of,
    put,
    put_meta,
    roll_back,
    served,
    store_at,
)
from tests.evm.indexed import open_store
from tests.evm.test_slot_folding import LAYOUT

from icefall.api.http.service import _chain_lines
from icefall.evm.auditing.due import SQL as AUDIT
from icefall.evm.reading.directory import ChainDirectory
from icefall.evm.status import COUNTED, ChainStatus, encode_status

HOLDERS = f"/v1/chains/{ID}/tokens/{address_text(TOKEN)}/holders"


def known(app: InProcess) -> tuple[bool, str]:
    shown = app.result(HOLDERS)
    return shown["isTrusted"], shown["balanceSource"]


def balance(app: InProcess, block: int) -> list[str]:
    """What Ann has, or nothing; state has only zeros."""
    shown = app.result(of(ANN, f"/balances:listErc20?blockNumber={block}"))
    return [one["balance"] for one in shown["erc20TokenBalances"]]


def prove(folder: Path) -> None:
    """Give the token a layout since its first block."""

    async def work() -> None:
        store = open_store(store_at(folder))
        statement = "update token set layout = ?, layout_since = first_block, layout_standard = 1"
        await store.write(lambda tx: tx.run(statement, (LAYOUT.pack(),)))
        store.close()

    asyncio.run(work())


def test_a_reorganisation_takes_distrust_back_from_a_running_worker(tmp_path: Path) -> None:
    put(tmp_path, [erc20(0, ZERO_ADDRESS, ANN, 100)], audited=False)
    with served(tmp_path) as app:
        assert (known(app), balance(app, 0)) == ((False, "logs"), [])  # read from state
        put(tmp_path, [erc20(1, ANN, BEN, 5)])
        assert (known(app), balance(app, 0), balance(app, 1)) == ((True, "audited"), ["100"], ["95"])
        put(tmp_path, [erc20(2, ANN, BEN, 96)])  # more than she has
        assert (known(app), balance(app, 0)) == ((False, "logs"), [])
        roll_back(tmp_path, 1)
        assert (known(app), balance(app, 0), balance(app, 1)) == ((True, "audited"), ["100"], ["95"])
        rows = erc20(2, ANN, BEN, 90)
        put(tmp_path, [replace(rows, block=replace(rows.block, block_hash=b"\2" * 32))])
        assert (known(app), balance(app, 2)) == ((True, "audited"), ["5"])
    prove(tmp_path)
    with served(tmp_path) as app:
        assert (known(app), balance(app, 2)) == ((True, "storage"), ["5"])


def test_what_was_left_out_is_counted(tmp_path: Path) -> None:
    put(tmp_path, [erc20(0, ZERO_ADDRESS, ANN, 100)])
    counts = dict.fromkeys(COUNTED, 0) | {"audits_dropped": 3, "words_dropped": 2}
    status = ChainStatus(0.0, False, audited_to=0, counts=counts, degraded=("no call traces: cumulativeContracts",))
    put_meta(tmp_path, status=encode_status(status))
    with served(tmp_path) as app:
        shown = app.result(f"/v1/chains/{ID}/indexing")
        assert (shown["auditedToBlock"], shown["auditsDropped"], shown["wordsDropped"]) == ("0", 3, 2)
        assert shown["limitations"] == ["no call traces: cumulativeContracts"]
        lines = app.run(_chain_lines(ChainDirectory(app._chains)))
        assert f'icefall_chain_audits_dropped_total{{chain="{ID}"}} 3' in lines
        assert f'icefall_chain_words_dropped_total{{chain="{ID}"}} 2' in lines


def test_a_token_is_audited_once_all_comparisons_up_to_its_first_block_are_made(tmp_path: Path) -> None:
    put(tmp_path, [erc20(0, ZERO_ADDRESS, ANN, 100)])
    with served(tmp_path) as app:
        for left_out, source in ((0, "logs"), (1, "audited"), (None, "audited")):
            _leave_out(tmp_path, left_out)
            assert known(app) == (True, source), left_out


def _leave_out(folder: Path, first: int | None) -> None:
    """Say that audits left out something from this block on."""

    async def work() -> None:
        store = open_store(store_at(folder))
        await store.write(lambda tx: tx.run(AUDIT.put_left_out, {"block": 0, "dropped_from": first}))
        store.close()

    asyncio.run(work())
