"""The command line: a verb, its settings, and what runs it."""

import io
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from icefall import __version__
from icefall.config.docs import settings_help
from icefall.config.file import ENTRY_KEYS
from icefall.config.load import Loaded, load
from icefall.config.settings import SETTINGS, Setting, Table
from icefall.config.values import DEFAULT, ConfigError, bare, nearest
from icefall.errors import StartRefused

HELP = ("--help", "-h")
KEY_WORDS: dict[str, tuple[str, ...]] = {"add": ("name", "tier"), "list": (), "revoke": ("name",)}
KEYS_USAGE = "icefall keys add --name=N --tier=T, icefall keys list or icefall keys revoke N"
VALUE_WIDTH_MAX = 48
INTERRUPTED = 130
PIPE_CLOSED = 141


@dataclass(frozen=True)
class Verb:
    name: str
    says: str
    run: Callable[[str, list[str]], int]  # with its own name and what followed it


def _loaded(verb: str, argv: Sequence[str]) -> Loaded:
    return load(verb, argv, os.environ, _cwd())


def _serve(verb: str, argv: list[str]) -> int:
    config = _loaded(verb, argv).config
    from icefall.run.up import run  # noqa: PLC0415 - help and refusals need not wait for the servers to load

    return run(verb, config)


def _index(verb: str, argv: list[str]) -> int:
    config = _loaded(verb, argv).config
    if not config.chain:
        raise ConfigError("no [[chain]] is configured in icefall.toml: nothing to index")
    from icefall.run.indexer import run_index  # noqa: PLC0415 - as above

    return run_index(config)


def _keys(verb: str, argv: list[str]) -> int:
    """An action and its words, which are no settings, and then the settings."""
    action, rest = (argv[0], argv[1:]) if argv and not argv[0].startswith("-") else ("", argv)
    if action == "revoke" and rest and not rest[0].startswith("-"):
        rest = ["--name", *rest]
    words, rest = _key_words(action, rest)
    config = _loaded(verb, rest).config
    if action not in KEY_WORDS:
        raise ConfigError(f"unknown action {bare(action)}; say {KEYS_USAGE}" if action else f"say {KEYS_USAGE}")
    if "name" in KEY_WORDS[action] and not words["name"]:
        raise ConfigError(f"icefall keys {action} needs a name: say {KEYS_USAGE}")
    from icefall.access.command import keys_command  # noqa: PLC0415 - no other verb needs it
    from icefall.access.limits import Tier, for_keys, tiers_with  # noqa: PLC0415

    tiers = tiers_with(Tier(tier.name, tier.per_minute, tier.per_day) for tier in config.tier)
    return _say(keys_command(action, Path(config.data_dir), words["name"], words["tier"], for_keys(tiers)))


def _key_words(action: str, argv: list[str]) -> tuple[dict[str, str], list[str]]:
    """What belongs to the action, and what is left: the settings."""
    words, rest, left = {"name": "", "tier": ""}, [], list(reversed(argv))
    while left:
        word = left.pop()
        flag, equals, text = word.partition("=")
        if flag.startswith("--") and flag[2:] in KEY_WORDS.get(action, ()):
            if not equals and (not left or left[-1].startswith("--")):
                raise ConfigError(f"{flag} needs a value")
            words[flag[2:]] = text if equals else left.pop()
        else:
            rest.append(word)
    return words, rest


def _config(verb: str, argv: list[str]) -> int:
    rows = [(name, value or '""', origin) for name, value, origin in _shown(_loaded(verb, argv))]
    name_width = max(len(name) for name, _, _ in rows)
    value_width = min(VALUE_WIDTH_MAX, max(len(value) for _, value, _ in rows))
    return _say("\n".join(f"{name:{name_width}}  {value:{value_width}}  {origin}" for name, value, origin in rows))


VERBS = (
    Verb("up", "Everything on one machine: node, chain data, metrics, explorer.", _serve),
    Verb("node", "The node-local interfaces, of a local network or of a node that --upstream names.", _serve),
    Verb("data", "The chain data interface.", _serve),
    Verb("metrics", "The metrics interface.", _serve),
    Verb("index", "Follow the EVM chains of icefall.toml.", _index),
    Verb("keys", "Add, list or revoke API keys: add --name=N --tier=T, list, revoke N.", _keys),
    Verb("config", "Print every setting, its value and where it came from.", _config),
)

USAGE = """\
usage: icefall <verb> [--setting=value ...]

{verbs}

Every verb takes --data-dir, --config-file, --http-host, --http-port, --data-port, --metrics-port
and --dialect; `icefall <verb> --help` lists all settings. A setting can also be given as
ICEFALL_HTTP_PORT=9650 in the environment or as http-port = 9650 in icefall.toml.

`icefall index` follows EVM chains; --index-enabled is the container index of the node.
`icefall --version` prints the version."""

VERB_USAGE = """\
usage: icefall {name} [--setting=value ...]

{says}
Each setting can also be given as ICEFALL_HTTP_PORT=9650 in the environment or as http-port = 9650
in icefall.toml. What is true or false is set by --name, --name=true, --name=false or --no-name.
`icefall index` follows EVM chains; --index-enabled is the container index of the node.

{settings}"""


def main(argv: Sequence[str] | None = None) -> int:
    """The exit code of `icefall <argv>`. What is refused is said in one line on stderr."""
    try:
        return _run(list(sys.argv[1:] if argv is None else argv))
    except StartRefused as error:
        print(f"icefall: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED


def _run(argv: list[str]) -> int:
    name, rest = (argv[0], argv[1:]) if argv else ("--help", [])
    if name in HELP:
        return _say(USAGE.format(verbs="\n".join(f"  {verb.name:9}{verb.says}" for verb in VERBS)))
    if "--version" in argv:
        return _say(f"icefall/{__version__}")
    if name.startswith("-"):
        raise ConfigError(f"the verb comes first, as in: icefall up {bare(name)}")
    verb = next((verb for verb in VERBS if verb.name == name), None)
    if verb is None:
        raise ConfigError(f"unknown verb {bare(name)}; {nearest(name, [verb.name for verb in VERBS])}")
    if any(word in HELP for word in rest):
        return _say(VERB_USAGE.format(name=verb.name, says=verb.says, settings=settings_help(verb.name)))
    return verb.run(verb.name, rest)


def _cwd() -> Path:
    try:
        return Path.cwd()
    except OSError as error:
        raise ConfigError(f"cannot tell the working directory: {error.strerror}") from None


def _shown(loaded: Loaded) -> Iterator[tuple[str, str, str]]:
    """Name, value and origin of every setting, then of every key of every table in the config file."""
    for row in SETTINGS:
        origin = loaded.origins[row.name]
        others = [
            f"{value} for icefall {verb}" for verb, value in row.defaults.items() if value != row.default_for("config")
        ]
        note = f" ({', '.join(others)})" if others and origin == DEFAULT else ""
        yield row.name, row.kind.show(getattr(loaded.config, row.attribute)), origin + note
    for name, rows in ENTRY_KEYS.items():
        for number, entry in enumerate(getattr(loaded.config, name), 1):
            yield from _shown_entry(f"{name}[{number}]", rows, entry, loaded.origins)


def _shown_entry(
    title: str, rows: Sequence[Setting], entry: Any, origins: dict[str, str]
) -> Iterator[tuple[str, str, str]]:
    for row in rows:
        name, value = f"{title}.{row.name}", getattr(entry, row.attribute)
        if isinstance(row.kind, Table):
            yield from _shown_entry(name, row.kind.rows, value, origins)
        else:
            yield name, row.kind.show(value), origins[name]


def _say(text: str) -> int:
    """Print; a reader that has gone away, as in `icefall config | head`, is no error worth a traceback."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        print(text, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
