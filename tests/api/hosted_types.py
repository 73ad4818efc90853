"""What the hosted service's clients say of every answer about the primary network, as strict JSON schemas.

`tests/vectors/hosted_network_types.json.gz` has the types by operation: those of the official client, which it checks,
and those of operations that are newer than it.
"""

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

VECTORS = Path(__file__).parents[1] / "vectors" / "hosted_network_types.json.gz"
_UNIONS = ("anyOf", "oneOf")
Fields = dict[str, tuple[bool, frozenset[str]]]
"""Whether a field is in every variant and what it may be, by the path of the field."""


@cache
def hosted_types() -> dict[str, Any]:
    """The types of each operation, by its verb and path. Newer fields are added to those that a client knows."""
    raw = json.loads(gzip.decompress(VECTORS.read_bytes()))
    return {name: _merged(kinds) for name, kinds in raw.items()}


def _merged(kinds: dict[str, Any]) -> Any:
    client, newer = kinds.get("client"), kinds.get("newer")
    if client is None or newer is None or ("properties" not in client and not any(one in client for one in _UNIONS)):
        return newer if client is None or newer is not None else client
    return _with_newer(client, newer)


def _variants(schema: Any) -> list[Any]:
    return next((schema[one] for one in _UNIONS if one in schema), [schema])


def _with_newer(known: Any, newer: Any) -> Any:
    """`known` with the fields that only `newer` has, none of them required."""
    by_title = {one.get("title"): one for one in _variants(newer)}
    if any(one in known for one in _UNIONS):
        return {"anyOf": [_with_newer(one, by_title.get(one.get("title"), one)) for one in _variants(known)]}
    found = dict(known)
    if "properties" in known:
        theirs = newer.get("properties", {})
        found["properties"] = {
            name: _with_newer(known["properties"][name], theirs.get(name, {}))
            if name in known["properties"]
            else theirs[name]
            for name in {**known["properties"], **theirs}
        }
    if "items" in known:
        found["items"] = _with_newer(known["items"], newer.get("items", {}))
    return found


def strict(schema: Any) -> Any:
    """The schema with no other fields than those it names; parts of an object that are all true become one object."""
    if "allOf" in schema:
        parts = [strict(one) for one in schema["allOf"]]
        joined: dict[str, Any] = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
        for part in parts:
            for name, kind in part.get("properties", {}).items():
                known = joined["properties"].get(name)
                joined["properties"][name] = kind if known is None else {"allOf": [known, kind]}
            joined["required"] += part.get("required", [])
        return joined
    for union in _UNIONS:
        if union in schema:
            return {"anyOf": [strict(one) for one in schema[union]]}
    found = {name: kind for name, kind in schema.items() if name in ("type", "enum", "const", "required")}
    if schema.get("properties"):  # without names, any object will do
        found |= {"properties": {name: strict(kind) for name, kind in schema["properties"].items()}}
        found["additionalProperties"] = False
    if "items" in schema:
        found["items"] = strict(schema["items"])
    return found


def fields_of(schema: Any, document: Any = None, path: str = "") -> Fields:
    """Every field of a schema and of all in it. Of a union, a field is required if it is so in every variant."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        schema = document["components"]["schemas"][name]
    for union in (*_UNIONS, "allOf"):
        if union in schema:
            return _joined([fields_of(one, document, path) for one in schema[union]], every=union != "allOf")
    found: Fields = {}
    if "items" in schema:
        found |= fields_of(schema["items"], document, f"{path}[]")
    else:
        found[path] = (True, _kinds(schema))
    for name, kind in schema.get("properties", {}).items():
        inner = fields_of(kind, document, f"{path}.{name}")
        found |= inner
        place = f"{path}.{name}"
        at = next((one for one in inner if one.startswith(place)), place)
        found[place] = (name in schema.get("required", ()), inner.get(at, (True, frozenset()))[1])
    return found


def _kinds(schema: Any) -> frozenset[str]:
    if "const" in schema:
        return frozenset({repr(schema["const"])})
    if "enum" in schema:
        return frozenset(map(repr, schema["enum"]))
    kinds = schema.get("type", "any")
    return frozenset("number" if one == "integer" else one for one in ([kinds] if isinstance(kinds, str) else kinds))


def _joined(variants: list[Fields], *, every: bool) -> Fields:
    """The fields of all variants. Required is what is so in every variant that has the object it is in."""
    found: Fields = {}
    for name in dict.fromkeys(name for one in variants for name in one):
        holder = name.removesuffix("[]") if name.endswith("[]") else name.rpartition(".")[0]
        holders = [one for one in variants if holder in one or holder == name]
        rows = [one[name] for one in variants if name in one]
        required = all(row[0] for row in rows) and len(rows) >= len(holders) if every else any(row[0] for row in rows)
        found[name] = (required, frozenset().union(*(row[1] for row in rows)))
    return found
