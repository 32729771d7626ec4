"""The parser of the command: each verb refuses its own options, with what was meant."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from typing import Any

from ptxdsl.errors import meant


class CommandParser(argparse.ArgumentParser):
    """An argument parser whose verbs tell of options that they do not have, and of choices that are misspelt."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As argparse does; a verb refuses what it does not know, for it knows what it takes."""
        known, others = super().parse_known_args(args, namespace)
        if others and not any(isinstance(action, argparse._SubParsersAction) for action in self._actions):
            self.error(self._unknown(others))
        return known, others

    def _unknown(self, words: Sequence[str]) -> str:
        flags = [word.partition("=")[0] for word in words if word.startswith("-")]
        if not flags:
            return f"there is nothing that takes {' '.join(words)}"
        near = meant(flags[0], [flag for action in self._actions for flag in action.option_strings])
        return f"there is no option {flags[0]}" + (f"; {near}" if near else "")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """As argparse does, with what was meant."""
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            choices: Iterable[Any] = action.choices or ()
            if near := meant(str(value), list(map(str, choices))):
                error.message = f"{error.message}; {near}"
            raise
