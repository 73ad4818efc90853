"""A synthetic EVM chain of ERC-20 transfers with valid hashes, roots, traces, diffs and state."""

import random
from bisect import bisect_right
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from icefall.wire.evm.decode import decode_full
from icefall.wire.evm.hashes import header_hash, receipt_bytes, tx_bytes
from icefall.wire.evm.rlp import keccak256, ordered_root

CHAIN_ID = 777
TOKEN = bytes.fromhex("70" * 20)
MINER = bytes.fromhex("01" * 20)
_TRANSFER = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"
_EMPTY_UNCLES = "0x1dcc4de8dec75d7aab85b567b6ccd41ad312451b948a7413f0a142fd40d49347"
_START, _GAS, _PRICE, _BASE = 10**24, 51_000, 2 * 10**9, 10**9
_ZERO_HASH = "0x" + "00" * 32
_BLOOM = "0x" + "00" * 256
_MINTS = 200  # per block, until every address has tokens


class EncodedBlock(NamedTuple):
    """A block as JSON, as an upstream sends it."""

    number: int
    hash: str
    block: bytes
    receipts: bytes
    calls: bytes
    diffs: bytes


class BalanceHistory:
    """What an address has after each block that changes it."""

    def __init__(self, start: int) -> None:
        self._blocks, self._balances = [-1], [start]

    @property
    def now(self) -> int:
        return self._balances[-1]

    def at(self, block: int) -> int:
        return self._balances[bisect_right(self._blocks, block) - 1]

    def add(self, block: int, change: int) -> None:
        balance = self.now + change
        if self._blocks[-1] == block:
            self._balances[-1] = balance
        else:
            self._blocks.append(block)
            self._balances.append(balance)


class TransferChain:
    """`busy`: the share of transfers that the first address sends."""

    def __init__(self, per_block: int, addresses: int, seed: int = 1, busy: float = 0.0) -> None:
        self._random = random.Random(seed)
        self._per_block = per_block
        self._busy = busy
        self.addresses = [keccak256(number.to_bytes(4, "big"))[-20:] for number in range(addresses)]
        self._nonces = dict.fromkeys(self.addresses, 0)
        self.native = {one: BalanceHistory(_START) for one in (*self.addresses, MINER)}
        self.token = {one: BalanceHistory(0) for one in self.addresses}
        self._slots = {holder: _slot(holder) for holder in self.addresses}

    def state(self, method: str, params: list[Any], block: int) -> str:
        """The result of eth_call, eth_getCode or eth_getBalance."""
        if method == "eth_getBalance":
            return hex(_balance(self.native, params[0], block))
        if method == "eth_call" and len(params) > 2:
            return self._overridden(params)
        if method == "eth_call" and params[0]["data"].startswith("0x70a08231"):
            return f"0x{_balance(self.token, params[0]['data'], block):064x}"
        return "0x60" if method == "eth_getCode" and params[0] == "0x" + TOKEN.hex() else "0x"

    def _overridden(self, params: list[Any]) -> str:
        """What balanceOf returns where the slot of the holder is overridden; of any other contract, the time."""
        given = params[2].get(_hex(TOKEN))
        if given is None:
            return f"0x{int(params[3]['time'], 16):064x}"
        return str(given["stateDiff"][_slot(bytes.fromhex(params[0]["data"][-40:]))])

    def read_by(self, params: list[Any]) -> bytes:
        """What a call of balanceOf reads, as prestateTracer reports it."""
        slot = _slot(bytes.fromhex(params[0]["data"][-40:]))
        return _json({_hex(TOKEN): {"balance": "0x0", "code": "0x60", "storage": {slot: _ZERO_HASH}}})

    def blocks(self, count: int) -> Iterator[EncodedBlock]:
        parent = _ZERO_HASH
        for number in range(count):
            block = self._block(number, parent, self._pairs(number))
            parent = block.hash
            yield block

    def _mints(self, number: int) -> bool:
        return 0 < number <= -(-len(self.addresses) // _MINTS)

    def _pairs(self, number: int) -> list[tuple[bytes, bytes, int]]:
        if number == 0:
            return []
        draw, addresses = self._random, self.addresses
        if self._mints(number):  # to every address, from the zero address
            return [(addresses[0], holder, 10**20) for holder in addresses[(number - 1) * _MINTS : number * _MINTS]]
        found = []
        for _ in range(self._per_block):
            sender = addresses[0] if draw.random() < self._busy else addresses[draw.randrange(len(addresses))]
            found.append((sender, addresses[draw.randrange(len(addresses))], draw.randrange(1, 10**15)))
        return found

    def _block(self, number: int, parent: str, pairs: list[tuple[bytes, bytes, int]]) -> EncodedBlock:
        txs, receipts, calls, diffs = [], [], [], []
        for index, (sender, to, amount) in enumerate(pairs):
            minted = self._mints(number)
            tx = self._tx(number, index, sender, to, amount)
            txs.append(tx)
            receipts.append(self._receipt(tx, index, bytes(20) if minted else sender, to, amount))
            calls.append({"txHash": "", "result": _frame(tx)})
            parties = dict.fromkeys([to] if minted else [sender, to])
            before = {holder: self.token[holder].now for holder in parties}
            if not minted:
                self.token[sender].add(number, -amount)
            self.token[to].add(number, amount)
            diffs.append({"txHash": "", "result": self._diff(number, sender, before)})
        block: dict[str, Any] = {
            "number": hex(number), "hash": _ZERO_HASH, "parentHash": parent,
            "timestamp": hex(1_700_000_000 + 2 * number),
            "sha3Uncles": _EMPTY_UNCLES, "miner": _hex(MINER), "stateRoot": _ZERO_HASH, "logsBloom": _BLOOM,
            "difficulty": "0x0", "gasLimit": hex(2**40), "gasUsed": hex(_GAS * len(txs)), "extraData": "0x",
            "mixHash": _ZERO_HASH, "nonce": "0x" + "00" * 8, "baseFeePerGas": hex(_BASE), "uncles": [], "size": "0x0",
            "transactions": txs, "transactionsRoot": _ZERO_HASH, "receiptsRoot": _ZERO_HASH,
        }  # fmt: skip
        return sealed(number, block, receipts, calls, diffs)

    def _tx(self, number: int, index: int, sender: bytes, to: bytes, amount: int) -> dict[str, Any]:
        nonce = self._nonces[sender]
        self._nonces[sender] = nonce + 1
        return {
            "blockHash": _ZERO_HASH, "blockNumber": hex(number), "from": _hex(sender), "gas": hex(80_000),
            "gasPrice": hex(_PRICE), "maxFeePerGas": hex(2 * _PRICE), "maxPriorityFeePerGas": hex(_PRICE - _BASE),
            "hash": _ZERO_HASH, "input": "0xa9059cbb" + to.rjust(32, b"\0").hex() + f"{amount:064x}",
            "nonce": hex(nonce), "to": _hex(TOKEN), "transactionIndex": hex(index), "value": "0x0", "type": "0x2",
            "accessList": [], "chainId": hex(CHAIN_ID), "v": "0x1", "yParity": "0x1",
            "r": hex(self._random.getrandbits(255) | 1), "s": hex(self._random.getrandbits(254) | 1),
        }  # fmt: skip

    def _receipt(self, tx: dict[str, Any], index: int, sender: bytes, to: bytes, amount: int) -> dict[str, Any]:
        log = {
            "address": tx["to"], "topics": [_TRANSFER, _word(sender), _word(to)], "data": f"0x{amount:064x}",
            "blockNumber": tx["blockNumber"], "transactionHash": _ZERO_HASH, "transactionIndex": hex(index),
            "blockHash": _ZERO_HASH, "logIndex": hex(index), "removed": False,
        }  # fmt: skip
        return {
            "blockHash": _ZERO_HASH, "blockNumber": tx["blockNumber"], "contractAddress": None,
            "cumulativeGasUsed": hex(_GAS * (index + 1)), "effectiveGasPrice": tx["gasPrice"], "from": tx["from"],
            "gasUsed": hex(_GAS), "logs": [log], "logsBloom": _BLOOM, "status": "0x1", "to": tx["to"],
            "transactionHash": _ZERO_HASH, "transactionIndex": hex(index), "type": "0x2",
        }  # fmt: skip

    def _diff(self, number: int, sender: bytes, held: dict[bytes, int]) -> dict[str, Any]:
        """The state diff: the fee, and the token's storage."""
        of_sender, of_miner = self.native[sender], self.native[MINER]
        before = of_sender.now, of_miner.now
        of_sender.add(number, -_GAS * _PRICE)
        of_miner.add(number, _GAS * (_PRICE - _BASE))
        nonce = self._nonces[sender]
        held = {holder: had for holder, had in held.items() if had != self.token[holder].now}
        old = {self._slots[holder]: f"0x{had:064x}" for holder, had in held.items() if had}
        new = {self._slots[holder]: f"0x{self.token[holder].now:064x}" for holder in held if self.token[holder].now}
        return {
            "pre": {
                _hex(TOKEN): {"balance": "0x0", "nonce": 1, "codeHash": "0x" + "33" * 32, "storage": old},
                _hex(sender): {"balance": hex(before[0]), "nonce": nonce - 1},
                _hex(MINER): {"balance": hex(before[1])},
            },
            "post": {
                _hex(TOKEN): {"storage": new},
                _hex(sender): {"balance": hex(of_sender.now), "nonce": nonce},
                _hex(MINER): {"balance": hex(of_miner.now)},
            },
        }


def _slot(holder: bytes) -> str:
    """The key of the slot of a holder's balance."""
    return "0x" + keccak256(holder.rjust(32, b"\0") + bytes(32)).hex()


def _balance(histories: dict[bytes, BalanceHistory], holder: str, block: int) -> int:
    """`holder`: hex that ends with an address."""
    history = histories.get(bytes.fromhex(holder[-40:]))
    return history.at(block) if history else 0


def _frame(tx: dict[str, Any]) -> dict[str, Any]:
    return {"from": tx["from"], "gas": tx["gas"], "gasUsed": hex(_GAS), "to": tx["to"], "input": tx["input"],
            "value": "0x0", "type": "CALL", "output": "0x" + "00" * 31 + "01"}  # fmt: skip


def sealed(number: int, block: dict[str, Any], receipts: Any, calls: Any, diffs: Any) -> EncodedBlock:
    """The block with all hashes and roots filled in."""
    raw = decode_full(_json(block), _json(receipts), None, None)
    hashes = ["0x" + keccak256(tx_bytes(tx)).hex() for tx in raw.block.txs]
    for tx, receipt, call, diff, txid in zip(block["transactions"], receipts, calls, diffs, hashes, strict=True):
        tx["hash"] = receipt["transactionHash"] = receipt["logs"][0]["transactionHash"] = txid
        call["txHash"] = diff["txHash"] = txid
    block["transactionsRoot"] = _hex(ordered_root([tx_bytes(tx) for tx in raw.block.txs]))
    block["receiptsRoot"] = _hex(ordered_root([receipt_bytes(one) for one in raw.receipts]))
    own = _hex(header_hash(decode_full(_json(block), _json(receipts), None, None).block))
    block["hash"] = own
    for part in (*block["transactions"], *receipts):
        part["blockHash"] = own
    for receipt in receipts:
        receipt["logs"][0]["blockHash"] = own
    return EncodedBlock(number, own, _json(block), _json(receipts), _json(calls), _json(diffs))


def _json(value: Any) -> bytes:
    return msgspec.json.encode(value)


def _hex(raw: bytes) -> str:
    return "0x" + raw.hex()


def _word(address: bytes) -> str:
    return "0x" + address.rjust(32, b"\0").hex()
