"""The atomic transactions of a C-Chain block, decoded in full: what they import or export, and who signed."""

from typing import NamedTuple

import msgspec

from icefall.wire.avm.parts import unpack_transferable_input, unpack_transferable_output
from icefall.wire.avm.types import TransferableInput, TransferableOutput
from icefall.wire.errors import WireError
from icefall.wire.evm import rlp
from icefall.wire.ids import hash256
from icefall.wire.packer import VERSION_BYTES, Layout, Unpacker, reader

_IMPORT, _EXPORT, _CREDENTIAL = 0, 1, 9
_HEAD = Layout("uint32", 32, 32)
_ACCOUNT = Layout(20, "uint64", 32)
_NONCE = Layout("uint64")


class AccountAmount(NamedTuple):
    """An amount that an account of the C-Chain gives or gets, in the asset's own unit."""

    address: bytes
    amount: int
    asset_id: bytes


class CoreTx(msgspec.Struct, frozen=True, gc=False):
    """An atomic transaction. An import has `inputs` and gives to `accounts`; an export takes from `accounts` and has
    `outputs`. `peer_chain` is the chain at the other end; `signatures` are those of each input or account."""

    txid: bytes
    is_import: bool
    peer_chain: bytes
    inputs: tuple[TransferableInput, ...]
    accounts: tuple[AccountAmount, ...]
    outputs: tuple[TransferableOutput, ...]
    signatures: tuple[tuple[bytes, ...], ...]
    raw: bytes
    unsigned_size: int

    @property
    def digest(self) -> bytes:
        """The hash that the signatures sign."""
        return hash256(self.raw[: self.unsigned_size])


def core_txs_of(block_raw: bytes) -> list[CoreTx]:
    """Return the atomic transactions of a block without its proposer's wrapping: a list, or in old blocks a single
    one."""
    raw = rlp.string(rlp.slices(block_raw)[4])
    if not raw:
        return []
    try:
        source = reader(raw)
        found = [_unpack(source) for _ in range(source.count())]
        source.finish()
    except WireError as error:
        try:
            return [unpack_core_tx(raw)]
        except WireError:
            raise error from None  # most likely a damaged list, so that error is the useful one
    return found


def unpack_core_tx(raw: bytes) -> CoreTx:
    """A transaction with the version before it, as it is stored."""
    source = reader(raw)
    found = _unpack(source)
    source.finish()
    return found


def _unpack(source: Unpacker) -> CoreTx:
    start = source.offset
    type_id = source.type_id()
    if type_id not in (_IMPORT, _EXPORT):
        raise WireError(f"C-Chain: unknown atomic transaction type {type_id}")
    is_import = type_id == _IMPORT
    _, _, peer = source.take(_HEAD)
    inputs: tuple[TransferableInput, ...] = ()
    accounts: list[AccountAmount] = []
    outputs: tuple[TransferableOutput, ...] = ()
    if is_import:
        inputs = tuple([unpack_transferable_input(source) for _ in range(source.count())])
        accounts = [AccountAmount(*source.take(_ACCOUNT)) for _ in range(source.count())]
    else:
        for _ in range(source.count()):
            accounts.append(AccountAmount(*source.take(_ACCOUNT)))
            source.take(_NONCE)
        outputs = tuple([unpack_transferable_output(source) for _ in range(source.count())])
    unsigned_size = source.offset - start + len(VERSION_BYTES)
    signatures = tuple([_signatures(source) for _ in range(source.count())])
    raw = VERSION_BYTES + source.raw[start : source.offset]
    return CoreTx(hash256(raw), is_import, peer, inputs, tuple(accounts), outputs, signatures, raw, unsigned_size)


def _signatures(source: Unpacker) -> tuple[bytes, ...]:
    type_id = source.type_id()
    if type_id != _CREDENTIAL:
        raise WireError(f"C-Chain: type {type_id} where a credential belongs")
    return tuple(source.arrays(source.count(), 65))
