"""Numbers as the store holds them: what is packed is unpacked again, in as few bytes as its parts promise."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from icefall.evm.encoding import PackedUints, pack_uint, unpack_uint, unpack_uints

MAX = 2**256 - 1
ROUND = st.builds(lambda digits, power: min(digits * 10**power, MAX), st.integers(0, 300), st.integers(0, 77))
UINTS = st.one_of(st.integers(0, 300), st.integers(0, MAX), ROUND)


@given(UINTS, UINTS)
def test_one_number_sorts_as_its_bytes(one: int, other: int) -> None:
    assert unpack_uint(pack_uint(one)) == one
    assert (pack_uint(one) < pack_uint(other)) == (one < other)


@given(st.lists(st.none() | UINTS))
@example([0, 1, 95, 96, 255, 256, 10**77, MAX, None])
def test_several_numbers_are_read_one_after_another(numbers: list[int | None]) -> None:
    packed = PackedUints()
    together = b"".join([packed[number] for number in numbers])
    assert unpack_uints(together) == numbers
    assert [unpack_uints(together, count) for count in range(len(numbers))] == [
        numbers[:count] for count in range(len(numbers))
    ]


@given(st.lists(st.none() | UINTS))
def test_several_numbers_take_no_more_room_than_with_a_length_each(numbers: list[int | None]) -> None:
    with_lengths = b"".join([b"\xff" if number is None else pack_uint(number) for number in numbers])
    assert len(b"".join(map(PackedUints().__getitem__, numbers))) <= len(with_lengths)


@pytest.mark.parametrize(
    ("number", "size"),
    [
        (0, 1),
        (1, 1),
        (95, 1),
        (96, 2),
        (255, 2),
        (21_000, 2),
        (25 * 10**8, 2),
        (10**77, 2),
        (21_001, 3),
        (10**9 + 1, 5),
    ],
)
def test_small_and_round_numbers_are_short(number: int, size: int) -> None:
    assert len(PackedUints()[number]) == size
