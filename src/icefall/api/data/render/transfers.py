"""Transfers and internal transactions as JSON, as items of a list or nested in their transaction."""

from msgspec import Raw

from icefall.api.data.render.context import AnswerContext
from icefall.api.data.render.text import RawJson, json_text, quoted
from icefall.api.data.render.tokens import erc20_token, erc721_token, erc1155_token, party
from icefall.evm.encoding import INDEX_BITS
from icefall.evm.model import ERC20, ERC721
from icefall.evm.reading.model import InternalRead, TransferRead, TxLocation


def transfer(context: AnswerContext, row: TransferRead) -> RawJson:
    """Render an Erc20Transfer, Erc721Transfer or Erc1155Transfer."""
    return Raw(f"{{{_location(row.location)},{_transfer_fields(context, row)}}}")


def nested_transfer(context: AnswerContext, row: TransferRead) -> str:
    """Render a transfer without its transaction, as JSON: Erc20TransferDetails and so on."""
    return f"{{{_transfer_fields(context, row)}}}"


def internal(context: AnswerContext, row: InternalRead) -> RawJson:
    """Render an InternalTransaction."""
    return Raw(f"{{{_location(row.location)},{_internal_fields(context, row)}}}")


def nested_internal(context: AnswerContext, row: InternalRead) -> str:
    """Render InternalTransactionDetails as JSON."""
    return f"{{{_internal_fields(context, row)}}}"


# -- the fields of both forms, in the order of the schema -------------------------------------------------------------


def block_fields(at: TxLocation) -> str:
    return f'"blockNumber":"{at.block_number}","blockTimestamp":{at.time},"blockHash":"0x{at.block_hash.hex()}"'


def _location(at: TxLocation) -> str:
    return f'{block_fields(at)},"txHash":"0x{at.tx_hash.hex()}"'


def _transfer_fields(context: AnswerContext, row: TransferRead) -> str:
    known, sender, to = context.parties, row.sender, row.to
    parties = (
        f'"from":{known.get((sender, row.sender_ref)) or party(context, sender, row.sender_ref)},'
        f'"to":{known.get((to, row.to_ref)) or party(context, to, row.to_ref)},"logIndex":{row.log_at & INDEX_BITS}'
    )
    if row.standard == ERC20:
        token = context.erc20_tokens.get((row.token, row.token_ref)) or erc20_token(context, row.token, row.token_ref)
        return f'{parties},"value":"{row.value}","erc20Token":{token}'
    if row.standard == ERC721:
        nft = json_text(erc721_token(context, row.token, row.token_ref, row.token_id))
        return f'{parties},"erc721Token":{nft}'
    token = json_text(erc1155_token(context, row.token, row.token_ref, row.token_id))
    return f'{parties},"value":"{row.value}","erc1155Token":{token}'


def _internal_fields(context: AnswerContext, row: InternalRead) -> str:
    return (
        f'"from":{party(context, row.sender, row.sender_ref)},"to":{party(context, row.to, row.to_ref)},'
        f'"internalTxType":{quoted(row.kind)},"value":"{row.value}",'
        f'"isReverted":{"true" if row.is_reverted else "false"},'
        f'"gasUsed":"{row.gas_used}","gasLimit":"{row.gas_limit}"'
    )
