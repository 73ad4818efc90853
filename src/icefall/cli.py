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
from icefall.config.load import Loaded, load, split_words
from icefall.config.values import ConfigError, bare, close_match
from icefall.errors import StartRefused

HELP = ("--help", "-h")
COPY_USAGE = "icefall copy SOURCE TARGET, each a data directory or postgresql://..."
KEYS_USAGE = "icefall keys add --name=N --tier=T, icefall keys list or icefall keys revoke N"
KEY_FLAGS: dict[str, tuple[str, ...]] = {"add": ("name", "tier", "admin"), "list": (), "revoke": ("name",)}
ABI_USAGE = "icefall abi add CHAIN ADDRESS FILE, icefall abi list or icefall abi remove CHAIN ADDRESS"
ABI_WORDS = {"add": 4, "list": 1, "remove": 3}
WEBHOOKS_USAGE = "icefall webhooks, or icefall webhooks list | show ID | replay ID | test ID"
WEBHOOK_FLAGS: dict[str, tuple[str, ...]] = {
    "list": (), "show": (), "replay": ("message", "first", "last", "since", "until"), "test": (),
}  # fmt: skip
EXPORT_FLAGS = ("chain", "table", "from", "to", "format", "partition", "out")
INTERRUPTED = 130
PIPE_CLOSED = 141
OWNER_ONLY = 0o077


class Verb(msgspec.Struct, frozen=True):
    """`words`: what it takes besides settings, each with a line of help."""

    name: str
    summary: str
    run: Callable[[str, list[str]], int]  # takes the name and the arguments after it; returns the exit code
    usage: str = ""
    words: tuple[tuple[str, str], ...] = ()


def _loaded(verb: str, argv: Sequence[str]) -> Loaded:
    try:
        cwd = Path.cwd()
    except OSError as error:
        raise ConfigError(f"cannot determine the working directory: {error.strerror}") from None
    return load(verb, argv, os.environ, cwd)


def _serve(verb: str, argv: list[str]) -> int:
    config = _loaded(verb, argv).config
    from icefall.processes.listening import open_sockets  # noqa: PLC0415 - --help and refusals need no server

    config, sockets = open_sockets(verb, config)
    from icefall.processes.start import run  # noqa: PLC0415 - most of the time of a start is spent on imports

    return run(verb, config, sockets)


def _index(verb: str, argv: list[str]) -> int:
    config = _loaded(verb, argv).config
    if not config.chain:
        raise ConfigError("no [[chain]] is configured in icefall.toml: nothing to index")
    from icefall.commands.index import run_index  # noqa: PLC0415 - as above

    return run_index(config)


def _keys(verb: str, argv: list[str]) -> int:
    """`add`, `list` or `revoke`, with flags of its own (KEY_FLAGS) next to the settings."""
    action = next((word for word in argv if not word.startswith("-")), "")
    words, flags, settings = split_words(argv, {name: name != "admin" for name in KEY_FLAGS.get(action, ())})
    config = _loaded(verb, settings).config
    if action not in KEY_FLAGS:
        raise ConfigError(f"unknown action {bare(action)}; use {KEYS_USAGE}" if action else f"use {KEYS_USAGE}")
    if action == "revoke" and len(words) == 2 and "name" not in flags:
        flags["name"] = words.pop()
    _expect(words, 1)
    if "name" in KEY_FLAGS[action] and not flags.get("name"):
        raise ConfigError(f"icefall keys {action} needs a name: use {KEYS_USAGE}")
    from icefall.access.budgets import Tier, key_tiers, tiers_with  # noqa: PLC0415
    from icefall.commands.keys import keys_command  # noqa: PLC0415 - no other verb needs it
    from icefall.compose.stores import stores_of  # noqa: PLC0415

    tiers = tiers_with(Tier(tier.name, tier.per_minute, tier.per_day) for tier in config.tier)
    with closing(stores_of(config)) as stores:
        store, names = stores.access_writer(), key_tiers(tiers)
        name, tier, is_admin = flags.get("name", ""), flags.get("tier", ""), "admin" in flags
        return _print(keys_command(action, store, name, tier, names, is_admin=is_admin))


def _abi(verb: str, argv: list[str]) -> int:
    words, _, settings = split_words(argv, {})
    config = _loaded(verb, settings).config
    action = words[0] if words else ""
    if len(words) != ABI_WORDS.get(action, 0):
        raise ConfigError(f"use {ABI_USAGE}")
    from icefall.commands.abi import abi_command  # noqa: PLC0415 - no other verb needs it

    return _print(abi_command(config, action, words[1:]))


def _webhooks(verb: str, argv: list[str]) -> int:
    """Deliver messages until stopped; with a word, `list`, `show`, `replay` or `test`."""
    action = next((word for word in argv if not word.startswith("-")), "")
    words, flags, settings = split_words(argv, dict.fromkeys(WEBHOOK_FLAGS.get(action, ()), True))
    config = _loaded(verb, settings).config
    if not action:
        from icefall.commands.webhooks import run_webhooks  # noqa: PLC0415 - no other verb needs it

        return run_webhooks(config)
    if action not in WEBHOOK_FLAGS:
        raise ConfigError(f"unknown action {bare(action)}; use {WEBHOOKS_USAGE}")
    _expect(words, 1 if action == "list" else 2)
    if action != "list" and len(words) < 2:
        raise ConfigError(f"icefall webhooks {action} needs the ID of a webhook: use {WEBHOOKS_USAGE}")
    from icefall.commands.webhooks import webhooks_command  # noqa: PLC0415 - as above

    return _print(webhooks_command(config, action, words[-1], flags))


def _exports(verb: str, argv: list[str]) -> int:
    """Write the files of exports of EVM chains that were ordered over the API, until stopped."""
    words, _, settings = split_words(argv, {})
    config = _loaded(verb, settings).config
    _expect(words, 0)
    from icefall.commands.export import run_export_jobs  # noqa: PLC0415 - no other verb needs it

    return run_export_jobs(config)


def _forget(verb: str, argv: list[str]) -> int:
    words, flags, settings = split_words(argv, {"yes": False})
    config = _loaded(verb, settings).config
    if not words:
        raise ConfigError("icefall forget needs a chain: use icefall forget 43114")
    _expect(words, 1)
    from icefall.commands.forget import forget  # noqa: PLC0415

    return _print(forget(config, words[0], _confirmation(given="yes" in flags)))


def _backup(verb: str, argv: list[str]) -> int:
    words, _, settings = split_words(argv, {})
    config = _loaded(verb, settings).config
    if not words:
        raise ConfigError(f"icefall {verb} needs a directory: use icefall {verb} /path/to/backup")
    _expect(words, 1)
    from icefall.commands.backup import back_up, restore  # noqa: PLC0415
    from icefall.commands.forget import refuse_server  # noqa: PLC0415

    refuse_server(config, verb)
    folder, data_dir = Path(words[0]).absolute(), Path(config.data_dir)
    return _print(restore(folder, data_dir) if verb == "restore" else back_up(data_dir, folder, _print))


def _status(verb: str, argv: list[str]) -> int:
    words, flags, settings = split_words(argv, {"json": False})
    config = _loaded(verb, settings).config
    _expect(words, 0)
    from icefall.commands.status import status  # noqa: PLC0415

    return _print(status(config, as_json="json" in flags))


def _confirmation(*, given: bool) -> Callable[[str], bool]:
    """Asks at a terminal, unless the user has confirmed already. Without a terminal no answer can come."""

    def ask(text: str) -> bool:
        if given:
            return True
        if not sys.stdin.isatty():
            raise StartRefused(f"{text} Confirm with --yes")
        print(f"{text} Type yes to go on: ", end="", file=sys.stderr, flush=True)
        return sys.stdin.readline().strip().lower() == "yes"

    return ask


def _expect(words: Sequence[str], count: int) -> None:
    if len(words) > count:
        raise ConfigError(f"unexpected argument {bare(words[count])}")


def _migrate(verb: str, argv: list[str]) -> int:
    config = _loaded(verb, argv).config
    from icefall.commands.copy import run_migrate  # noqa: PLC0415 - no other verb needs it
    from icefall.compose.stores import stores_of  # noqa: PLC0415

    with closing(stores_of(config)) as stores:
        return run_migrate(config, stores, _print)


def _copy(verb: str, argv: list[str]) -> int:
    ends, _, settings = split_words(argv, {})
    config = _loaded(verb, settings).config
    if len(ends) < 2:
        raise ConfigError(f"use {COPY_USAGE}")
    _expect(ends, 2)
    from icefall.commands.copy import run_copy  # noqa: PLC0415 - no other verb needs it

    return run_copy(config, ends[0], ends[1], _print)


def _export(verb: str, argv: list[str]) -> int:
    words, flags, settings = split_words(argv, dict.fromkeys(EXPORT_FLAGS, True))
    config = _loaded(verb, settings).config
    _expect(words, 0)
    from icefall.commands.export import run_export  # noqa: PLC0415 - no other verb needs it

    return run_export(config, flags, _print)


def _config(verb: str, argv: list[str]) -> int:
    return _print(config_table(_loaded(verb, argv)))


def _completion(_: str, argv: list[str]) -> int:
    from icefall.config.completion import SHELLS, completion_script  # noqa: PLC0415

    if len(argv) != 1 or argv[0] not in SHELLS:
        raise ConfigError(f"use icefall completion {', '.join(SHELLS[:-1])} or {SHELLS[-1]}")
    words = {verb.name: tuple(word for word, _ in verb.words if word.islower()) for verb in VERBS}
    words["help"] = tuple(verb.name for verb in VERBS)
    return _print(completion_script(argv[0], {verb.name: verb.summary for verb in VERBS}, words))


def _help(_: str, argv: list[str]) -> int:
    _expect(argv, 1)
    return _print(_verb_help(_verb(argv[0])) if argv else _all_help())


def _version(_: str, argv: list[str]) -> int:
    _expect(argv, 0)
    return _print(f"icefall/{__version__}")


# fmt: off
VERBS = (
    Verb("up", "Everything on one machine: node, chain data, metrics and the Explorer.", _serve),
    Verb("node", "The node-local interfaces, of a local network or of a node that --upstream names.", _serve),
    Verb("data", "The chain data interface and the Explorer.", _serve),
    Verb("metrics", "The metrics interface.", _serve),
    Verb("index", "Follow the EVM chains of icefall.toml.", _index),
    Verb("keys", "Add, list or revoke API keys.", _keys, "add | list | revoke", (
        ("add", "A new key: --name=N for its owner, --tier=T for its budget (free, base, growth, pro)."),
        ("--admin", "With add: a key that may also store and remove ABIs over HTTP."),
        ("list", "All keys with their tiers; the keys themselves are stored nowhere."),
        ("revoke", "revoke N, or revoke --name=N: that key is refused from its next request on."))),
    Verb("abi", "Add, list or remove the ABIs of contracts.", _abi, "add | list | remove", (
        ("add", "add CHAIN ADDRESS FILE: a contract's ABI file, by which it is decoded."),
        ("list", "All ABIs that are stored."),
        ("remove", "remove CHAIN ADDRESS: its ABI is no longer used."))),
    Verb("webhooks", "Deliver messages of webhooks, or show and replay them.", _webhooks,
         "[list | show ID | replay ID | test ID]", (
        ("list", "All webhooks, with how many messages wait, were delivered and failed."),
        ("show", "show ID: its state, and its newest messages with what became of them."),
        ("replay", "replay ID --message=ID, or --first=BLOCK --last=BLOCK, or --since=TIME --until=TIME."),
        ("test", "test ID: sends a message that is about no transaction."))),
    Verb("exports", "Write files of exports of EVM chains that were ordered over the API; `up` writes all.", _exports),
    Verb("forget", "Delete what is stored of an EVM chain, after asking.", _forget, "CHAIN", (
        ("CHAIN", "Its EVM chain ID, or its name or an alias in icefall.toml."),
        ("--yes", "Do not ask."))),
    Verb("backup", "Copy every store of a running or stopped instance.", _backup, "DIR", (
        ("DIR", "A new directory. A backup that fails leaves nothing there."),)),
    Verb("restore", "Put a backup into an empty data directory.", _backup, "DIR", (
        ("DIR", "What `icefall backup` has written. It is checked first."),)),
    Verb("status", "Show programs, chains, stores, keys and errors of an instance.", _status, "", (
        ("--json", "For scripts."),)),
    Verb("migrate", "Create the stores, or bring them to this program's schema.", _migrate),
    Verb("copy", "Copy all stores into another data directory or server.", _copy, "SOURCE TARGET", (
        ("SOURCE", "A data directory, or postgresql://... ; nothing may write it meanwhile."),
        ("TARGET", "Another one. A copy that was stopped is resumed by the same command."))),
    Verb("export", "Write tables of a chain as CSV, JSON lines or Parquet files.", _export, "--chain=CHAIN", (
        ("--chain", "An EVM chain ID, or a name or an alias in icefall.toml; P or X."),
        ("--table", "Tables separated by commas, or all (default): docs/analysis.md lists them."),
        ("--from", "The first block; the lowest that is indexed if not given."),
        ("--to", "The last block, or latest (default): the newest block when the command starts."),
        ("--format", "csv (default), jsonl, or parquet, which needs icefall[parquet]."),
        ("--partition", "A file for each day, or range:N for every N blocks (default range:100000)."),
        ("--out", "A directory (default export). The same command later adds what is new."))),
    Verb("config", "Print every setting, its value and its origin.", _config),
    Verb("completion", "Print the completion script of a shell.", _completion, "bash | zsh | fish", (
        ("bash", "For ~/.local/share/bash-completion/completions/icefall."),
        ("zsh", "For a file _icefall in a folder of $fpath."),
        ("fish", "For ~/.config/fish/completions/icefall.fish."))),
    Verb("help", "This text, or `icefall help VERB` for the settings of a verb.", _help, "[VERB]"),
    Verb("version", "Print the version.", _version),
)
# fmt: on
# What people type who know other programs.
SYNONYMS = {
    **dict.fromkeys(("start", "run", "serve", "server", "daemon", "launch", "demo", "init"), "up"),
    **dict.fromkeys(("sync", "follow", "ingest", "verify"), "index"),
    **dict.fromkeys(("key", "token", "tokens", "apikeys", "api-keys"), "keys"),
    **dict.fromkeys(("delete", "remove", "rm", "drop", "reset", "clean", "purge", "prune"), "forget"),
    **dict.fromkeys(("ps", "health", "info", "top", "state", "list"), "status"),
    **dict.fromkeys(("dump", "snapshot", "save"), "backup"),
    **dict.fromkeys(("import", "load"), "restore"),
    **dict.fromkeys(("csv", "parquet", "download", "extract"), "export"),
    **dict.fromkeys(("settings", "env", "show"), "config"),
    **dict.fromkeys(("usage", "man", "?"), "help"),
}

USAGE = """\
usage: icefall {verb}

{about}

{details}"""
SETTINGS_NOTE = """\
A setting can also be given as ICEFALL_DATA_DIR=... in the environment or as data-dir = "..." in
icefall.toml. True or false is set by --name, --name=true, --name=false or --no-name."""
DETAILS = """\
`icefall help <verb>` lists the settings of a verb. `icefall index` follows EVM chains;
--index-enabled is the container index of the node."""


def main(argv: Sequence[str] | None = None) -> int:
    """The exit code of `icefall <argv>`. A refusal is one line on stderr.

    Whatever a verb creates is for its owner alone: stores with the files that SQLite puts beside them, logs, sockets.
    """
    before = os.umask(OWNER_ONLY)
    try:
        return _run(list(sys.argv[1:] if argv is None else argv))
    except StartRefused as error:
        print(f"icefall: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED
    finally:
        os.umask(before)


def _run(argv: list[str]) -> int:
    name, arguments = (argv[0], argv[1:]) if argv else ("--help", [])
    if name in HELP:
        return _print(_all_help())
    if "--version" in argv:
        return _version("version", [])
    if name.startswith("-"):
        raise ConfigError(f"the verb comes first, as in: icefall up {bare(name)}")
    verb = _verb(name)
    if any(word in HELP for word in arguments):
        return _print(_verb_help(verb))
    return verb.run(verb.name, arguments)


def _verb(name: str) -> Verb:
    names = [verb.name for verb in VERBS]
    if name not in names:
        meant = SYNONYMS.get(name.lower()) or close_match(name, names)
        hint = f"did you mean {meant}?" if meant else f"the verbs are {', '.join(names)}"
        raise ConfigError(f"unknown verb {bare(name)}; {hint}")
    return VERBS[names.index(name)]


def _all_help() -> str:
    verbs = "\n".join(f"  {verb.name:12}{verb.summary}" for verb in VERBS)
    return USAGE.format(verb="<verb> [--setting=value ...]", about=verbs, details=DETAILS)


def _verb_help(verb: Verb) -> str:
    """Its words, and the settings it uses."""
    settings = settings_help(verb.name)
    usage = " ".join(part for part in (verb.name, verb.usage, "[--setting=value ...]" if settings else "") if part)
    details = "\n".join(f"  {word:12}{text}" for word, text in verb.words)
    if settings:
        details = f"{details}\n\n{SETTINGS_NOTE}\n\n{settings}".lstrip("\n")
    return USAGE.format(verb=usage, about=verb.summary, details=details).rstrip()


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
