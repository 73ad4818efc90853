"""The points where the deployed node and hosted service answer otherwise than `interface.md`, in one table.

`DIFFERENCES` is the documentation (docs/dialects.md is generated from it) and the list the tests walk; `Dialect` is
what the code reads.
"""

from typing import NamedTuple

import msgspec


class Dialect(msgspec.Struct, frozen=True):
    name: str
    method_not_found: int
    bad_params: int
    invalid_request: int  # a body that is JSON, but no request
    batches: bool
    null_id_answered: bool
    no_request_answered: bool  # without `jsonrpc` 2.0 or a method nothing is a notification
    trailing_bytes_ignored: bool
    bad_utf8_ignored: bool
    plain_failures: bool  # refusals of the node listener as the node's plain text, not as JSON
    error_data: bool  # `data` is always there, null or the request
    set_level_tells: bool
    no_aliases: list[str] | None
    alias_of_endpoint: bool
    head_everywhere: bool
    four_tx_states: bool
    tells_source_chain: bool
    range_is_array: bool
    empty_range: bool
    block_by_container_id: bool
    alias_in_bytes: bool
    prices_are_numbers: bool
    index_status_is_upper: bool


INTERFACE = Dialect(
    name="interface",
    method_not_found=-32601,
    bad_params=-32602,
    invalid_request=-32600,
    batches=True,
    null_id_answered=True,
    no_request_answered=True,
    trailing_bytes_ignored=False,
    bad_utf8_ignored=False,
    plain_failures=False,
    error_data=False,
    set_level_tells=False,
    no_aliases=[],
    alias_of_endpoint=True,
    head_everywhere=True,
    four_tx_states=True,
    tells_source_chain=True,
    range_is_array=True,
    empty_range=True,
    block_by_container_id=True,
    alias_in_bytes=False,
    prices_are_numbers=False,
    index_status_is_upper=False,
)
LIVE = Dialect(
    name="live",
    method_not_found=-32000,
    bad_params=-32000,
    invalid_request=-32700,
    batches=False,
    null_id_answered=False,
    no_request_answered=False,
    trailing_bytes_ignored=True,
    bad_utf8_ignored=True,
    plain_failures=True,
    error_data=True,
    set_level_tells=True,
    no_aliases=None,
    alias_of_endpoint=False,
    head_everywhere=False,
    four_tx_states=False,
    tells_source_chain=False,
    range_is_array=False,
    empty_range=False,
    block_by_container_id=False,
    alias_in_bytes=True,
    prices_are_numbers=True,
    index_status_is_upper=True,
)
DIALECTS = {dialect.name: dialect for dialect in (INTERFACE, LIVE)}
BATCH_MAX = 100


class DialectDifference(NamedTuple):
    field: str
    case: str
    interface: str
    live: str


DIFFERENCES = (
    DialectDifference("method_not_found", "unknown service or method, ill-formed method name", "code -32601", "code -32000"),
    DialectDifference("bad_params", "parameters that cannot be read", "code -32602", "code -32000"),
    DialectDifference("invalid_request", "JSON that is no request (a number, a field of a wrong type)", "code -32600",
               "code -32700"),
    DialectDifference("batches", "a batch (JSON array)", f"answered, 1 to {BATCH_MAX} calls; empty or larger: -32600",
               "refused with -32700"),
    DialectDifference("null_id_answered", "`id` is null", "answered with id null", "executed, 200 with an empty body"),
    DialectDifference("no_request_answered", "an object without `jsonrpc` 2.0, or without a method",
               "-32600, with id null where none was given", "200 with an empty body where no id was given, else -32600"
               " for the first and -32000 for the second"),
    DialectDifference("trailing_bytes_ignored", "bytes after the first JSON value", "-32700", "ignored"),
    DialectDifference("bad_utf8_ignored", "bytes that are not UTF-8, in a string", "-32700",
               "read as U+FFFD; in `id` sent back"),
    DialectDifference("plain_failures", "403, 404, 405, 413, 415, 503 of the node listener", "`{message, statusCode, error}`",
               "the node's plain text"),
    DialectDifference("error_data", "`data` of a JSON-RPC error", "absent", "null, or the request as it was understood"),
    DialectDifference("set_level_tells", "result of admin.setLoggerLevel", "`{}`", "`{loggerLevels}` of those touched"),
    DialectDifference("no_aliases", "admin.getChainAliases of an unknown ID", "`[]`", "null"),
    DialectDifference("alias_of_endpoint", "alias of a full endpoint (`health/liveness`)", "works", "accepted, then 404"),
    DialectDifference("head_everywhere", "HEAD of `/ext/health`", "as GET, without the body", "405"),
    DialectDifference("four_tx_states", "avm.getTxStatus", "Accepted, Processing, Rejected (the last 64 refused) or Unknown",
               "Accepted or Unknown"),
    DialectDifference("tells_source_chain", "`sourceChain` in the answer of avm.getUTXOs", "present when asked for", "absent"),
    DialectDifference("range_is_array", "result of index.getContainerRange", "an array", "`{containers}`"),
    DialectDifference("empty_range", "index.getContainerRange with numToFetch 0", "null",
               "error `numToFetch must be in [1,1024] but is 0`"),
    DialectDifference("block_by_container_id", "avm.getBlock with the ID of a block's container", "the block", "not found"),
    DialectDifference("alias_in_bytes", "what the 512 of an alias count", "characters", "bytes"),
    DialectDifference("prices_are_numbers", "`value` of prices and of what balances are worth", "a string", "a number"),
    DialectDifference("index_status_is_upper", "`indexStatus` of NFT metadata", "small letters (`indexed`)",
               "capitals (`INDEXED`)"),
)  # fmt: skip
