"""What the chain data interface answers: endpoints 4 to 15, for every holder, and balances at every block."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import aiohttp
from tests.evm.adversarial.nodes import CHAIN_ID
from tests.evm.adversarial.scenario import ERC20
from tests.evm.adversarial.state import State

CONNECTIONS = 8
CROWD_EVERY = 8  # blocks; the many holders of one honest token hold nothing else
LISTS = (
    "transactions",
    "transactions:listNative",
    "transactions:listErc20",
    "transactions:listErc721",
    "transactions:listErc1155",
    "transactions:listInternals",
)
BALANCES = ("balances:getNative", "balances:listErc20", "balances:listErc721", "balances:listErc1155")
NAMED = "balances:listErc20?contractAddresses"
DEPLOYMENT, TRANSFERS = "transactions:getDeployment", "transfers"
_TIMEOUT = aiohttp.ClientTimeout(total=120)


class Question(NamedTuple):
    endpoint: str
    address: bytes
    block: int | None  # None: the newest
    path: str


class Answer(NamedTuple):
    status: int
    bodies: tuple[bytes, ...]  # the pages

    def pages(self) -> list[Any]:
        return [json.loads(body) for body in self.bodies]


def questions(state: State) -> list[Question]:
    made = state.made
    asked: list[Question] = []

    def ask(endpoint: str, address: bytes, block: int | None, query: str, group: str = "addresses") -> None:
        name = endpoint.partition("?")[0]
        path = f"/v1/chains/{CHAIN_ID}/{group}/0x{address.hex()}/{name}?{query}"
        asked.append(Question(endpoint, address, block, path + ("" if block is None else f"&blockNumber={block}")))

    tokens = [token.address for token in made.tokens if token.standard == ERC20 or token.address == made.reborn]
    all_tokens = ",".join("0x" + token.hex() for token in tokens)
    crowd = set(made.crowd)
    for place, holder in enumerate(state.holders):
        one_token = "0x" + tokens[place % len(tokens)].hex()
        for block in (*state.at, None):
            ask("balances:listErc20", holder, block, "pageSize=500")
            if holder in crowd and (block or 0) % CROWD_EVERY:
                continue
            ask("balances:getNative", holder, block, "")
            ask(NAMED, holder, block, f"pageSize=500&contractAddresses={one_token if holder in crowd else all_tokens}")
            ask("balances:listErc1155", holder, block, "pageSize=500")
        ask("balances:listErc721", holder, None, "pageSize=500")
        for endpoint in LISTS:
            ask(endpoint, holder, None, "pageSize=100")
    for address in made.actors:
        ask(DEPLOYMENT, address, None, "", "contracts")
        ask(TRANSFERS, address, None, "pageSize=100", "tokens")
    return asked


def ask_all(url: str, asked: Sequence[Question]) -> list[Answer]:
    """In the order of the questions, over a few connections that are kept open."""
    return asyncio.run(_ask_all(url, asked))


async def _ask_all(url: str, asked: Sequence[Question]) -> list[Answer]:
    answers: list[Answer | None] = [None] * len(asked)
    left = iter(enumerate(asked))
    connector = aiohttp.TCPConnector(limit=CONNECTIONS)
    async with aiohttp.ClientSession(url, connector=connector, timeout=_TIMEOUT) as session:

        async def work() -> None:
            for place, question in left:
                answers[place] = await _answer(session, question.path)

        await asyncio.gather(*(work() for _ in range(CONNECTIONS)))
    return [answer for answer in answers if answer is not None]


async def _answer(session: aiohttp.ClientSession, path: str) -> Answer:
    bodies: list[bytes] = []
    page = ""
    while True:
        async with session.get(path + page) as response:
            bodies.append(await response.read())
            if response.status != 200:
                return Answer(response.status, tuple(bodies))
        if b"nextPageToken" not in bodies[-1] or not (token := json.loads(bodies[-1])["nextPageToken"]):
            return Answer(200, tuple(bodies))
        page = f"&pageToken={token}"
