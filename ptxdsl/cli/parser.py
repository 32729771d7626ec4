"""The argument parser of the command: each verb refuses unknown options and suggests the intended one."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from ptxdsl.config import ARCHITECTURES
from ptxdsl.errors import meant

_FIXES = {
    **dict.fromkeys(("--target", "--gpu-architecture", "--sm", "--gpu-arch"), "did you mean `--arch`?"),
    **{
        f"--{name}": f"it is a setting: put PTXDSL_{name.upper()}={value} in front of the command"
        for name, value in (("schedule", "random"), ("checks", "off"), ("steps", "100000"), ("spills", "warn"))
    },
}


class CommandParser(argparse.ArgumentParser):
    """An argument parser whose verbs report unknown options and misspelt choices, with a suggestion."""

    _words: Sequence[str] = ()

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse as argparse does; a verb refuses unknown options itself, because it has the list to suggest from."""
        self._words = list(args or ())
        known, others = super().parse_known_args(args, namespace)
        if others and not any(isinstance(action, argparse._SubParsersAction) for action in self._actions):
            self.error(self._unknown(others))
        return known, others

    def _unknown(self, words: Sequence[str]) -> str:
        flags = [word.partition("=")[0] for word in words if word.startswith("-")]
        if not flags:
            targets = "; separate targets by commas, without spaces" if words[0] in ARCHITECTURES else ""
            return f"unexpected arguments: {' '.join(words)}{targets}"
        near = meant(flags[0], [flag for action in self._actions for flag in action.option_strings], _FIXES)
        return f"there is no option {flags[0]}" + (f"; {near}" if near else "")

    def error(self, message: str) -> NoReturn:
        """Report as argparse does; if an option with an optional value took a positional argument, name that option."""
        greedy = [flag for a in self._actions if a.nargs == "?" for flag in a.option_strings if flag in self._words]
        if "are required" in message and greedy:
            message = f"{message}; write it before {greedy[0]}, which takes the next word as its value"
        super().error(message)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Check as argparse does, with a suggestion."""
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            choices: Iterable[Any] = action.choices or ()
            if near := meant(str(value), list(map(str, choices))):
                error.message = f"{error.message}; {near}"
            raise
