"""`--verify` compares balances, owners and names with state: it finds every difference, and no other."""

import asyncio
import re
import shutil
import sqlite3
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.evm.indexed import indexing, open_store
from tests.evm.reading_scene import copied
from tests.evm.recordings import CHAINS, each_once
from tests.upstream.evm_replay import EvmFault, EvmReplay
from tests.upstream.evm_scene import upstream_of

from icefall.db.sqlite import SqliteStore
from icefall.evm.auditing import verify_state
from icefall.evm.auditing.verify_state import StateResult, StateVerification, state_summary
from icefall.evm.encoding import pack_uint
from icefall.evm.enriching.loops import TokenMetadataLoop
from icefall.evm.enriching.nft_outcomes import EnrichCounts
from icefall.evm.storing.store import PACKAGE
from icefall.upstream.evm.errors import NoState

CHAIN, LAST = "geth-1", 130
NAME = "0x06fdde03"
WRONG = pack_uint(2001).hex()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("indexed")


def indexed(folder: Path, chain: str = CHAIN, last: int | None = LAST) -> Path:
    """A chain with everything its answers need, indexed once."""
    path = folder / f"{chain}-{last}.sqlite"
    if not path.exists():
        replay = EvmReplay(chain)
        replay.shown = last
        if last is None:
            copied(chain, path)
        asyncio.run(_index(path, replay))
    return path


async def _index(path: Path, replay: EvmReplay) -> None:
    async with indexing(path, replay) as it:
        await it.follower.run()
        store = SqliteStore(path, PACKAGE)
        try:
            names = TokenMetadataLoop(store, it.upstream, EnrichCounts(), lambda: 1e9)
            while await names.round():
                pass
        finally:
            store.close()


def verified(path: Path, replay: EvmReplay, *, everything: bool, block: int | None = None) -> StateResult:
    async def run() -> StateResult:
        store = open_store(path)
        try:
            async with upstream_of(replay) as upstream:
                await upstream.probe_all()
                tip = store.tip()
                assert tip is not None
                number = tip.number if block is None else block
                block_hash = store.block_hash(number)
                assert block_hash is not None
                return await StateVerification(store, upstream, number, block_hash).run(everything=everything)
        finally:
            store.close()

    return asyncio.run(run())


@pytest.mark.parametrize(("chain", "everything"), each_once(CHAINS, [False, True]))
def test_a_recorded_chain_has_no_differences(chain: str, everything: bool, folder: Path) -> None:
    result = verified(indexed(folder, chain, None), EvmReplay(chain), everything=everything)
    assert result.differences == []
    assert min(result.balances, result.owners, result.names) > 5
    assert result.untrusted > 0
    assert result.unread == 0


def test_an_earlier_block(folder: Path) -> None:
    """Every block from which on a balance is stored; names are those of now."""
    path = indexed(folder)
    for block in (1, 40, 77, LAST):
        result = verified(path, EvmReplay(CHAIN), everything=True, block=block)
        assert result.differences == [], block
        assert result.balances > 0


@cache
def everything_of(path: Path) -> StateResult:
    return verified(path, EvmReplay(CHAIN), everything=True)


@pytest.mark.parametrize("page", [1, 7])
def test_pages_leave_nothing_out(page: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = indexed(folder)
    whole = everything_of(path)
    monkeypatch.setattr(verify_state, "_PAGE", page)
    monkeypatch.setattr(verify_state, "_AT_ONCE", 2 * page)
    assert verified(path, EvmReplay(CHAIN), everything=True) == whole
    with closing(sqlite3.connect(path)) as store:
        count = "select count(*) from {} h join token_trust t on t.token = h.token where not t.is_untrusted {}"
        held = " and h.holder <> (select id from address where address = zeroblob(20))"
        expected = sum(
            store.execute(statement).fetchone()[0]
            for statement in (
                count.format("erc20_holding", held),
                count.format("erc1155_holding", held),
                "select count(distinct address) from native_balance",
            )
        )
        owned = count.format("(select distinct token, token_id from nft_owner)", "")
        assert (whole.balances, whole.owners) == (expected, store.execute(owned).fetchone()[0])
        assert whole.names == store.execute("select count(*) from token").fetchone()[0]
        assert whole.untrusted == store.execute("select sum(is_untrusted) from token_trust").fetchone()[0]


def test_a_sample_is_a_part(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = indexed(folder)
    whole = everything_of(path)
    for name, value in {"SAMPLE_CHECKS": 20, "SAMPLE_NATIVE": 10}.items():
        monkeypatch.setattr(verify_state, name, value)
    result = verified(path, EvmReplay(CHAIN), everything=False)
    assert result.differences == []
    assert 20 < result.balances + result.owners <= 30 < whole.balances + whole.owners
    assert 0 < result.names < whole.names


class Damage(NamedTuple):
    change: str
    line: str  # a pattern


HEX = "0x[0-9a-f]{40}"
TRUSTED = "(select token from token_trust where not is_untrusted)"
DAMAGES = {
    "an ERC-20 balance": Damage(
        f"""update erc20_balance_recent set balance = x'{WRONG}' where (holder, token, block) = (
            select holder, token, max(block) from erc20_balance where token in {TRUSTED} group by holder, token
            having balance <> x'{WRONG}' limit 1)""",
        rf"token {HEX}, holder {HEX}: balance 2001 stored, \d+ in state",
    ),
    "an ERC-1155 balance": Damage(
        f"""update erc1155_balance set balance = x'{WRONG}' where (holder, token, token_id, block) = (
            select holder, token, token_id, max(block) from erc1155_balance
            where token in {TRUSTED} group by holder, token, token_id limit 1)""",
        rf"token {HEX}, ID \d+, holder {HEX}: balance 2001 stored, \d+ in state",
    ),
    "an owner": Damage(
        f"""update nft_owner set owner = 1 where (token, token_id, block) = (
            select token, token_id, max(block) from nft_owner
            where token in {TRUSTED} group by token, token_id having owner > 1 limit 1)""",
        rf"token {HEX}, ID \d+: owner {HEX} stored, ({HEX}|a revert .*) in state",
    ),
    "a native balance": Damage(
        f"""update native_balance_recent set balance = x'{WRONG}' where (address, block) = (
            select address, max(block) from native_balance group by address limit 1)""",
        rf"native balance of {HEX}: 2001 stored, \d+ in state",
    ),
    "a name": Damage(
        "update token set name = 'Forged' where token = (select max(token) from token where name <> '')",
        rf"token {HEX}: name 'Forged' stored, '.+' in state",
    ),
    "decimals": Damage(
        "update token set decimals = 77 where token = (select max(token) from token where decimals is not null)",
        rf"token {HEX}: decimals 77 stored, \d+ in state",
    ),
    "decimals of none": Damage(
        "update token set decimals = 77 where token = (select max(token) from token where decimals is null)",
        rf"token {HEX}: decimals 77 stored, None in state",
    ),
}


@pytest.mark.parametrize("everything", [False, True])
@pytest.mark.parametrize("name", DAMAGES)
def test_what_was_changed_is_found(name: str, everything: bool, folder: Path, tmp_path: Path) -> None:
    path, damage = _damaged(indexed(folder), tmp_path, DAMAGES[name].change), DAMAGES[name]
    result = verified(path, EvmReplay(CHAIN), everything=everything)
    (line,) = result.differences
    assert re.fullmatch(damage.line, line), line
    *lines, last = state_summary("geth", result).splitlines()
    assert lines == [f"geth: block {LAST}: {line}"]
    assert re.fullmatch(
        rf"geth: \d+ balances, \d+ owners and \d+ names compared with state at block {LAST}, 1 differ;"
        r" \d+ untrusted tokens skipped",
        last,
    )


def _damaged(path: Path, folder: Path, *changes: str) -> Path:
    copy = folder / "chain.sqlite"
    shutil.copy(path, copy)
    with closing(sqlite3.connect(copy)) as store:
        for change in changes:
            assert store.execute(change).rowcount > 0, "nothing was changed"
        store.commit()
    return copy


def test_untrusted_tokens_and_unread_names_are_counted(folder: Path, tmp_path: Path) -> None:
    path = _damaged(
        indexed(folder),
        tmp_path,
        "update token set untrusted_since = 1",
        f"update erc20_balance_recent set balance = x'{WRONG}'",
        "update nft_owner set owner = 1",
        "update token set read_at = null, name = 'Forged' where token = (select max(token) from token)",
    )
    before = everything_of(indexed(folder))
    for everything in (False, True):
        result = verified(path, EvmReplay(CHAIN), everything=everything)
        assert result.differences == []
        assert (result.owners, result.untrusted, result.unread) == (0, before.names, 1)
        assert result.names == before.names - 1
    text = state_summary("geth", result)
    assert text.endswith(f"all as stored; {before.names} untrusted tokens skipped; 1 names not read yet")


@pytest.mark.parametrize("is_renamed", [False, True])
def test_a_name_that_was_read_later_may_be_another(is_renamed: bool, folder: Path) -> None:
    """Names have no history: the stored one may be that of a block after the one that is compared."""
    replay = EvmReplay(CHAIN)

    def answer(method: str, params: list[Any]) -> None:
        if method == "eth_call" and params[0]["data"] == NAME and (isinstance(params[1], dict) or not is_renamed):
            replay.evm_faults = [EvmFault("eth_call", error=(3, "execution reverted"))]

    replay.on_call = answer
    differences = verified(indexed(folder), replay, everything=True).differences
    assert bool(differences) != is_renamed
    assert all(line.endswith("stored, '' in state") for line in differences)


def test_state_that_no_upstream_has_is_no_agreement(folder: Path) -> None:
    replay = EvmReplay(CHAIN)
    replay.off |= {"blockHash"}
    replay.pruned_below = LAST + 1
    with pytest.raises(NoState):
        verified(indexed(folder), replay, everything=False)
