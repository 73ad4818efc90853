"""What is true: the node's own state at every block, and whom logs name."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from tests.evm.adversarial.nodes import Node
from tests.evm.adversarial.scenario import ERC20, ERC721, ERC1155, Scenario, Token, call_data, selector

from icefall.wire.evm.rlp import keccak256

NONE = (1 << 256) - 1  # a contract that gives no number
TRANSFER = keccak256(b"Transfer(address,address,uint256)")
SINGLE = keccak256(b"TransferSingle(address,address,address,uint256,uint256)")
BATCH = keccak256(b"TransferBatch(address,address,address,uint256[],uint256[])")
WRAPPED = {keccak256(b"Deposit(address,uint256)"), keccak256(b"Withdrawal(address,uint256)")}


class Words(NamedTuple):
    """None: the contract does not say."""

    name: str | None
    symbol: str | None
    decimals: int | None


class State:
    """Read once the chain is complete. `at` holds the blocks to know; the last one is the tip."""

    def __init__(self, node: Node, made: Scenario, at: Sequence[int]) -> None:
        self.made = made
        self.at = at
        self.tip = at[-1]
        self.holders = list(dict.fromkeys([*made.actors, *made.crowd]))
        self.native = self._native(node)
        self.balances = {
            token.address: self._balances(node, token.address)
            for token in made.tokens
            if token.standard == ERC20 or token.address == made.reborn
        }
        self.balances_of_id = {
            (token.address, token_id): self._balances(node, token.address, token_id)
            for token in made.tokens
            if token.standard == ERC1155
            for token_id in token.ids
        }
        self.owners = self._owners(node)
        self.words = {token.address: self._words(node, token) for token in made.tokens}
        self.named = self._named(node)
        self.creations = self._creations(node)
        self._first_life = self._blocks_as_erc20(node)

    def _native(self, node: Node) -> dict[tuple[bytes, int], int]:
        keys = [(holder, block) for block in self.at for holder in self.holders]
        found = node.batch([("eth_getBalance", ["0x" + holder.hex(), hex(block)]) for holder, block in keys])
        return {key: int(balance, 16) for key, balance in zip(keys, found, strict=True)}

    def _balances(self, node: Node, token: bytes, token_id: int | None = None) -> dict[tuple[bytes, int], int]:
        """balanceOf of every holder at every block; 0 where the contract gives no number."""
        if token_id is None:
            data = call_data("balances(address,address[])", token, 64)
        else:
            data = call_data("balancesOf(address,address[],uint256)", token, 96, token_id)
        data += len(self.holders).to_bytes(32, "big") + b"".join(holder.rjust(32, b"\0") for holder in self.holders)
        call = {"to": "0x" + self.made.contracts["Lens"].hex(), "data": "0x" + data.hex()}
        found: dict[tuple[bytes, int], int] = {}
        for block, answer in zip(self.at, node.batch([("eth_call", [call, hex(one)]) for one in self.at]), strict=True):
            raw = bytes.fromhex((answer or "0x")[2:])[64:]  # none before there was a lens
            for place, holder in enumerate(self.holders):
                value = int.from_bytes(raw[32 * place : 32 * place + 32], "big")
                found[holder, block] = 0 if value == NONE else value
        return found

    def _owners(self, node: Node) -> dict[tuple[bytes, int], bytes | None]:
        """Of every NFT at the tip; None where there is none."""
        keys = [(token.address, one) for token in self.made.tokens if token.standard == ERC721 for one in token.ids]
        calls = [self._call(token, call_data("ownerOf(uint256)", token_id)) for token, token_id in keys]
        found = [bytes.fromhex((answer or "0x")[2:])[12:] for answer in node.batch(calls)]
        return {key: owner if len(owner) == 20 and any(owner) else None for key, owner in zip(keys, found, strict=True)}

    def _call(self, to: bytes, data: bytes) -> tuple[str, list[Any]]:
        return "eth_call", [{"to": "0x" + to.hex(), "data": "0x" + data.hex()}, hex(self.tip)]

    def _words(self, node: Node, token: Token) -> Words:
        asked = ("name()", "symbol()", "decimals()")
        answers = node.batch([self._call(token.address, selector(signature)) for signature in asked])
        raw = [bytes.fromhex((answer or "0x")[2:]) for answer in answers]
        return Words(_text(raw[0]), _text(raw[1]), int.from_bytes(raw[2], "big") if len(raw[2]) == 32 else None)

    def _named(self, node: Node) -> dict[tuple[bytes, bytes, int | None], int]:
        """(token, holder, token ID of an ERC-1155): the first block in which a log names them."""
        found: dict[tuple[bytes, bytes, int | None], int] = {}
        for log in node.call("eth_getLogs", {"fromBlock": "0x0", "toBlock": hex(self.tip)}):
            token, block = bytes.fromhex(log["address"][2:]), int(log["blockNumber"], 16)
            topics, data = [bytes.fromhex(one[2:]) for one in log["topics"]], bytes.fromhex(log["data"][2:])
            for holder, token_id in _named_by(topics, data):
                key = (token, holder, token_id)
                found[key] = min(found.get(key, block), block)
        return found

    def _creations(self, node: Node) -> dict[bytes, str]:
        """The transactions that made the contracts, as receipts tell; the newest one where the factory made it."""
        found: dict[bytes, str] = {}
        blocks = node.batch([("eth_getBlockByNumber", [hex(one), True]) for one in range(self.tip + 1)])
        creating = [tx["hash"] for block in blocks for tx in block["transactions"] if tx["to"] is None]
        for receipt in node.batch([("eth_getTransactionReceipt", [tx]) for tx in creating]):
            found[bytes.fromhex(receipt["contractAddress"][2:])] = receipt["transactionHash"]
        if self.made.reborn:
            deploy = "0x" + selector("deploy(address)").hex()
            made = [tx["hash"] for block in blocks for tx in block["transactions"] if tx["input"].startswith(deploy)]
            found[self.made.reborn] = made[-1]
        assert found.keys() >= set(self.made.contracts.values()), "a contract is not where it was expected"
        return found

    def _blocks_as_erc20(self, node: Node) -> set[int]:
        """Of the reborn one: the blocks at which it had decimals."""
        call = {"to": "0x" + (self.made.reborn or b"").hex(), "data": "0x" + selector("decimals()").hex()}
        answers = node.batch([("eth_call", [call, hex(block)]) for block in self.at]) if self.made.reborn else []
        return {block for block, answer in zip(self.at, answers, strict=False) if len(answer or "") == 66}

    def is_named(self, block: int, token: bytes, holder: bytes, token_id: int | None = None) -> bool:
        """Whether a log up to the block names the holder; who is never named need not be found in lists."""
        return self.named.get((token, holder, token_id), block + 1) <= block

    def is_erc20(self, token: bytes, block: int) -> bool:
        """The reborn one was only for some blocks."""
        return token in self.balances and (token != self.made.reborn or block in self._first_life)

    def nfts_of(self, holder: bytes) -> set[tuple[bytes, int]]:
        return {key for key, owner in self.owners.items() if owner == holder}


def _text(raw: bytes) -> str | None:
    if len(raw) < 64:
        return None
    return raw[64 : 64 + int.from_bytes(raw[32:64], "big")].decode()


def _named_by(topics: list[bytes], data: bytes) -> list[tuple[bytes, int | None]]:
    people = [topic[12:] for topic in topics[1:]]
    if topics[0] == TRANSFER and len(topics) == 3:
        return [(one, None) for one in people]
    if topics[0] in WRAPPED:
        return [(people[0], None)]
    if topics[0] == SINGLE:
        return [(one, int.from_bytes(data[:32], "big")) for one in people[1:]]
    if topics[0] == BATCH:
        count = int.from_bytes(data[64:96], "big")
        ids = [int.from_bytes(data[96 + 32 * place : 128 + 32 * place], "big") for place in range(count)]
        return [(one, token_id) for one in people[1:] for token_id in ids]
    return []
