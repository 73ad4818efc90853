"""On a server, a transfer says whether its transaction concerns the sender and the recipient only through transfers."""

import random

from icefall.evm.encoding import position_of
from icefall.evm.storing.writing import touch_marks

TOKEN, VALUE = 9, b"\x01\x05"
SENDER, RECIPIENT = 1, 2


def transfer(log: int, tx: int, sender: int, recipient: int, block: int = 7) -> tuple[int, int, int, int, int, bytes]:
    return position_of(block, log), tx, TOKEN, sender, recipient, VALUE


def test_the_first_transfer_of_a_transaction_that_names_a_party_has_its_mark() -> None:
    transfers = [transfer(0, 0, 1, 2), transfer(1, 0, 2, 3), transfer(2, 1, 2, 2), transfer(3, 2, 1, 2)]
    touches = [(2, position_of(7, 0)), (3, position_of(7, 0)), (2, position_of(7, 1))]
    assert touch_marks(transfers, touches) == ([RECIPIENT, RECIPIENT, SENDER, 0], [])


def test_what_no_transfer_names_is_left() -> None:
    """Such as the parties of internal transactions and of NFTs, and those of other transactions and blocks."""
    transfers = [transfer(0, 0, 1, 2), transfer(0, 0, 1, 2, block=8)]
    others = [(5, position_of(7, 0)), (1, position_of(7, 1)), (1, position_of(9, 0))]
    assert touch_marks(transfers, [*others, (1, position_of(8, 0))]) == ([0, SENDER], others)


def test_marks_and_what_is_left_are_all_touches_once() -> None:
    draw = random.Random(1)
    transfers = [
        transfer(log, log // 3, draw.randrange(1, 6), draw.randrange(1, 6), block)
        for block in (1, 2)
        for log in range(30)
    ]
    touches = {(draw.randrange(1, 8), position_of(draw.randrange(1, 4), draw.randrange(12))) for _ in range(60)}
    marks, left = touch_marks(transfers, touches)
    marked = []
    for (log_at, tx, _, sender, recipient, _), mark in zip(transfers, marks, strict=True):
        tx_at = position_of(log_at >> 24, tx)
        marked += [(party, tx_at) for bit, party in ((SENDER, sender), (RECIPIENT, recipient)) if mark & bit]
    assert sorted([*marked, *left]) == sorted(touches)
    assert marked
    assert left
