"""The ID of a chain on its network, from what proves it best: the chain itself, the P-Chain, or the settings.

What the P-Chain says may come later, and an upstream may be silent at first: both are looked at again and again.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from icefall.db.engine import StoreError
from icefall.evm.indexing.binding import reported_id
from icefall.evm.storing.store import ChainStore
from icefall.observe.log import Log
from icefall.upstream.evm.upstream import EvmUpstream
from icefall.wire.ids import id_from_text, id_text

BY_CHAIN, BY_PLATFORM, BY_SETTING = "chain", "platform", "setting"
_BEST_FIRST = (BY_CHAIN, BY_PLATFORM, BY_SETTING, "")
_LOOK_EVERY_S = 30.0
Created = Callable[[], Awaitable[Sequence[bytes]]]


class BlockchainLink(NamedTuple):
    """A chain's ID on its network; empty while it is unknown. `proof`: what says so. `warning`: what contradicts it."""

    blockchain_id: bytes
    proof: str = ""
    warning: str = ""


def linked(chain_id: str, reported: bytes, created: Sequence[bytes], configured: bytes) -> BlockchainLink:
    """Choose among what the chain itself reports, the blockchains that the P-Chain created with this EVM chain ID, and
    the setting. Anyone can create a second blockchain with the same EVM chain ID: then the setting chooses."""
    of_platform = f"the P-Chain has created chain {chain_id} as {', '.join(map(id_text, created))}"
    of_setting = f"blockchain_id is {id_text(configured)} in the settings" if configured else ""
    if reported:
        against = [of_setting] if configured not in (b"", reported) else []
        against += [of_platform] if created and reported not in created else []
        warning = f"the chain reports that it is {id_text(reported)}, but {' and '.join(against)}" if against else ""
        return BlockchainLink(reported, BY_CHAIN, warning)
    if configured in created:
        return BlockchainLink(configured, BY_PLATFORM)
    if len(created) == 1:
        warning = f"{of_setting}, but {of_platform}, which is used: correct icefall.toml" if configured else ""
        return BlockchainLink(created[0], BY_PLATFORM, warning)
    warning = f"{of_platform}: set blockchain_id to the right one" if created else ""
    return BlockchainLink(configured, BY_SETTING if configured else "", warning)


class ChainLinking:
    """Stores which blockchain a chain is, where readers find it. `created`: reads the blockchains that the P-Chain
    created with this EVM chain ID, as far as it is stored here; None: it is not."""

    def __init__(self, store: ChainStore, chain_id: str, configured: bytes, created: Created | None, log: Log) -> None:
        self._store = store
        self._chain_id = chain_id
        self._configured = configured
        self._created = created
        self._log = log
        self._reported: bytes | None = None
        self._is_begun = asyncio.Event()
        self.warning = ""

    async def update(self, reported: bytes | None) -> bytes:
        """Store the best that is known now, and return it. `reported`: by the chain; None: it did not answer."""
        self._reported = reported
        self._is_begun.set()
        created = await self._created() if self._created is not None else ()
        link = linked(self._chain_id, reported or b"", created, self._configured)
        known = id_from_text(text) if (text := self._store.meta("blockchain_id")) else b""
        proof = self._store.meta("blockchain_id_proof") or ""
        if proof in (BY_CHAIN, BY_PLATFORM) and _BEST_FIRST.index(proof) < _BEST_FIRST.index(link.proof):
            # The chain, or the P-Chain, is only silent at the moment.
            silent = (known, created) if proof == BY_CHAIN else (b"", [known])
            link = linked(self._chain_id, *silent, self._configured)
        elif link.blockchain_id or proof == BY_SETTING:
            shown = id_text(link.blockchain_id) if link.blockchain_id else ""
            if (known, proof) != (link.blockchain_id, link.proof):
                await self._store.put_meta({"blockchain_id": shown, "blockchain_id_proof": link.proof})
        else:
            link = BlockchainLink(known)  # found by an earlier release, which did not say how
        if link.warning and link.warning != self.warning:
            self._log.warn("the blockchain ID of the chain is contradicted", why=link.warning)
        self.warning = link.warning
        return link.blockchain_id

    async def look_forever(self, upstream: EvmUpstream) -> None:
        """Look for a better proof and for what contradicts it, in the background, after the first update."""
        await self._is_begun.wait()
        problem = ""
        while True:
            await upstream.clock.sleep(_LOOK_EVERY_S)
            try:
                await self.update(await reported_id(upstream) if self._reported is None else self._reported)
                problem = ""
            except StoreError as error:
                if str(error) != problem:
                    self._log.warn("the blockchain ID cannot be looked up, trying again", error=str(error))
                problem = str(error)
