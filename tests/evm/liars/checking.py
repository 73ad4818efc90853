"""Drives anvil with tokens that lie, indexes the chain while it grows and reorganises, and compares every balance of
every holder at every block with balanceOf."""

import asyncio
import hashlib
import random
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import NamedTuple

from tests.evm.adversarial.nodes import CHAIN_ID, Node
from tests.evm.indexed import Indexing, indexing_of, open_store
from tests.evm.liars.assembler import deployment
from tests.evm.liars.contracts import proxy_code, token_code
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
UNTRUE_EVERY = 2  # every other token
_ONLY_MAX = 100


class Result(NamedTuple):
    compared: int
    wrong: list[str]
    from_state: int  # comparisons for which the index had to ask the node


class UntrueChain:
    """The tokens on a node, and what happens to them."""

    def __init__(self, node: Node, tokens: int, seed: int, per_block: int, *, with_ids: int = 0) -> None:
        self.node = node
        self._draw = random.Random(seed)
        self._per_block = per_block
        self.holders = [hashlib.sha256(b"holder %d" % number).digest()[:20] for number in range(HOLDERS)]
        self._account = bytes.fromhex(node.call("eth_accounts")[0][2:])
        self._nonce = 0
        codes = list(LAYOUTS)
        implementations = {code: self._created(token_code(code)) for code in codes}
        self.tokens: dict[bytes, UntrueToken] = {}
        self._proxies: list[bytes] = []
        self._upgraded: list[bytes] = []
        self._implementations = implementations
        for number in range(tokens):
            code, is_untrue = codes[number % len(codes)], number % UNTRUE_EVERY == 0
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
        for address, token in self._all.items():
            self._send(address, token.first())
        self.mine()
        self._first = node.newest()  # up to here the chain stays

    def step(self) -> None:
        """One block."""
        for _ in range(self._per_block):
            address = self._draw.choice(list(self._all))
            self._send(address, self._all[address].next())
        self.mine()

    @property
    def _all(self) -> dict[bytes, UntrueToken | UntrueIds]:
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
            self.node.call("anvil_reorg", depth, [])
        self._nonce = int(self.node.call("eth_getTransactionCount", "0x" + self._account.hex(), "latest"), 16)

    @property
    def addresses(self) -> list[bytes]:
        return [*self.tokens, *self._upgraded]

    def mine(self) -> None:
        self.node.call("evm_mine")

    def _created(self, code: bytes) -> bytes:
        address = created_address(self._account, self._nonce)
        self._send(None, deployment(code))
        return address

    def _send(self, to: bytes | None, data: bytes) -> None:
        tx = {"from": "0x" + self._account.hex(), "data": "0x" + data.hex(), "gas": hex(GAS), "nonce": hex(self._nonce)}
        self.node.call("eth_sendTransaction", tx if to is None else tx | {"to": "0x" + to.hex()})
        self._nonce += 1


@asynccontextmanager
async def following(node: Node, path: Path) -> AsyncIterator[Indexing]:
    """An indexer that follows the node."""
    store = open_store(path)
    upstream = EvmUpstream([node.url], CHAIN_ID, RecordingLog())
    found = indexing_of(store, upstream, BlockRange(), kept=StoredRaw(), poll_s=0.02)
    running = asyncio.create_task(found.follower.run())
    try:
        yield found
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await upstream.close()
        store.close()


async def caught_up(node: Node, found: Indexing) -> None:
    """Wait until the newest block of the node is stored."""
    async with asyncio.timeout(LIMIT_S):
        while True:
            newest = await asyncio.to_thread(node.call, "eth_getBlockByNumber", "latest", False)
            tip = found.store.tip()
            if tip is not None and "0x" + tip.block_hash.hex() == newest["hash"]:
                return
            await asyncio.sleep(0.02)


async def audited(node: Node, found: Indexing) -> None:
    """Wait until everything is stored and audited."""
    await caught_up(node, found)
    async with asyncio.timeout(LIMIT_S):
        while (tip := found.store.tip()) is None or found.follower.auditor.audited_to() < tip.number:
            await asyncio.sleep(0.02)


async def compare(node: Node, path: Path, tokens: Sequence[bytes], holders: Sequence[bytes], blocks: range) -> Result:
    """Every balance at every block, as it is read for an answer, and as the contract answers."""
    upstream = EvmUpstream([node.url], CHAIN_ID, RecordingLog())
    compared, wrong = 0, []
    with closing(open_reader(path)) as reader:
        balances = BalanceReader(reader, upstream)
        try:
            for block in blocks:
                calls = [(token, holder) for holder in holders for token in tokens]
                true = await asyncio.to_thread(_state, node, calls, block)
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
    node: Node, found: Indexing, tokens: Mapping[bytes, UntrueIds], holders: Sequence[bytes], blocks: range
) -> Result:
    """Every owner and every amount of an ID that a log has named, at every block, as it is stored and as the contract
    answers."""
    compared, wrong = 0, []
    for token, one in tokens.items():
        calls = one.calls(token, holders)
        stored = {key: _stored(found.store, token, *key) for key in calls}
        keys = [key for key in calls if stored[key] is not None]
        for block in blocks:
            true = _answers(node, [calls[key] for key in keys], block)
            for key, expected in zip(keys, true, strict=True):
                history = stored[key] or {}
                value = next((history[at] for at in sorted(history, reverse=True) if at <= block), 0)
                compared += 1
                if value != expected:
                    wrong.append(f"block {block}: {one.code} {token.hex()} {key}: {value}, {expected}")
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


def _state(node: Node, calls: Sequence[tuple[bytes, bytes]], block: int) -> list[int]:
    return _answers(node, [balance_of(token, holder) for token, holder in calls], block)


def _answers(node: Node, calls: Sequence[ContractCall], block: int) -> list[int]:
    asked = []
    for call in calls:
        params = [{"to": "0x" + call.to.hex(), "data": "0x" + call.data.hex()}, hex(block)]
        asked.append(("eth_call", params))
    return [int(answer, 16) if answer and len(answer) == 66 else 0 for answer in node.batch(asked)]
