"""The lists that are read in another form on each engine. `directory.py` chooses one form when a store is opened."""

from collections.abc import Sequence
from typing import Protocol

from icefall.evm.enriching.reader import AnswerTokens, TokenDetails
from icefall.evm.reading.model import PageRange, TransferRead, TxRead


class AddressLists(Protocol):
    """Lists of one address, newest first, and the details of tokens that their rows name."""

    async def txs_of(self, address: bytes, span: PageRange, limit: int) -> list[TxRead]:
        """Read transactions whose sender, recipient or created contract is the address."""
        ...

    async def touched_txs(
        self, address: bytes, span: PageRange, limit: int, *, ascending: bool = False
    ) -> list[TxRead]:
        """Read also those that the address is part of only by a transfer or an internal transaction."""
        ...

    async def transfers_of(self, standard: int, address: bytes, span: PageRange, limit: int) -> list[TransferRead]:
        """Read transfers of one standard that an address sent or received. A cursor inside a batch continues it."""
        ...

    async def erc20_with_tokens(
        self, address: bytes, span: PageRange, limit: int, currency: str
    ) -> tuple[list[TransferRead], AnswerTokens | None]:
        """Read ERC-20 transfers of an address, with the details of their tokens and parties where one statement finds
        both."""
        ...

    async def transfers_of_page(
        self, address: bytes, txs: Sequence[TxRead], last: TransferRead | None, limit: int
    ) -> list[TransferRead]:
        """Read transfers of the address in the transactions from the first to the last of `txs`, in log order behind
        `last`. Transfers between them that belong to none of `txs` may be among them."""
        ...

    async def token_details(self, tokens: list[int], currency: str) -> dict[int, TokenDetails]:
        """Read names and current prices by the ID of the token; IDs that are not tokens are left out."""
        ...
