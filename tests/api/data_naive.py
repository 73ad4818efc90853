"""What the chain data interface must return for a recorded chain, computed from the recording alone, the slow way.

Blocks and transactions come from the JSON as the node sent it, transfers from the derivation (which has its own
proofs), names from the recorded answers of contracts. URIs and metadata of NFTs are left out:
test_data_nfts.py.
"""

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

from tests.api.data_scene import TOKEN_PRICE, chain_id, erc20_tokens
from tests.evm.recordings import Recorded, derived, tokens, unhex

from icefall.evm.contract_calls import decimals_of, text_of
from icefall.evm.enriching.selectors import method_names
from icefall.wire.evm.rlp import keccak256

Json = dict[str, Any]
ZERO = bytes(20)


def address_text(address: bytes) -> str:
    digits = address.hex()
    shown = keccak256(digits.encode()).hex()
    return "0x" + "".join(one.upper() if int(shown[at], 16) >= 8 else one for at, one in enumerate(digits))


def number(shown: Any) -> str:
    return str(int(shown, 16)) if shown is not None else "0"


def _answer(token: bytes, chain: str, name: str) -> bytes:
    answer = tokens(chain).get(token, {"answers": {}})["answers"].get(name)
    return unhex(answer) if isinstance(answer, str) else b""


class Naive:
    """`native`, `erc20` and so on are whole lists in chain order: (parties, transaction, item)."""

    def __init__(self, chain: str) -> None:
        self.chain = chain
        self.id = chain_id(chain)
        self.blocks = derived(chain)
        self.names = method_names()
        self.tokens = {move.token for one in self.blocks for move in self._moves(one)}
        self.tokens |= {held.token for one in self.blocks for held in one.rows.erc20_deltas}
        self.priced = erc20_tokens(chain)[0]
        self.owners: dict[tuple[bytes, int], bytes] = {}
        for one in self.blocks:
            self.owners |= {(move.token, move.token_id): move.to for move in one.rows.erc721_transfers}
        self.txs = [self._tx(one, at) for one in self.blocks for at in range(len(one.rows.txs))]

    @staticmethod
    def _moves(one: Recorded) -> list[Any]:
        return [*one.rows.erc20_transfers, *one.rows.erc721_transfers, *one.rows.erc1155_transfers]

    # -- parts -------------------------------------------------------------------------------------------------

    @cache  # noqa: B019
    def facts(self, token: bytes) -> tuple[str, str, int | None]:
        name, symbol = (text_of(_answer(token, self.chain, what)) for what in ("name", "symbol"))
        return name, symbol, decimals_of(_answer(token, self.chain, "decimals"))

    def party(self, address: bytes) -> Json:
        if not address:
            return {"address": ""}
        return {"address": address_text(address)} | (self.known(address) if address in self.tokens else {})

    def known(self, token: bytes) -> Json:
        """Name, symbol and decimals, without those that the contract does not return."""
        name, symbol, decimals = self.facts(token)
        shown = ({"name": name} if name else {}) | ({"symbol": symbol} if symbol else {})
        return shown | ({} if decimals is None else {"decimals": decimals})

    def erc20_token(self, token: bytes) -> Json:
        shown = {"address": address_text(token)} | self.known(token)
        price = {"price": {"currencyCode": "usd", "value": TOKEN_PRICE}} if token == self.priced else {}
        return shown | {"ercType": "ERC-20"} | price

    def erc721_token(self, token: bytes, token_id: int) -> Json:
        known = {key: value for key, value in self.known(token).items() if key != "decimals"}
        return {"address": address_text(token), "tokenId": str(token_id), "ercType": "ERC-721"} | known

    @staticmethod
    def erc1155_token(token: bytes, token_id: int) -> Json:
        return {"address": address_text(token), "tokenId": str(token_id), "ercType": "ERC-1155"}

    # -- one transaction with everything in it -----------------------------------------------------------------

    def _tx(self, one: Recorded, at: int) -> Json:
        block, rows = one.line["block"], one.rows
        tx, receipt, row = block["transactions"][at], one.line["receipts"][at], rows.txs[at]
        parties = self.party
        here: Json = {
            "blockNumber": number(block["number"]),
            "blockTimestamp": int(block["timestamp"], 16),
            "blockHash": block["hash"],
            "txHash": tx["hash"],
        }
        to = unhex((tx["to"] or receipt["contractAddress"]).lower())
        called = row.call_type.value == "CONTRACT_CALL"
        selector = tx["input"][:10] if called else "0x"
        name = self.names.get(unhex(selector))
        full = {"input": tx["input"], "baseFeePerGas": number(block.get("baseFeePerGas"))}
        for key in ("maxFeePerGas", "maxPriorityFeePerGas"):
            full |= {key: number(tx[key])} if tx.get(key) is not None else {}
        method = {"callType": row.call_type.value, "methodHash": selector} | ({"methodName": name} if name else {})
        native = here | {
            "chainId": self.id,
            "blockIndex": at,
            "txStatus": number(receipt["status"]),
            "txType": int(tx["type"], 16),
            "gasLimit": number(tx["gas"]),
            "gasUsed": number(receipt["gasUsed"]),
            "gasPrice": number(receipt["effectiveGasPrice"]),
            "nonce": number(tx["nonce"]),
            "from": parties(unhex(tx["from"].lower())),
            "to": parties(to),
            "method": method,
            "value": number(tx["value"]),
        }
        return {
            "here": here,
            "native": native,
            "full": native | full,
            "direct": {unhex(tx["from"].lower()), to},
            "erc20": [self._moved(move, "erc20Token") for move in rows.erc20_transfers if move.tx_index == at],
            "erc721": [self._moved(move, "erc721Token") for move in rows.erc721_transfers if move.tx_index == at],
            "erc1155": [self._moved(move, "erc1155Token") for move in rows.erc1155_transfers if move.tx_index == at],
            "internals": [
                ({call.sender, call.to}, b"", self._called(call)) for call in rows.internals if call.tx_index == at
            ],
        }

    def _moved(self, move: Any, key: str) -> tuple[set[bytes], bytes, Json]:
        shown = {"from": self.party(move.sender), "to": self.party(move.to), "logIndex": move.log_index}
        if key == "erc20Token":
            shown |= {"value": str(move.value), key: self.erc20_token(move.token)}
        elif key == "erc721Token":
            shown |= {key: self.erc721_token(move.token, move.token_id)}
        else:
            shown |= {"value": str(move.value), key: self.erc1155_token(move.token, move.token_id)}
        return {move.sender, move.to}, move.token, shown

    def _called(self, call: Any) -> Json:
        return {
            "from": self.party(call.sender),
            "to": self.party(call.to),
            "internalTxType": call.kind,
            "value": str(call.value),
            "isReverted": call.is_reverted,
            "gasUsed": str(call.gas_used),
            "gasLimit": str(call.gas_limit),
        }

    # -- lists -------------------------------------------------------------------------------------------------

    def standalone(self, kind: str, wanted: Callable[[set[bytes], bytes], bool]) -> list[Json]:
        """Newest first."""
        found = [tx["here"] | item for tx in self.txs for parties, token, item in tx[kind] if wanted(parties, token)]
        return found[::-1]

    def of_address(self, kind: str, address: bytes) -> list[Json]:
        if kind == "native":
            return [tx["native"] for tx in self.txs if address in tx["direct"]][::-1]
        return self.standalone(kind, lambda parties, _: address in parties)

    def of_token(self, token: bytes) -> list[Json]:
        found = [
            (int(tx["here"]["blockNumber"]), item["logIndex"], place, tx["here"] | item)
            for tx in self.txs
            for kind in ("erc20", "erc721", "erc1155")
            for place, (_, contract, item) in enumerate(tx[kind])
            if contract == token
        ]
        return [item for *_, item in sorted(found, key=lambda one: one[:3], reverse=True)]

    def touched(self, address: bytes) -> list[Json]:
        """Oldest first."""
        return [
            self.nested(tx, address)
            for tx in self.txs
            if address in tx["direct"] or any(address in part[0] for kind in KINDS for part in tx[kind])
        ]

    @staticmethod
    def nested(tx: Json, address: bytes | None) -> Json:
        shown = {
            key: [item for parties, _, item in tx[kind] if address is None or address in parties]
            for kind, key in KINDS.items()
        }
        return shown | {"nativeTransaction": tx["native" if address else "full"]}

    def block(self, at: int, total: int) -> Json:
        block, rows = self.blocks[at].line["block"], self.blocks[at].rows
        fees = [int(one["gasUsed"], 16) * int(one["effectiveGasPrice"], 16) for one in self.blocks[at].line["receipts"]]
        return {
            "chainId": self.id,
            "blockNumber": number(block["number"]),
            "blockTimestamp": int(block["timestamp"], 16),
            "blockHash": block["hash"],
            "txCount": len(rows.txs),
            "baseFee": number(block.get("baseFeePerGas")),
            "gasUsed": number(block["gasUsed"]),
            "gasLimit": number(block["gasLimit"]),
            "gasCost": number(block.get("blockGasCost")),
            "parentHash": block["parentHash"],
            "feesSpent": str(sum(fees)),
            "cumulativeTransactions": str(total),
        }

    def block_details(self, at: int) -> Json:
        """What the hosted service does not say of a block."""
        block = self.blocks[at].line["block"]
        receipts = self.blocks[at].line["receipts"]
        gas, paid = int(block["gasUsed"], 16), [int(one["effectiveGasPrice"], 16) for one in receipts]
        burned = gas * int(block.get("baseFeePerGas", "0x0"), 16)
        if "extDataHash" in block:  # coreth burns the tips too
            burned = sum(int(one["gasUsed"], 16) * price for one, price in zip(receipts, paid, strict=True))
        return {
            "feeRecipient": address_text(bytes.fromhex(block["miner"][2:])),
            "size": int(block["size"], 16),
            "feesBurned": str(burned),
        }

    # -- samples of addresses -------------------------------------------------------------------------------------

    def addresses(self, each: int) -> list[bytes]:
        """The busiest and the quietest of each kind, the zero address, and an unknown address."""
        found: dict[bytes, None] = {ZERO: None, b"\x77" * 20: None}
        for kind in ("direct", *KINDS):
            count: dict[bytes, int] = {}
            for tx in self.txs:
                for parties in [tx["direct"]] if kind == "direct" else (part[0] for part in tx[kind]):
                    for address in parties - {b""}:
                        count[address] = count.get(address, 0) + 1
            order = sorted(count, key=lambda one: (count[one], one))
            found |= dict.fromkeys([*order[:each], *order[-each:]])
        return list(found)


KINDS = {
    "erc20": "erc20Transfers",
    "erc721": "erc721Transfers",
    "erc1155": "erc1155Transfers",
    "internals": "internalTransactions",
}


@cache
def naive(chain: str) -> Naive:
    return Naive(chain)


def without_nfts(items: Iterable[Json]) -> list[Json]:
    """Without what is left out here: URIs, metadata and owners of NFTs, at whatever depth."""
    return [_plain(item) for item in items]


def _plain(shown: Any) -> Any:
    if isinstance(shown, list):
        return [_plain(one) for one in shown]
    if not isinstance(shown, dict):
        return shown
    return {key: _plain(value) for key, value in shown.items() if key not in ("tokenUri", "metadata", "ownerAddress")}
