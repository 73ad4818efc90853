"""Contracts: standard, names and deployment."""

from msgspec import UNSET, UnsetType

from icefall.api.params.rest_kinds import ChainName, EvmAddress, PageSize, PageToken
from icefall.api.schema.names import Page, RestParams, RestResult


class ContractParams(RestParams, frozen=True):
    chain_id: ChainName
    address: EvmAddress


class DeploymentsParams(RestParams, frozen=True):
    chain_id: ChainName
    address: EvmAddress
    page_token: PageToken = ""
    page_size: PageSize = 10


class DeploymentDetails(RestResult, frozen=True):
    """`deployerAddress` sent the transaction; `deployerContractAddress` is the contract that ran the creation."""

    tx_hash: str
    deployer_address: str
    deployer_contract_address: str | UnsetType = UNSET


class Erc20Contract(RestResult, frozen=True, kw_only=True, tag_field="ercType", tag="ERC-20"):
    name: str | UnsetType = UNSET
    symbol: str | UnsetType = UNSET
    decimals: int | UnsetType = UNSET
    address: str
    deployment_details: DeploymentDetails | UnsetType = UNSET


class NftContract(RestResult, frozen=True, kw_only=True):
    name: str | UnsetType = UNSET
    symbol: str | UnsetType = UNSET
    address: str
    deployment_details: DeploymentDetails | UnsetType = UNSET


class Erc721Contract(NftContract, frozen=True, kw_only=True, tag_field="ercType", tag="ERC-721"):
    pass


class Erc1155Contract(NftContract, frozen=True, kw_only=True, tag_field="ercType", tag="ERC-1155"):
    pass


class UnknownContract(RestResult, frozen=True, kw_only=True, tag_field="ercType", tag="UNKNOWN"):
    """A contract without token transfers."""

    address: str
    deployment_details: DeploymentDetails | UnsetType = UNSET


Contract = Erc20Contract | Erc721Contract | Erc1155Contract | UnknownContract


class ContractPage(Page, frozen=True, kw_only=True):
    contracts: list[Contract]
