"""eth_call on the recorded tokens: the calls that were recorded, and balances and owners at any block."""

from collections.abc import Callable
from typing import Any

from icefall.demo.recording import RecordedState

NAMED = {"06fdde03": "name", "95d89b41": "symbol", "313ce567": "decimals", "18160ddd": "totalSupply"}
INTERFACES = {
    "01ffc9a7": "erc165",
    "80ac58cd": "erc721",
    "5b5e139f": "erc721Metadata",
    "780e9d63": "erc721Enumerable",
    "d9b67a26": "erc1155",
    "0e89341c": "erc1155Uri",
    "ffffffff": "invalid",
}


class Reverts(Exception):
    def __init__(self, text: str = "execution reverted", data: str = "0x") -> None:
        super().__init__(text)
        self.data = data


def answer(state: RecordedState, call: dict[str, Any], block: int) -> str:
    """The returned bytes in hex; empty where there is no code."""
    to, data = call["to"].lower(), (call.get("data") or call.get("input") or "0x")[2:]
    if state.code(to, block) == "0x":
        return "0x"
    selector, words = data[:8], [data[at : at + 64] for at in range(8, len(data), 64)]
    make = STATEFUL.get(selector)
    if make is not None and all(len(word) == 64 for word in words):
        return make(state, block, to, words)
    recorded = state.tokens.get(to, {}).get("answers", {}).get(_key(selector, words))
    if isinstance(recorded, str):
        return recorded
    error = (recorded or {}).get("error", {})
    raise Reverts(error.get("message", "execution reverted"), error.get("data", "0x"))


def _key(selector: str, words: list[str]) -> str:
    if selector == "01ffc9a7" and words:
        return f"supportsInterface.{INTERFACES.get(words[0][:8], '')}"
    if selector in ("c87b56dd", "0e89341c") and words:
        return f"{'tokenURI' if selector == 'c87b56dd' else 'uri'}.{int(words[0], 16)}"
    return NAMED.get(selector, "")


def _balance(state: RecordedState, block: int, to: str, words: list[str]) -> str:
    holder = _address(words[0])
    owned = state.of_token.get(("erc721", to))
    if owned:
        return _word(sum(state.at(block, *path) == holder for path in owned))
    if ("erc20", to) not in state.of_token:
        raise Reverts
    amount = state.at(block, "erc20", to, holder)
    if (
        amount is None
        and ("erc20", to, holder) in state.values
        and state.values["erc20", to, holder].at(block, 0) is None
    ):
        raise Reverts
    return _word(int(amount or 0))


def _owner(state: RecordedState, block: int, to: str, words: list[str]) -> str:
    owner = state.at(block, "erc721", to, str(int(words[0], 16)))
    if owner is None:
        raise Reverts("execution reverted: no owner", "0x08c379a0")
    return _word(int(owner, 16))


def _balance_of_id(state: RecordedState, block: int, to: str, words: list[str]) -> str:
    if ("erc1155", to) not in state.of_token:
        raise Reverts
    return _word(int(state.at(block, "erc1155", to, _address(words[0]), str(int(words[1], 16))) or 0))


STATEFUL: dict[str, Callable[[RecordedState, int, str, list[str]], str]] = {
    "70a08231": _balance,
    "6352211e": _owner,
    "00fdd58e": _balance_of_id,
}


def _address(word: str) -> str:
    return "0x" + word[24:]


def _word(number: int) -> str:
    return f"0x{number:064x}"
