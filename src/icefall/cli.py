"""The command line: the verbs, their settings, and the function that runs each."""

import io
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import msgspec

from icefall import __version__
from icefall.config.docs import config_table, settings_help
from icefall.config.load import Loaded, load
from icefall.config.values import ConfigError, bare, nearest
from icefall.errors import StartRefused

HELP = ("--help", "-h")
KEY_FLAGS: dict[str, tuple[str, ...]] = {"add": ("name", "tier"), "list": (), "revoke": ("name",)}
COPY_USAGE = "icefall copy SOURCE TARGET, each a data directory or postgresql://..."
KEYS_USAGE = "icefall keys add --name=N --tier=T, icefall keys list or icefall keys revoke N"
INTERRUPTED = 130
PIPE_CLOSED = 141


class Verb(msgspec.Struct, frozen=True):
    name: str
    summary: str
    run: Callable[[str, list[str]], int]  # takes the name and the arguments after it; returns the exit code


def _loaded(verb: str, argv: Sequence[str]) -> Loaded:
    try:
        cwd = Path.cwd()
    except OSError as error:
        raise ConfigError(f"cannot determine the working directory: {error.strerror}") from None
    return load(verb, argv, os.environ, cwd)


def _serve(verb: str, argv: list[str]) -> int:
    config = _loaded(verb, argv).config
    from icefall.run.up import run  # noqa: PLC0415 - --help and refusals need no server

    return run(verb, config)


def _index(verb: str, argv: list[str]) -> int:
    config = _loaded(verb, argv).config
    if not config.chain:
        raise ConfigError("no [[chain]] is configured in icefall.toml: nothing to index")
    from icefall.run.indexer import run_index  # noqa: PLC0415 - as above

    return run_index(config)


def _keys(verb: str, argv: list[str]) -> int:
    """`add`, `list` or `revoke`, with flags of its own (KEY_FLAGS) next to the settings."""
    action, argv = (argv[0], argv[1:]) if argv and not argv[0].startswith("-") else ("", argv)
    if action == "revoke" and argv and not argv[0].startswith("-"):
        argv = ["--name", *argv]
    flags, argv = _key_flags(action, argv)
    config = _loaded(verb, argv).config
    if action not in KEY_FLAGS:
        raise ConfigError(f"unknown action {bare(action)}; use {KEYS_USAGE}" if action else f"use {KEYS_USAGE}")
    if "name" in KEY_FLAGS[action] and not flags["name"]:
        raise ConfigError(f"icefall keys {action} needs a name: use {KEYS_USAGE}")
    from icefall.access.budgets import Tier, key_tiers, tiers_with  # noqa: PLC0415
    from icefall.access.command import keys_command  # noqa: PLC0415 - no other verb needs it
    from icefall.run.stores import stores_of  # noqa: PLC0415

    tiers = tiers_with(Tier(tier.name, tier.per_minute, tier.per_day) for tier in config.tier)
    store = stores_of(config).access_writer()
    return _print(keys_command(action, store, flags["name"], flags["tier"], key_tiers(tiers)))


def _key_flags(action: str, argv: list[str]) -> tuple[dict[str, str], list[str]]:
    """The values of the action's own flags, and the arguments that are left: settings."""
    flags, settings, words = {"name": "", "tier": ""}, [], list(reversed(argv))
    while words:
        word = words.pop()
        flag, equals, text = word.partition("=")
        if flag.startswith("--") and flag[2:] in KEY_FLAGS.get(action, ()):
            if not equals and (not words or words[-1].startswith("--")):
                raise ConfigError(f"{flag} needs a value")
            flags[flag[2:]] = text if equals else words.pop()
        else:
            settings.append(word)
    return flags, settings


def _migrate(verb: str, argv: list[str]) -> int:
    config = _loaded(verb, argv).config
    from icefall.run.copying import run_migrate  # noqa: PLC0415 - no other verb needs it
    from icefall.run.stores import stores_of  # noqa: PLC0415

    with closing(stores_of(config)) as stores:
        return run_migrate(config, stores, _print_line)


def _copy(verb: str, argv: list[str]) -> int:
    """Two words before the settings: where from and where to."""
    ends = [word for word in argv[:2] if not word.startswith("-")]
    if len(ends) != 2:
        raise ConfigError(f"use {COPY_USAGE}")
    config = _loaded(verb, argv[2:]).config
    from icefall.run.copying import run_copy  # noqa: PLC0415 - no other verb needs it

    return run_copy(config, ends[0], ends[1], _print_line)


def _print_line(text: str) -> None:
    print(text, flush=True)


def _config(verb: str, argv: list[str]) -> int:
    return _print(config_table(_loaded(verb, argv)))


VERBS = (
    Verb("up", "Everything on one machine: node, chain data and metrics.", _serve),
    Verb("node", "The node-local interfaces, of a local network or of a node that --upstream names.", _serve),
    Verb("data", "The chain data interface.", _serve),
    Verb("metrics", "The metrics interface.", _serve),
    Verb("index", "Follow the EVM chains of icefall.toml.", _index),
    Verb("keys", "Add, list or revoke API keys: add --name=N --tier=T, list, revoke N.", _keys),
    Verb("migrate", "Create the stores, or bring them to this program's schema.", _migrate),
    Verb("copy", "Copy all stores: copy SOURCE TARGET, each a data directory or a URL.", _copy),
    Verb("config", "Print every setting, its value and its origin.", _config),
)

USAGE = """\
usage: icefall {verb} [--setting=value ...]

{about}

A setting can also be given as ICEFALL_HTTP_PORT=9650 in the environment or as http-port = 9650 in
icefall.toml. True or false is set by --name, --name=true, --name=false or --no-name.
`icefall index` follows EVM chains; --index-enabled is the container index of the node.

{details}"""
DETAILS = "`icefall <verb> --help` lists the settings of a verb; `icefall --version` prints the version."


def main(argv: Sequence[str] | None = None) -> int:
    """The exit code of `icefall <argv>`. A refusal is one line on stderr."""
    try:
        return _run(list(sys.argv[1:] if argv is None else argv))
    except StartRefused as error:
        print(f"icefall: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED


def _run(argv: list[str]) -> int:
    name, arguments = (argv[0], argv[1:]) if argv else ("--help", [])
    if name in HELP:
        verbs = "\n".join(f"  {verb.name:9}{verb.summary}" for verb in VERBS)
        return _print(USAGE.format(verb="<verb>", about=verbs, details=DETAILS))
    if "--version" in argv:
        return _print(f"icefall/{__version__}")
    if name.startswith("-"):
        raise ConfigError(f"the verb comes first, as in: icefall up {bare(name)}")
    verb = next((verb for verb in VERBS if verb.name == name), None)
    if verb is None:
        raise ConfigError(f"unknown verb {bare(name)}; {nearest(name, [verb.name for verb in VERBS])}")
    if any(word in HELP for word in arguments):
        return _print(USAGE.format(verb=verb.name, about=verb.summary, details=settings_help(verb.name)))
    return verb.run(verb.name, arguments)


def _print(text: str) -> int:
    """Print. A closed pipe, as in `icefall config | head`, gives an exit code and no traceback."""
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
