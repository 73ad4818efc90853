"""Settings given on the command line and in the environment."""

from collections.abc import Mapping, Sequence

from icefall.config.kinds import FLAG, written
from icefall.config.settings import ALL, SETTINGS
from icefall.config.values import ConfigError, GivenValue, ValueSource, bare, nearest, read

VARIABLE_PREFIX = "ICEFALL_"
RESERVED_PREFIXES = ("ICEFALL_TEST_", "ICEFALL_FUZZ_", "ICEFALL_BENCH_")  # for our own tools, never settings
_BY_VARIABLE = {setting.variable: setting for setting in SETTINGS}
_BY_FLAG = {setting.flag: setting for setting in SETTINGS}
_BY_FLAG |= {f"--no-{setting.name}": setting for setting in SETTINGS if setting.kind is FLAG}


def read_arguments(verb: str, argv: Sequence[str], source: ValueSource) -> dict[str, GivenValue]:
    """Flags as `--name=value`, `--name value`, or for those that are true or false `--name` and `--no-name`."""
    given, words, switch = (
        {},
        list(reversed(argv)),
        "",
    )  # `switch`: the last word, if it was `--name` of a true or false
    while words:
        word = words.pop()
        flag, equals, text = word.partition("=")
        setting = _BY_FLAG.get(flag)
        if setting is None and word.startswith("-"):
            valid = [other for other, setting in _BY_FLAG.items() if verb in setting.verbs]
            raise ConfigError(f"unknown setting {bare(flag)}; {nearest(flag, valid)}")
        if setting is None:
            hint = f"; write {switch}={word}" if switch and word in ("true", "false") else ""
            raise ConfigError(f"unexpected argument {written(word)}{hint}")
        negated = flag != setting.flag
        if negated and equals:
            raise ConfigError(f"{flag} takes no value; write {setting.flag}=true or {setting.flag}=false")
        if setting.kind is not FLAG and not equals and (not words or words[-1].startswith("--")):
            raise ConfigError(f"{flag} needs a value: {setting.kind.shape}")
        if verb not in setting.verbs:
            others = " and ".join(other for other in setting.verbs if other != ALL)
            raise ConfigError(f"{flag} is a setting of icefall {others}, not of icefall {verb}")
        switch = flag if setting.kind is FLAG and not equals and not negated else ""
        if not equals:
            text = words.pop() if setting.kind is not FLAG else "false" if negated else "true"
        given[setting.name] = read(setting, text, source, flag)
    return given


def split_words(argv: Sequence[str], flags: Mapping[str, bool]) -> tuple[list[str], dict[str, str], list[str]]:
    """The arguments of a verb that has words of its own: its words, its own flags with their values, the settings.

    `flags`: the flags, and whether each takes a value; one that does not has the value `true`.
    """
    words, own, settings, left = [], {}, [], list(reversed(argv))
    while left:
        word = left.pop()
        flag, equals, text = word.partition("=")
        name, setting = flag.removeprefix("--"), _BY_FLAG.get(flag)
        if not word.startswith("-"):
            words.append(word)
        elif flag.startswith("--") and name in flags:
            if flags[name] and not equals and (not left or left[-1].startswith("--")):
                raise ConfigError(f"{flag} needs a value")
            if equals and not flags[name]:
                raise ConfigError(f"{flag} takes no value")
            own[name] = text if equals else left.pop() if flags[name] else "true"
        else:
            settings.append(word)
            if setting is not None and setting.kind is not FLAG and not equals and left:
                settings.append(left.pop())
    return words, own, settings


def read_variables(source: ValueSource) -> dict[str, GivenValue]:
    given = {}
    for name, text in sorted(source.environ.items()):
        if not name.startswith(VARIABLE_PREFIX) or name.startswith(RESERVED_PREFIXES):
            continue
        if name not in _BY_VARIABLE:
            raise ConfigError(f"unknown setting {bare(name)}; {nearest(name, _BY_VARIABLE)}")
        setting = _BY_VARIABLE[name]
        given[setting.name] = read(setting, text, source, name)
    return given
