"""Decides what to do when the newest stored block may no longer be part of the chain.

A stored block is dropped only when its replacement is proven: one upstream has headers that hash to what they claim
and link forward from a stored block to a height that is at least the stored one. Before that the other upstreams are
asked, and the stored blocks stay while as many of them have those.

The others are also asked while the upstream in use has nothing new: it may be stuck, or alone on its branch.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol

import msgspec

from icefall.evm.storing.store import ChainStore, Tip
from icefall.upstream.client import UpstreamDown, UpstreamFailure
from icefall.upstream.evm.errors import ReorgDuringFetch
from icefall.upstream.evm.fetch import UpstreamView
from icefall.upstream.evm.upstream import EvmUpstream

LAG_S = 15.0  # how long upstreams may be below the stored tip, or have different blocks, before that is reported
OTHERS_S = 5.0  # between two comparisons of all upstreams while there is no new block


class ReorgRules(msgspec.Struct, frozen=True):
    """The conditions for rolling back blocks without being asked. `development`: always and at once."""

    chain_id: str
    depth_max: int  # --reorg-depth-max
    is_final: Callable[[], bool] = lambda: False
    development: bool = False

    @property
    def command(self) -> str:
        return f"`icefall index --accept-reorg={self.chain_id}`"


class ReorgRefused(UpstreamFailure):
    """The upstreams have another chain than the stored one, and nothing is rolled back. Retried like any failure."""


class Confirmed(msgspec.Struct, frozen=True):
    """The verdict that an upstream with this head has the newest stored block."""

    head: int


class RollBack(msgspec.Struct, frozen=True):
    """The verdict that blocks are replaced after the newest common one; None: there is none, so the store is started
    anew."""

    ancestor: int | None


class Unconfirmed(msgspec.Struct, frozen=True):
    """The verdict that nothing is known at the moment: upstreams lag, or the chain is being reorganised right now."""


Verdict = Confirmed | RollBack | Unconfirmed


class _Claim(msgspec.Struct, frozen=True):
    """The block that one upstream has at the height of the stored tip, or at its head if that is lower."""

    view: UpstreamView
    head: int
    number: int
    block_hash: bytes | None


class _Hashes(Protocol):
    async def block_hash(self, number: int) -> bytes | None: ...


async def roll_back(store: ChainStore, upstream: EvmUpstream, decided: RollBack) -> None:
    if decided.ancestor is not None:
        await store.roll_back(decided.ancestor)
        return
    genesis = await upstream.block_hash(0)
    await store.start_anew({"genesis_hash": "0x" + genesis.hex()} if genesis is not None else {})


class Reorganisations:
    def __init__(self, store: ChainStore, upstream: EvmUpstream, rules: ReorgRules) -> None:
        self._store = store
        self._upstream = upstream
        self._rules = rules
        self._lower_since: float | None = None
        self._disputed_since: float | None = None
        self._compared_at = -OTHERS_S
        self.dispute = ""  # which upstreams have had different blocks for long, as many on either side

    async def check(self, tip: Tip, head: int) -> Verdict:
        """Compare the newest stored block with the upstream that is used now, whose head is given. An UpstreamFailure
        such as ReorgRefused where nothing is known."""
        if head >= tip.number and await self._upstream.block_hash(tip.number) == tip.block_hash:
            self._lower_since = None
            return Confirmed(head)
        return await self.compare(tip)

    async def compare(self, tip: Tip) -> Verdict:
        """Compare what every upstream has with the newest stored block."""
        if self._rules.development:
            return await self._follow_at_once(tip)
        claims = await self._claims(tip)
        same_height = [claim for claim in claims if claim.number == tip.number and claim.block_hash is not None]
        votes = Counter(claim.block_hash for claim in same_height)
        confirming = [claim for claim in same_height if claim.block_hash == tip.block_hash]
        others = [claim for claim in same_height if claim.block_hash != tip.block_hash]
        if not confirming and not others:
            return self._wait(tip, claims)
        refusals, failures = [], []
        for claim in sorted(others, key=lambda claim: -votes[claim.block_hash]):
            if votes[claim.block_hash] < len(confirming):
                break
            try:
                ancestor = await self._replaced_after(claim, tip, claims)
            except ReorgRefused as refusal:
                refusals.append(str(refusal))
            except UpstreamFailure as failure:
                failures.append(str(failure))
                self._upstream.back_off_view(claim.view, failure)
            else:
                self._upstream.prefer(claim.view)
                self._lower_since = None
                self._note_dispute("")
                return RollBack(ancestor)
        if not confirming:
            raise ReorgRefused("; ".join(dict.fromkeys([*refusals, *failures])))
        used = await self._use_highest(confirming)
        confirmed_by = f"{used.view.name} has the stored blocks: remove the wrong one from rpc, or add a third"
        self._note_dispute("; ".join([*dict.fromkeys(refusals), confirmed_by]) if refusals else "")
        self._lower_since = None
        return Confirmed(used.head)

    async def check_others(self, tip: Tip | None, head: int) -> Verdict:
        """Compare all upstreams while the one in use ends with `head` and has nothing new, at most every OTHERS_S.
        Another may be higher, which is then used, or have other blocks."""
        now = self._upstream.clock.now()
        if self._rules.development or now - self._compared_at < OTHERS_S:
            return Confirmed(head)
        self._compared_at = now
        if len(self._upstream.views()) < 2:
            self._note_dispute("")
            return Confirmed(head)
        if tip is not None:
            return await self.compare(tip)
        return Confirmed((await self._use_highest(await self._claims(None))).head)

    async def accept(self, tip: Tip) -> RollBack | None:
        """Decide as --accept-reorg does: for whatever chain the upstreams agree on. None if it is the stored one."""
        claims = await self._claims(tip)
        first = max(claims, key=lambda claim: claim.number)
        for other in claims:
            if other is not first and await first.view.block_hash(other.number) != other.block_hash:
                raise ReorgRefused(
                    f"{first.view.name} and {other.view.name} have different blocks at height {other.number}: remove "
                    "the wrong one from rpc first"
                )
        ancestor = await self._common_block(first.view, first.number)
        return None if ancestor == tip.number else RollBack(ancestor)

    # -- one upstream against the others -----------------------------------------------------------------------

    async def _claims(self, tip: Tip | None) -> list[_Claim]:
        """The claims of every usable upstream that answers, first the one in use; one that fails backs off."""
        answers = await asyncio.gather(*(self._claim(view, tip) for view in self._upstream.views()))
        claims = [answer for answer in answers if isinstance(answer, _Claim)]
        if not claims:
            reasons = "; ".join(str(answer) for answer in answers)
            raise UpstreamDown(f"no upstream can be asked which chain is the right one: {reasons}", sent=False)
        return claims

    async def _claim(self, view: UpstreamView, tip: Tip | None) -> _Claim | UpstreamFailure:
        try:
            await view.check_chain_id()
            head = await view.head()
            number = head if tip is None else min(head, tip.number)
            return _Claim(view, head, number, await view.block_hash(number))
        except UpstreamFailure as failure:
            self._upstream.back_off_view(view, failure)
            return failure

    async def _use_highest(self, claims: Sequence[_Claim]) -> _Claim:
        """Use the first of them, unless another is higher and has the block that it says is its newest."""
        used = claims[0]
        for claim in sorted(claims[1:], key=lambda claim: -claim.head):
            if claim.head <= used.head:
                break
            with suppress(UpstreamFailure):
                if await claim.view.block_hash(claim.head) is not None:
                    used = claim
        self._upstream.prefer(used.view)
        return used

    def _note_dispute(self, dispute: str) -> None:
        """Note a dispute. A short one is nothing special: a reorganisation does not reach all upstreams at the same
        moment."""
        now = self._upstream.clock.now()
        if not dispute:
            self._disputed_since, self.dispute = None, ""
            return
        if self._disputed_since is None:
            self._disputed_since = now
        self.dispute = dispute if now - self._disputed_since >= LAG_S else ""

    def _wait(self, tip: Tip, claims: Sequence[_Claim]) -> Unconfirmed:
        now = self._upstream.clock.now()
        if self._lower_since is None:
            self._lower_since = now
        if now - self._lower_since < LAG_S:
            return Unconfirmed()
        raise ReorgRefused(
            f"block {tip.number} is stored, and the upstreams end with block {max(claim.head for claim in claims)}: "
            f"nothing is rolled back for a lower head. If the chain was reset, stop Icefall and run "
            f"{self._rules.command}, or set development = true in its [[chain]]"
        )

    async def _replaced_after(self, claim: _Claim, tip: Tip, claims: Sequence[_Claim]) -> int | None:
        """The newest common block, if everything after it is proven to be replaced; None if it is before the first
        stored one. Otherwise ReorgRefused."""
        view, rules = claim.view, self._rules
        remedy = f"Nothing is rolled back. If its chain is the right one, stop Icefall and run {rules.command}"
        ancestor = await self._common_block(view, tip.number)
        if ancestor is None and not await self._begins_inside_chain_of(view):
            raise ReorgRefused(f"{view.name} shares no block with the stored chain: this is another chain. {remedy}")
        before = (self._store.lowest() or 0) - 1 if ancestor is None else ancestor  # all later ones are replaced
        depth = tip.number - before
        what = f"{view.name} has other blocks than those stored after block {before}"
        if rules.is_final():
            raise ReorgRefused(f"{what}, and blocks of this chain are final. {remedy}")
        if depth > rules.depth_max:
            raise ReorgRefused(f"{what}: {depth} blocks, more than --reorg-depth-max={rules.depth_max}. {remedy}")
        parent = await view.block_hash(before) if ancestor is None else self._store.hash_at(before)
        if parent is None:
            raise ReorgDuringFetch(f"{view.name} has no block {before} any more")
        proven = await view.linked_hashes(range(before + 1, tip.number + 1), parent)
        against = [
            one for one in claims if one.number > before and one.block_hash == self._store.block_hash(one.number)
        ]
        supporting = [
            one for one in claims if one.number > before and one.block_hash == proven[one.number - before - 1]
        ]
        if claim not in supporting:
            raise ReorgDuringFetch(f"{view.name} changed its chain while it was compared with the stored one")
        if len(against) >= len(supporting):
            names = ", ".join(one.view.name for one in against)
            raise ReorgRefused(f"{what}, but not more upstreams than have the stored ones ({names}): these are kept")
        return ancestor

    async def _begins_inside_chain_of(self, view: UpstreamView) -> bool:
        """Tell whether the first stored block is a later one of a chain with the upstream's genesis: then blocks before
        it may have been replaced as well."""
        genesis = self._store.meta("genesis_hash")
        if genesis is None or (self._store.lowest() or 0) < 2:  # the second block names the genesis as its parent
            return False
        served = await view.block_hash(0)
        return served is not None and "0x" + served.hex() == genesis

    # -- common blocks -----------------------------------------------------------------------------------------

    async def _follow_at_once(self, tip: Tip) -> Verdict:
        """Follow whatever the upstream has now: a development chain."""
        head = await self._upstream.head()
        ancestor = await self._common_block(self._upstream, min(head, tip.number))
        return Confirmed(head) if ancestor == tip.number else RollBack(ancestor)

    async def _common_block(self, theirs: _Hashes, above: int) -> int | None:
        """The newest common block that is not above `above`, by doubling steps and then binary search."""
        lowest = self._store.lowest() or 0
        bottom = max(0, lowest - 1)  # the first stored block names its parent
        if above < bottom:
            return None
        common, other, step = above, above + 1, 1
        while not await self._is_common(theirs, common):
            if common <= bottom:
                return None
            other, common = common, max(bottom, common - step)
            step *= 2
        while other - common > 1:
            middle = (common + other) // 2
            if await self._is_common(theirs, middle):
                common = middle
            else:
                other = middle
        return common

    async def _is_common(self, theirs: _Hashes, number: int) -> bool:
        return await theirs.block_hash(number) == self._store.hash_at(number)
