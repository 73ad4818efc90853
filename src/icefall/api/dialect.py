"""The points where the deployed node and hosted service answer otherwise than `interface.md`.

`Dialect` is the table: each field is one difference, with its values in both dialects and what they do.
docs/dialects.md is generated from it, and tests/api/test_dialects.py tests every row in both.
"""

from typing import Annotated, Any, NamedTuple, get_args, get_type_hints

import msgspec

BATCH_MAX = 100


class DialectDifference(NamedTuple):
    """One difference. `case` says when the dialects differ, the texts what a caller gets in each."""

    case: str
    interface: Any
    interface_text: str
    live: Any
    live_text: str


# fmt: off
class Dialect(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    method_not_found: Annotated[int, DialectDifference(
        "unknown service or method, ill-formed method name",
        -32601, "code -32601",
        -32000, "code -32000")]
    bad_params: Annotated[int, DialectDifference(
        "invalid parameters",
        -32602, "code -32602",
        -32000, "code -32000")]
    invalid_request: Annotated[int, DialectDifference(
        "JSON that is not a request (a number, a field of a wrong type)",
        -32600, "code -32600",
        -32700, "code -32700")]
    batches: Annotated[bool, DialectDifference(
        "a batch (JSON array)",
        True, f"answered, 1 to {BATCH_MAX} calls; empty or larger: -32600",
        False, "refused with -32700")]
    null_id_answered: Annotated[bool, DialectDifference(
        "`id` is null",
        True, "answered with id null",
        False, "executed, 200 with an empty body")]
    no_request_answered: Annotated[bool, DialectDifference(
        "an object without `jsonrpc` 2.0, or without a method",
        True, "-32600, with id null where none was given",
        False, "200 with an empty body where no id was given, else -32600 for the first and -32000 for the second")]
    trailing_bytes_ignored: Annotated[bool, DialectDifference(
        "bytes after the first JSON value",
        False, "-32700",
        True, "ignored")]
    bad_utf8_ignored: Annotated[bool, DialectDifference(
        "bytes that are not UTF-8, in a string",
        False, "-32700",
        True, "read as U+FFFD; in `id` sent back")]
    plain_failures: Annotated[bool, DialectDifference(
        "403, 404, 405, 413, 415, 503 of the node listener",
        False, "`{message, statusCode, error}`",
        True, "the node's plain text")]
    has_links_page: Annotated[bool, DialectDifference(
        "`/` of the node listener",
        True, "a page of links",
        False, "404")]
    error_data: Annotated[bool, DialectDifference(
        "`data` of a JSON-RPC error",
        False, "absent",
        True, "null, or the request as it was understood")]
    set_level_result: Annotated[bool, DialectDifference(
        "result of admin.setLoggerLevel",
        False, "`{}`",
        True, "`{loggerLevels}` of the loggers that were changed")]
    no_aliases: Annotated[list[str] | None, DialectDifference(
        "admin.getChainAliases of an unknown ID",
        [], "`[]`",
        None, "null")]
    alias_names_chain: Annotated[bool, DialectDifference(
        "admin.getChainAliases of an alias of a chain",
        True, "all names of the chain, as for its ID",
        False, "an error: it takes the ID alone")]
    endpoint_must_exist: Annotated[bool, DialectDifference(
        "admin.alias of an endpoint that does not exist",
        True, "an error, and the alias stays free",
        False, "accepted, and the alias is taken")]
    admin_params_required: Annotated[bool, DialectDifference(
        "admin.alias, admin.aliasChain or admin.getChainAliases without one of their parameters",
        True, "-32602",
        False, "as with an empty text")]
    alias_of_endpoint: Annotated[bool, DialectDifference(
        "alias of a full endpoint (`health/liveness`)",
        True, "works",
        False, "accepted, then 404")]
    head_everywhere: Annotated[bool, DialectDifference(
        "HEAD of `/ext/health`",
        True, "as GET, without the body",
        False, "405")]
    shows_idle_times: Annotated[bool, DialectDifference(
        "`timeSinceLastMsgReceived` and `timeSinceLastMsgSent` of the network check, without an upstream",
        True, "present",
        False, "absent")]
    four_tx_states: Annotated[bool, DialectDifference(
        "avm.getTxStatus",
        True, "Accepted, Processing, Rejected (the last 64 whose refusal is final) or Unknown",
        False, "Accepted or Unknown")]
    remembers_all_refusals: Annotated[bool, DialectDifference(
        "avm.issueTx of a transaction that was refused for a missing input, a lock or a conflict",
        False, "verified again",
        True, "refused with the same text while it is among the last 64 refused")]
    shows_source_chain: Annotated[bool, DialectDifference(
        "`sourceChain` in the answer of avm.getUTXOs",
        True, "present when `sourceChain` was given",
        False, "absent")]
    range_is_array: Annotated[bool, DialectDifference(
        "result of index.getContainerRange",
        True, "an array",
        False, "`{containers}`")]
    empty_range: Annotated[bool, DialectDifference(
        "index.getContainerRange with numToFetch 0",
        True, "null",
        False, "error `numToFetch must be in [1,1024] but is 0`")]
    index_encoding_checked: Annotated[bool, DialectDifference(
        "index.getIndex and index.isAccepted with an unknown `encoding`",
        True, "-32602",
        False, "ignored")]
    block_by_container_id: Annotated[bool, DialectDifference(
        "avm.getBlock with the ID of a block's container",
        True, "the block",
        False, "not found")]
    alias_in_bytes: Annotated[bool, DialectDifference(
        "unit of the limit of 512 on an alias",
        False, "characters",
        True, "bytes")]
    prices_are_numbers: Annotated[bool, DialectDifference(
        "`value` of prices and of balance values",
        False, "a string",
        True, "a number")]
    index_status_is_upper: Annotated[bool, DialectDifference(
        "`indexStatus` of NFT metadata",
        False, "lower case (`indexed`)",
        True, "upper case (`INDEXED`)")]
    unknown_is_empty: Annotated[bool, DialectDifference(
        "unknown name, symbol or decimals of a token or contract: not read yet, or not returned by the contract",
        False, "absent",
        True, "`\"\"` and 0, with `namesRead` false until they were read; absent from senders and recipients, which "
              "need not be tokens")]
# fmt: on


# By the field of `Dialect`.
DIFFERENCES: dict[str, DialectDifference] = {
    field: get_args(annotation)[1]
    for field, annotation in get_type_hints(Dialect, include_extras=True).items()
    if get_args(annotation)
}
INTERFACE = Dialect(name="interface", **{field: row.interface for field, row in DIFFERENCES.items()})
LIVE = Dialect(name="live", **{field: row.live for field, row in DIFFERENCES.items()})
DIALECTS = {dialect.name: dialect for dialect in (INTERFACE, LIVE)}
