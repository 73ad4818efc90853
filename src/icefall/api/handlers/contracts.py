"""What is known of a contract, and which contracts an account or a contract deployed."""

from msgspec import UNSET, UnsetType

from icefall.api.paging import Paging
from icefall.api.presenting.hex import address_text, hash_text
from icefall.api.presenting.pages import cut, cursor_of
from icefall.api.schema.contracts import (
    Contract,
    ContractPage,
    ContractParams,
    DeploymentDetails,
    DeploymentsParams,
    Erc20Contract,
    Erc721Contract,
    Erc1155Contract,
    UnknownContract,
)
from icefall.errors import NotFound
from icefall.evm.reading.contracts import ContractRead
from icefall.evm.reading.directory import ChainDirectory
from icefall.evm.reading.model import DeploymentRead, PageRange


async def contract_metadata(params: ContractParams, chains: ChainDirectory) -> Contract:
    """An address without code, deployment and transfers of its own is no contract."""
    chain = await chains.find(params.chain_id)
    known = await chain.contracts.contract(params.address)
    made = await chain.transfers.deployment(params.address)
    if made is None and (known is None or not (known.erc_type or known.has_code)):
        raise NotFound(f"chain {chain.info.id} has no indexed contract {address_text(params.address)}")
    return _told(params.address, known, made)


async def contract_deployments(params: DeploymentsParams, chains: ChainDirectory, paging: Paging) -> ContractPage:
    chain = await chains.find(params.chain_id)
    span = PageRange(before=cursor_of("deployments", params, paging))
    found = await chain.transfers.deployed_by(params.address, span, params.page_size + 1)
    rows, token = cut("deployments", params, paging, found)
    told = [_told(row.address, await chain.contracts.contract(row.address), row) for row in rows]
    return ContractPage(next_page_token=token, contracts=told)


def _told(address: bytes, known: ContractRead | None, made: DeploymentRead | None) -> Contract:
    text, details = address_text(address), _details(made)
    if known is None or not known.erc_type:
        return UnknownContract(address=text, deployment_details=details)
    name, symbol = known.name or UNSET, known.symbol or UNSET
    if known.erc_type == "ERC-20":
        decimals = known.decimals or 0
        return Erc20Contract(name=name, symbol=symbol, decimals=decimals, address=text, deployment_details=details)
    kind = Erc721Contract if known.erc_type == "ERC-721" else Erc1155Contract
    return kind(name=name, symbol=symbol, address=text, deployment_details=details)


def _details(made: DeploymentRead | None) -> DeploymentDetails | UnsetType:
    if made is None:
        return UNSET
    by_contract = address_text(made.creator) if made.frame else UNSET
    return DeploymentDetails(hash_text(made.tx_hash), address_text(made.sender), by_contract)
