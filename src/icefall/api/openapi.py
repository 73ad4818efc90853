"""OpenAPI 3.1 from the table."""

from typing import Any, get_args

import msgspec

from icefall.api.bind import Binder
from icefall.api.endpoint import DATA, METRICS, NODE, Rest, Rpc

_TITLES = {NODE: "Icefall: node interfaces", DATA: "Icefall: chain data", METRICS: "Icefall: metrics"}
_REF = "#/components/schemas/{name}"


def document(listener: str, rows: list[Rest | Rpc], version: str) -> dict[str, Any]:
    results = list(dict.fromkeys(part for row in rows for part in _parts(row.result)))
    schemas, components = msgspec.json.schema_components(results, ref_template=_REF)
    shapes: dict[Any, Any] = dict(zip(results, schemas, strict=True))
    shapes |= {
        row.result: {"anyOf": [shapes[part] for part in _parts(row.result)]} for row in rows if get_args(row.result)
    }
    components["Error"] = _error_schema(listener)
    paths: dict[str, Any] = {}
    for row in rows:
        if isinstance(row, Rest):
            paths.setdefault(row.path, {})["get"] = _rest(row, shapes)
    for path in dict.fromkeys(row.path for row in rows if isinstance(row, Rpc)):
        methods = [row for row in rows if isinstance(row, Rpc) and row.path == path]
        paths.setdefault(path, {})["post"] = _rpc(path, methods, shapes)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": _TITLES[listener],
            "version": version,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {"schemas": components},
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


def _failure(says: str) -> dict[str, Any]:
    return {"description": says, "content": {"application/json": {"schema": {"$ref": _REF.format(name="Error")}}}}


def _rest(row: Rest, shapes: dict[type, Any]) -> dict[str, Any]:
    media = row.media.partition(";")[0]
    shape = shapes.get(row.result, {"type": "string"} if row.result is str else {"type": "object"})
    good = {"description": row.says, "content": {media: {"schema": shape}}}
    responses = {"200": good, "403": _failure("Host not allowed."), "405": _failure("Another method than GET.")}
    if row.path.startswith("/ext/health"):
        responses["503"] = {**good, "description": "Unhealthy; the same body."}
    return {
        "summary": row.says,
        "operationId": row.label.replace(" ", "").replace("/", "_").replace(".", "_"),
        "parameters": [
            {"name": name, "in": "query", "required": False, "schema": kind.schema, "explode": True}
            for name, kind in Binder(row.params).kinds.items()
        ],
        "responses": responses,
    }


def _rpc(path: str, rows: list[Rpc], shapes: dict[type, Any]) -> dict[str, Any]:
    return {
        "summary": f"JSON-RPC 2.0: {', '.join(row.method for row in rows)}",
        "operationId": "rpc" + path.replace("/", "_"),
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": {"oneOf": [_call(r) for r in rows]}}},
        },
        "responses": {
            "200": {
                "description": "A result or a JSON-RPC error; empty for a notification.",
                "content": {
                    "application/json": {"schema": {"oneOf": [_reply(shapes[r.result]) for r in rows] + [_RPC_ERROR]}}
                },
            },
            "403": _failure("Host not allowed."),
            "405": _failure("Another method than POST."),
            "413": _failure("Body over 1 MiB."),
            "415": _failure("Content type other than application/json."),
        },
    }


def _call(row: Rpc) -> dict[str, Any]:
    params = {name: kind.schema for name, kind in Binder(row.params).kinds.items()}
    return {
        "title": row.method,
        "description": row.says + (f" Deprecated: {row.deprecated}." if row.deprecated else ""),
        "type": "object",
        "required": ["jsonrpc", "method"],
        "properties": {
            "jsonrpc": {"const": "2.0"},
            "id": {},
            "method": {"const": row.method},
            "params": {"type": "object", "properties": params},
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
