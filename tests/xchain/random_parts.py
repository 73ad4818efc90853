"""Random parts of valid transactions: owners, what a new asset begins with, what may be done with a token."""

import random
from collections.abc import Callable, Sequence
from typing import Any

from icefall.wire.avm.parts import pack_part
from icefall.wire.avm.types import (
    AnyCredential,
    Credential,
    FxOperation,
    MintOperation,
    MintOutput,
    NftCredential,
    NftMintOperation,
    NftMintOutput,
    NftTransferOperation,
    NftTransferOutput,
    Output,
    Owners,
    PropertyBurnOperation,
    PropertyCredential,
    PropertyMintOperation,
    PropertyMintOutput,
    PropertyOwnedOutput,
    TransferOutput,
)


class Parts:
    """Draws from `source`. Locks lie a little before or after `now_s`."""

    def __init__(self, source: random.Random, addresses: Sequence[bytes], now_s: int) -> None:
        self.random = source
        self.addresses = addresses
        self.now_s = now_s

    def amount(self, most: int) -> int:
        return self.random.randint(1, most)

    def owners(self) -> Owners:
        """Mostly one address; sometimes several, none, or locked."""
        draw = self.random.random()
        if draw < 0.05:
            return Owners(0, 0, ())
        locktime = self.now_s + self.random.choice((-1000, 0, 1, 1000)) if draw < 0.15 else 0
        size = self.random.choice((1, 1, 1, 1, 2, 3))
        addresses = tuple(sorted(self.random.sample(self.addresses, size)))
        return Owners(locktime, self.random.randint(1, size), addresses)

    def state_outputs(self, fx: int) -> tuple[Output, ...]:
        """What an asset may begin with under an fxIndex."""
        count = self.random.randint(0, 3)
        return tuple(sorted((self.random.choice(_STATES[fx])(self) for _ in range(count)), key=pack_part))

    def operation_on(self, output: Output, indices: tuple[int, ...]) -> FxOperation:
        """What may be done with an output that inputs cannot spend."""
        return _OPERATIONS[type(output)](self, output, indices)

    def mint(self, output: MintOutput, indices: tuple[int, ...]) -> FxOperation:
        return MintOperation(indices, output, TransferOutput(self.amount(10**9), self.owners()))

    def nft_mint(self, output: NftMintOutput, indices: tuple[int, ...]) -> FxOperation:
        owners = tuple(self.owners() for _ in range(self.random.randint(0, 3)))
        return NftMintOperation(indices, output.group_id, self.random.randbytes(self.random.choice((0, 32))), owners)

    def nft_transfer(self, output: NftTransferOutput, indices: tuple[int, ...]) -> FxOperation:
        return NftTransferOperation(indices, NftTransferOutput(output.group_id, output.payload, self.owners()))

    def property_mint(self, output: PropertyMintOutput, indices: tuple[int, ...]) -> FxOperation:
        return PropertyMintOperation(indices, output, PropertyOwnedOutput(self.owners()))

    def property_burn(self, _output: PropertyOwnedOutput, indices: tuple[int, ...]) -> FxOperation:
        return PropertyBurnOperation(indices)


_OPERATIONS: dict[type, Callable[[Parts, Any, tuple[int, ...]], FxOperation]] = {
    MintOutput: Parts.mint,
    NftMintOutput: Parts.nft_mint,
    NftTransferOutput: Parts.nft_transfer,
    PropertyMintOutput: Parts.property_mint,
    PropertyOwnedOutput: Parts.property_burn,
}
CREDENTIALS: dict[type, type[AnyCredential]] = {
    MintOperation: Credential,
    NftMintOperation: NftCredential,
    NftTransferOperation: NftCredential,
    PropertyMintOperation: PropertyCredential,
    PropertyBurnOperation: PropertyCredential,
}
_STATES: list[list[Callable[[Parts], Output]]] = [
    [lambda parts: TransferOutput(parts.amount(10**12), parts.owners()), lambda parts: MintOutput(parts.owners())],
    [
        lambda parts: NftMintOutput(parts.random.randrange(4), parts.owners()),
        lambda parts: NftTransferOutput(parts.random.randrange(4), b"first", parts.owners()),
    ],
    [lambda parts: PropertyMintOutput(parts.owners()), lambda parts: PropertyOwnedOutput(parts.owners())],
]
