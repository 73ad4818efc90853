"""The SETTINGS table as people read it: the lists in `--help`, and docs/settings.md."""

import textwrap
from collections.abc import Iterator, Sequence

from icefall.config.kinds import Choice
from icefall.config.settings import ASSET_CHAIN_KEYS, CHAIN_KEYS, GROUPS, TIER_KEYS, TOKEN_KEYS, Setting, Table

WIDTH = 100
INDENT = 28

INTRODUCTION = """\
# Settings

Generated from `src/icefall/config/settings.py` by `make docs`. `icefall config` prints every value and where it came from.

A setting is taken from the first place that gives it:

1. the command line: `--http-port=9650` or `--http-port 9650`; `--index-enabled`, `--index-enabled=true`,
   `--index-enabled=false` or `--no-index-enabled` for those that are true or false;
2. the environment: `ICEFALL_HTTP_PORT=9650`;
3. the config file: `http-port = 9650`. It is the file that `--config-file` names, else `icefall.toml` in the working
   directory, else `icefall.toml` in the data directory;
4. the default.

A name that is not a setting, or a value that does not fit, is refused wherever it stands, with exit code 1. Variables
that begin with `ICEFALL_TEST_`, `ICEFALL_FUZZ_` or `ICEFALL_BENCH_` are left to Icefall's own tools. (Kubernetes adds
variables for every service: beside a service named `icefall`, set `enableServiceLinks: false`.)

In paths, `~/` and `$VAR` are expanded. A relative path starts at the working directory, or, in a config file, at the
file's own directory. Durations are written as in Go: `300ms`, `30s`, `1h30m`. Lists are separated by commas, or are
arrays in a config file.
"""


def settings_help(verb: str) -> str:
    """Every setting `icefall <verb>` takes, in groups."""
    return "\n\n".join(
        "\n".join([f"{group}:", *(line for row in rows if verb in row.verbs for line in _help_lines(row, verb))])
        for group, rows in GROUPS.items()
    )


def settings_markdown() -> str:
    """docs/settings.md."""
    parts = [INTRODUCTION]
    for group, rows in GROUPS.items():
        parts.append(f"## {group}\n\n{_table(rows)}")
    parts.append(
        "## Chains to index\n\nOne `[[chain]]` in the config file for each EVM chain.\n\n"
        f"{_table(CHAIN_KEYS)}\nIts `token`:\n\n{_table(TOKEN_KEYS)}"
    )
    parts.append(
        "## Further asset chains\n\nOne `[[asset_chain]]` in the config file for each further instance of the asset "
        f"chain.\n\n{_table(ASSET_CHAIN_KEYS)}"
    )
    parts.append(
        "## Budgets\n\nOne `[[tier]]` in the config file for each budget that is new or changed. Built in are, in\n"
        "compute units a minute and a day: `unauthenticated` (calls without a key, by address) 6,000 and 1,200,000,\n"
        "`free` 8,000 and 2,000,000, `base` 10,000 and 3,750,000, `growth` 14,000 and 11,200,000, `pro` 20,000 and\n"
        f"25,000,000; `metrics` (by address) 8,000 and 1,200,000.\n\n{_table(TIER_KEYS)}"
    )
    return "\n".join(parts)


def _help_lines(row: Setting, verb: str) -> Iterator[str]:
    default = row.blank or row.default_for(verb)
    facts = [row.kind.shape] if isinstance(row.kind, Choice) else []
    facts += [f"default {default}"] if default else []
    text = f"{row.says} [{'; '.join(facts)}]" if facts else row.says
    lines = textwrap.wrap(text, WIDTH - INDENT, break_long_words=False, break_on_hyphens=False)
    flag = f"  {row.flag}"
    if len(flag) + 2 > INDENT:
        yield flag
    else:
        lines[0] = flag.ljust(INDENT) + lines[0]
    for line in lines:
        yield line if line.startswith("  --") else " " * INDENT + line


def _table(rows: Sequence[Setting]) -> str:
    lines = [f"| `{row.name}` | {_cell(row.kind.shape)} | {_default(row)} | {_cell(_says(row))} |" for row in rows]
    return "\n".join(["| Name | Value | Default | |", "|---|---|---|---|", *lines, ""])


def _says(row: Setting) -> str:
    return f"{row.says} Only for `icefall {row.verbs[0]}`." if len(row.verbs) < 3 else row.says


def _default(row: Setting) -> str:
    if row.default is None:
        return "must be given"
    if len(row.verbs) < 3:
        return f"`{row.default_for(row.verbs[0])}`"
    shown = row.blank or row.default
    if not shown:
        return "see below" if isinstance(row.kind, Table) else "none"
    whom = {value: [key for key, other in row.defaults.items() if other == value] for value in row.defaults.values()}
    return "; ".join([f"`{shown}`", *(f"`{value}` for {', '.join(keys)}" for value, keys in whom.items())])


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "\\<")
