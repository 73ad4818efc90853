"""Answers over HTTP while the chain is reorganised under them and its node is slow: each is of one history."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.api.two_histories import BALANCE_OF, CHAIN_ID, COMMON, HOLDER, NAME, MadeBlock, TwoHistories, name_of
from tests.server import Server, serving
from tests.store.statement_table import ENGINES
from tests.upstream.threaded import in_thread
from tests.waiting import until

AT = f"/v1/chains/{CHAIN_ID}"
WHO = f"0x{HOLDER.hex()}"
TRANSFERS = f"{AT}/addresses/{WHO}/transactions:listErc20?pageSize=100"
BALANCES = f"{AT}/addresses/{WHO}/balances:listErc20?pageSize=100&filterSpamTokens=false"
REORGANISATIONS = 6
READERS = 3  # of each list
PAUSE_S = 0.05  # between two requests of a reader: most of the time there is nothing new


class Readers:
    """Threads that ask for one list each, again and again, and keep the answers."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._ends = threading.Event()
        self.answers: dict[str, list[Any]] = {TRANSFERS: [], BALANCES: []}
        self.refused: Counter[int] = Counter()
        self._threads = [
            threading.Thread(target=self._read, args=(one,)) for one in self.answers for _ in range(READERS)
        ]

    def _read(self, target: str) -> None:
        while not self._ends.wait(PAUSE_S):
            reply = self._server.ask("GET", target, listener="data")
            if reply.status == 200:
                self.answers[target].append(reply.json())
            else:
                self.refused[reply.status] += 1

    @contextmanager
    def reading(self) -> Iterator[None]:
        for thread in self._threads:
            thread.start()
        try:
            yield
        finally:
            self._ends.set()
            for thread in self._threads:
                thread.join()


def transfers_of(chain: list[MadeBlock]) -> list[Any]:
    """What a list says of the transfers of the holder, newest first."""
    return [
        (block.number, tx_hash, f"0x{move.token.hex()}", f"0x{move.sender.hex()}", f"0x{move.to.hex()}", move.amount)
        for block in reversed(chain)
        for tx_hash, move in reversed(list(zip(block.tx_hashes, block.moves, strict=True)))
        if HOLDER in (move.sender, move.to)
    ]


def listed_transfers(answer: Any) -> list[Any]:
    return [
        (
            int(one["blockNumber"]), one["txHash"], one["erc20Token"]["address"].lower(),
            one["from"]["address"].lower(), one["to"]["address"].lower(), int(one["value"]),
        )
        for one in answer["transactions"]
    ]  # fmt: skip


def balances_of(chain: list[MadeBlock]) -> Any:
    return {f"0x{token.hex()}": amount for token, amount in chain[-1].held.items() if amount}


def listed_balances(answer: Any) -> Any:
    return {one["address"].lower(): int(one["balance"]) for one in answer["erc20TokenBalances"]}


def tokens_in(answer: Any) -> list[Any]:
    rows = answer.get("erc20TokenBalances") or [one["erc20Token"] for one in answer.get("transactions", [])]
    return [one for one in rows if "name" in one]


@pytest.mark.parametrize("engine", [one for one in ENGINES if one != "citus"])
def test_an_answer_is_of_one_history_and_names_are_of_their_tokens(engine: str, tmp_path: Path) -> None:
    """A reorganisation comes while readers wait for the node, and while names are being read from it. The names of the
    chain before must not be shown, or stored, for tokens that have the IDs since."""
    with in_thread(TwoHistories()) as upstream:
        config = tmp_path / "icefall.toml"
        config.write_text(f'[[chain]]\nid = "{CHAIN_ID}"\nrpc = "{upstream.url}"\n')
        settings = (f"--config-file={config}", "--poll-interval=50ms")
        with serving("up", tmp_path / "program", *settings, store=engine) as server:
            readers = Readers(server)
            await_block(server, upstream.shown[-1])
            with readers.reading():
                for number in range(REORGANISATIONS):
                    reorganise(server, readers, upstream, with_names=number % 2 == 0)
        check(readers, upstream)


def reorganise(server: Server, readers: Readers, upstream: TwoHistories, *, with_names: bool) -> None:
    """Replace the history while readers wait for balances, and let them be answered when the other one is stored: with
    its names, or while those of the one before are still being read."""
    upstream.held = {BALANCE_OF}
    until(lambda: upstream.waiting[BALANCE_OF] >= READERS, "readers wait for the node")
    if not with_names:
        upstream.held = {BALANCE_OF, NAME}
        await_block(server, upstream.replace())
        until(lambda: upstream.waiting[NAME] > 0, "names are being read")
    await_block(server, upstream.replace())
    if with_names:
        await_names(server, upstream.shown[-1])
    before = {target: len(found) for target, found in readers.answers.items()}
    upstream.held = set()
    until(
        lambda: all(len(readers.answers[target]) > count + 2 * READERS for target, count in before.items()),
        "readers are answered",
    )
    await_names(server, upstream.shown[-1])


def await_names(server: Server, block: MadeBlock) -> None:
    """Wait until the names of all tokens of the holder are read."""

    def are_read() -> bool:
        replies = [server.ask("GET", f"{AT}/tokens/0x{token.hex()}", listener="data") for token in block.held]
        return all(reply.status == 200 and "name" in reply.json() for reply in replies)

    until(are_read, "names are read")


def await_block(server: Server, block: MadeBlock) -> None:
    def is_stored() -> bool:
        reply = server.ask("GET", f"{AT}/blocks/{block.number}", listener="data")
        return reply.status == 200 and reply.json()["blockHash"] == block.hash

    until(is_stored, f"block {block.number} is stored")


def check(readers: Readers, upstream: TwoHistories) -> None:
    chains = [upstream.made.chain(history, head) for history in (0, 1) for head in range(COMMON, len(upstream.shown))]
    cases: list[tuple[str, Callable[[Any], Any], Callable[[Any], Any]]] = [
        (TRANSFERS, listed_transfers, transfers_of),
        (BALANCES, listed_balances, balances_of),
    ]
    for target, listed, of in cases:
        true = [of(chain) for chain in chains]
        answers = readers.answers[target]
        mixed = [found for found in map(listed, answers) if found not in true]
        assert not mixed, f"{len(mixed)} of {len(answers)} answers are of no history: {mixed[0]}"
        named = [one for answer in answers for one in tokens_in(answer)]
        wrong = [one for one in named if one["name"] != name_of(bytes.fromhex(one["address"][2:]))]
        assert not wrong, f"{len(wrong)} of {len(named)} tokens have the name of another: {wrong[0]}"
        assert named, "no name was read"
        assert len(set(map(repr, map(listed, answers)))) >= REORGANISATIONS, "not every history was read"
    assert set(readers.refused) <= {503}, readers.refused  # the node did not answer in time
