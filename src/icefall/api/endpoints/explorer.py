"""The rows of the chain data interface that the hosted service does not have: what explorers need."""

from icefall.api import examples
from icefall.api.endpoints.row import DATA, Rest, Weight
from icefall.api.handlers import blocks, history, holders, indexing, raw, search, stream, tokens
from icefall.api.schema import explorer as e
from icefall.api.schema import holders as h
from icefall.api.schema import raw as r
from icefall.api.schema.blocks import BlockByTimeParams, EvmBlock
from icefall.api.schema.stream import StreamParams
from icefall.api.schema.transactions import TransactionParams

CHAIN = "/v1/chains/{chainId}"
ADDRESS = f"{CHAIN}/addresses/{{address}}"
TRANSACTION = f"{CHAIN}/transactions/{{txHash}}"
TOKEN = f"{CHAIN}/tokens/{{address}}"

# fmt: off
EXPLORER_ENDPOINTS: tuple[Rest, ...] = (
    Rest(verb="GET", path="/v1/search", params=e.SearchParams, result=e.SearchResult, handler=search.search,
         listeners=(DATA,), weight=Weight.MEDIUM, operation="search", ours=True,
         summary="Blocks, transactions, addresses and tokens of all chains: by number, hash, address, name or symbol."),
    Rest(verb="GET", path="/v1/stream", params=StreamParams, result=str, handler=stream.stream, listeners=(DATA,),
         weight=Weight.LARGE, media="text/event-stream", headers=(("cache-control", "no-store"),), is_stream=True,
         operation="stream", ours=True,
         summary="New blocks, transactions and transfers as they are indexed, as Server-Sent Events."),
    Rest(verb="GET", path=f"{CHAIN}/blocks:getByTime", params=BlockByTimeParams, result=EvmBlock,
         handler=blocks.block_by_time, listeners=(DATA,), weight=Weight.SMALL, operation="getBlockByTime", ours=True,
         summary="The newest block at or before a time, or the oldest at or after it."),
    Rest(verb="GET", path=f"{CHAIN}/tokens", params=e.TokensParams, result=e.TokenPage, handler=tokens.list_tokens,
         listeners=(DATA,), weight=Weight.MEDIUM, operation="listChainTokens", ours=True,
         summary="Token contracts of a chain, newest first, all or those of one standard."),
    Rest(verb="GET", path=f"{TOKEN}/holders", params=h.HoldersParams, result=h.HolderPage,
         handler=holders.token_holders, listeners=(DATA,), weight=Weight.MEDIUM, operation="listTokenHolders",
         examples=examples.TOKEN, ours=True, summary="Holders of a token with their balances, largest first."),
    Rest(verb="GET", path=f"{TOKEN}/prices", params=e.PricesParams, result=e.PricePage, handler=tokens.list_prices,
         listeners=(DATA,), weight=Weight.MEDIUM, operation="listTokenPrices", ours=True,
         summary="Price of a token now and by day of UTC, newest first; `native` is the chain's own token."),
    Rest(verb="GET", path=f"{ADDRESS}/balances:listHistory", params=e.BalanceHistoryParams,
         result=e.BalanceHistoryPage, handler=history.balance_history, listeners=(DATA,), weight=Weight.MEDIUM,
         operation="listBalanceHistory", ours=True,
         summary="Balance of an address over time, newest first: at every change, or at the end of every period."),
    Rest(verb="GET", path=f"{TRANSACTION}/logs", params=r.TxLogsParams, result=r.LogPage,
         handler=raw.transaction_logs, listeners=(DATA,), weight=Weight.MEDIUM, operation="listTransactionLogs",
         examples=examples.TRANSFERS, ours=True, summary="Event logs of a transaction, in their order."),
    Rest(verb="GET", path=f"{ADDRESS}/logs", params=r.AddressLogsParams, result=r.LogPage, handler=raw.address_logs,
         listeners=(DATA,), weight=Weight.LARGE, operation="listAddressLogs", examples=examples.TOKEN, ours=True,
         summary="Event logs that a contract emitted, newest first, all or those with given topics."),
    Rest(verb="GET", path=f"{TRANSACTION}/calls", params=r.CallsParams, result=r.CallPage, handler=raw.list_calls,
         listeners=(DATA,), weight=Weight.LARGE, operation="listTransactionCalls", ours=True,
         summary="All calls of a transaction, as a flat list of its call tree, with those that reverted."),
    Rest(verb="GET", path=f"{TRANSACTION}/revertReason", params=TransactionParams, result=r.RevertReason,
         handler=raw.revert_reason, listeners=(DATA,), weight=Weight.MEDIUM, operation="getRevertReason", ours=True,
         summary="Why a transaction reverted: what its contract returned, and as text if it is a common error."),
    Rest(verb="GET", path=f"{CHAIN}/indexing", params=e.IndexingParams, result=e.IndexingResult,
         handler=indexing.indexing, listeners=(DATA,), weight=Weight.FREE, operation="getIndexing", ours=True,
         summary="How far a chain is indexed, how fast, and the state of its upstreams."),
)
# fmt: on
