"""Answers compared with each other and with state. What differs is collected, not raised: one run shows everything."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from tests.evm.adversarial.answers import BALANCES, DEPLOYMENT, NAMED, Answer, Question
from tests.evm.adversarial.scenario import ERC20, ERC721, NEVER_USED, UNNAMED, ZERO
from tests.evm.adversarial.state import State

SHOWN = 30
_SHOWN_LENGTH = 200
_WORDS = {ERC20: ("name", "symbol", "decimals"), ERC721: ("name", "symbol")}
# Read from outside of the chain, at a time of its own; and tokens that only say where the next page begins.
_NOT_COMPARED = {"metadata", "tokenUri", "nextPageToken"}


class Difference(NamedTuple):
    token: str
    field: str
    where: str  # endpoint, holder and block
    answered: str
    expected: str  # what state says; for live/fresh, what the fresh store answers
    store: str = ""  # live, fresh or both; "live/fresh" where the two differ


def report(found: Sequence[Difference]) -> str:
    """A line for each token and kind of field: how often in which store, and the first example."""
    groups: dict[tuple[str, str], list[Difference]] = {}
    for one in found:
        field = "name/symbol/decimals" if one.field in _WORDS[ERC20] else one.field
        groups.setdefault((one.token, field), []).append(one)
    lines = [f"{len(found)} differences of {len(groups)} kinds"]
    for (token, field), some in sorted(groups.items())[:SHOWN]:
        counts = ", ".join(f"{store} {count}" for store, count in sorted(Counter(one.store for one in some).items()))
        lines.append(f"{token:15} {field:20} {counts}; {_example(some[0])}")
    return "\n".join(lines)


def _example(one: Difference) -> str:
    other = "fresh" if one.store == "live/fresh" else "state"
    return f"{one.where}: {one.answered}, {other} {one.expected}"


class Comparison:
    def __init__(self, state: State) -> None:
        self._state = state
        made = state.made
        self._labels = {token.address: token.label for token in made.tokens}
        self._erc20 = {token.address for token in made.tokens if token.standard == ERC20}
        people = {address: f"account {place}" for place, address in enumerate(made.accounts)}
        people |= {address: f"unnamed {place}" for place, address in enumerate(UNNAMED)}
        people |= {address: name for name, address in made.contracts.items()}
        self._people = people | self._labels | {ZERO: "the zero address", NEVER_USED: "an address never used"}

    def run(self, asked: Sequence[Question], live: Sequence[Answer], fresh: Sequence[Answer]) -> Iterator[Difference]:
        for question, one, other in zip(asked, live, fresh, strict=True):
            pages = one.pages()
            wrong = list(self._with_state(question, one.status, pages))
            if one == other:
                yield from (each._replace(store="both") for each in wrong)
                continue
            other_pages = other.pages()
            also_wrong = list(self._with_state(question, other.status, other_pages))
            yield from self._between(question, pages, other_pages)
            yield from (each._replace(store="both" if each in also_wrong else "live") for each in wrong)
            yield from (each._replace(store="fresh") for each in also_wrong if each not in wrong)

    # -- live and fresh ----------------------------------------------------------------------------------------

    def _between(self, question: Question, live: list[Any], fresh: list[Any]) -> Iterator[Difference]:
        where = self._where(question)
        for address, field, one, other in _unequal("", "", _compared(live), _compared(fresh)):
            token = self._labels.get(_raw(address), "-")
            yield Difference(token, field, where, _shown(one), _shown(other), "live/fresh")

    # -- with state --------------------------------------------------------------------------------------------

    def _with_state(self, question: Question, status: int, pages: list[Any]) -> Iterator[Difference]:
        endpoint, where = question.endpoint, self._where(question)
        if endpoint == DEPLOYMENT and status in (200, 404):
            expected = self._state.creations.get(question.address)
            answered = pages[0]["nativeTransaction"]["txHash"] if status == 200 else None
            if answered != expected:
                label = self._who(question.address)
                yield Difference(label, "deployment", where, _shown(answered), _shown(expected))
        elif status != 200:
            yield Difference("-", "status", where, f"{status} {_shown(pages[-1].get('message'))}", "200")
            return
        if endpoint in BALANCES or endpoint == NAMED:
            balance = int(pages[0]["nativeTokenBalance"]["balance"])
            expected_balance = self._state.native[question.address, self._block(question)]
            if balance != expected_balance:
                yield Difference("native", "balance", where, str(balance), str(expected_balance))
        match endpoint:
            case "balances:listErc20":
                yield from self._erc20_list(question, _items(pages, "erc20TokenBalances"))
            case "balances:listErc1155":
                yield from self._erc1155_list(question, _items(pages, "erc1155TokenBalances"))
            case "balances:listErc721":
                yield from self._erc721_list(question, _items(pages, "erc721TokenBalances"))
            case _ if endpoint == NAMED:
                yield from self._erc20_named(question, _items(pages, "erc20TokenBalances"))
        if question.block is None:
            yield from self._words_and_owners(where, pages)

    def _erc20_list(self, question: Question, items: list[Any]) -> Iterator[Difference]:
        state, holder, block = self._state, question.address, self._block(question)
        where = self._where(question)
        listed = {_raw(one["address"]): int(one["balance"]) for one in items}
        for token in self._erc20 | listed.keys():
            balance = listed.get(token)
            if not state.is_erc20(token, block):
                yield Difference(self._who(token), "standard", where, "listed as ERC-20", "not listed")
            elif balance is not None or state.is_named(block, token, holder):
                expected = state.balances[token][holder, block] or None  # what is zero is not listed
                if balance != expected:
                    yield Difference(self._who(token), "balance", where, _shown(balance), _shown(expected))

    def _erc20_named(self, question: Question, items: list[Any]) -> Iterator[Difference]:
        listed = {_raw(one["address"]): int(one["balance"]) for one in items}
        for token in self._erc20:
            if "0x" + token.hex() in question.path:
                expected = self._state.balances[token][question.address, self._block(question)]
                if listed.get(token) != expected:
                    answered = _shown(listed.get(token))
                    yield Difference(self._who(token), "balance", self._where(question), answered, str(expected))

    def _erc1155_list(self, question: Question, items: list[Any]) -> Iterator[Difference]:
        state, holder, block = self._state, question.address, self._block(question)
        listed = {(_raw(one["address"]), int(one["tokenId"])): int(one["balance"]) for one in items}
        for token, token_id in state.balances_of_id.keys() | listed.keys():
            balance = listed.get((token, token_id))
            if balance is not None or state.is_named(block, token, holder, token_id):
                known = state.balances_of_id.get((token, token_id), {})
                expected = known.get((holder, block)) or None
                if balance != expected:
                    shown = _shown(balance), _shown(expected)
                    yield Difference(f"{self._who(token)} {token_id}", "balance", self._where(question), *shown)

    def _erc721_list(self, question: Question, items: list[Any]) -> Iterator[Difference]:
        listed = {(_raw(one["address"]), int(one["tokenId"])) for one in items}
        for key in listed ^ self._state.nfts_of(question.address):
            shown = ("listed", "not listed") if key in listed else ("not listed", "listed")
            yield Difference(f"{self._who(key[0])} {key[1]}", "owner", self._where(question), *shown)

    def _words_and_owners(self, where: str, found: Any) -> Iterator[Difference]:
        """Wherever an answer has them. A party of a transaction may be without, but not have wrong ones."""
        for part in _dicts(found):
            address = _raw(part["address"]) if isinstance(part.get("address"), str) else b""
            if address not in self._labels:
                continue
            words = self._state.words[address]
            for field in _WORDS.get(part["ercType"], ()) if "ercType" in part else part.keys() & {"name", "symbol"}:
                if field == "decimals" and not self._state.is_erc20(address, self._state.tip):
                    continue  # an old transfer of what has no decimals now
                expected = getattr(words, field)
                if part.get(field) != expected:
                    yield Difference(self._who(address), field, where, _shown(part.get(field)), _shown(expected))
            owner = self._state.owners.get((address, int(part["tokenId"]))) if "ownerAddress" in part else None
            if owner is not None and _raw(part["ownerAddress"]) != owner:
                shown = self._who(_raw(part["ownerAddress"])), self._who(owner)
                yield Difference(f"{self._who(address)} {part['tokenId']}", "ownerAddress", where, *shown)

    # -- both --------------------------------------------------------------------------------------------------

    def _block(self, question: Question) -> int:
        return self._state.tip if question.block is None else question.block

    def _where(self, question: Question) -> str:
        block = "the newest block" if question.block is None else f"block {question.block}"
        return f"{question.endpoint} of {self._who(question.address)} at {block}"

    def _who(self, address: bytes) -> str:
        return self._people.get(address, "0x" + address.hex())


def _shown(value: object) -> str:
    return "absent" if value is None else (str(value) or '""')[:_SHOWN_LENGTH]


def _raw(address: str) -> bytes:
    return bytes.fromhex(address[2:])


def _items(pages: list[Any], name: str) -> list[Any]:
    return [item for page in pages for item in page[name]]


def _dicts(found: Any) -> Iterator[dict[str, Any]]:
    if isinstance(found, dict):
        yield found
        found = list(found.values())
    if isinstance(found, list):
        for part in found:
            yield from _dicts(part)


def _compared(found: Any) -> Any:
    """Without what is not compared; balances by token instead of by place."""
    if isinstance(found, dict):
        return {key: _compared(part) for key, part in found.items() if key not in _NOT_COMPARED}
    if not isinstance(found, list):
        return found
    if all(isinstance(part, dict) and "ercType" in part for part in found):
        return {f"{part['address']} {part.get('tokenId', '')}": _compared(part) for part in found}
    return [_compared(part) for part in found]


def _unequal(address: str, field: str, one: Any, other: Any) -> Iterator[tuple[str, str, Any, Any]]:
    """The innermost places in which two answers differ, with the address of the entry they are in."""
    if isinstance(one, dict) and isinstance(other, dict):
        address = one.get("address", address)
        for name in sorted(one.keys() | other.keys()):
            inner = name.partition(" ")[0] if name.startswith("0x") else address
            yield from _unequal(inner, "listed" if name.startswith("0x") else name, one.get(name), other.get(name))
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for left, right in zip(one, other, strict=True):
            yield from _unequal(address, field, left, right)
    elif one != other:
        yield address, field, one, other
