"""Drives a node with tokens that lie, indexes the chain while it grows and reorganises, and compares every balance of
every holder at every block with balanceOf."""

import asyncio
import hashlib
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any, NamedTuple

from tests.evm.adversarial.nodes import CHAIN_ID, Node
from tests.evm.indexed import Indexing, indexing_of, open_store
from tests.evm.liars.assembler import deployment
from tests.evm.liars.contracts import (
    ASKED_SIZE,
    asking_code,
    calling_code,
    calling_data,
    proxy_code,
    token_code,
)
from tests.evm.liars.ids import ID_LAYOUTS, UntrueIds
from tests.evm.liars.tokens import LAYOUTS, UntrueToken
from tests.store.opened import open_reader
from tests.upstream.evm_scene import RecordingLog
from tests.waiting import LIMIT_S

from icefall.evm.contract_calls import balance_of
from icefall.evm.encoding import pack_uint, unpack_uint
from icefall.evm.indexing.follower import BlockRange
from icefall.evm.model import StoredRaw
from icefall.evm.reading.balances import BalanceReader
from icefall.evm.storing.store import ChainStore
from icefall.upstream.evm.state import ContractCall
from icefall.upstream.evm.upstream import EvmUpstream
from icefall.wire.evm.hashes import created_address

HOLDERS = 12
GAS = 5_000_000
CALL_GAS = 500_000  # of a call among several
CREATED_AT_ONCE = 25  # contracts in a block: anvil traces a transaction by making those before it again
_ONLY_MAX = 100
_ASKED_MAX = 400  # in one call of the asking contract


class Result(NamedTuple):
    compared: int
    wrong: list[str]
    from_state: int  # comparisons for which the index had to ask the node


class UntrueChain:
    """The tokens on a node, and what happens to them."""

    def __init__(
        self,
        node: Node,
        tokens: int,
        seed: int,
        per_block: int,
        *,
        with_ids: int = 0,
        untrue_every: int = 2,
        per_tx: int = 1,
    ) -> None:
        """`untrue_every`: of so many tokens one lies. `per_tx`: so many calls of tokens are in a transaction."""
        self.node = node
        self._unsent: list[dict[str, Any]] = []
        self._calls: list[tuple[bytes, bytes]] = []  # of the next transaction
        self._per_tx = per_tx
        self.reorganisations = 0
        self._draw = random.Random(seed)
        self._per_block = per_block
        self.holders = [hashlib.sha256(b"holder %d" % number).digest()[:20] for number in range(HOLDERS)]
        self._account = bytes.fromhex(node.call("eth_accounts")[0][2:])
        self._nonce = 0
        self.asking = self._created(asking_code())
        self._calling = self._created(calling_code())
        codes = list(LAYOUTS)
        implementations = {code: self._created(token_code(code)) for code in codes}
        self.tokens: dict[bytes, UntrueToken] = {}
        self._proxies: list[bytes] = []
        self._upgraded: list[bytes] = []
        self._implementations = implementations
        for number in range(tokens):
            code, is_untrue = codes[number % len(codes)], number % untrue_every == 0
            is_proxy = number % 5 == 4
            address = self._created(proxy_code() if is_proxy else token_code(code))
            if is_proxy:
                self._send(address, b"\1" + implementations[code].rjust(32, b"\0"))
                self._proxies.append(address)
            self.tokens[address] = UntrueToken(code, self.holders, self._draw, is_untrue=is_untrue)
        kinds = list(ID_LAYOUTS)
        self.id_tokens: dict[bytes, UntrueIds] = {}
        for number in range(with_ids):
            kind = kinds[number % len(kinds)]
            self.id_tokens[self._created(token_code(kind))] = UntrueIds(kind, self.holders, self._draw)
        self.mine()
        for address, token in self.all_tokens.items():
            self._send(address, token.first())
        self.mine()
        self._first = node.newest()  # up to here the chain stays

    def step(self) -> None:
        """One block."""
        for _ in range(self._per_block):
            address = self._draw.choice(list(self.all_tokens))
            self._send(address, self.all_tokens[address].next())
        self.mine()

    @property
    def all_tokens(self) -> dict[bytes, UntrueToken | UntrueIds]:
        return {**self.tokens, **self.id_tokens}

    @property
    def can_upgrade(self) -> bool:
        return bool(self._proxies)

    def upgrade(self) -> None:
        """Give a proxy code that reads balances from elsewhere, and leave it alone from then on."""
        address = self._proxies.pop()
        token = self.tokens.pop(address)
        self._upgraded.append(address)
        others = [code for code in LAYOUTS if LAYOUTS[code] != token.layout]
        self._send(address, b"\1" + self._implementations[self._draw.choice(others)].rjust(32, b"\0"))
        self.mine()

    def reorganise(self, depth: int) -> None:
        """Replace the newest blocks by empty ones. What tokens know of themselves is wrong then, which is one more way
        for them to surprise."""
        depth = min(depth, self.node.newest() - self._first)
        if depth:
            self.node.reorganise(depth)
            self.reorganisations += 1
        self._nonce = int(self.node.call("eth_getTransactionCount", "0x" + self._account.hex(), "latest"), 16)

    @property
    def addresses(self) -> list[bytes]:
        return [*self.tokens, *self._upgraded]

    def mine(self) -> None:
        """Put what is to be sent into a block."""
        self._send_calls()
        self.node.put_block(self._unsent)
        self._unsent = []

    def _created(self, code: bytes) -> bytes:
        self._send_calls()
        if len(self._unsent) >= CREATED_AT_ONCE:
            self.mine()
        address = created_address(self._account, self._nonce)
        self._send_tx(None, deployment(code), GAS)
        return address

    def _send(self, to: bytes, data: bytes) -> None:
        self._calls.append((to, data))
        if len(self._calls) >= self._per_tx:
            self._send_calls()

    def _send_calls(self) -> None:
        if len(self._calls) == 1:
            self._send_tx(*self._calls[0], GAS)
        elif self._calls:
            self._send_tx(self._calling, calling_data(self._calls), max(GAS, CALL_GAS * len(self._calls)))
        self._calls = []

    def _send_tx(self, to: bytes | None, data: bytes, gas: int) -> None:
        tx = {"from": "0x" + self._account.hex(), "data": "0x" + data.hex(), "gas": hex(gas), "nonce": hex(self._nonce)}
        self._unsent.append(tx if to is None else tx | {"to": "0x" + to.hex()})
        self._nonce += 1


@asynccontextmanager
async def following(
    node: Node, path: Path, *, proofs: bool = True, upstream: EvmUpstream | None = None
) -> AsyncIterator[Indexing]:
    """An indexer that follows the node. Without `proofs`: as one of a release that did not read storage."""
    store = open_store(path)
    upstream = upstream or EvmUpstream([node.url], CHAIN_ID, RecordingLog())
    found = indexing_of(store, upstream, BlockRange(), kept=StoredRaw(), poll_s=0.02, proofs=proofs)
    running = asyncio.create_task(found.follower.run())
    try:
        yield found
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await upstream.close()
        store.close()


async def caught_up(node: Node, found: Indexing, limit_s: float = LIMIT_S) -> None:
    """Wait until the newest block of the node is stored."""
    async with asyncio.timeout(limit_s):
        while True:
            newest = await asyncio.to_thread(node.call, "eth_getBlockByNumber", "latest", False)
            tip = found.store.tip()
            if tip is not None and "0x" + tip.block_hash.hex() == newest["hash"]:
                return
            await asyncio.sleep(0.02)


async def audited(node: Node, found: Indexing, limit_s: float = LIMIT_S) -> None:
    """Wait until everything is stored and audited, except what audits left out."""
    await caught_up(node, found, limit_s)
    async with asyncio.timeout(limit_s):
        while not found.store.read("select 1 from audit where block = (select max(number) from block)"):
            await asyncio.sleep(0.02)


async def compare(
    chain: UntrueChain, path: Path, blocks: Sequence[int], known: dict[int, list[int]] | None = None
) -> Result:
    """Every balance at these blocks, as it is read for an answer, and as the contract answers. `known`: what contracts
    answered at blocks that were compared before, of a chain that is not reorganised."""
    known = {} if known is None else known
    node, tokens, holders = chain.node, chain.addresses, chain.holders
    upstream = EvmUpstream([node.url], CHAIN_ID, RecordingLog())
    compared, wrong = 0, []
    with closing(open_reader(path)) as reader:
        balances = BalanceReader(reader, upstream)
        try:
            for block in blocks:
                if block not in known:
                    calls = [balance_of(token, holder) for holder in holders for token in tokens]
                    known[block] = await asyncio.to_thread(_answers, chain, calls, block)
                true = known[block]
                for place, holder in enumerate(holders):
                    found: dict[bytes, int] = {}
                    for start in range(0, len(tokens), _ONLY_MAX):
                        some = tokens[start : start + _ONLY_MAX]
                        page, _ = await balances.erc20(holder, block, None, _ONLY_MAX, some)
                        found |= {one.token: one.balance for one in page}
                    for token, expected in zip(tokens, true[place * len(tokens) :], strict=False):
                        compared += 1
                        if found.get(token, 0) != expected:
                            wrong.append(
                                f"block {block}: {token.hex()} of {holder.hex()}: {found.get(token)}, {expected}"
                            )
            return Result(compared, wrong, balances.state_reads)
        finally:
            await upstream.close()


def compare_ids(
    chain: UntrueChain, found: Indexing, tokens: Sequence[bytes], holders: Sequence[bytes], blocks: range
) -> Result:
    """Every owner and every amount of an ID that a log has named, at every block, as it is stored and as the contract
    answers."""
    histories: dict[tuple[bytes, tuple[bytes, int]], dict[int, int]] = {}
    calls: list[ContractCall] = []
    for token in tokens:
        for key, call in chain.id_tokens[token].calls(token, holders).items():
            if (history := _stored(found.store, token, *key)) is not None:
                histories[token, key] = history
                calls.append(call)
    compared, wrong = 0, []
    for block in blocks:
        true = _answers(chain, calls, block)
        for ((token, key), history), expected in zip(histories.items(), true, strict=True):
            value = next((history[at] for at in sorted(history, reverse=True) if at <= block), 0)
            compared += 1
            if value != expected:
                code = chain.id_tokens[token].code
                wrong.append(f"block {block}: {code} {token.hex()} {key}: {value}, {expected}")
    return Result(compared, wrong, 0)


def _stored(store: ChainStore, token: bytes, holder: bytes, token_id: int) -> dict[int, int] | None:
    """Values by the block from which on they count. None: no log has named the key."""
    params = {"token": token, "holder": holder, "token_id": pack_uint(token_id)}
    if not holder:
        rows = store.read(
            "select o.block, a.address from nft_owner o join address a on a.id = o.owner"
            " where o.token = (select id from address where address = :token) and o.token_id = :token_id",
            {"token": token, "token_id": params["token_id"]},
        )
        return {block: int.from_bytes(owner, "big") for block, owner in rows} or None
    rows = store.read(
        "select -1, h.baseline from erc1155_holding h where h.token_address = :token and h.token_id = :token_id"
        " and h.holder = (select id from address where address = :holder)"
        " union all select b.block, b.balance from erc1155_balance b"
        " where b.token = (select id from address where address = :token) and b.token_id = :token_id"
        " and b.holder = (select id from address where address = :holder)",
        params,
    )
    return {block: unpack_uint(amount) for block, amount in rows} or None


def _answers(chain: UntrueChain, calls: Sequence[ContractCall], block: int) -> list[int]:
    """What contracts answer, a word each; zero where one reverts or is not there yet."""
    to, asked, sizes = "0x" + chain.asking.hex(), [], []
    for start in range(0, len(calls), _ASKED_MAX):
        some = calls[start : start + _ASKED_MAX]
        data = b"".join(one.to.rjust(32, b"\0") + one.data.ljust(ASKED_SIZE - 32, b"\0") for one in some)
        asked.append(("eth_call", [{"to": to, "data": "0x" + data.hex()}, hex(block)]))
        sizes.append(len(some))
    found: list[int] = []
    for size, answer in zip(sizes, chain.node.batch(asked), strict=True):
        assert answer is not None, "a call failed"
        words = bytes.fromhex(answer[2:]) or bytes(32 * size)  # the asking contract is not there yet
        assert len(words) == 32 * size, len(words)
        found += [int.from_bytes(words[at : at + 32], "big") for at in range(0, len(words), 32)]
    return found
