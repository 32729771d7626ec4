"""The command `ptxdsl completion`: print a completion script for a shell, generated from the parsers of the verbs."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from ptxdsl import cli

DESCRIPTION = "Print a completion script for a shell: commands, options and the values of options."
SHELLS = ("bash", "zsh", "fish")
EPILOG = """\
examples
  ptxdsl completion bash > ~/.local/share/bash-completion/completions/ptxdsl
  ptxdsl completion zsh > ~/.zfunc/_ptxdsl      with fpath+=(~/.zfunc) before compinit in ~/.zshrc
  ptxdsl completion fish > ~/.config/fish/completions/ptxdsl.fish
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("shell", choices=SHELLS, help="the shell to print a script for")


def run(options: argparse.Namespace) -> int:
    print({"bash": bash, "zsh": zsh, "fish": fish}[options.shell](), end="")
    return 0


def options_of(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """Return the options of a parser and of its sub-parsers, in order, without duplicates."""
    options = {tuple(action.option_strings): action for action in reversed([*_actions(parser)])}
    return [action for flags, action in reversed(options.items()) if flags]


def _help(action: argparse.Action) -> str:
    return (action.help or "").partition("\n")[0].replace("%%", "%")


def _choices(action: argparse.Action) -> str:
    return " ".join(map(str, action.choices or ()))


def words_of(parser: argparse.ArgumentParser) -> list[str]:
    """Return the words that a verb accepts as positional arguments, such as `list` and `clear` of `cache`."""
    return [str(word) for action in _actions(parser) if not action.option_strings for word in action.choices or ()]


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                yield from _actions(inner)


def _verbs() -> dict[str, argparse.ArgumentParser]:
    parser = cli.parser_of(*cli.VERBS)
    verbs = next(action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    return dict(verbs.choices)


def bash() -> str:
    """Return the script for bash."""
    cases, values = [], []
    for verb, parser in _verbs().items():
        options = options_of(parser)
        words = [flag for option in options for flag in option.option_strings] + words_of(parser)
        cases.append(f"    {verb}) words='{' '.join(words)}' ;;")
        for option in options:
            if option.choices:
                flags = "|".join(f"{verb}:{flag}" for flag in option.option_strings)
                values.append(f"    {flags}) words='{_choices(option)}' ;;")
    return BASH.format(verbs=" ".join(cli.VERBS), cases="\n".join(cases), values="\n".join(values))


BASH = """\
# bash completion of ptxdsl
_ptxdsl() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" verb="${{COMP_WORDS[1]}}" words=''
  COMPREPLY=()
  if [ "$COMP_CWORD" -le 1 ]; then
    COMPREPLY=($(compgen -W '{verbs} --help --version' -- "$current"))
    return
  fi
  case "$verb" in
{cases}
  esac
  case "$verb:${{COMP_WORDS[COMP_CWORD-1]}}" in
{values}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -F _ptxdsl ptxdsl
"""


def zsh() -> str:
    """Return the script for zsh."""
    verbs = "\n".join(f"    {_quoted(f'{verb}:{help}')}" for verb, help in cli.VERBS.items())
    cases = []
    for verb, parser in _verbs().items():
        specs = [_zsh_option(flag, option) for option in options_of(parser) for flag in option.option_strings]
        words = words_of(parser)
        specs.append(_quoted(f"*:argument:({' '.join(words)})") if words else "'*:target:_files'")
        cases.append(f"    {verb}) _arguments {' '.join(specs)} ;;")
    return ZSH.format(verbs=verbs, cases="\n".join(cases))


def _zsh_option(flag: str, option: argparse.Action) -> str:
    help = _help(option).replace("[", "(").replace("]", ")").replace(":", "\\:")
    value = f":value:({_choices(option)})" if option.choices else ":value:_files" if option.nargs != 0 else ""
    return _quoted(f"*{flag}[{help}]{value}")


ZSH = """\
#compdef ptxdsl
_ptxdsl() {{
  local -a verbs
  verbs=(
{verbs}
  )
  if (( CURRENT == 2 )); then
    _describe command verbs
    return
  fi
  shift words
  (( CURRENT-- ))
  case "$words[1]" in
{cases}
  esac
}}
if [ "$funcstack[1]" = _ptxdsl ]; then
  _ptxdsl "$@"
else
  compdef _ptxdsl ptxdsl
fi
"""


def fish() -> str:
    """Return the script for fish."""
    lines = ["# fish completion of ptxdsl"]
    lines += [f"complete -c ptxdsl -n __fish_use_subcommand -a {v} -d {_fish(help)}" for v, help in cli.VERBS.items()]
    for verb, parser in _verbs().items():
        start = f"complete -c ptxdsl -n '__fish_seen_subcommand_from {verb}'"
        for option in options_of(parser):
            spelled = " ".join(f"-l {f[2:]}" if f.startswith("--") else f"-s {f[1:]}" for f in option.option_strings)
            value = f" -xa '{_choices(option)}'" if option.choices else " -r" if option.nargs != 0 else ""
            lines.append(f"{start} {spelled}{value} -d {_fish(_help(option))}")
        if words := words_of(parser):
            lines.append(f"{start} -a '{' '.join(words)}'")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _fish(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
