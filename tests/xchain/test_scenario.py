"""A recorded history, replayed: the rules must accept, refuse, order and build exactly as the node did."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from tests.xchain.memory_state import BLOCK_0, GENESIS, RULES, MemoryState
from tests.xchain.scenario_1 import Attempt, accepted_blocks, attempts, final_utxos

from icefall.wire.avm.codec import unpack_utxo
from icefall.wire.avm.types import Block, Tx
from icefall.wire.container.proposer import next_epoch, pack_container, unpack_container
from icefall.wire.ids import PLATFORM_CHAIN, id_from_text, id_text
from icefall.wire.text import checksum_hex
from icefall.xchain.chain import build
from icefall.xchain.execute import verify_block
from icefall.xchain.mempool import Mempool, issue, parse_issue
from icefall.xchain.model import TxRefused
from icefall.xchain.ownership import Signers

ARGUMENTS = (
    "couldn't unmarshal an argument. Ensure arguments are valid and properly formatted. "
    "See documentation for example calls"
)
# Refused before there is a transaction to look at: the API's arguments are at fault, not the chain's rules.
NOT_OURS = {
    51: "tx is a list",
    52: "tx is a list, again",
    94: "encoding is the empty name",
    307: "params is a list of two strings",
    466: "params is a string",
    572: "tx is an object",
    659: "encoding is unknown",
    675: "encoding is a number",
    686: "tx is a number",
    877: "params is a list of one string",
    912: "encoding is unknown",
}
# The node's clock passed the second of the time lock between `time` and `doneTime`.
BY_DONE_TIME = {1048}

PEERS = {"P": PLATFORM_CHAIN, "C": GENESIS.c_chain_id}
CREATE_SUBNET, CREATE_CHAIN = 44, 45


class Answer(NamedTuple):
    attempt: Attempt
    tx: Tx | None
    refusal: str | None


class Replay:
    """Rows and recorded blocks in order of their times, on one state and one mempool."""

    def __init__(self) -> None:
        self.state = MemoryState()
        self.mempool = Mempool(remembers_all=True)  # as the node that was recorded
        self.signers = Signers()
        self.tip: Block = BLOCK_0
        self.built: list[Block] = []
        self._coming = list(reversed(accepted_blocks()))

    def run(self) -> Iterator[Answer]:
        for attempt in attempts():
            self._accept_until(attempt.time)
            if attempt.chain != "X":
                self._foreign(attempt)
            elif attempt.n not in NOT_OURS:
                yield self._issue(attempt)
        self._accept_until(float("inf"))

    def _issue(self, attempt: Attempt) -> Answer:
        tx = None
        now_s = int(attempt.done_time if attempt.n in BY_DONE_TIME else attempt.time)
        try:
            tx = parse_issue(*arguments(attempt.request))
            if not attempt.path.endswith("/wallet"):  # those wait in a queue of their own for their block
                issue(tx, self.mempool, RULES, self.state, now_s, self.signers)
        except TxRefused as refusal:
            return Answer(attempt, tx, str(refusal))
        return Answer(attempt, tx, None)

    def _foreign(self, attempt: Attempt) -> None:
        txid = id_from_text(attempt.txid_text or "")
        self.state.platform_txids.add(txid)
        if attempt.n == CREATE_CHAIN:
            self.state.subnets[txid] = id_from_text(attempts()[CREATE_SUBNET].txid_text or "")
        for raw in attempt.shared_memory:
            self.state.put_atomic(PEERS[attempt.chain], unpack_utxo(raw))

    def _accept_until(self, now: float) -> None:
        while self._coming and self._coming[-1].accepted_at <= now:
            block = self._coming.pop().block
            for tx in block.txs:
                self.mempool.put(tx)  # those of the wallet; all others are there
            built = build(self.mempool, self.tip, RULES, self.state, block.time, recover=self.signers)
            assert built.block is not None
            assert not built.dropped
            self.built.append(built.block)
            effects = verify_block(block, self.tip, RULES, self.state, block.time)
            assert built.effects == effects
            self.state.accept(effects)
            self.mempool.accepted(block.txs)
            self.tip = block


def arguments(request: Any) -> tuple[str, str]:
    """As JSON-RPC hands them over: the first of a list, names in any case, null for the default."""
    params = (request or [{}])[0] if isinstance(request, list) else request
    named = {key.lower(): value for key, value in params.items() if value is not None}
    return named.get("tx", ""), checksum_hex.encoding_name(named.get("encoding", "hex"))


@pytest.fixture(scope="module")
def replay() -> tuple[Replay, list[Answer]]:
    replay = Replay()
    return replay, list(replay.run())


def test_every_attempt_is_answered_as_recorded(replay: tuple[Replay, list[Answer]]) -> None:
    answers = replay[1]
    different = [(row.attempt.n, row.refusal, row.attempt.error) for row in answers if row.refusal != row.attempt.error]
    assert different == []
    refused = [row for row in answers if row.refusal is not None]
    accepted = [row for row in answers if row.attempt.accepted]
    assert (len(refused), len(accepted)) == (706 - len(NOT_OURS), 337)
    assert len({row.attempt.txid_text for row in accepted}) == 334
    assert len({row.refusal for row in refused}) > 290


def test_what_is_not_ours_is_a_matter_of_arguments() -> None:
    assert {row.n for row in attempts() if row.error == ARGUMENTS} == set(NOT_OURS)


def test_ids_are_the_recorded_ones(replay: tuple[Replay, list[Answer]]) -> None:
    for row in replay[1]:
        if row.attempt.accepted:
            assert row.tx is not None
            assert id_text(row.tx.txid) == row.attempt.txid_text


def test_blocks_are_built_byte_for_byte(replay: tuple[Replay, list[Answer]]) -> None:
    built = replay[0].built
    assert [block.raw for block in built] == [row.block.raw for row in accepted_blocks()]
    assert [block.height for block in built] == list(range(1, 177))
    assert len(replay[0].mempool) == 0


def test_containers_are_wrapped_byte_for_byte(replay: tuple[Replay, list[Answer]]) -> None:
    """Given the P-Chain height that the proposer wrote down."""
    parent = None
    for block, recorded in zip(replay[0].built, accepted_blocks(), strict=True):
        height = unpack_container(recorded.container).p_chain_height
        if parent is None:
            made = pack_container(BLOCK_0.block_id, block.time, height, block.raw)
        else:
            made = pack_container(parent.container_id, block.time, height, block.raw, epoch=next_epoch(parent))
        assert (made.raw, id_text(made.container_id)) == (recorded.container, recorded.container_id_text)
        parent = made


def test_the_final_utxos_are_the_recorded_ones(replay: tuple[Replay, list[Answer]]) -> None:
    assert {id_text(utxo_id): raw for utxo_id, raw in replay[0].state.raw.items()} == final_utxos()
