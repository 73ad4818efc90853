"""Declarations of events, errors and reading functions that many contracts share."""

from msgspec.structs import replace

from icefall.wire.evm.abi import Declaration, declaration

_MESSAGE = (
    "(uint256 messageNonce,address originSenderAddress,bytes32 destinationBlockchainID,address destinationAddress,"
    "uint256 requiredGasLimit,address[] allowedRelayerAddresses,"
    "(uint256 receivedMessageNonce,address relayerRewardAddress)[] receipts,bytes message) message"
)
# Two declarations of one event differ in what is indexed: the number of topics tells which one a log is of.
EVENTS = (
    "Transfer(address indexed from,address indexed to,uint256 value)",
    "Transfer(address indexed from,address indexed to,uint256 indexed tokenId)",
    "Approval(address indexed owner,address indexed spender,uint256 value)",
    "Approval(address indexed owner,address indexed approved,uint256 indexed tokenId)",
    "ApprovalForAll(address indexed owner,address indexed operator,bool approved)",
    "TransferSingle(address indexed operator,address indexed from,address indexed to,uint256 id,uint256 value)",
    "TransferBatch(address indexed operator,address indexed from,address indexed to,uint256[] ids,uint256[] values)",
    "ConsecutiveTransfer(uint256 indexed fromTokenId,uint256 toTokenId,address indexed fromAddress,"
    "address indexed toAddress)",
    "URI(string value,uint256 indexed id)",
    "Deposit(address indexed account,uint256 amount)",
    "Withdrawal(address indexed account,uint256 amount)",
    "OwnershipTransferred(address indexed previousOwner,address indexed newOwner)",
    "RoleGranted(bytes32 indexed role,address indexed account,address indexed sender)",
    "RoleRevoked(bytes32 indexed role,address indexed account,address indexed sender)",
    "Upgraded(address indexed implementation)",
    "AdminChanged(address previousAdmin,address newAdmin)",
    "BeaconUpgraded(address indexed beacon)",
    "Initialized(uint8 version)",
    "Initialized(uint64 version)",
    "Paused(address account)",
    "Unpaused(address account)",
    "MetadataUpdate(uint256 tokenId)",
    "BatchMetadataUpdate(uint256 fromTokenId,uint256 toTokenId)",
    "Swap(address indexed sender,uint256 amount0In,uint256 amount1In,uint256 amount0Out,uint256 amount1Out,"
    "address indexed to)",
    "Swap(address indexed sender,address indexed recipient,int256 amount0,int256 amount1,uint160 sqrtPriceX96,"
    "uint128 liquidity,int24 tick)",
    "Sync(uint112 reserve0,uint112 reserve1)",
    "Mint(address indexed sender,uint256 amount0,uint256 amount1)",
    "Burn(address indexed sender,uint256 amount0,uint256 amount1,address indexed to)",
    "PairCreated(address indexed token0,address indexed token1,address pair,uint256 pairCount)",
    f"SendCrossChainMessage(bytes32 indexed messageID,bytes32 indexed destinationBlockchainID,{_MESSAGE},"
    "(address feeTokenAddress,uint256 amount) feeInfo)",
)
# Those of the language, and of most token contracts (ERC-6093).
ERRORS = (
    "Error(string message)",
    "Panic(uint256 code)",
    "ERC20InsufficientBalance(address sender,uint256 balance,uint256 needed)",
    "ERC20InvalidSender(address sender)",
    "ERC20InvalidReceiver(address receiver)",
    "ERC20InsufficientAllowance(address spender,uint256 allowance,uint256 needed)",
    "ERC20InvalidApprover(address approver)",
    "ERC20InvalidSpender(address spender)",
    "ERC721InvalidOwner(address owner)",
    "ERC721NonexistentToken(uint256 tokenId)",
    "ERC721IncorrectOwner(address sender,uint256 tokenId,address owner)",
    "ERC721InvalidSender(address sender)",
    "ERC721InvalidReceiver(address receiver)",
    "ERC721InsufficientApproval(address operator,uint256 tokenId)",
    "ERC721InvalidApprover(address approver)",
    "ERC721InvalidOperator(address operator)",
    "OwnableUnauthorizedAccount(address account)",
    "OwnableInvalidOwner(address owner)",
    "AccessControlUnauthorizedAccount(address account,bytes32 neededRole)",
    "SafeERC20FailedOperation(address token)",
)

# Functions that read, of many contracts. Each contract is asked: that it answers is not claimed.
READS = (
    "name() returns (string)",
    "symbol() returns (string)",
    "decimals() returns (uint8)",
    "totalSupply() returns (uint256)",
    "balanceOf(address owner) returns (uint256)",
    "allowance(address owner,address spender) returns (uint256)",
    "nonces(address owner) returns (uint256)",
    "balanceOf(address account,uint256 id) returns (uint256)",
    "ownerOf(uint256 tokenId) returns (address)",
    "tokenURI(uint256 tokenId) returns (string)",
    "uri(uint256 id) returns (string)",
    "getApproved(uint256 tokenId) returns (address)",
    "isApprovedForAll(address owner,address operator) returns (bool)",
    "supportsInterface(bytes4 interfaceId) returns (bool)",
    "owner() returns (address)",
    "paused() returns (bool)",
    "hasRole(bytes32 role,address account) returns (bool)",
    "implementation() returns (address)",
    "factory() returns (address)",
    "token0() returns (address)",
    "token1() returns (address)",
    "getReserves() returns (uint112 reserve0,uint112 reserve1,uint32 blockTimestampLast)",
    "asset() returns (address)",
    "totalAssets() returns (uint256)",
    "convertToAssets(uint256 shares) returns (uint256)",
)


def _read(text: str) -> Declaration:
    called, _, returned = text.partition(" returns ")
    outputs = declaration("function", f"returned{returned}").inputs
    return replace(declaration("function", called), outputs=outputs, is_view=True)


def _events() -> dict[bytes, tuple[Declaration, ...]]:
    found: dict[bytes, tuple[Declaration, ...]] = {}
    for one in (declaration("event", text) for text in EVENTS):
        found[one.topic] = (*found.get(one.topic, ()), one)
    return found


EVENTS_BY_TOPIC = _events()
READS_BY_SELECTOR = {one.topic[:4]: one for one in map(_read, READS)}
ERRORS_BY_SELECTOR = {one.topic[:4]: one for one in (declaration("error", text) for text in ERRORS)}
