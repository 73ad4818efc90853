"""An export job: what was ordered, how far it is, how it ended, and the link to its file."""

import hashlib
import hmac
from datetime import UTC, datetime, timedelta
from typing import Protocol

import msgspec

RUNNING, COMPLETED, TRUNCATED, FAILED, CANCELLED = "running", "completed", "truncated", "failed", "cancelled"
EVM = "TRANSACTION_EXPORT_EVM"
PRIMARY = "TRANSACTION_EXPORT_PRIMARY_NETWORK"
STAKING, SIMPLE = f"{PRIMARY}_STAKING", f"{PRIMARY}_SIMPLE"
DAY_S = 86_400
_LINKS = b"links to exports"  # what the secret of the installation is used for
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class ExportRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What is exported. Equal requests have equal texts: addresses are lower-case, and all lists are sorted. Days
    count from 1970; None: from the first block on, and up to the newest one. `accounts`: addresses of the C-Chain,
    whose atomic transactions are wanted. `tokens`: contracts whose transfers are wanted."""

    addresses: list[str]
    chains: list[str]
    first_day: int | None = None
    last_day: int | None = None
    accounts: list[str] = []
    tokens: list[str] = []

    def text(self) -> str:
        return msgspec.json.encode(self).decode()


class FixedEnd(msgspec.Struct, frozen=True):
    """The last block of a chain that a job reads, and its hash. A chain without blocks before the end has none. `txs`:
    how many transactions of a chain of the primary network are read."""

    chain: str
    block: int
    block_hash: str
    txs: int = 0


class ExportState(msgspec.Struct, frozen=True, kw_only=True):
    """How far a job is: the files hold all rows before `next_day`, and are so long and so many rows. `step`: days to
    read next. `tries`: how often it began because blocks were rolled back."""

    ends: list[FixedEnd]
    next_day: int
    last_day: int
    first_day: int
    step: int = 1
    sizes: dict[str, int] = {}
    rows: int = 0
    tries: int = 0

    @property
    def percent(self) -> int:
        """The share of the days that is written. A job that is not done has at most 99."""
        days = self.last_day + 1 - self.first_day
        return min(99, 100 * (self.next_day - self.first_day) // days) if days > 0 else 99


class ExportJob(msgspec.Struct, frozen=True):
    """A row of export_job."""

    id: str
    owner: str
    type: str
    request: str
    status: str
    message: str
    next_date: str
    state: str
    rows: int
    bytes: int
    file: str
    created: float
    updated: float
    turn: float
    runner: str
    expires: float | None

    @property
    def decoded_request(self) -> ExportRequest:
        return msgspec.json.decode(self.request, type=ExportRequest)

    @property
    def decoded_state(self) -> ExportState | None:
        return msgspec.json.decode(self.state, type=ExportState) if self.state else None


class ExportEnd(msgspec.Struct, frozen=True, kw_only=True):
    """How a job ended."""

    status: str
    message: str = ""
    next_date: str = ""
    rows: int = 0
    bytes: int = 0
    file: str = ""


class PrimaryNaming(Protocol):
    """What an order of the primary network names, read as text that is the same for the same."""

    def chain(self, text: str) -> str:
        """p-chain, x-chain or c-chain. NotFound where there is no network, or no such chain."""
        ...

    def address(self, text: str) -> str:
        """An address without the name of a chain. BadRequest for one that is of no chain of the network."""
        ...


def day_text(day: int) -> str:
    """A day, counted from 1970, as YYYY-MM-DD."""
    return (_EPOCH + timedelta(days=day)).strftime("%Y-%m-%d")


def day_of(text: str) -> int:
    """The number of a day that is written as YYYY-MM-DD. ValueError for any other text."""
    if len(text) != len("2026-11-18"):
        raise ValueError(text)
    return (datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC) - _EPOCH).days


class ExportLinks:
    """Signs and checks links to files, which work without an API key until they expire. `secret` is that of the
    installation."""

    def __init__(self, secret: bytes) -> None:
        self._key = hmac.digest(secret, _LINKS, hashlib.sha256)

    def signature(self, job_id: str, name: str, expires: int) -> str:
        return hmac.digest(self._key, f"{job_id}/{name}/{expires}".encode(), hashlib.sha256).hex()

    def is_valid(self, job_id: str, name: str, expires: int, signature: str, now: float) -> bool:
        """Whether the link was made here, and has not expired."""
        own = self.signature(job_id, name, expires)
        return hmac.compare_digest(own.encode(), signature.encode()) and now < expires
