"""Type, status and call of a transaction in one number, with the selector of the commonest call."""

from icefall.evm.model import CallType, NativeTx

TRANSFER = bytes.fromhex("a9059cbb")  # transfer(address,uint256)
_TRANSFER_CALL = 3  # a contract call with that selector, which is not stored then
CALL_TYPES = (*CallType, CallType.CONTRACT_CALL)  # by the lowest two bits
_CALL_NUMBERS = {call_type: number for number, call_type in enumerate(CallType)}


def pack_kind(tx: NativeTx) -> tuple[int, bytes]:
    """And the selector, as it is stored."""
    kind = tx.type_id << 3 | tx.status << 2
    if tx.selector == TRANSFER:
        return kind | _TRANSFER_CALL, b""
    return kind | _CALL_NUMBERS[tx.call_type], tx.selector


def selector_of(kind: int, stored: bytes) -> bytes:
    return TRANSFER if kind & 3 == _TRANSFER_CALL else stored
