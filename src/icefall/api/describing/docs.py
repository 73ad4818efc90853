"""Generator of the page at /docs, and of docs/api.md, docs/dialects.md, docs/hosted-api.md and docs/settings.md."""

from collections.abc import Callable
from functools import partial
from html import escape
from pathlib import Path

from icefall.api.describing.hosted import hosted_markdown
from icefall.api.dialect import DIFFERENCES
from icefall.api.http.rest_params import RestBinder
from icefall.api.http.row import DATA, LISTENERS, METRICS, NODE, Rest, Rpc, binder_of
from icefall.api.table import ENDPOINTS, rows_of
from icefall.config.docs import settings_markdown

_HEADS = {NODE: "Node interfaces", DATA: "Chain data", METRICS: "Metrics"}


def page(listener: str, version: str) -> str:
    """The page at /docs. Its addresses are relative: it may be served behind a path of a proxy."""
    title = f"Icefall: {_HEADS[listener]}"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>{title}</title>\n'
        '<link rel="icon" href="data:,">\n<link rel="stylesheet" href="docs/swagger-ui.css">\n'
        '<link rel="stylesheet" href="docs/docs.css">\n'
        '<script src="docs/swagger-ui.js" defer></script>\n<script src="docs/docs.js" defer></script>\n'
        "</head>\n<body>\n"
        '<a class="skip" href="#docs">Skip to the endpoints</a>\n'
        f'<header class="head">{title}, {escape(version)} \u00b7 <a href="openapi.json">openapi.json</a></header>\n'
        '<noscript>This page needs JavaScript. The same is in <a href="openapi.json">openapi.json</a>.</noscript>\n'
        '<main id="docs" tabindex="-1"></main>\n</body>\n</html>\n'
    )


def _parameters(row: Rest | Rpc) -> list[tuple[str, str]]:
    """The name and type of each parameter, with its default if it has one."""
    binder = binder_of(row)
    if not isinstance(binder, RestBinder):
        return [(key, one.name) for key, one in binder.types.items()]
    found = []
    for param in binder.all:
        default = param.rendered_default
        default_text = str(default).lower() if isinstance(default, bool) else default
        default_text = ",".join(default) if isinstance(default, tuple) else default_text
        found.append((param.name, param.type.name + ("" if default is None else f" (default {default_text})")))
    return found


def _notes(row: Rest | Rpc) -> str:
    notes = f" Only with --{row.needs}=true." if row.needs == "api-admin-enabled" else ""
    if isinstance(row, Rest) and NODE not in row.listeners:
        notes += f" Weight {int(row.weight)}."
    if isinstance(row, Rest) and row.ours:
        notes += " Not in the hosted service."
    if row.deprecated:
        notes += f" Deprecated: {row.deprecated}."
    return notes


def api_markdown() -> str:
    lines = ["# Interfaces", "", "Generated from `src/icefall/api/endpoints/` by `make docs`.", ""]
    for listener in LISTENERS:
        lines += [f"## {_HEADS[listener]}", "", "| call | parameters | what it does |", "|---|---|---|"]
        for row in rows_of(listener):
            call = f"`{row.label}`" if isinstance(row, Rest) else f"`{row.method}` at `{row.path}`"
            params = ", ".join(f"`{key}` {type_name}" for key, type_name in _parameters(row))
            lines.append(f"| {call} | {params} | {row.summary}{_notes(row)} |".replace("|  |", "| |"))
        lines.append("")
    return "\n".join(lines)


def dialects_markdown() -> str:
    head = [
        "# Dialects",
        "",
        "`--dialect=interface` (the default) follows the published interface and JSON-RPC 2.0.",
        "`--dialect=live` answers as the deployed node and hosted service do.",
        "These are all the differences; `tests/api/test_dialects.py` tests each in both.",
        "Generated from `src/icefall/api/dialect.py` by `make docs`.",
        "",
        "| case | interface | live |",
        "|---|---|---|",
    ]
    return "\n".join([*head, *(f"| {d.case} | {d.interface_text} | {d.live_text} |" for d in DIFFERENCES.values()), ""])


GENERATED: dict[str, Callable[[], str]] = {
    "api.md": api_markdown,
    "dialects.md": dialects_markdown,
    "hosted-api.md": partial(hosted_markdown, ENDPOINTS),
    "settings.md": settings_markdown,
}


def main() -> None:
    folder = Path("docs")
    for name, make in GENERATED.items():
        (folder / name).write_text(make(), "utf-8")


if __name__ == "__main__":
    main()
