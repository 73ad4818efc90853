"""Exports of the caller: of an API key, or of callers on this machine that send none. Their files are written by
another process (`exports/running.py`)."""

import re
import time
from pathlib import Path
from typing import cast

from msgspec import UNSET, UnsetType

from icefall.access.client_address import CurrentCaller
from icefall.api.data.schema.operations import (
    CodeText,
    ExportType,
    OperationFileParams,
    OperationMetadata,
    OperationParams,
    OperationResult,
    OrderExport,
    StatusText,
)
from icefall.api.http.stored_files import StoredFile
from icefall.api.http.structs import NoParams
from icefall.errors import BadRequest, Forbidden, NotFound
from icefall.evm.reading.directory import ChainDirectory
from icefall.exports.model import (
    CANCELLED,
    COMPLETED,
    EVM,
    FAILED,
    RUNNING,
    TRUNCATED,
    ExportJob,
    ExportLinks,
    ExportRequest,
    PrimaryNaming,
    day_of,
)
from icefall.exports.registry import ExportRegistry

OPERATIONS = "/v1/operations"
_ADDRESS = re.compile("0x[0-9a-fA-F]{40}")
_STATUS: dict[str, StatusText] = {
    RUNNING: "RUNNING",
    COMPLETED: "COMPLETED",
    TRUNCATED: "COMPLETED_WITH_WARNING",
    FAILED: "FAILED",
    CANCELLED: "FAILED",
}
_CODES: dict[str, CodeText] = {
    TRUNCATED: "WarnTruncatedExport",
    FAILED: "ErrInternal",
    CANCELLED: "ErrInvalidRequest",
}


class ExportFolder:
    """The folder of the files of all exports."""

    def __init__(self, path: Path) -> None:
        self.path = path


class PublicAddress:
    """The address of this interface in links. `url`: as it is configured; empty: where the caller reached us."""

    def __init__(self, url: str) -> None:
        self._url = url.rstrip("/")

    def of(self, host: str) -> str:
        return self._url or f"http://{host}"


async def order_export(
    _: NoParams,
    body: OrderExport,
    registry: ExportRegistry,
    chains: ChainDirectory,
    naming: PrimaryNaming,
    links: ExportLinks,
    address: PublicAddress,
    caller: CurrentCaller,
) -> OperationResult:
    first, last = _day("firstDate", body.first_date, body.start_date), _day("lastDate", body.last_date, body.end_date)
    if first is not None and last is not None and first > last:
        raise BadRequest("firstDate must not be after lastDate")
    options = body.options
    if body.type == EVM:
        addresses = sorted({_address("addresses", one) for one in options.addresses})
        found = sorted({(await chains.find(one)).info.id for one in options.include_chains}, key=int)
        tokens = sorted({_address("tokens", one) for one in options.tokens})
        accounts = []
    else:
        tokens = []
        accounts = sorted({_address("cChainEvmAddresses", one) for one in options.c_chain_evm_addresses})
        addresses = sorted({naming.address(one) for one in options.addresses})
        found = sorted({naming.chain(one) for one in options.include_chains})
    if not addresses and not accounts and not tokens:
        raise BadRequest("options.addresses is missing")
    request = ExportRequest(
        addresses=addresses, chains=found, first_day=first, last_day=last, accounts=accounts, tokens=tokens
    )
    job = await registry.order(caller.get().key, body.type, request, time.time())
    return _result(job, links, address.of(caller.get().host))


async def get_operation(
    params: OperationParams,
    registry: ExportRegistry,
    links: ExportLinks,
    address: PublicAddress,
    caller: CurrentCaller,
) -> OperationResult:
    job = await registry.owned(caller.get().key, params.operation_id)
    return _result(job, links, address.of(caller.get().host))


async def cancel_operation(
    params: OperationParams,
    registry: ExportRegistry,
    links: ExportLinks,
    address: PublicAddress,
    caller: CurrentCaller,
) -> OperationResult:
    """Cancel an export that is running; the files of one that has ended are removed."""
    job = await registry.owned(caller.get().key, params.operation_id)
    await registry.cancel(job, time.time())
    job = await registry.owned(caller.get().key, params.operation_id)
    return _result(job, links, address.of(caller.get().host))


async def download(
    params: OperationFileParams, registry: ExportRegistry, links: ExportLinks, folder: ExportFolder
) -> StoredFile:
    """Send a file. The link is all that a browser needs."""
    now = time.time()
    if not links.is_valid(params.operation_id, params.file_name, params.expires, params.signature, now):
        raise Forbidden("this link was not made here or has expired: GET /v1/operations/{operationId} makes a new one")
    job = await registry.job(params.operation_id)
    if job is None or job.file != params.file_name or not _is_there(job, now):
        raise NotFound("the files of this operation have been removed")
    path = folder.path / job.id / job.file
    if not path.is_file():
        raise NotFound("this file is not on this machine: --export-dir must be shared")
    return StoredFile(path)


def _is_there(job: ExportJob, now: float) -> bool:
    return bool(job.file) and job.expires is not None and now < job.expires


def _result(job: ExportJob, links: ExportLinks, base: str) -> OperationResult:
    url: str | UnsetType = UNSET
    if _is_there(job, time.time()) and job.expires is not None:
        expires = int(job.expires)
        signature = links.signature(job.id, job.file, expires)
        url = f"{base}{OPERATIONS}/{job.id}/files/{job.file}?expires={expires}&signature={signature}"
    state = job.decoded_state
    running = 0 if state is None else state.percent
    return OperationResult(
        operation_id=job.id,
        operation_type=cast(ExportType, job.type),
        operation_status=_STATUS[job.status],
        message=job.message or UNSET,
        metadata=OperationMetadata(
            code=_CODES.get(job.status, UNSET),
            download_url=url,
            next_date=job.next_date or UNSET,
            expires_at=UNSET if job.expires is None else int(job.expires),
            progress=running if job.status == RUNNING else 100,
            rows=job.rows,
        ),
        created_at_timestamp=int(job.created),
        updated_at_timestamp=int(job.updated),
    )


def _address(name: str, text: str) -> str:
    if not _ADDRESS.fullmatch(text):
        raise BadRequest(f"options.{name} must be addresses: 0x and 40 hex digits, got {text[:80]!a}")
    return text.lower()


def _day(name: str, text: str | UnsetType, older: str | UnsetType) -> int | None:
    given = older if isinstance(text, UnsetType) else text
    if isinstance(given, UnsetType):
        return None
    try:
        return day_of(given)
    except ValueError:
        raise BadRequest(f"{name} must be a day such as 2024-12-31, got {given}") from None
