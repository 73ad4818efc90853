"""Token URIs and metadata of single NFTs.

A round takes some rows in hand (retry_at -1), asks their contracts, fetches what their URIs point to, and stores how
that ended. A row that somebody makes due meanwhile stays due; one that was in hand when we stopped is due at once.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import msgspec
from yarl import URL

from icefall.db.engine import Store, Transaction
from icefall.db.statements import load
from icefall.evm.amounts import unpack_uint
from icefall.evm.enriching.answers import token_uri_call, uri_call, uri_of, with_id
from icefall.evm.enriching.asking import Answers, ask_each
from icefall.evm.enriching.counts import EnrichCounts
from icefall.evm.enriching.guard import AddressForbidden, GuardedFetcher, Throttled, TooLarge, Unreachable
from icefall.evm.enriching.metadata import Metadata, metadata_of, pack
from icefall.evm.enriching.outcomes import OUTCOMES, PUT_OFF, IndexStatus, NftOutcome, UnusableNft, next_try, pause_s
from icefall.evm.enriching.uris import address_of, checked, content_of, scheme_of, storable
from icefall.upstream.client import UpstreamFailure
from icefall.upstream.evm.state import ContractCall
from icefall.upstream.evm.upstream import EvmUpstream
from icefall.upstream.pool import PoolLog

BATCH, CONTRACTS, WALK, RELEASED_AT_ONCE = 32, 8, 64, 500
ERC721, ERC1155 = 2, 4  # bits of token.standards
HOST_REST_S = 60.0
_RESTS_MAX = 10_000
_SETTINGS_FACT = "nft_metadata_settings"
SQL = load("icefall.evm.enriching", "queries.sql")


class NftSettings(msgspec.Struct, frozen=True):
    """`web`: whether anything is fetched; data: URIs are read in any case. `gateway`: for ipfs, empty for none."""

    web: bool = True
    gateway: str = "https://ipfs.io/ipfs/"
    allow: tuple[str, ...] = ()


class DueNft(NamedTuple):
    token: int
    address: bytes
    packed_id: bytes
    standards: int | None
    status: str
    token_uri: str
    failures: int
    retry_at: int

    @property
    def key(self) -> dict[str, Any]:
        return {"token": self.token, "token_id": self.packed_id, "address": self.address}


class NftResult(NamedTuple):
    """How reading one NFT ended."""

    outcome: NftOutcome
    uri: str = ""
    metadata: Metadata = Metadata()
    after_s: float = 0.0


class NftMetadataLoop:
    def __init__(
        self,
        store: Store,
        upstream: EvmUpstream,
        guard: GuardedFetcher,
        settings: NftSettings,
        counts: EnrichCounts,
        wall: Callable[[], float],
        log: PoolLog,
    ) -> None:
        self._store = store
        self._upstream = upstream
        self._guard = guard
        self._settings = settings
        self._counts = counts
        self._wall = wall
        self._log = log
        self._after = -1  # the contract read last
        self._released = False
        self._rests: dict[str, tuple[float, NftOutcome]] = {}  # hosts not asked again until then, and how they failed

    async def round(self) -> bool:
        """Read some that are due. Whether there were any."""
        if not self._released:
            await self._release()
        due = await self._take()
        if not due:
            return False
        answers = await ask_each(self._upstream, [_calls(one) for one in due])
        ended = await asyncio.gather(*map(self._read, due, answers))
        now = int(self._wall())
        await self._store.write(partial(_put, list(zip(due, ended, strict=True)), now))
        for one in ended:
            if isinstance(one, NftResult):
                self._counts.nfts_read[OUTCOMES[one.outcome].status.name] += 1
            else:
                self._counts.failures["nfts"] += 1
        return True

    # -- which -------------------------------------------------------------------------------------------------

    async def _release(self) -> None:
        """Other settings than last time: what was put off is due."""
        settings = msgspec.json.encode(self._settings).decode()
        known = self._store.read(SQL.fact, {"name": _SETTINGS_FACT})
        if known != [(settings,)]:
            while await self._store.write(_released):
                pass
            fact = {"name": _SETTINGS_FACT, "value": settings}
            await self._store.write(lambda tx: tx.run(SQL.put_fact, fact))
        self._released = True

    async def _take(self) -> list[DueNft]:
        """Some rows that are due, in hand: of each contract alike, contract by contract."""
        now = int(self._wall())
        if not self._store.read(SQL.nft_due, {"now": now})[0][0]:
            return []
        due: list[DueNft] = []
        contracts = await self._contracts(now)
        for token in contracts:
            rows = self._store.read(SQL.due_nfts, {"token": token, "now": now, "count": BATCH // len(contracts)})
            due += (DueNft(*row) for row in rows)
        taken = [one.key | {"retry_at": one.retry_at} for one in due]
        await self._store.write(lambda tx: tx.run_many(SQL.take_nft, taken))
        return due

    async def _contracts(self, now: int) -> list[int]:
        """The next contracts that have something due, going round in a circle."""
        found: list[int] = []
        for start, end in ((self._after, PUT_OFF), (-1, self._after)):
            at, more = start, True
            while more and len(found) < CONTRACTS:
                rows = self._store.read(SQL.contracts_to_read, {"after": at, "count": WALK})
                walked = [token for (token,) in rows if token <= end]
                for at in walked:
                    if self._store.read(SQL.due_nfts, {"token": at, "now": now, "count": 1}):
                        found.append(at)
                        if len(found) == CONTRACTS:
                            break
                more = len(walked) == WALK
                await asyncio.sleep(0)  # there may be many that wait
        self._after = found[-1] if found else -1
        return found

    # -- reading one -------------------------------------------------------------------------------------------

    async def _read(self, one: DueNft, answers: Answers | UpstreamFailure) -> NftResult | UpstreamFailure:
        if isinstance(answers, UpstreamFailure):
            return answers
        uri = ""
        try:
            said = _uri(one, answers)
            uri = storable(said)
            checked(said)
            body = content_of(uri)
            if body is None:
                address = address_of(uri, self._settings.gateway)
                if not self._settings.web:
                    raise UnusableNft(NftOutcome.SWITCHED_OFF)
                body = await self._fetch(address, trusted=scheme_of(uri) == "ipfs")
            return NftResult(NftOutcome.READ, uri, metadata_of(body))
        except UnusableNft as unfit:
            return NftResult(unfit.outcome, uri)
        except Throttled as throttled:
            return NftResult(NftOutcome.THROTTLED, uri, after_s=throttled.after_s)
        except AddressForbidden:
            return NftResult(NftOutcome.NOT_ALLOWED, uri)
        except Unreachable:
            return NftResult(NftOutcome.NOT_REACHED, uri)
        except TooLarge:
            return NftResult(NftOutcome.TOO_LARGE, uri)
        except Exception as error:
            self._log.error("an NFT could not be read", contract=one.address.hex(), error=repr(error))
            return NftResult(NftOutcome.OUR_FAULT, uri)

    async def _fetch(self, address: str, *, trusted: bool) -> bytes:
        """From a host that has just failed, nothing: whoever wants something from it meanwhile fares alike."""
        host, now = _host(address), self._wall()
        until, outcome = self._rests.get(host, (0.0, NftOutcome.NOT_REACHED))
        if until > now:
            raise Throttled(host, until - now) if outcome is NftOutcome.THROTTLED else Unreachable(host)
        try:
            return await self._guard.get(address, trusted=trusted)
        except Unreachable as failure:
            rest_s = failure.after_s if isinstance(failure, Throttled) else HOST_REST_S * failure.host_down
            if rest_s > 0:
                kind = NftOutcome.THROTTLED if isinstance(failure, Throttled) else NftOutcome.NOT_REACHED
                if len(self._rests) >= _RESTS_MAX:
                    self._rests.clear()
                self._rests[host] = self._wall() + rest_s, kind
            raise


def _calls(one: DueNft) -> Sequence[ContractCall]:
    """tokenURI, uri, or both where the logs leave it open; in that order."""
    token_id, standards = unpack_uint(one.packed_id), (one.standards or 0) & (ERC721 | ERC1155)
    asked = []
    if standards != ERC1155:
        asked.append(ContractCall(one.address, token_uri_call(token_id)))
    if standards != ERC721:
        asked.append(ContractCall(one.address, uri_call(token_id)))
    return asked


def _uri(one: DueNft, answers: Answers) -> str | None:
    """What the contract says; Unfit where it says nothing at all."""
    if not any(answers):
        raise UnusableNft(NftOutcome.NO_SUCH_TOKEN)
    standards = (one.standards or 0) & (ERC721 | ERC1155)
    said = [uri_of(answer) for answer in answers]
    if standards != ERC721 and said[-1] and (standards == ERC1155 or not said[0]):
        return with_id(said[-1], unpack_uint(one.packed_id))
    return said[0]


def _host(address: str) -> str:
    try:
        return URL(address).host or ""
    except ValueError:
        return ""


def _released(tx: Transaction) -> bool:
    """Some of what was put off is due. Whether there was any."""
    rows = tx.rows(SQL.nfts_put_off, {"put_off": PUT_OFF, "count": RELEASED_AT_ONCE})
    tx.run_many(SQL.release_nft, rows)
    return bool(rows)


def _put(read: list[tuple[DueNft, NftResult | UpstreamFailure]], now: int, tx: Transaction) -> None:
    for one, ended in read:
        failures = 0 if one.retry_at == 0 else one.failures
        if isinstance(ended, UpstreamFailure):
            later = {"retry_at": now + pause_s(failures), "failures": failures + 1}
            tx.run(SQL.put_off_nft, one.key | later)
            continue
        row = OUTCOMES[ended.outcome]
        retry_at = next_try(ended.outcome, failures, now, ended.after_s)
        if scheme_of(ended.uri) == "data" and not row.passing:
            retry_at = None  # it would say the same
        later = one.key | {"retry_at": retry_at, "failures": failures + (ended.outcome is not NftOutcome.READ)}
        if row.passing and one.status == IndexStatus.INDEXED.name and one.token_uri == ended.uri:
            tx.run(SQL.put_off_nft, later)
            continue
        told = {"token_uri": ended.uri, "status": row.status.name, "read_at": now, "metadata": pack(ended.metadata)}
        tx.run(SQL.settle_nft, later | told)
