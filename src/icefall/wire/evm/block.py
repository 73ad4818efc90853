"""Blocks and receipts as EVM nodes send them: the `result` of eth_getBlockByNumber (full) and eth_getBlockReceipts."""

import re
from collections.abc import Callable, Iterable
from typing import TypeVar

import msgspec

from icefall.wire.errors import WireError
from icefall.wire.evm.hex import HexAddresses, HexNumbers, HexReader, HexTexts, amount, data, fixed, minimal
from icefall.wire.evm.types import Access, Authorization, DecodedBlock, EventLog, EvmTx, PlacedTx, Receipt, Withdrawal

T = TypeVar("T")
_NO_BLOOM = bytes(256)
_NO_BLOOM_TEXT = "0x" + _NO_BLOOM.hex()


class _AccessText(msgspec.Struct, gc=False, rename="camel"):
    address: str
    storage_keys: list[str]


class _AuthorizationText(msgspec.Struct, gc=False, rename="camel"):
    chain_id: str
    address: str
    nonce: str
    r: str
    s: str
    y_parity: str | None = None
    v: str = "0x0"  # early clients


class _TxText(msgspec.Struct, gc=False, rename="camel"):
    hash: str
    from_: str = msgspec.field(name="from")
    nonce: str
    gas: str
    value: str
    input: str
    to: str | None = None
    type: str = "0x0"
    gas_price: str | None = None
    max_fee_per_gas: str | None = None
    max_priority_fee_per_gas: str | None = None
    max_fee_per_blob_gas: str = "0x0"
    chain_id: str | None = None
    v: str = "0x0"
    r: str = "0x0"
    s: str = "0x0"
    y_parity: str | None = None
    access_list: list[_AccessText] | None = None
    authorization_list: list[_AuthorizationText] | None = None
    blob_versioned_hashes: list[str] | None = None


class _PlacedTxText(_TxText, gc=False, rename="camel"):
    block_number: str | None = None


class _WithdrawalText(msgspec.Struct, gc=False, rename="camel"):
    index: str
    validator_index: str
    address: str
    amount: str


class _HeaderText(msgspec.Struct, gc=False, rename="camel", forbid_unknown_fields=True, kw_only=True):
    number: str
    hash: str
    parent_hash: str
    sha3_uncles: str = msgspec.field(name="sha3Uncles")
    miner: str
    state_root: str
    transactions_root: str
    receipts_root: str
    logs_bloom: str
    difficulty: str
    gas_limit: str
    gas_used: str
    timestamp: str
    extra_data: str
    mix_hash: str
    nonce: str
    base_fee_per_gas: str | None = None
    withdrawals_root: str | None = None
    withdrawals: list[_WithdrawalText] | None = None
    blob_gas_used: str | None = None
    excess_blob_gas: str | None = None
    parent_beacon_block_root: str | None = None
    requests_hash: str | None = None
    ext_data_hash: str | None = None
    block_extra_data: str | None = None
    ext_data_gas_used: str | None = None
    block_gas_cost: str | None = None
    timestamp_milliseconds: str | None = None
    min_delay_excess: str | None = None
    # Sent, but not hashed.
    size: msgspec.Raw = msgspec.Raw()
    total_difficulty: msgspec.Raw = msgspec.Raw()
    uncles: msgspec.Raw = msgspec.Raw()


class _BlockText(_HeaderText, gc=False, rename="camel", forbid_unknown_fields=True, kw_only=True):
    transactions: list[_TxText]


class _BareText(_HeaderText, gc=False, rename="camel", forbid_unknown_fields=True, kw_only=True):
    transactions: msgspec.Raw = msgspec.Raw()


class _LogText(msgspec.Struct, gc=False, rename="camel"):
    address: str
    topics: list[str]
    data: str
    log_index: str


class _ReceiptText(msgspec.Struct, gc=False, rename="camel"):
    transaction_hash: str
    block_hash: str
    transaction_index: str
    cumulative_gas_used: str
    gas_used: str
    from_: str = msgspec.field(name="from")
    logs_bloom: str
    logs: list[_LogText]
    type: str = "0x0"
    status: str | None = None
    root: str | None = None
    effective_gas_price: str | None = None
    contract_address: str | None = None


class _AnyBlockText(_BlockText, gc=False, rename="camel", forbid_unknown_fields=False):
    pass


class _AnyBareText(_BareText, gc=False, rename="camel", forbid_unknown_fields=False):
    pass


_SIZE = re.compile(rb'"0x([0-9a-fA-F]{1,8})"')
_block = msgspec.json.Decoder(_BlockText | None)
_any_block = msgspec.json.Decoder(_AnyBlockText | None)
_bare = msgspec.json.Decoder(_BareText)
_any_bare = msgspec.json.Decoder(_AnyBareText)
_tx = msgspec.json.Decoder(_PlacedTxText)
_receipts = msgspec.json.Decoder(list[_ReceiptText] | None)


def decode_block(raw: bytes, texts: HexTexts | None = None) -> DecodedBlock | None:
    """A full block; None where the node answered null: it has no such block (yet)."""
    try:
        try:
            text = _block.decode(raw)
            has_unknown = False
        except msgspec.ValidationError:  # a field we do not know, or a damaged one that the next line refuses too
            text = _any_block.decode(raw)
            has_unknown = True
        if text is None:
            return None
        return _to_block(text, text.transactions, texts or HexTexts(), unknown_fields=has_unknown)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, WireError) as error:
        raise WireError(f"block: {error}") from error


def decode_header(raw: bytes) -> DecodedBlock:
    """A block of which only the header is read: without transactions, whatever form they have."""
    try:
        try:
            return _to_block(_bare.decode(raw), (), HexTexts(), unknown_fields=False)
        except msgspec.ValidationError:
            return _to_block(_any_bare.decode(raw), (), HexTexts(), unknown_fields=True)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, WireError) as error:
        raise WireError(f"header: {error}") from error


def decode_tx(raw: bytes) -> PlacedTx:
    """Decode the `result` of eth_getTransactionByHash."""
    try:
        text = _tx.decode(raw)
        texts = HexTexts()
        return PlacedTx(_TxReader(texts).read(text), _maybe(texts.count.__getitem__, text.block_number))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, WireError) as error:
        raise WireError(f"transaction: {error}") from error


def decode_receipts(raw: bytes, texts: HexTexts | None = None) -> tuple[Receipt, ...] | None:
    """A block's receipts; None where the node answered null."""
    try:
        receipts = _receipts.decode(raw)
        if receipts is None:
            return None
        return _ReceiptReader(texts or HexTexts()).read(receipts)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, WireError) as error:
        raise WireError(f"receipts: {error}") from error


def _to_block(text: _HeaderText, txs: Iterable[_TxText], texts: HexTexts, *, unknown_fields: bool) -> DecodedBlock:
    count, address, word = texts.count, texts.address, texts.word
    tx = _TxReader(texts)
    withdrawals = text.withdrawals
    return DecodedBlock(
        number=count[text.number],
        block_hash=word[text.hash],
        parent_hash=word[text.parent_hash],
        uncles_hash=word[text.sha3_uncles],
        miner=address[text.miner],
        state_root=word[text.state_root],
        transactions_root=word[text.transactions_root],
        receipts_root=word[text.receipts_root],
        bloom=fixed(text.logs_bloom, 256),
        difficulty=amount(text.difficulty),
        gas_limit=count[text.gas_limit],
        gas_used=count[text.gas_used],
        time=count[text.timestamp],
        extra=data(text.extra_data),
        mix_hash=word[text.mix_hash],
        nonce=fixed(text.nonce, 8),
        txs=tuple([tx.read(one) for one in txs]),
        base_fee=_maybe(amount, text.base_fee_per_gas),
        withdrawals_root=_maybe(word.__getitem__, text.withdrawals_root),
        withdrawals=None if withdrawals is None else tuple([_withdrawal(one, count, address) for one in withdrawals]),
        blob_gas_used=_maybe(count.__getitem__, text.blob_gas_used),
        excess_blob_gas=_maybe(count.__getitem__, text.excess_blob_gas),
        beacon_root=_maybe(word.__getitem__, text.parent_beacon_block_root),
        requests_hash=_maybe(word.__getitem__, text.requests_hash),
        ext_data_hash=_maybe(word.__getitem__, text.ext_data_hash),
        ext_data=_maybe(data, text.block_extra_data),
        ext_data_gas_used=_maybe(amount, text.ext_data_gas_used),
        gas_cost=_maybe(amount, text.block_gas_cost),
        time_ms=_maybe(count.__getitem__, text.timestamp_milliseconds),
        min_delay_excess=_maybe(count.__getitem__, text.min_delay_excess),
        unknown_fields=unknown_fields,
        size=_size(text.size),
    )


def _size(raw: msgspec.Raw) -> int | None:
    """Return the size that the node gives. No hash covers it, and not all nodes send it: None where it is none."""
    found = _SIZE.fullmatch(bytes(raw))
    return int(found[1], 16) if found else None


def _maybe(read: Callable[[str], T], text: str | None) -> T | None:
    return None if text is None else read(text)


class _TxReader(HexReader):
    """Fields are given in the order of the struct, which costs less than by name."""

    __slots__ = ()

    def read(self, text: _TxText) -> EvmTx:
        count, money, address = self.count, self.amount, self.address
        type_id = count[text.type]
        max_fee, max_priority, price = text.max_fee_per_gas, text.max_priority_fee_per_gas, text.gas_price
        if price is None and max_fee is None:
            raise WireError("a transaction without a gas price")
        return EvmTx(
            self.word[text.hash],
            type_id,
            count[text.nonce],
            count[text.gas],
            money[price or max_fee or ""],
            None if max_fee is None else money[max_fee],
            None if max_priority is None else money[max_priority],
            address[text.from_],
            address[text.to] if text.to else b"",
            money[text.value],
            data(text.input),
            money[text.chain_id] if text.chain_id else 0,
            money[text.v if type_id == 0 or text.y_parity is None else text.y_parity],
            minimal(text.r),
            minimal(text.s),
            tuple([self._access(one) for one in text.access_list]) if text.access_list else (),
            tuple([_authorization(one) for one in text.authorization_list]) if text.authorization_list else (),
            money[text.max_fee_per_blob_gas],
            tuple([fixed(one, 32) for one in text.blob_versioned_hashes]) if text.blob_versioned_hashes else (),
        )

    def _access(self, text: _AccessText) -> Access:
        return Access(self.address[text.address], tuple([self.word[slot] for slot in text.storage_keys]))


def _authorization(text: _AuthorizationText) -> Authorization:
    return Authorization(
        chain_id=amount(text.chain_id),
        address=fixed(text.address, 20),
        nonce=amount(text.nonce),
        y_parity=amount(text.v if text.y_parity is None else text.y_parity),
        r=amount(text.r),
        s=amount(text.s),
    )


def _withdrawal(text: _WithdrawalText, count: HexNumbers, address: HexAddresses) -> Withdrawal:
    return Withdrawal(count[text.index], count[text.validator_index], address[text.address], count[text.amount])


class _ReceiptReader(HexReader):
    __slots__ = ()

    def read(self, texts: list[_ReceiptText]) -> tuple[Receipt, ...]:
        return tuple([self._receipt(text) for text in texts])

    def _receipt(self, text: _ReceiptText) -> Receipt:
        count, word, address, status = self.count, self.word, self.address, text.status
        # Most are empty, and comparing costs less than the hash of a text as long as this.
        bloom = _NO_BLOOM if text.logs_bloom == _NO_BLOOM_TEXT else fixed(text.logs_bloom, 256)
        if status is None and text.root is None:
            raise WireError("a receipt without a status")
        return Receipt(
            word[text.transaction_hash],
            word[text.block_hash],
            count[text.transaction_index],
            count[text.type],
            None if status is None else count[status],
            b"" if status is not None or text.root is None else word[text.root],
            count[text.gas_used],
            count[text.cumulative_gas_used],
            None if text.effective_gas_price is None else self.amount[text.effective_gas_price],
            address[text.from_],
            address[text.contract_address] if text.contract_address else b"",
            bloom,
            tuple([self._log(log) for log in text.logs]) if text.logs else (),
        )

    def _log(self, text: _LogText) -> EventLog:
        word, topics = self.word, text.topics
        if len(topics) > 4:
            raise WireError(f"a log has at most 4 topics, got {len(topics)}")
        return EventLog(
            self.address[text.address],
            tuple([word[topic] for topic in topics]),
            data(text.data),
            self.count[text.log_index],
        )
