"""Call data as the store holds it, and what of it is left out because a transfer repeats it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icefall.evm.encoding import REPEATS_TRANSFER, pack_data, pack_input, unpack_data, unpack_input
from icefall.evm.model import Erc20TransferRow

MAX = 2**256 - 1
ADDRESSES = st.one_of(st.binary(min_size=20, max_size=20), st.just(bytes(20)))
TRANSFERS = st.builds(
    Erc20TransferRow, st.just(0), st.just(0), ADDRESSES, ADDRESSES, ADDRESSES, st.integers(0, 300) | st.integers(0, MAX)
)
DATA = st.lists(st.one_of(st.binary(max_size=40), st.integers(0, 600).map(bytes)), max_size=5).map(b"".join)


def words(transfer: Erc20TransferRow) -> list[bytes]:
    return [transfer.sender.rjust(32, b"\0"), transfer.to.rjust(32, b"\0"), transfer.value.to_bytes(32, "big")]


@given(DATA)
def test_packed_data_is_unpacked_again(data: bytes) -> None:
    packed = pack_data(data)
    assert unpack_data(packed) == data
    assert REPEATS_TRANSFER not in packed
    assert pack_input(data, None) == packed


@pytest.mark.parametrize("count", [2, 3])
@given(transfer=TRANSFERS)
def test_what_a_transfer_repeats_is_left_out(count: int, transfer: Erc20TransferRow) -> None:
    arguments = b"".join(words(transfer)[-count:])
    packed = pack_input(arguments, transfer)
    assert packed == REPEATS_TRANSFER + bytes([count])
    assert unpack_input(packed, transfer.sender, transfer.to, transfer.value) == arguments


@given(transfer=TRANSFERS, other=TRANSFERS, extra=st.binary(min_size=1, max_size=33))
def test_anything_else_is_stored(transfer: Erc20TransferRow, other: Erc20TransferRow, extra: bytes) -> None:
    sender, to, value = words(transfer)
    cases = [to, value, to + value + extra, extra + to + value, value + to, sender + value + to, *words(other), b""]
    if (other.to, other.value) != (transfer.to, transfer.value):
        cases += [b"".join(words(other)[1:]), b"".join(words(other))]
    for arguments in cases:
        packed = pack_input(arguments, transfer)
        if packed.startswith(REPEATS_TRANSFER):  # the same by chance, as a sender that is also the recipient
            assert unpack_input(packed, transfer.sender, transfer.to, transfer.value) == arguments
        else:
            assert unpack_data(packed) == arguments
