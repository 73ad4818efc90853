"""The settings as people read them: the lists in `--help`, the output of `icefall config`, and docs/settings.md."""

import textwrap
from collections.abc import Sequence
from pathlib import Path

from icefall.config.load import Loaded
from icefall.config.settings import ALL, GROUPS, INDEX_ONLY, RUNNING, TABLES, UP_ONLY, VERBS, Setting
from icefall.config.values import DEFAULT

WIDTH = 100
INDENT = 28
VALUE_WIDTH_MAX = 48

PAGE = Path(__file__).with_name("settings_page.md")


def settings_markdown() -> str:
    """docs/settings.md."""
    tables = {name: _table(keys) for name, keys in TABLES.items()}
    tables |= {key.name: _table(key.keys) for key in TABLES["chain"] if key.keys}
    groups = "\n".join(f"## {group}\n\n{_table(settings)}" for group, settings in GROUPS.items())
    return PAGE.read_text().format(groups=groups, **tables)


def _table(settings: Sequence[Setting]) -> str:
    lines = [
        f"| `{one.name}` | {_cell(one.value_type.shape)} | {_default(one)} | {_cell(_help(one))} |\n"
        for one in settings
    ]
    return "".join(["| Name | Value | Default | |\n|---|---|---|---|\n", *lines])


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "\\<")


def _help(setting: Setting) -> str:
    """Return the help of a setting, with the verbs that use it unless all do, or all that keep running."""
    if setting.verbs in (VERBS, RUNNING):
        return setting.help
    return f"{setting.help} For {', '.join(f'`{verb}`' for verb in setting.verbs if verb != ALL)}."


def _default(setting: Setting) -> str:
    if setting.default is None or setting.keys:
        return "see below" if setting.keys else "must be given"
    if setting.verbs in (UP_ONLY, INDEX_ONLY):
        return f"`{setting.default_for(setting.verbs[0])}`" if setting.default else "none"
    default, others = setting.blank or setting.default, setting.defaults
    by_value = {value: ", ".join(key for key in others if others[key] == value) for value in others.values()}
    return "; ".join([f"`{default}`" if default else "none", *(f"`{one}` for {by_value[one]}" for one in by_value)])


def settings_help(verb: str) -> str:
    """Every setting of `icefall <verb>`, in groups."""
    listed = {group: [one for one in settings if verb in one.verbs] for group, settings in GROUPS.items()}
    return "\n\n".join(
        "\n".join([f"{group}:", *(_help_entry(one, verb) for one in settings)])
        for group, settings in listed.items()
        if settings
    )


def _help_entry(setting: Setting, verb: str) -> str:
    default = setting.blank or setting.default_for(verb)
    notes = [setting.value_type.shape] if setting.value_type.is_choice else []
    notes += [f"default {default}"] if default else []
    text = f"{setting.help} [{'; '.join(notes)}]" if notes else setting.help
    indent = " " * INDENT
    lead = f"  {setting.flag}  ".ljust(INDENT)
    first = lead if len(lead) == INDENT else indent
    wrapped = textwrap.fill(
        text, WIDTH, initial_indent=first, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    return wrapped if first == lead else f"{lead.rstrip()}\n{wrapped}"


def config_table(loaded: Loaded) -> str:
    """`icefall config`: name, value and origin of every setting, then of every key of every table."""
    rows = []
    for name, one in loaded.given.items():
        default, others = one.setting.default_for("config"), one.setting.defaults
        notes = [f"{value} for icefall {verb}" for verb, value in others.items() if verb in VERBS and value != default]
        note = f" ({', '.join(notes)})" if notes and one.origin == DEFAULT else ""
        rows.append((name, one.setting.value_type.show(one.value) or '""', one.origin + note))
    name_width = max(len(name) for name, _, _ in rows)
    value_width = min(VALUE_WIDTH_MAX, max(len(value) for _, value, _ in rows))
    return "\n".join(f"{name:{name_width}}  {value:{value_width}}  {origin}" for name, value, origin in rows)
