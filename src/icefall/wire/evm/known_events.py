"""Signatures of events that many contracts share, by their first topic."""

from icefall.wire.evm.keccak import keccak256

_SIGNATURES = (
    "Transfer(address,address,uint256)",
    "Approval(address,address,uint256)",
    "ApprovalForAll(address,address,bool)",
    "TransferSingle(address,address,address,uint256,uint256)",
    "TransferBatch(address,address,address,uint256[],uint256[])",
    "URI(string,uint256)",
    "Deposit(address,uint256)",
    "Withdrawal(address,uint256)",
    "OwnershipTransferred(address,address)",
    "RoleGranted(bytes32,address,address)",
    "RoleRevoked(bytes32,address,address)",
    "Upgraded(address)",
    "AdminChanged(address,address)",
    "BeaconUpgraded(address)",
    "Initialized(uint8)",
    "Initialized(uint64)",
    "Paused(address)",
    "Unpaused(address)",
    "MetadataUpdate(uint256)",
    "BatchMetadataUpdate(uint256,uint256)",
    "Swap(address,uint256,uint256,uint256,uint256,address)",
    "Swap(address,address,int256,int256,uint160,uint128,int24)",
    "Sync(uint112,uint112)",
    "Mint(address,uint256,uint256)",
    "Burn(address,uint256,uint256,address)",
    "PairCreated(address,address,address,uint256)",
    "SendCrossChainMessage(bytes32,bytes32,(uint256,address,bytes32,address,uint256,address[],(uint256,address)[],bytes),"
    "(address,uint256))",
)
EVENT_SIGNATURES = {keccak256(signature.encode()): signature for signature in _SIGNATURES}
