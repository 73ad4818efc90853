"""`icefall completion bash | zsh | fish`: the script with which a shell completes verbs and settings."""

from collections.abc import Mapping

from icefall.config.settings import SETTINGS, Setting
from icefall.config.types import FLAG

SHELLS = ("bash", "zsh", "fish")

_BASH = """\
# bash completion of icefall; for example: icefall completion bash > ~/.local/share/bash-completion/completions/icefall
_icefall() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} words=""
  if [ "$COMP_CWORD" -eq 1 ]; then
    words="{verbs}"
  else
    case "${{COMP_WORDS[1]}}" in
{cases}
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  if [[ ${{#COMPREPLY[@]}} -eq 1 && ${{COMPREPLY[0]}} == *= ]]; then compopt -o nospace; fi
}}
complete -o default -F _icefall icefall
"""

_ZSH = """\
#compdef icefall
# zsh completion of icefall; for example: icefall completion zsh > "${{fpath[1]}}/_icefall"
_icefall() {{
  local -a verbs
  verbs=(
{verbs}
  )
  if (( CURRENT == 2 )); then
    _describe verb verbs
    return
  fi
  case "${{words[2]}}" in
{cases}
  esac
}}
_icefall "$@"
"""


def completion_script(shell: str, verbs: Mapping[str, str], words: Mapping[str, tuple[str, ...]]) -> str:
    """`verbs`: all of them with their summaries; `words`: those that a verb takes besides settings."""
    return {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell](verbs, words)


def _of(verb: str) -> list[Setting]:
    return [setting for setting in SETTINGS if verb in setting.verbs]


def _bash(verbs: Mapping[str, str], words: Mapping[str, tuple[str, ...]]) -> str:
    cases = []
    for verb in verbs:
        flags = [one.flag if one.value_type is FLAG else f"{one.flag}=" for one in _of(verb)]
        cases.append(f'      {verb}) words="{" ".join([*words.get(verb, ()), *flags, "--help"])}" ;;')
    return _BASH.format(verbs=" ".join(verbs), cases="\n".join(cases))


def _zsh(verbs: Mapping[str, str], words: Mapping[str, tuple[str, ...]]) -> str:
    listed = "\n".join(f"    {_quoted(f'{verb}:{summary}')}" for verb, summary in verbs.items())
    cases = []
    for verb in verbs:
        specs = [_quoted(_zsh_spec(one)) for one in _of(verb)]
        specs += [_quoted(f"{word}[]") for word in words.get(verb, ()) if word.startswith("-")]
        plain = [word for word in words.get(verb, ()) if not word.startswith("-")]
        specs += [_quoted(f"2:word:({' '.join(plain)})")] if plain else [_quoted("*:file:_files")]
        cases.append("\n".join([f"    {verb}) _arguments \\", *(f"      {spec} \\" for spec in specs), "      ;;"]))
    return _ZSH.format(verbs=listed, cases="\n".join(cases))


def _zsh_spec(setting: Setting) -> str:
    summary = setting.help.replace("[", "(").replace("]", ")")
    if setting.value_type is FLAG:
        return f"{setting.flag}[{summary}]"
    action = f"({' '.join(_choices(setting))})" if setting.value_type.is_choice else "_files"
    return f"{setting.flag}=[{summary}]:{setting.name}:{action}"


def _fish(verbs: Mapping[str, str], words: Mapping[str, tuple[str, ...]]) -> str:
    lines = [
        "# fish completion of icefall; for example: icefall completion fish > ~/.config/fish/completions/icefall.fish"
    ]
    for verb, summary in verbs.items():
        lines.append(f"complete -c icefall -f -n __fish_use_subcommand -a {verb} -d {_quoted(summary)}")
        used = f"-n '__fish_seen_subcommand_from {verb}'"
        for word in words.get(verb, ()):
            how = f"-l {word[2:]}" if word.startswith("--") else f"-a {word}"
            lines.append(f"complete -c icefall -f {used} {how}")
        for one in _of(verb):
            value = "" if one.value_type is FLAG else " -r"
            if one.value_type.is_choice:
                value = f" -x -a {_quoted(' '.join(_choices(one)))}"
            lines.append(f"complete -c icefall {used} -l {one.name}{value} -d {_quoted(one.help)}")
    return "\n".join(lines)


def _choices(setting: Setting) -> list[str]:
    return setting.value_type.shape.replace(" or ", ", ").split(", ")


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "") + "'"
