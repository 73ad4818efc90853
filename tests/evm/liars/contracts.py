"""Token contracts that store balances and owners in different ways, and change as their call data says.

Every one has the same way to change: `run` writes the slots and emits the transfers that its call data lists. So a test
decides by itself whether a log tells the truth. What differs is how a value is read.
"""

from collections.abc import Sequence
from typing import NamedTuple

from tests.evm.liars.assembler import assembled

from icefall.evm.layouts.formulas import namespace
from icefall.wire.evm.rlp import keccak256

RUN = bytes.fromhex("00c0ffee")
TRANSFER = keccak256(b"Transfer(address,address,uint256)")
TRANSFER_SINGLE = keccak256(b"TransferSingle(address,address,address,uint256,uint256)")
IMPLEMENTATION_SLOT = int.from_bytes(keccak256(b"eip1967.proxy.implementation"), "big") - 1
NAME_SLOT = int.from_bytes(keccak256(b"the key and the base of a mapping"), "big")  # of a struct, a word each
DECIMALS_SLOT = NAME_SLOT + 1
_OZ20, _OZ721, _OZ1155 = (
    "0x" + namespace(f"openzeppelin.storage.{name}").hex() for name in ("ERC20", "ERC721", "ERC1155")
)


def _solidity(base: str | int, argument: int = 4) -> str:
    """Leaves the slot of a key, which is the argument at that place of the call data."""
    return f"{argument} CALLDATALOAD 0 MSTORE {base} 32 MSTORE 64 0 KECCAK256"


def _vyper(base: int) -> str:
    return f"{base} 0 MSTORE 4 CALLDATALOAD 32 MSTORE 64 0 KECCAK256"


def _nested(base: str | int, outer: int, inner: int) -> str:
    """The outer key is the argument at `outer`; the inner mapping's base is the hash of the first."""
    return f"{_solidity(base, outer)} 32 MSTORE {inner} CALLDATALOAD 0 MSTORE 64 0 KECCAK256"


_RETURN = "0 MSTORE 32 0 RETURN"
_HALF = "0xffffffffffffffffffffffffffffffff"
_ADDRESS = "0xffffffffffffffffffffffffffffffffffffffff"

# The code of balanceOf, ownerOf or balanceOf with an ID.
READS: dict[str, str] = {
    "openzeppelin 4": f"{_solidity(0)} SLOAD {_RETURN}",
    "openzeppelin 5": f"{_solidity(_OZ20)} SLOAD {_RETURN}",
    "solmate": f"{_solidity(3)} SLOAD {_RETURN}",
    "weth9": f"{_solidity(3)} SLOAD {_RETURN}",
    "vyper": f"{_vyper(7)} SLOAD {_RETURN}",
    "solady": f"4 CALLDATALOAD 96 SHL 0x87a211a2 OR 0 MSTORE 32 0 KECCAK256 SLOAD {_RETURN}",
    "struct": f"{_solidity(2)} 1 ADD SLOAD {_RETURN}",
    "packed": f"{_solidity(1)} SLOAD {_HALF} AND {_RETURN}",
    "packed high": f"{_solidity(1)} SLOAD 128 SHR {_RETURN}",
    "flagged": f"{_solidity(9)} SLOAD 1 255 SHL NOT AND {_RETURN}",
    # refused
    "rebased by index": f"{_solidity(0)} SLOAD 5 SLOAD MUL {_RETURN}",
    "grows with time": f"{_solidity(0)} SLOAD 0x1000000 TIMESTAMP DIV ADD {_RETURN}",
    "grows with blocks": f"{_solidity(0)} SLOAD 0x100000 NUMBER DIV ADD {_RETURN}",
    "native balance": f"{_solidity(0)} SLOAD SELFBALANCE ADD {_RETURN}",
    "unknown base": f"{_solidity(1000)} SLOAD {_RETURN}",
    "external": "0 0 MSTORE 0x70a08231 224 SHL 0 MSTORE 4 CALLDATALOAD 4 MSTORE 32 64 36 0 5 SLOAD GAS STATICCALL POP"
    " 64 MLOAD 0 MSTORE 32 0 RETURN",
    "checkpoints": f"{_solidity(4)} DUP1 SLOAD SWAP1 0 MSTORE 32 0 KECCAK256 ADD SLOAD {_RETURN}",
    "scaled": f"{_solidity(0)} SLOAD 3 SWAP1 DIV {_RETURN}",
    "default balance": f"{_solidity(0)} SLOAD DUP1 @held JUMPI POP 7 held: {_RETURN}",
    # owners
    "erc721": f"{_solidity(2)} SLOAD {_ADDRESS} AND {_RETURN}",
    "erc721 namespaced": f"{_solidity(_OZ721[:-1] + '2')} SLOAD {_ADDRESS} AND {_RETURN}",
    "erc721 reverts": f"{_solidity(2)} SLOAD DUP1 @owned JUMPI 0 0 REVERT owned: {_ADDRESS} AND {_RETURN}",
    "erc721 default owner": f"{_solidity(2)} SLOAD DUP1 @owned JUMPI POP 0xdead owned: {_ADDRESS} AND {_RETURN}",
    "erc721a": f"4 CALLDATALOAD next: DUP1 0 MSTORE 4 32 MSTORE 64 0 KECCAK256 SLOAD DUP1 @found JUMPI POP"
    f" DUP1 ISZERO @none JUMPI 1 SWAP1 SUB @next JUMP found: {_ADDRESS} AND {_RETURN} none: 0 0 REVERT",
    # amounts of IDs
    "erc1155": f"{_nested(0, outer=36, inner=4)} SLOAD {_RETURN}",
    "erc1155 by holder": f"{_nested(6, outer=4, inner=36)} SLOAD {_RETURN}",
    "erc1155 namespaced": f"{_nested(_OZ1155, outer=36, inner=4)} SLOAD {_RETURN}",
}


class Move(NamedTuple):
    """A transfer that a contract logs."""

    sender: bytes
    to: bytes
    number: int  # the amount, or the token ID
    amount: int | None = None  # of the token ID (ERC-1155)


def token_code(read: str) -> bytes:
    """The code of a token. `read`: a name in READS, or instructions."""
    body = READS.get(read, read)
    return assembled(
        f"""
        0 CALLDATALOAD 224 SHR
        DUP1 0x{RUN.hex()} EQ @run JUMPI
        DUP1 0x313ce567 EQ @decimals JUMPI
        DUP1 0x06fdde03 EQ @name JUMPI
        DUP1 0x95d89b41 EQ @name JUMPI
        DUP1 0x01ffc9a7 EQ @interface JUMPI
        POP {body}
        decimals: {DECIMALS_SLOT} SLOAD 0 MSTORE 32 0 RETURN
        name: 32 0 MSTORE 4 32 MSTORE {NAME_SLOT} SLOAD 64 MSTORE 96 0 RETURN
        interface: 0 0 MSTORE 32 0 RETURN
        run: POP
        4 CALLDATALOAD 36               # slots left, place of the next one
        slot: DUP2 ISZERO @slots_done JUMPI
        DUP1 32 ADD CALLDATALOAD DUP2 CALLDATALOAD SSTORE
        64 ADD SWAP1 1 SWAP1 SUB SWAP1 @slot JUMP
        slots_done: SWAP1 POP           # place of the next log: its kind (0, 1, an amount of an ID and 1), three words
        log: DUP1 CALLDATASIZE EQ @end JUMPI
        DUP1 96 ADD CALLDATALOAD        # amount, or ID
        DUP2 CALLDATALOAD DUP1 1 EQ @nft JUMPI
        DUP1 @amount JUMPI
        POP 0 MSTORE DUP1 64 ADD CALLDATALOAD DUP2 32 ADD CALLDATALOAD 0x{TRANSFER.hex()} 32 0 LOG3
        128 ADD @log JUMP
        amount: 1 SWAP1 SUB 32 MSTORE 0 MSTORE
        DUP1 64 ADD CALLDATALOAD DUP2 32 ADD CALLDATALOAD DUP1 0x{TRANSFER_SINGLE.hex()} 64 0 LOG4
        128 ADD @log JUMP
        nft: POP DUP2 64 ADD CALLDATALOAD DUP3 32 ADD CALLDATALOAD 0x{TRANSFER.hex()} 0 0 LOG4
        128 ADD @log JUMP
        end: STOP
        """
    )


def run_data(slots: dict[bytes, int], moves: Sequence[Move] = (), *, nft: bool = False) -> bytes:
    """The call data that makes a token write slots and log transfers."""
    raw = RUN + len(slots).to_bytes(32, "big")
    raw += b"".join(slot + value.to_bytes(32, "big") for slot, value in slots.items())
    for sender, to, number, amount in moves:
        kind = int(nft) if amount is None else amount + 1
        raw += kind.to_bytes(32, "big") + sender.rjust(32, b"\0") + to.rjust(32, b"\0") + number.to_bytes(32, "big")
    return raw


def proxy_code() -> bytes:
    """A proxy (EIP-1967): its code is at the address in its slot. Whoever sends 33 bytes sets it."""
    return assembled(
        f"""
        CALLDATASIZE 33 EQ @upgrade JUMPI
        CALLDATASIZE 0 0 CALLDATACOPY
        0 0 CALLDATASIZE 0 0x{IMPLEMENTATION_SLOT:064x} SLOAD GAS DELEGATECALL
        RETURNDATASIZE 0 0 RETURNDATACOPY
        @returned JUMPI RETURNDATASIZE 0 REVERT
        returned: RETURNDATASIZE 0 RETURN
        upgrade: 1 CALLDATALOAD 0x{IMPLEMENTATION_SLOT:064x} SSTORE STOP
        """
    )


ASKED_SIZE = 128  # bytes of a question to the asking contract: a contract, and its call data of up to 96 bytes


def asking_code() -> bytes:
    """A contract that makes many calls in one: its call data is a list of questions, its answer a word for each, zero
    where a call reverts."""
    return assembled(
        """
        0
        next: DUP1 CALLDATASIZE EQ @end JUMPI
        96 DUP2 32 ADD 0 CALLDATACOPY
        32 DUP2 2 SHR 128 ADD 68 0 DUP5 CALLDATALOAD GAS STATICCALL POP
        128 ADD @next JUMP
        end: 2 SHR 128 RETURN
        """
    )


def calling_code() -> bytes:
    """A contract that makes many calls in one transaction: its call data is a list of contracts, sizes and call data.
    It fails if one of them does."""
    return assembled(
        """
        0
        next: DUP1 CALLDATASIZE EQ @end JUMPI
        DUP1 32 ADD CALLDATALOAD
        DUP1 DUP3 64 ADD 0 CALLDATACOPY
        0 0 DUP3 0 0 DUP7 CALLDATALOAD GAS CALL
        ISZERO @failed JUMPI
        ADD 64 ADD @next JUMP
        failed: 0 0 REVERT
        end: STOP
        """
    )


def calling_data(calls: Sequence[tuple[bytes, bytes]]) -> bytes:
    return b"".join(to.rjust(32, b"\0") + len(data).to_bytes(32, "big") + data for to, data in calls)


def clone_code(target: bytes) -> bytes:
    """A minimal clone (EIP-1167)."""
    return bytes.fromhex("363d3d373d3d3d363d73") + target + bytes.fromhex("5af43d82803e903d91602b57fd5bf3")
