"""Handlers of contracts: a single one, and those that an account or a contract deployed."""

from typing import Any

from msgspec import UNSET, UnsetType

from icefall.api.data.render.tokens import decimals_or_unknown, text_or_unknown, unread_or_absent
from icefall.api.data.schema.tokens import (
    NFT_CONTRACTS,
    Contract,
    ContractPage,
    ContractParams,
    DeploymentDetails,
    DeploymentsParams,
    Erc20Contract,
    UnknownContract,
)
from icefall.api.dialect import Dialect
from icefall.api.http.paging import Paging, cursor_of, pack_cursor
from icefall.api.http.structs import address_text, hash_text
from icefall.errors import NotFound
from icefall.evm.reading.directory import ChainDirectory, EvmChain
from icefall.evm.reading.model import DeploymentRead
from icefall.evm.reading.tokens import ContractRead

_WITHOUT_CALLS = ". This index has no call traces: contracts created by contracts are not known to it"


async def contract_metadata(params: ContractParams, chains: ChainDirectory, dialect: Dialect) -> Contract:
    """Return what is known of a contract. An address without code, deployment and token transfers is not a contract."""
    chain = await chains.find(params.chain_id)
    contract = await chain.tokens.contract(params.address)
    deployment = await chain.transfers.deployment(params.address)
    if deployment is None and (contract is None or not (contract.erc_type or contract.has_code)):
        why = await why_deployments_lack(chain)
        raise NotFound(f"chain {chain.info.id} has no indexed contract {address_text(params.address)}{why}")
    return _result(dialect, params.address, contract, deployment)


async def contract_deployments(
    params: DeploymentsParams, chains: ChainDirectory, paging: Paging, dialect: Dialect
) -> ContractPage:
    """List deployed contracts. A page may be short although more follow, where contracts were deployed again many
    times."""
    chain = await chains.find(params.chain_id)
    before = cursor_of("deployments", params, paging)
    rows, more = await chain.transfers.deployed_by(params.address, before, params.page_size)
    rendered = [_result(dialect, row.address, await chain.tokens.contract(row.address), row) for row in rows]
    token = UNSET if more is None else paging.token("deployments", params, pack_cursor(*more))
    return ContractPage(next_page_token=token, contracts=rendered)


async def why_deployments_lack(chain: EvmChain) -> str:
    """The end of an error about a contract that is not found; empty if every deployment of the chain is indexed."""
    return _WITHOUT_CALLS if await chain.blocks.meta("has_calls") == "0" else ""


def _result(
    dialect: Dialect, address: bytes, contract: ContractRead | None, deployment: DeploymentRead | None
) -> Contract:
    text, details = address_text(address), _details(deployment)
    if contract is None or not contract.erc_type:
        return UnknownContract(address=text, deployment_details=details)
    shared: dict[str, Any] = {
        "name": text_or_unknown(dialect, contract.name),
        "symbol": text_or_unknown(dialect, contract.symbol),
        "names_read": unread_or_absent(dialect, is_read=contract.is_read),
        "address": text,
        "deployment_details": details,
    }
    if contract.erc_type == "ERC-20":
        return Erc20Contract(**shared, decimals=decimals_or_unknown(dialect, contract.decimals))
    return NFT_CONTRACTS[contract.erc_type](**shared)


def _details(deployment: DeploymentRead | None) -> DeploymentDetails | UnsetType:
    if deployment is None:
        return UNSET
    by_contract = address_text(deployment.creator) if deployment.frame else UNSET
    return DeploymentDetails(hash_text(deployment.tx_hash), address_text(deployment.sender), by_contract)
