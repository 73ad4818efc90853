"""Balances of readers equal the recorded state of the node: every address, every token, every block.

Compared is every third block, and every 27th of anvil-1, by far the longest chain; each of them with
ICEFALL_FUZZ_EVERY_BLOCK=1.
"""

import asyncio
import os
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.evm.reading_scene import SIZES, RecordedStateReader, Scene, index, indexed, known_lines, now, scene_of
from tests.evm.recordings import CHAINS, labelled, like, states, unhex
from tests.evm.test_evm_native_balances import cheats
from tests.evm.test_evm_tokens import UNTRUSTED, erc20_of
from tests.upstream.evm_replay import EvmReplay

from icefall.db.sqlite import SqliteReader
from icefall.errors import Unavailable
from icefall.evm.model import ZERO_ADDRESS
from icefall.evm.reading.balances import BalanceReader
from icefall.evm.reading.model import IdHeld
from icefall.evm.reading.state import RequestState
from icefall.evm.standards import BY_ID

HOLDINGS = "select a.address, h.token_address from erc20_holding h join address a on a.id = h.holder"
UNTRUSTED_TOKENS = "select a.address from token_trust t join address a on a.id = t.token where t.is_untrusted"

USUAL = {"anvil-1": "27"}
EVERY = {chain: int(os.environ.get("ICEFALL_FUZZ_EVERY_BLOCK", USUAL.get(chain, "3"))) for chain in CHAINS}

Erc20State = dict[tuple[bytes, bytes], int]
Erc1155State = dict[tuple[bytes, bytes, int], int]


# -- native ------------------------------------------------------------------------------------------------------------


def check_native(scene: Scene, lines: Iterator[Any], every: int = 1) -> int:
    """And state is read only for addresses that never change, or that were changed by hand."""
    state: dict[bytes, int] = {}
    changed, from_state = set(), set()
    checks = 0
    for line in lines:
        for text, balance in line["native"].items():
            address = unhex(text)
            if state.get(address, int(balance)) != int(balance):
                changed.add(address)
            state[address] = int(balance)
        for address, balance in state.items() if line["number"] % every == 0 else ():
            checks += 1
            before = scene.state.calls
            shown = now(scene.balances.native(address, line["number"]))
            assert shown == balance, (line["number"], address.hex(), shown, balance)
            if scene.state.calls != before:
                from_state.add(address)
    assert from_state & changed <= {address for _, address in cheats(like("anvil"))}
    return checks


@pytest.mark.parametrize("chain", CHAINS)
def test_native_balances_at_every_block(chain: str) -> None:
    """To the wei, those included that a test client set by hand."""
    assert check_native(indexed(chain), states(chain), EVERY[chain]) > 10_000 // EVERY[chain]
    if chain == like("anvil"):
        assert len(cheats(chain)) == 2


def test_without_tracers_native_balances_are_read_from_state() -> None:
    scene = indexed(CHAINS[0])
    reader = NoDiffs(scene.path)
    state = RecordedStateReader(scene.state._state, scene.state._numbers)
    address = next(iter(next(states(CHAINS[0]))["native"]))
    assert now(BalanceReader(reader, state).native(unhex(address), 3)) >= 0
    assert state.calls == 1
    with pytest.raises(Unavailable, match="no upstream is configured"):
        now(BalanceReader(reader, None).native(unhex(address), 3))
    reader.close()


class NoDiffs(SqliteReader):
    async def rows(self, statement: str, params: Any = ()) -> list[Any]:
        rows = self.read(statement, params)
        return [("0", *rows[0][1:])] if "has_diffs" in statement else rows


# -- ERC-20 ------------------------------------------------------------------------------------------------------------


@cache
def holders_unnamed(chain: str) -> frozenset[tuple[bytes, bytes]]:
    """(holder, token) that have a balance without any log: found only when the token is requested."""
    named = set(indexed(chain).reader.read(HOLDINGS))
    recorded = {(holder, token) for line in states(chain) for token, holder in erc20_of(line)}
    return frozenset(recorded - named)


def check_erc20(scene: Scene, lines: Iterator[Any], unnamed: frozenset[tuple[bytes, bytes]], every: int = 1) -> int:
    balances: dict[bytes, dict[bytes, int]] = {}
    checks = 0
    for line in lines:
        for (token, holder), balance in erc20_of(line).items():
            balances.setdefault(holder, {})[token] = balance or 0
        for holder, by_token in balances.items() if line["number"] % every == 0 else ():
            expected = sorted((token, amount) for token, amount in by_token.items() if amount)
            listed = [(token, amount) for token, amount in expected if (holder, token) not in unnamed]
            rows, more = now(scene.balances.erc20(holder, line["number"], None, 500))
            assert [(row.token, row.balance) for row in rows] == listed, (line["number"], holder.hex())
            assert more is None
            for token in [token for token in by_token if (holder, token) in unnamed]:
                (row,), _ = now(scene.balances.erc20(holder, line["number"], None, 1, [token]))
                assert (row.token, row.balance) == (token, by_token[token])
            checks += len(by_token)
    return checks


@pytest.mark.parametrize("chain", CHAINS)
def test_erc20_balances_at_every_block(chain: str) -> None:
    """Including those without logs: wrapped native money, a fee without a log, a rebase."""
    unnamed = holders_unnamed(chain)
    silent = labelled(chain, "tollSilent")  # pays its fees to an account that no log names
    assert all(holder == ZERO_ADDRESS or token == silent for holder, token in unnamed)
    assert check_erc20(indexed(chain), states(chain), unnamed, EVERY[chain]) > 1000 // EVERY[chain]


@pytest.mark.parametrize("chain", CHAINS)
def test_untrusted_tokens_are_marked(chain: str) -> None:
    marked = {address for (address,) in indexed(chain).reader.read(UNTRUSTED_TOKENS)}
    recorded = {token for line in states(chain) for token, _ in erc20_of(line)}
    assert {labelled(chain, label) for label in UNTRUSTED} <= marked
    assert len(recorded - marked) >= 5, "most tokens are trusted, and need no state"


@pytest.mark.parametrize("chain", CHAINS)
def test_pages_of_erc20_balances(chain: str) -> None:
    scene = indexed(chain)
    tip = now(scene.chain.tip())
    assert tip is not None
    holders = {holder for line in states(chain) for _, holder in erc20_of(line)}
    for holder in holders:
        for block in (tip.number // 2, tip.number):
            whole, _ = now(scene.balances.erc20(holder, block, None, 500))
            for size in SIZES:
                found, after = [], None
                while True:
                    rows, after = now(scene.balances.erc20(holder, block, after, size))
                    assert len(rows) == size or after is None
                    found += rows
                    if after is None:
                        break
                assert found == whole


@pytest.mark.parametrize("chain", CHAINS)
def test_named_tokens(chain: str) -> None:
    """Zero or not, held or not; by address, and by pages. An address that is no token is left out."""
    scene = indexed(chain)
    final: dict[bytes, dict[bytes, int]] = {}
    number = 0
    for line in states(chain):
        number = line["number"]
        for (token, holder), balance in erc20_of(line).items():
            final.setdefault(holder, {})[token] = balance or 0
    tokens = sorted({token for by_token in final.values() for token in by_token})
    unknown = b"\x77" * 20
    for holder, by_token in (*final.items(), (unknown, {})):
        expected = [(token, by_token.get(token, 0)) for token in tokens]
        for size in (2, 500):
            found: list[tuple[bytes, int]] = []
            after: bytes | None = None
            while True:
                only = [b"\xfe" * 20, *reversed(tokens), tokens[0]]
                rows, after = now(scene.balances.erc20(holder, number, after, size, only))
                found += [(row.token, row.balance) for row in rows]
                if after is None:
                    break
            assert found == expected
    blind = BalanceReader(scene.reader, None)
    rows, _ = now(blind.erc20(unknown, number, None, 10, tokens[:3]))
    assert [row.balance for row in rows] == [0, 0, 0]


def test_candidates_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page may be short, or empty, with a cursor; all pages together are whole."""
    scene = indexed(like("anvil"))
    holders = sorted({holder for line in states(like("anvil")) for _, holder in erc20_of(line)})
    requested = [(holder, block) for holder in holders for block in (20, 300, 1900)]
    whole = [now(scene.balances.erc20(holder, block, None, 500))[0] for holder, block in requested]
    monkeypatch.setattr("icefall.evm.reading.balances.CANDIDATES_MAX", 3)
    empty = 0
    for (holder, block), expected in zip(requested, whole, strict=True):
        found: list[Any] = []
        after: bytes | None = None
        while True:
            rows, after = now(scene.balances.erc20(holder, block, after, 1))
            found += rows
            if after is None:
                break
            empty += not rows
        assert found == expected
    assert empty > 0


# -- ERC-1155 and ERC-721 ----------------------------------------------------------------------------------------------


def erc1155_of(line: Any) -> Erc1155State:
    return {
        (unhex(token), unhex(holder), int(token_id)): int(amount)
        for token, holders in line["erc1155"].items()
        for holder, amounts in holders.items()
        for token_id, amount in amounts.items()
    }


def check_erc1155(scene: Scene, lines: Iterator[Any], every: int = 1) -> int:
    balances: dict[bytes, dict[tuple[bytes, int], int]] = {}
    checks = 0
    for line in lines:
        for (token, holder, token_id), amount in erc1155_of(line).items():
            balances.setdefault(holder, {})[token, token_id] = amount
        for holder, held in balances.items() if line["number"] % every == 0 else ():
            rows, more = now(scene.balances.of_ids(BY_ID[0], holder, line["number"], None, 500))
            expected = sorted((*key, amount) for key, amount in held.items() if amount)
            assert [(row.token, row.token_id, row.balance) for row in rows] == expected, (line["number"], holder.hex())
            assert more is None
            checks += len(held)
    return checks


@pytest.mark.parametrize("chain", CHAINS)
def test_erc1155_balances_at_every_block(chain: str) -> None:
    assert check_erc1155(indexed(chain), states(chain), EVERY[chain]) > 500 // EVERY[chain]


@pytest.mark.parametrize("chain", CHAINS)
def test_pages_of_erc1155_balances(chain: str) -> None:
    scene = indexed(chain)
    tip = now(scene.chain.tip())
    assert tip is not None
    keys = [key for line in states(chain) for key in erc1155_of(line)]
    for holder in {holder for _, holder, _ in keys}:
        whole, _ = now(scene.balances.of_ids(BY_ID[0], holder, tip.number, None, 500))
        for token in (None, *{token for token, _, _ in keys}, b"\x01" * 20):
            expected = [row for row in whole if token in (None, row.token)]
            for size in SIZES:
                found: list[IdHeld] = []
                after: tuple[bytes, int] | None = None
                while True:
                    rows, after = now(scene.balances.of_ids(BY_ID[0], holder, tip.number, after, size, token))
                    found += rows
                    if after is None:
                        break
                assert found == expected


def owners_of(lines: Iterator[Any]) -> dict[tuple[bytes, int], bytes]:
    found: dict[tuple[bytes, int], bytes] = {}
    for line in lines:
        for token, owners in line["erc721"].items():
            for token_id, owner in owners.items():
                found[unhex(token), int(token_id)] = ZERO_ADDRESS if owner is None else unhex(owner)
    return found


def check_nfts(scene: Scene, owners: dict[tuple[bytes, int], bytes], sizes: Sequence[int]) -> None:
    for address in set(owners.values()) | {b"\x77" * 20}:
        expected = sorted(key for key, owner in owners.items() if owner == address and owner != ZERO_ADDRESS)
        for token in (None, *{token for token, _ in expected}, b"\x01" * 20):
            wanted = [key for key in expected if token in (None, key[0])]
            for size in sizes:
                found: list[tuple[bytes, int]] = []
                after: tuple[bytes, int] | None = None
                while True:
                    rows, after = now(scene.balances.nfts(address, after, size, token))
                    assert all(row.owner == address for row in rows)
                    found += [(row.token, row.token_id) for row in rows]
                    if after is None:
                        break
                assert found == wanted, address.hex()


@pytest.mark.parametrize("chain", CHAINS)
def test_nfts_owned_now(chain: str) -> None:
    scene, owners = indexed(chain), owners_of(states(chain))
    check_nfts(scene, owners, SIZES)
    shown = now(scene.balances.owners(list(owners)))
    assert shown == [None if owner == ZERO_ADDRESS else owner for owner in owners.values()]
    assert now(scene.balances.owners([(b"\x77" * 20, 1)])) == [None]


@pytest.mark.parametrize("chain", CHAINS)
def test_balances_that_need_state_are_not_guessed(chain: str) -> None:
    scene = indexed(chain)
    blind = BalanceReader(scene.reader, None)
    untrusted = labelled(chain, UNTRUSTED[0])
    tip = now(scene.chain.tip())
    assert tip is not None
    holder = next(
        holder for line in states(chain) for (token, holder), _ in erc20_of(line).items() if token == untrusted
    )
    with pytest.raises(Unavailable, match="no upstream is configured"):
        now(blind.erc20(holder, tip.number, None, 500))
    with pytest.raises(Unavailable, match="no upstream is configured"):
        now(blind.native(b"\x77" * 20, tip.number))


def test_the_same_through_a_real_upstream() -> None:
    """Batched over HTTP, by the hash of the block."""

    async def work() -> None:
        scene = indexed("geth-1")
        async with EvmReplay("geth-1") as replay:
            state = RequestState([replay.url], replay.chain_id)
            balances = BalanceReader(scene.reader, state)
            for holder in sorted({holder for line in states("geth-1") for _, holder in erc20_of(line)})[:10]:
                for block in (60, 250, 415):
                    rows = await balances.erc20(holder, block, None, 500)
                    assert rows == await scene.balances.erc20(holder, block, None, 500)
            assert await balances.native(b"\x77" * 20, 7) == 0
            assert all(isinstance(params[1], dict) for method, params in replay.calls if method != "eth_chainId")
            assert replay.asked("eth_chainId") == 1
            await state.close()

    asyncio.run(work())


@pytest.mark.parametrize("chain", CHAINS)
def test_an_index_that_begins_inside_a_chain(chain: str, tmp_path: Path) -> None:
    """What is listed is right at every block; who held before, and was never named since, is found by naming tokens."""
    whole, replay = indexed(chain), EvmReplay(chain)
    first = max(replay.head // 2, replay.head - 150)
    asyncio.run(index(tmp_path / "half.sqlite", replay, first=first))
    scene = scene_of(tmp_path / "half.sqlite", whole.state)
    lines = known_lines(replay.state, first, replay.head)
    check_native(scene, iter(lines), EVERY[chain])
    holders = {holder for line in lines for _, holder in erc20_of(line)}
    tokens = sorted({token for line in lines for token, _ in erc20_of(line)})
    listed = 0
    for holder in holders - {ZERO_ADDRESS}:
        for block in (*range(first, replay.head, 9 * EVERY[chain]), replay.head):
            all_of_them, _ = now(whole.balances.erc20(holder, block, None, 500, tokens))
            assert [(row.token, row.balance) for row in all_of_them] == [
                (row.token, row.balance) for row in now(scene.balances.erc20(holder, block, None, 500, tokens))[0]
            ]
            rows, _ = now(scene.balances.erc20(holder, block, None, 500))
            assert {(row.token, row.balance) for row in rows} <= {(row.token, row.balance) for row in all_of_them}
            listed += len(rows)
    assert listed > 100
    for holder in {holder for line in lines for _, holder, _ in erc1155_of(line)}:
        for block in (first, first + 20, replay.head):
            rows_now, _ = now(scene.balances.of_ids(BY_ID[0], holder, block, None, 500))
            truth, _ = now(whole.balances.of_ids(BY_ID[0], holder, block, None, 500))
            held = {(row.token, row.token_id, row.balance) for row in truth}
            assert {(row.token, row.token_id, row.balance) for row in rows_now} <= held
    scene.reader.close()
