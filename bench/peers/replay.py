"""The replay that every peer reads: the chain of `bench/evm_chain.py`, with the further methods that they call."""

import itertools
from collections.abc import Sequence
from typing import Any

import msgspec

from bench.evm_chain import CHAIN_ID, TOKEN, EncodedBlock, TransferChain
from bench.evm_upstream import EncodedChain, State

TOKEN_TEXT = "0x" + TOKEN.hex()
_CONFIRMATIONS = 40  # further blocks, because Ponder waits for 30 after those that it takes
_TAGS = ("latest", "safe", "finalized", "pending")


class ReplayedChain(EncodedChain):
    """`tracers`: whether call traces and state diffs are served."""

    def __init__(self, blocks: Sequence[EncodedBlock], state: State, tracers: bool) -> None:
        super().__init__(CHAIN_ID, blocks, state)
        self._tracers = tracers
        self._receipts: dict[str, bytes] = {}
        self._logs = [self._without_receipts(block) for block in blocks]
        self._filters: dict[str, dict[str, Any]] = {}
        self._next_filter = itertools.count(1)

    def _without_receipts(self, block: EncodedBlock) -> bytes:
        """The logs of a block, joined by commas."""
        receipts = msgspec.json.decode(block.receipts)
        self._receipts.update((one["transactionHash"], msgspec.json.encode(one)) for one in receipts)
        return b",".join(msgspec.json.encode(log) for one in receipts for log in one["logs"])

    def answer(self, method: str, params: list[Any]) -> bytes:
        match method:
            case "debug_traceBlockByNumber" if not self._tracers:
                raise LookupError(method)
            case "eth_getLogs":
                return self._found(params[0])
            case "eth_getBlockByHash":
                return super().answer("eth_getBlockByNumber", [hex(self._numbers[params[0]]), params[1]])
            case "eth_getTransactionReceipt":
                return self._receipts.get(params[0], b"null")
            case "net_version":
                return b'"%d"' % CHAIN_ID
            case "eth_newFilter":
                name = hex(next(self._next_filter))
                self._filters[name] = params[0]
                return b'"' + name.encode() + b'"'
            case "eth_getFilterLogs":
                return self._found(self._filters[params[0]])
            case "eth_uninstallFilter":
                return b"true" if self._filters.pop(params[0], None) else b"false"
        return super().answer(method, params)

    def _found(self, wanted: dict[str, Any]) -> bytes:
        """All logs of this chain are transfers of one token, so only its address and the blocks matter."""
        addresses = wanted.get("address") or [TOKEN_TEXT]
        if TOKEN_TEXT not in ([addresses] if isinstance(addresses, str) else [one.lower() for one in addresses]):
            return b"[]"
        if "blockHash" in wanted:
            first = last = self._numbers[wanted["blockHash"]]
        else:
            first, last = self._number(wanted.get("fromBlock", "0x0")), self._number(wanted.get("toBlock", "latest"))
        return b"[" + b",".join(logs for logs in self._logs[first : last + 1] if logs) + b"]"

    def _number(self, where: Any) -> int:
        if where in _TAGS:
            return self.head
        return 0 if where == "earliest" else super()._number(where)


class History:
    """One chain of ERC-20 transfers, made once for all peers, who take it up to block `last`."""

    def __init__(self, blocks: int, per_block: int, addresses: int, busy: float) -> None:
        self.chain = TransferChain(per_block, addresses, busy=busy)
        self.blocks = list(self.chain.blocks(blocks + _CONFIRMATIONS))
        self.transfers = sum(block.block.count(b'"0xa9059cbb') for block in self.blocks[:blocks])
        self.last = blocks - 1

    def replay(self, tracers: bool) -> ReplayedChain:
        return ReplayedChain(self.blocks, self.chain.state, tracers)
