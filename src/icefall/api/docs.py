"""Generates the page at /docs, and docs/api.md, docs/dialects.md and docs/settings.md."""

import re
from html import escape
from pathlib import Path
from typing import Any

import msgspec

from icefall.api.dialect import DIFFERENCES
from icefall.api.endpoints.row import DATA, LISTENERS, METRICS, NODE, Rest, Rpc, binder_of, example_path
from icefall.api.endpoints.table import rows_of
from icefall.api.examples import EXAMPLES
from icefall.api.params.rest_binder import RestBinder
from icefall.config.docs import settings_markdown

_BASES = {NODE: "http://127.0.0.1:9650", DATA: "http://127.0.0.1:9652", METRICS: "http://127.0.0.1:9653"}
_HEADS = {NODE: "Node interfaces", DATA: "Chain data", METRICS: "Metrics"}
_STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #8881; --ice: #0a6fb8 }
@media (prefers-color-scheme: dark) { :root { --ice: #6cc3ff } }
body { font: 16px/1.55 system-ui, sans-serif; max-width: 60rem; margin: 0 auto; padding: 2rem 1.25rem 5rem }
h1 { margin: 0 } h1 small { font-weight: 400; opacity: .6; font-size: .5em }
h2 { margin: 2.5rem 0 .5rem; color: var(--ice) }
code, pre { font: .9em ui-monospace, monospace }
pre { background: var(--soft); padding: .8rem 1rem; overflow-x: auto; border-radius: 6px }
article { border-top: 1px solid var(--line); padding: .9rem 0 } article p { margin: .2rem 0 }
.verb { display: inline-block; min-width: 3.2em; font-weight: 700; color: var(--ice) } .soft { opacity: .7 }
table { border-collapse: collapse } td { padding: .1rem 1.2rem .1rem 0; vertical-align: top }
a { color: var(--ice) } nav { line-height: 2 } nav a { margin-right: .8rem }
"""


def page(listener: str, rows: list[Rest | Rpc], version: str) -> str:
    """The interface as one page, without scripts and external resources."""
    paths = list(dict.fromkeys(row.path for row in rows))
    links = " ".join(f'<a href="#{escape(path)}"><code>{escape(path)}</code></a>' for path in paths)
    parts = [
        f'<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>Icefall: {_HEADS[listener]}</title><style>{_STYLE}</style>"
        f"<h1>Icefall <small>{_HEADS[listener]}, {escape(version)}</small></h1>"
        f'<p>Machine readable: <a href="/openapi.json">openapi.json</a></p><nav>{links}</nav>'
    ]
    for path in paths:
        parts.append(f'<h2 id="{escape(path)}"><code>{escape(path)}</code></h2>')
        parts += [_article(row) for row in rows if row.path == path]
    return "\n".join(parts) + "\n"


def _article(row: Rest | Rpc) -> str:
    verb, name = (row.verb.replace("*", "GET"), row.path) if isinstance(row, Rest) else ("POST", row.method)
    fields = "".join(
        f"<tr><td><code>{escape(key)}</code><td class=soft>{escape(kind)}" for key, kind in _parameters(row)
    )
    return (
        f"<article><span class=verb>{verb}</span> <code>{escape(name)}</code><p>{_prose(row.summary + _notes(row))}</p>"
        + (f"<table>{fields}</table>" if fields else "")
        + f"<pre>{escape(example(row))}</pre></article>"
    )


def _parameters(row: Rest | Rpc) -> list[tuple[str, str]]:
    """Name and kind of each, with its default if it has one."""
    binder = binder_of(row)
    if not isinstance(binder, RestBinder):
        return [(key, kind.name) for key, kind in binder.kinds.items()]
    shown = []
    for param in binder.all:
        default = param.shown_default
        default_text = str(default).lower() if isinstance(default, bool) else default
        shown.append((param.name, param.kind.name + ("" if default is None else f" (default {default_text})")))
    return shown


def _prose(text: str) -> str:
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", escape(text))


def _notes(row: Rest | Rpc) -> str:
    notes = f" Only with --{row.needs}=true." if row.needs == "api-admin-enabled" else ""
    if isinstance(row, Rest) and NODE not in row.listeners:
        notes += f" Weight {int(row.weight)}."
    if isinstance(row, Rest) and row.ours:
        notes += " Not in the hosted service."
    if row.deprecated:
        notes += f" Deprecated: {row.deprecated}."
    return notes


def example(row: Rest | Rpc) -> str:
    """A command that calls the row."""
    if isinstance(row, Rest):
        return f"curl {_BASES[row.listeners[0]]}{example_path(row)}"
    url = f"{_BASES[row.listener]}{row.path}"
    body: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": row.method}
    if EXAMPLES.get(row.method):
        body["params"] = EXAMPLES[row.method]
    return f"curl -H content-type:application/json {url} \\\n  -d '{msgspec.json.encode(body).decode()}'"


def api_markdown() -> str:
    lines = ["# Interfaces", "", "Generated from `src/icefall/api/endpoints/` by `make docs`.", ""]
    for listener in LISTENERS:
        lines += [f"## {_HEADS[listener]}", "", "| call | parameters | what it does |", "|---|---|---|"]
        for row in rows_of(listener):
            call = f"`{row.label}`" if isinstance(row, Rest) else f"`{row.method}` at `{row.path}`"
            params = ", ".join(f"`{key}` {kind}" for key, kind in _parameters(row))
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


GENERATED = {"api.md": api_markdown, "dialects.md": dialects_markdown, "settings.md": settings_markdown}


def main() -> None:
    folder = Path("docs")
    for name, make in GENERATED.items():
        (folder / name).write_text(make(), "utf-8")


if __name__ == "__main__":
    main()
