"""The OpenAPI 3.1 document of a listener, made from its rows of the endpoint table, and the tags that group them."""

import re
from typing import Any, NamedTuple, get_args

import msgspec

from icefall.api.describing.examples import example_call
from icefall.api.describing.glossary import field_text
from icefall.api.describing.param_glossary import param_text
from icefall.api.http.rest_params import RestBinder, RestParam
from icefall.api.http.row import DATA, METRICS, NODE, Rest, Rpc, always_200, binder_of
from icefall.api.http.rpc_params import NodeBinder

_TITLES = {NODE: "Icefall: node interfaces", DATA: "Icefall: chain data", METRICS: "Icefall: metrics"}
CREATED = 201
_ABOUT = {
    NODE: "The node-local JSON-RPC interfaces. Every call is a POST with content type application/json.",
    DATA: "Blocks, transactions, transfers and balances of the indexed EVM chains.",
    METRICS: "Time series of the indexed EVM chains.",
}
_REF = "#/components/schemas/{name}"


class Tag(NamedTuple):
    """A group of endpoints in the document: those whose path matches, and no earlier tag."""

    name: str
    pattern: str
    summary: str


SERVICE = Tag("Service", r".*", "This service itself: health, its description, counters.")
TAGS: dict[str, tuple[Tag, ...]] = {
    NODE: (
        Tag("Health", r"/ext/health.*", "Whether the node works."),
        Tag("Admin", r"/ext/admin", "Administration; only with `--api-admin-enabled=true`."),
        Tag("Info", r"/ext/info", "The node and its network."),
        Tag("X-Chain", r"/ext/bc/X", "Assets, balances, blocks and transactions of the asset chain."),
        Tag("P-Chain", r"/ext/bc/P", "Validators, subnets, L1s, blocks and balances of the platform chain."),
        Tag("Index", r"/ext/index/.*", "Accepted containers of X, P and C, in order of acceptance."),
        SERVICE,
    ),
    DATA: (
        Tag("Webhooks", r"/v1/webhooks.*", "Messages to a URL of yours about the activity of addresses."),
        Tag("Search", r"/v1/search|/v1/stream", "Finding things on all chains, and following them live."),
        Tag("Chains", r"/v1/chains(/\{chainId\}|/address/.*)?|/v1/address/.*|.*/indexing", "The indexed chains."),
        Tag("Blocks", r".*/blocks(:\w+|/\{blockId\}(/transactions)?)?|.*/allBlocks", "Blocks of one or all chains."),
        Tag("Balances", r".*/balances:\w+", "What an address holds, now or at an earlier block."),
        Tag("NFTs", r".*/nfts/.*", "Single NFTs with their metadata."),
        Tag("Tokens", r".*/tokens(/.*)?", "Tokens, their transfers, holders and prices."),
        Tag("Contracts", r".*/contracts/.*|.*/addresses/\{address\}(/logs)?", "Contracts, deployments and logs."),
        Tag("Transactions", r".*/(transactions|allTransactions).*", "Transactions, transfers and internal calls."),
        SERVICE,
    ),
    METRICS: (
        Tag("Series by day", r"/v1/\w+/\{chainId\}", "One series per path, by day of UTC."),
        Tag("Series", r"/v1/metrics|.*[mM]etrics/\{metric\}", "Series by hour, day, week or month; windows."),
        Tag("Chains", r"/v2/chains(/\{chainId\})?", "The chains that have metrics."),
        Tag("Holders", r".*/contracts/.*", "Holders of tokens."),
        SERVICE,
    ),
}


def tag_of(listener: str, row: Rest | Rpc) -> str:
    return next(tag.name for tag in TAGS[listener] if re.fullmatch(tag.pattern, row.path))


def document(listener: str, rows: list[Rest | Rpc], version: str, server: str = "") -> dict[str, Any]:
    """Make the document. `server` is the base address of the listener."""
    rows = [row for row in rows if isinstance(row, Rpc) or not row.is_file]
    bodies = [row.body for row in rows if isinstance(row, Rest) and row.body is not None]
    results = list(dict.fromkeys([*(part for row in rows for part in _parts(row.result)), *bodies]))
    schemas, components = msgspec.json.schema_components(results, ref_template=_REF)
    shapes: dict[Any, Any] = dict(zip(results, schemas, strict=True))
    shapes |= {
        row.result: {"anyOf": [shapes[part] for part in _parts(row.result)]} for row in rows if get_args(row.result)
    }
    components["Error"] = _error_schema(listener)
    _describe(components)
    paths: dict[str, Any] = {}
    for row in rows:
        if isinstance(row, Rest):
            verb = "get" if row.verb == "*" else row.verb.lower()
            paths.setdefault(row.path, {})[verb] = _rest(row, listener, shapes)
    for path in dict.fromkeys(row.path for row in rows if isinstance(row, Rpc)):
        methods = [row for row in rows if isinstance(row, Rpc) and row.path == path]
        paths.setdefault(path, {})["post"] = _rpc(path, methods, shapes, tag_of(listener, methods[0]))
    keys = {"securitySchemes": _KEYS} if listener == DATA else {}
    offered: list[dict[str, Any]] = [{}, *({name: []} for name in _KEYS)]  # {}: without a key
    return {
        "openapi": "3.1.0",
        "info": {
            "title": _TITLES[listener],
            "version": version,
            "description": _ABOUT[listener],
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        **({"servers": [{"url": server, "description": "This listener."}]} if server else {}),
        "tags": [{"name": tag.name, "description": tag.summary} for tag in TAGS[listener]],
        "paths": paths,
        "components": {"schemas": components, **({} if listener == NODE else {"headers": _LIMIT_HEADERS}), **keys},
        **({"security": offered} if listener == DATA else {}),
    }


def _parts(result: Any) -> list[Any]:
    """The structs a result may be: one, or those of a union where the dialects differ."""
    return list(get_args(result)) or ([] if result in (str, dict) else [result])


def _error_schema(listener: str) -> dict[str, Any]:
    text: dict[str, Any] = {"type": "string"}
    message = {"type": "array", "items": text} if listener == METRICS else text
    return {
        "type": "object",
        "required": ["message", "statusCode", "error"],
        "properties": {"message": message, "statusCode": {"type": "integer"}, "error": text},
    }


def _failure(summary: str) -> dict[str, Any]:
    return {"description": summary, "content": {"application/json": {"schema": {"$ref": _REF.format(name="Error")}}}}


def _unhealthy(shape: Any, failure: dict[str, Any] | None, media: str) -> dict[str, Any]:
    """The 503 of a health check: its usual body, or the error that other rows of the listener answer with."""
    if failure is None:
        return {"description": "Unhealthy; the same body.", "content": {media: {"schema": shape}}}
    schema = {"anyOf": [shape, failure["content"]["application/json"]["schema"]]}
    return {
        "description": f"Unhealthy; the same body. {failure['description']}",
        "content": {media: {"schema": schema}},
    }


def _rest(row: Rest, listener: str, shapes: dict[type, Any]) -> dict[str, Any]:
    media = row.media.partition(";")[0]
    shape = shapes.get(row.result, {"type": "string"} if row.result is str else {"type": "object"})
    good: dict[str, Any] = {"description": row.summary, "content": {media: {"schema": shape}}}
    if row.success == CREATED and row.result is str:  # nothing is sent
        good.pop("content")
    wrong_verb = _failure(f"Method other than {row.verb.replace('*', 'GET')}.")
    responses = {str(row.success): good, "403": _failure("Host not allowed."), "405": wrong_verb}
    if listener != NODE:
        limits = {name: {"$ref": f"#/components/headers/{name}"} for name in tuple(_LIMIT_HEADERS)[:3]}
        responses[str(row.success)] = {**good, "headers": limits}
        responses |= {status: _failure(summary) for status, summary in _REST_FAILURES.items()}
        if row.never_limited:
            del responses["429"]
        else:
            responses["429"]["headers"] = {name: {"$ref": f"#/components/headers/{name}"} for name in _LIMIT_HEADERS}
    if row.body is not None:
        responses |= {"413": _failure("Body over 1 MiB."), "415": _failure("Content type other than application/json.")}
    if row.status is not always_200 and row.success != CREATED:
        responses["503"] = _unhealthy(shape, responses.get("503"), media)
    notes = [f"Deprecated: {row.deprecated}."] if row.deprecated else []
    notes += ["Not in the hosted service."] if row.ours else []
    return {
        "tags": [tag_of(listener, row)],
        "summary": row.summary,
        **({"description": " ".join(notes)} if notes else {}),
        "operationId": operation_id(row),
        "parameters": _parameters(row),
        **({"requestBody": _request_body(row, shapes)} if row.body is not None else {}),
        "responses": responses,
        **({"deprecated": True} if row.deprecated else {}),
    }


def _request_body(row: Rest, shapes: dict[type, Any]) -> dict[str, Any]:
    assert row.body is not None
    content = {"schema": shapes[row.body], **({"example": dict(row.body_example)} if row.body_example else {})}
    return {"required": True, "content": {"application/json": content}}


def operation_id(row: Rest) -> str:
    return row.operation or re.sub(r"[^A-Za-z0-9]+", "_", row.label)


def _describe(components: dict[str, Any]) -> None:
    """Add to each field of a schema what it means."""
    for struct, schema in components.items():
        for name, field in schema.get("properties", {}).items():
            if text := field_text(struct, name):
                field["description"] = text


def _parameters(row: Rest) -> list[dict[str, Any]]:
    binder = binder_of(row)
    if isinstance(binder, RestBinder):
        return [
            _parameter(row, param) for param in binder.all if param.type.schema
        ]  # parameters without a schema are not offered
    return [
        {
            "name": name,
            "in": "query",
            "required": False,
            "description": param_text(operation_id(row), name),
            "schema": param_type.schema,
            "explode": True,
        }
        for name, param_type in binder.types.items()
    ]


def _parameter(row: Rest, param: RestParam) -> dict[str, Any]:
    schema, default = param.type.schema, _plain(param.rendered_default)
    if default is not None:
        schema = {**schema, "default": default}
    described: dict[str, Any] = {
        "name": param.name,
        "in": "path" if param.in_path else "query",
        "required": param.required,
        "description": param_text(operation_id(row), param.name),
        "schema": schema,
    }
    if param.required or param.name in row.examples:  # the page fills in examples: not what narrows a query
        described["example"] = _example(row, param)
    return described


def _plain(default: Any) -> Any:
    return ",".join(default) if isinstance(default, tuple) else default


def _example(row: Rest, param: RestParam) -> Any:
    """The example as a value of the schema's type."""
    text, json_type = row.examples.get(param.name, param.type.example), param.type.schema["type"]
    if json_type == "array":
        return text.split(",")
    return int(text) if json_type == "integer" else text == "true" if json_type == "boolean" else text


def _rpc(path: str, rows: list[Rpc], shapes: dict[type, Any], tag: str) -> dict[str, Any]:
    return {
        "tags": [tag],
        "summary": f"JSON-RPC 2.0: {', '.join(row.method for row in rows)}",
        "operationId": "rpc" + path.replace("/", "_"),
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {
                    "schema": {"oneOf": [_call(r) for r in rows]},
                    "examples": {r.method: {"summary": r.summary, "value": example_call(r)} for r in rows},
                }
            },
        },
        "responses": {
            "200": {
                "description": "A result or a JSON-RPC error; empty for a notification.",
                "content": {
                    "application/json": {"schema": {"oneOf": [_reply(shapes[r.result]) for r in rows] + [_RPC_ERROR]}}
                },
            },
            "403": _failure("Host not allowed."),
            "405": _failure("Method other than POST."),
            "413": _failure("Body over 1 MiB."),
            "415": _failure("Content type other than application/json."),
        },
    }


def _call(row: Rpc) -> dict[str, Any]:
    params = {
        name: {**param_type.schema, "description": param_text(row.method, name)}
        for name, param_type in NodeBinder(row.params).types.items()
    }
    return {
        "title": row.method,
        "description": row.summary + (f" Deprecated: {row.deprecated}." if row.deprecated else ""),
        "type": "object",
        "required": ["jsonrpc", "method"],
        "properties": {
            "jsonrpc": {"const": "2.0", "description": "Version of JSON-RPC."},
            "id": {"description": "Sent back with the answer."},
            "method": {"const": row.method, "description": "The method to call."},
            "params": {"type": "object", "properties": params, "description": "Parameters of the method."},
        },
    }


def _reply(shape: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "required": ["jsonrpc", "result", "id"],
        "properties": {"jsonrpc": {"const": "2.0"}, "result": shape, "id": {}},
    }


_RPC_ERROR = {
    "title": "JSON-RPC error",
    "type": "object",
    "required": ["jsonrpc", "error", "id"],
    "properties": {
        "jsonrpc": {"const": "2.0"},
        "id": {},
        "error": {
            "type": "object",
            "required": ["code", "message"],
            "properties": {"code": {"type": "integer"}, "message": {"type": "string"}, "data": {}},
        },
    },
}

_REST_FAILURES = {
    "400": "A parameter is missing, malformed or out of range; the message names it.",
    "401": "Unknown API key, or one is required and none was sent.",
    "403": "The key has been revoked, or the Host is not allowed.",
    "404": "Unknown path, or nothing with this ID.",
    "429": "The budget of this minute or day is spent.",
    "500": "Internal error.",
    "502": "Invalid answer of an upstream.",
    "503": "The store or an upstream is unavailable.",
}
_KEYS = {
    "ServiceKey": {"type": "apiKey", "in": "header", "name": "x-service-api-key"},
    "GlacierKey": {"type": "apiKey", "in": "header", "name": "x-glacier-api-key"},
}


def _number(summary: str) -> dict[str, Any]:
    return {"description": summary, "schema": {"type": "integer"}}


_LIMIT_HEADERS = {
    "ratelimit-policy": {"description": "The caller's limits, where limits are on.", "schema": {"type": "string"}},
    "ratelimit-limit": _number("Units of the window that ends the caller's budget first."),
    "ratelimit-remaining": _number("Units left of it."),
    "ratelimit-reset": _number("Seconds until the window starts again; with 429 only."),
    "retry-after": _number("Seconds to wait; with 429 only."),
}
