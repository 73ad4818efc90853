"""Hashes of an EVM block, recomputed from its contents: header, transactions, receipts, withdrawals, atomic data.

Written for speed: fixed sizes have fixed RLP prefixes, and every object is encoded once.
"""

from collections.abc import Iterable, Sequence

from icefall.wire.errors import WireError
from icefall.wire.evm import rlp
from icefall.wire.evm.rlp import keccak256
from icefall.wire.evm.types import Access, Authorization, DecodedBlock, EventLog, EvmTx, Receipt, Withdrawal

_SMALL = tuple([rlp.encode(rlp.number(value)) for value in range(128)])
_STRING = tuple([bytes([0x80 + size]) for size in range(56)])
_TOPICS = tuple([rlp.encode([bytes(32)] * count)[: -33 * count or None] for count in range(5)])  # prefixes only
_ADDRESS, _WORD, _BLOOM, _NONCE = b"\x94", b"\xa0", b"\xb9\x01\x00", b"\x88"
_EMPTY_LIST = b"\xc0"
_TYPES = tuple([bytes([type_id]) for type_id in range(256)])
_KNOWN_MAX = 10_000


def header_hash(block: DecodedBlock) -> bytes:
    """The hash of a header; which optional fields are set determines the layout."""
    return keccak256(rlp.encode_list([*_common_fields(block), *_later_fields(block)]))


def is_known_layout(block: DecodedBlock) -> bool:
    """Return whether the header layout is known: then a wrong hash means invalid data, else it cannot be checked."""
    return not block.unknown_fields and (block.ext_data_hash is not None or not is_avalanche_layout(block))


def is_avalanche_layout(block: DecodedBlock) -> bool:
    """Return whether the header has fields of coreth or subnet-evm."""
    avalanche = (block.ext_data_hash, block.gas_cost, block.time_ms, block.min_delay_excess)
    return any(field is not None for field in avalanche)


def _common_fields(block: DecodedBlock) -> list[bytes]:
    return [
        _WORD + block.parent_hash,
        _WORD + block.uncles_hash,
        _ADDRESS + block.miner,
        _WORD + block.state_root,
        _WORD + block.transactions_root,
        _WORD + block.receipts_root,
        _BLOOM + block.bloom,
        _number(block.difficulty),
        _number(block.number),
        _number(block.gas_limit),
        _number(block.gas_used),
        _number(block.time),
        rlp.encode(block.extra),
        _WORD + block.mix_hash,
        _NONCE + block.nonce,
    ]


def _later_fields(block: DecodedBlock) -> list[bytes]:
    """Fields that came with later rules. Ethereum, coreth and subnet-evm (never recorded) each have their order."""
    base_fee = _number_if(block.base_fee)
    blobs = [_number_if(block.blob_gas_used), _number_if(block.excess_blob_gas), _word_if(block.beacon_root)]
    if block.ext_data_hash is None and block.gas_cost is None:
        fields = [base_fee, _word_if(block.withdrawals_root), *blobs, _word_if(block.requests_hash)]
    else:
        atomic_gas = _number_if(block.ext_data_gas_used)
        cost = _number_if(block.gas_cost)
        times = [_number_if(block.time_ms), _number_if(block.min_delay_excess)]
        fields = [_word_if(block.ext_data_hash), base_fee, atomic_gas, cost, *blobs, *times]
    return [field for field in fields if field]


def ext_data_hash(ext_data: bytes) -> bytes:
    """The hash of the atomic transactions in coreth's header."""
    return keccak256(rlp.encode(ext_data))


def withdrawals_root(withdrawals: Sequence[Withdrawal]) -> bytes:
    return rlp.ordered_root([_withdrawal(one) for one in withdrawals]) if withdrawals else rlp.EMPTY_ROOT


def created_address(sender: bytes, nonce: int) -> bytes:
    """Compute the address of the contract that a transaction without a recipient creates."""
    return keccak256(rlp.encode_list([_ADDRESS + sender, _number(nonce)]))[12:]


def tx_bytes(tx: EvmTx) -> bytes:
    """A transaction as it is hashed and as the root covers it; blobs themselves are never part of it."""
    try:
        fields = _FIELDS[tx.type_id]
    except KeyError:
        raise WireError(f"transaction type {tx.type_id} has no known layout") from None
    encoded = rlp.encode_list(fields(tx))
    return _TYPES[tx.type_id] + encoded if tx.type_id else encoded


def receipt_bytes(receipt: Receipt) -> bytes:
    """A receipt as the root covers it."""
    if receipt.type_id >= len(_TYPES):
        raise WireError(f"receipt type {receipt.type_id} has no known layout")
    first = _WORD + receipt.state_root if receipt.status is None else _number(receipt.status)
    logs = rlp.encode_list([_log(log) for log in receipt.logs]) if receipt.logs else _EMPTY_LIST
    encoded = rlp.encode_list((first, _number(receipt.cumulative_gas), _BLOOM, receipt.bloom, logs))
    return _TYPES[receipt.type_id] + encoded if receipt.type_id else encoded


def _legacy(tx: EvmTx) -> list[bytes]:
    known = _KNOWN
    price = known[tx.gas_price]
    return [known[tx.nonce], price, *_payload(tx), known[tx.v], rlp.encode(tx.r), rlp.encode(tx.s)]


def _with_access(tx: EvmTx) -> list[bytes]:
    head = [_KNOWN[tx.chain_id], _KNOWN[tx.nonce], _KNOWN[tx.gas_price]]
    return [*head, *_payload(tx), _access_list(tx.access_list), *_signature(tx)]


def _with_tip(tx: EvmTx) -> list[bytes]:
    """Encode a transaction of type 2, as most are: written out, which costs half as much as joining the lists of the
    others."""
    known = _KNOWN
    return [
        known[tx.chain_id],
        known[tx.nonce],
        known[tx.max_priority_fee or 0],
        known[tx.max_fee or 0],
        known[tx.gas],
        _ADDRESS + tx.to if tx.to else rlp.EMPTY_STRING,
        known[tx.value],
        rlp.encode(tx.input),
        _access_list(tx.access_list) if tx.access_list else _EMPTY_LIST,
        known[tx.v],
        rlp.encode(tx.r),
        rlp.encode(tx.s),
    ]


def _with_blobs(tx: EvmTx) -> list[bytes]:
    hashes = rlp.encode_list([_WORD + one for one in tx.blob_hashes])
    blobs = [_number(tx.max_blob_fee), hashes]
    return [*_tip_head(tx), *_payload(tx), _access_list(tx.access_list), *blobs, *_signature(tx)]


def _with_authorizations(tx: EvmTx) -> list[bytes]:
    authorizations = rlp.encode_list([_authorization(one) for one in tx.authorizations])
    return [*_tip_head(tx), *_payload(tx), _access_list(tx.access_list), authorizations, *_signature(tx)]


_FIELDS = {0: _legacy, 1: _with_access, 2: _with_tip, 3: _with_blobs, 4: _with_authorizations}


def _tip_head(tx: EvmTx) -> list[bytes]:
    tip, most = tx.max_priority_fee or 0, tx.max_fee or 0
    known = _KNOWN
    return [known[tx.chain_id], known[tx.nonce], known[tip], known[most]]


def _payload(tx: EvmTx) -> list[bytes]:
    to = _ADDRESS + tx.to if tx.to else rlp.EMPTY_STRING
    return [_KNOWN[tx.gas], to, _KNOWN[tx.value], rlp.encode(tx.input)]


def _signature(tx: EvmTx) -> list[bytes]:
    return [_KNOWN[tx.v], rlp.encode(tx.r), rlp.encode(tx.s)]


def _access_list(entries: Iterable[Access]) -> bytes:
    if not entries:
        return _EMPTY_LIST
    return rlp.encode([[entry.address, entry.slots] for entry in entries])


def _authorization(one: Authorization) -> bytes:
    head = [_number(one.chain_id), _ADDRESS + one.address, _number(one.nonce)]
    return rlp.encode_list([*head, _number(one.y_parity), _number(one.r), _number(one.s)])


def _withdrawal(one: Withdrawal) -> bytes:
    numbers = [_number(one.index), _number(one.validator_index)]
    return rlp.encode_list([*numbers, _ADDRESS + one.address, _number(one.amount_gwei)])


def _log(log: EventLog) -> bytes:
    topics, data = log.topics, log.data
    head = _ADDRESS + log.address + _TOPICS[len(topics)]
    if len(data) == 32:  # has the prefix of a topic
        return rlp.joined_list(_WORD.join((head, *topics, data)))
    return rlp.joined_list(_WORD.join((head, *topics)) + rlp.encode(data))


class _KnownNumbers(dict[int, bytes]):
    """Numbers that repeat from transaction to transaction, such as prices and limits: each is encoded once."""

    def __missing__(self, value: int) -> bytes:
        if len(self) >= _KNOWN_MAX:
            self.clear()
        encoded = self[value] = _number(value)
        return encoded


def _number(value: int) -> bytes:
    if value < 128:
        return _SMALL[value]
    size = (value.bit_length() + 7) >> 3
    return _STRING[size] + value.to_bytes(size, "big")


def _number_if(value: int | None) -> bytes:
    return b"" if value is None else _number(value)


def _word_if(value: bytes | None) -> bytes:
    return b"" if value is None else _WORD + value


_KNOWN = _KnownNumbers()
