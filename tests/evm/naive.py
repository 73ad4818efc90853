"""The lists of a recorded chain computed again, from the JSON of its blocks and the rules alone: slowly and plainly."""

from collections import defaultdict
from functools import cache, cached_property
from typing import Any

from tests.evm.recordings import derived, unhex
from tests.evm.test_evm_internals import frames, naive_internals
from tests.evm.test_evm_tokens import naive as naive_transfers

from icefall.wire.evm.hashes import created_address

Item = tuple[Any, ...]


def number(text: str | None) -> int | None:
    return None if text is None else int(text, 16)


class Naive:
    """Every list in chain order. An item begins with (block number, block hash, time, transaction hash)."""

    def __init__(self, chain: str, lines: list[Any]) -> None:
        self.chain = chain
        self.lines = lines
        self.txs: list[Item] = []
        self.inputs: list[tuple[bytes, int]] = []  # input and base fee of each transaction
        self.erc20: list[Item] = []
        self.erc721: list[Item] = []
        self.erc1155: list[Item] = []
        self.internals: list[Item] = []
        self.deployments: list[Item] = []
        for line in lines:
            self._take(line)

    def _take(self, line: Any) -> None:
        block = line["block"]
        height, block_hash, time = line["number"], unhex(block["hash"]), int(block["timestamp"], 16)
        location = [(height, block_hash, time, unhex(tx["hash"])) for tx in block["transactions"]]
        for index, (tx, receipt) in enumerate(zip(block["transactions"], line["receipts"], strict=True)):
            self.txs.append((*location[index], height << 24 | index, *_tx(tx, receipt)))
            self.inputs.append((unhex(tx["input"]), number(block.get("baseFeePerGas")) or 0))
        erc20, erc721, erc1155, _ = naive_transfers(self.chain, line["receipts"])
        for into, rows in ((self.erc20, erc20), (self.erc721, erc721)):
            into += [(*location[i], height << 24 | log, height << 24 | i, *rest) for i, log, *rest in rows]
        self.erc1155 += [
            (*location[i], height << 24 | log, position, height << 24 | i, *rest) for i, log, position, *rest in erc1155
        ]
        self.internals += [(*location[i], height << 24 | i, *rest) for i, *rest in naive_internals(line)]
        for i, found in enumerate(frames(line)):
            for frame_number, (frame, is_reverted) in enumerate(found):
                if frame["type"] in ("CREATE", "CREATE2") and not is_reverted:
                    sender = unhex(block["transactions"][i]["from"])
                    made = unhex(frame["to"]), height << 24 | i, frame_number, unhex(frame["from"])
                    self.deployments.append((*made, location[i][3], sender))

    # -- by address --------------------------------------------------------------------------------------------

    @cached_property
    def native_of(self) -> dict[bytes, list[Item]]:
        return by_party(self.txs, 7, 8)

    @cached_property
    def erc20_of(self) -> dict[bytes, list[Item]]:
        return by_party(self.erc20, 7, 8)

    @cached_property
    def erc721_of(self) -> dict[bytes, list[Item]]:
        return by_party(self.erc721, 7, 8)

    @cached_property
    def erc1155_of(self) -> dict[bytes, list[Item]]:
        return by_party(self.erc1155, 8, 9)

    @cached_property
    def internals_of(self) -> dict[bytes, list[Item]]:
        return by_party(self.internals, 7, 8)

    @cached_property
    def touched(self) -> dict[bytes, list[Item]]:
        """Transactions an address took part in, in whichever way."""
        txids: dict[bytes, set[bytes]] = defaultdict(set)
        lists = self.native_of, self.erc20_of, self.erc721_of, self.erc1155_of, self.internals_of
        for by_address in lists:
            for address, items in by_address.items():
                txids[address] |= {item[3] for item in items}
        index = {tx[3]: at for at, tx in enumerate(self.txs)}
        return {address: [self.txs[at] for at in sorted(index[one] for one in ones)] for address, ones in txids.items()}

    @cached_property
    def in_token(self) -> dict[bytes, list[Item]]:
        """By contract, in log order, then by position."""
        found: dict[bytes, list[tuple[int, int, Item]]] = defaultdict(list)
        for item in (*self.erc20, *self.erc721):
            found[item[6]].append((item[4], 0, item))
        for item in self.erc1155:
            found[item[7]].append((item[4], item[5], item))
        return {token: [item for _, _, item in sorted(items)] for token, items in found.items()}

    @cached_property
    def addresses(self) -> set[bytes]:
        """Every address that occurs in a transaction, a transfer, an internal transaction or a deployment."""
        found = set(self.touched) | set(self.in_token)
        for address, _, _, creator, _, sender in self.deployments:
            found |= {address, creator, sender}
        return found


def _tx(tx: Any, receipt: Any) -> Item:
    sender, nonce = unhex(tx["from"]), int(tx["nonce"], 16)
    to = tx["to"] or receipt["contractAddress"]
    kind = int(tx["type"], 16)
    return (
        int(receipt["status"], 16),
        kind,
        sender,
        created_address(sender, nonce) if to is None else unhex(to),
        int(tx["value"], 16),
        nonce,
        int(tx["gas"], 16),
        int(receipt["gasUsed"], 16),
        int(receipt.get("effectiveGasPrice") or tx["gasPrice"], 16),
        number(tx.get("maxFeePerGas")) if kind >= 2 else None,
        number(tx.get("maxPriorityFeePerGas")) if kind >= 2 else None,
    )


def by_party(items: list[Item], *columns: int) -> dict[bytes, list[Item]]:
    """In the lists of both its parties; once where they are one."""
    found: dict[bytes, list[Item]] = defaultdict(list)
    for item in items:
        for address in {item[column] for column in columns} - {b""}:
            found[address].append(item)
    return found


@cache
def naive(chain: str) -> Naive:
    return Naive(chain, [one.line for one in derived(chain)])
