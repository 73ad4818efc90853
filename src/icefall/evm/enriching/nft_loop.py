"""Reads token URIs and metadata of single NFTs.

A round claims some rows (retry_at -1), calls their contracts, fetches the documents at their URIs, and stores the
outcome. A row that becomes due again meanwhile stays due; one that was claimed when the process stopped is due at once.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import msgspec
from yarl import URL

from icefall.db.engine import Store, Transaction
from icefall.db.statements import load
from icefall.evm.contract_calls import Answers, call_each, uri_call, uri_of, with_id
from icefall.evm.encoding import unpack_uint
from icefall.evm.enriching.guarded_fetcher import AddressForbidden, FetchFailed, GuardedFetcher, Throttled, TooLarge
from icefall.evm.enriching.nft_metadata import (
    NftMetadata,
    checked,
    content_of,
    metadata_of,
    pack,
    scheme_of,
    storable,
    web_url_of,
)
from icefall.evm.enriching.nft_outcomes import (
    OUTCOMES,
    POSTPONED,
    EnrichCounts,
    IndexStatus,
    NftOutcome,
    UnusableNft,
    next_try,
    retry_pause_s,
)
from icefall.evm.standards import WITH_IDS, TokenStandard
from icefall.upstream.client import UpstreamFailure
from icefall.upstream.evm.state import ContractCall
from icefall.upstream.evm.upstream import EvmUpstream
from icefall.upstream.pool import PoolLog

BATCH, CONTRACTS, CONTRACTS_READ, MADE_DUE_AT_ONCE = 32, 8, 64, 500
HOST_BACKOFF_S = 60.0
_HOSTS_MAX = 10_000
_SETTINGS_KEY = "nft_metadata_settings"
SQL = load("icefall.evm.enriching", "queries.sql")


class NftSettings(msgspec.Struct, frozen=True):
    """The rules of what may be fetched. `web`: URLs; data: URIs are read in any case. `gateway`: for ipfs, empty for
    none."""

    web: bool = True
    gateway: str = "https://ipfs.io/ipfs/"
    allow: tuple[str, ...] = ()


class DueNft(NamedTuple):
    """An NFT whose metadata is to be read."""

    token: int
    address: bytes
    packed_id: bytes
    standards: int | None
    status: str
    token_uri: str
    failures: int
    retry_at: int

    @property
    def token_id(self) -> int:
        return unpack_uint(self.packed_id)

    @property
    def uri_standards(self) -> list[TokenStandard]:
        """The standards whose URI call may be answered: those that its logs show, or all with token IDs."""
        shown = [standard for standard in WITH_IDS if (self.standards or 0) & standard.number]
        return shown or list(WITH_IDS)

    @property
    def key(self) -> dict[str, Any]:
        return {"token": self.token, "token_id": self.packed_id, "address": self.address}


class NftResult(NamedTuple):
    """The outcome of reading one NFT."""

    outcome: NftOutcome
    uri: str = ""
    metadata: NftMetadata = NftMetadata()
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
        self._after = -1  # the contract that was read last
        self._settings_checked = False
        self._failed_hosts: dict[
            str, tuple[float, NftOutcome]
        ] = {}  # per host: no request until then, and how it failed

    async def round(self) -> bool:
        """Read some NFTs that are due. Return whether there were any."""
        if not self._settings_checked:
            await self._check_settings()
        due = await self._claim()
        if not due:
            return False
        answers = await call_each(self._upstream, [_calls(nft) for nft in due])
        results = await asyncio.gather(*map(self._read, due, answers))
        now = int(self._wall())
        await self._store.write(partial(_put, list(zip(due, results, strict=True)), now))
        for result in results:
            if isinstance(result, NftResult):
                self._counts.nfts_read[OUTCOMES[result.outcome].status.name] += 1
            else:
                self._counts.failures["nfts"] += 1
        return True

    # -- which are due -----------------------------------------------------------------------------------------

    async def _check_settings(self) -> None:
        """Make due what was postponed, if the settings have changed since the last start."""
        settings = msgspec.json.encode(self._settings).decode()
        known = self._store.read(SQL.meta, {"name": _SETTINGS_KEY})
        if known != [(settings,)]:
            while await self._store.write(_make_postponed_due):
                pass
            meta = {"name": _SETTINGS_KEY, "value": settings}
            await self._store.write(lambda tx: tx.run(SQL.put_meta, meta))
        self._settings_checked = True

    async def _claim(self) -> list[DueNft]:
        """Claim some rows that are due, the same number of each contract."""
        now = int(self._wall())
        if not self._store.read(SQL.nft_due, {"now": now})[0][0]:
            return []
        due: list[DueNft] = []
        contracts = await self._contracts(now)
        for token in contracts:
            rows = self._store.read(SQL.due_nfts, {"token": token, "now": now, "count": BATCH // len(contracts)})
            due += (DueNft(*row) for row in rows)
        claimed = [nft.key | {"retry_at": nft.retry_at} for nft in due]
        await self._store.write(lambda tx: tx.run_many(SQL.claim_nft, claimed))
        return due

    async def _contracts(self, now: int) -> list[int]:
        """The next contracts with NFTs that are due, continuing at the lowest after the highest."""
        found: list[int] = []
        for start, end in ((self._after, POSTPONED), (-1, self._after)):
            at, more = start, True
            while more and len(found) < CONTRACTS:
                rows = self._store.read(SQL.contracts_to_read, {"after": at, "count": CONTRACTS_READ})
                walked = [token for (token,) in rows if token <= end]
                for at in walked:
                    if self._store.read(SQL.due_nfts, {"token": at, "now": now, "count": 1}):
                        found.append(at)
                        if len(found) == CONTRACTS:
                            break
                more = len(walked) == CONTRACTS_READ
                await asyncio.sleep(0)  # there may be many contracts
        self._after = found[-1] if found else -1
        return found

    # -- reading one -------------------------------------------------------------------------------------------

    async def _read(self, nft: DueNft, answers: Answers | UpstreamFailure) -> NftResult | UpstreamFailure:
        if isinstance(answers, UpstreamFailure):
            return answers
        uri = ""
        try:
            returned = _uri(nft, answers)
            uri = storable(returned)
            checked(returned)
            body = content_of(uri)
            if body is None:
                url = web_url_of(uri, self._settings.gateway)
                if not self._settings.web:
                    raise UnusableNft(NftOutcome.SWITCHED_OFF)
                body = await self._fetch(url, trusted=scheme_of(uri) == "ipfs")
            return NftResult(NftOutcome.READ, uri, metadata_of(body))
        except UnusableNft as unusable:
            return NftResult(unusable.outcome, uri)
        except Throttled as throttled:
            return NftResult(NftOutcome.THROTTLED, uri, after_s=throttled.after_s)
        except AddressForbidden:
            return NftResult(NftOutcome.NOT_ALLOWED, uri)
        except FetchFailed:
            return NftResult(NftOutcome.NOT_REACHED, uri)
        except TooLarge:
            return NftResult(NftOutcome.TOO_LARGE, uri)
        except Exception as error:
            self._log.error("NFT metadata not read: internal error", contract=nft.address.hex(), error=repr(error))
            return NftResult(NftOutcome.INTERNAL_ERROR, uri)

    async def _fetch(self, url: str, *, trusted: bool) -> bytes:
        """Fetch a document; fails without a request where the host has just failed or throttled us."""
        host, now = _host(url), self._wall()
        until, outcome = self._failed_hosts.get(host, (0.0, NftOutcome.NOT_REACHED))
        if until > now:
            raise Throttled(host, until - now) if outcome is NftOutcome.THROTTLED else FetchFailed(host)
        try:
            return await self._guard.get(url, trusted=trusted)
        except FetchFailed as failure:
            backoff_s = failure.after_s if isinstance(failure, Throttled) else HOST_BACKOFF_S * failure.host_down
            if backoff_s > 0:
                outcome = NftOutcome.THROTTLED if isinstance(failure, Throttled) else NftOutcome.NOT_REACHED
                if len(self._failed_hosts) >= _HOSTS_MAX:
                    self._failed_hosts.clear()
                self._failed_hosts[host] = self._wall() + backoff_s, outcome
            raise


def _calls(nft: DueNft) -> Sequence[ContractCall]:
    return [uri_call(standard, nft.address, nft.token_id) for standard in nft.uri_standards]


def _uri(nft: DueNft, answers: Answers) -> str | None:
    """The URI that the contract returned; UnusableNft where it returned nothing."""
    if not any(answers):
        raise UnusableNft(NftOutcome.NO_SUCH_TOKEN)
    uris = [uri_of(answer) for answer in answers]
    for standard, uri in zip(nft.uri_standards, uris, strict=True):
        if uri:
            return with_id(uri, nft.token_id) if standard.fills_id_into_uri else uri
    return uris[0]


def _host(url: str) -> str:
    try:
        return URL(url).host or ""
    except ValueError:
        return ""


def _make_postponed_due(tx: Transaction) -> bool:
    """Make some postponed NFTs due. Return whether there were any."""
    rows = tx.rows(SQL.postponed_nfts, {"postponed": POSTPONED, "count": MADE_DUE_AT_ONCE})
    tx.run_many(SQL.make_nft_due, rows)
    return bool(rows)


def _put(read: list[tuple[DueNft, NftResult | UpstreamFailure]], now: int, tx: Transaction) -> None:
    for nft, result in read:
        failures = 0 if nft.retry_at == 0 else nft.failures
        if isinstance(result, UpstreamFailure):
            later = {"retry_at": now + retry_pause_s(failures), "failures": failures + 1}
            tx.run(SQL.postpone_nft, nft.key | later)
            continue
        rule = OUTCOMES[result.outcome]
        retry_at = next_try(result.outcome, failures, now, result.after_s)
        if scheme_of(result.uri) == "data" and not rule.is_transient:
            retry_at = None  # its content cannot change
        later = nft.key | {"retry_at": retry_at, "failures": failures + (result.outcome is not NftOutcome.READ)}
        if rule.is_transient and nft.status == IndexStatus.INDEXED.name and nft.token_uri == result.uri:
            tx.run(SQL.postpone_nft, later)
            continue
        metadata = {
            "token_uri": result.uri,
            "status": rule.status.name,
            "read_at": now,
            "metadata": pack(result.metadata),
        }
        tx.run(SQL.put_nft, later | metadata)


async def reindex_nft(store: Store, token: bytes, token_id: bytes) -> None:
    """Make an NFT due, whatever was read before. `token_id` is packed as it is stored."""

    def change(tx: Transaction) -> None:
        for statement in (SQL.add_nft_of_range, SQL.reindex_nft):
            tx.run(statement, {"token": token, "token_id": token_id})

    await store.write(change)
