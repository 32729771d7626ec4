"""Bounded numbers on the command line."""

from __future__ import annotations

from collections.abc import Callable

from ptxdsl.cli.process import UsageError

MOST = 2**31 - 1  # kernels count in 32 bits
_SHOWN_DIGITS = 20


def at_most(flag: str, digits: str, most: int = MOST) -> int:
    """Convert decimal digits to a number. Raises UsageError if it is more than `most`."""
    number = int(digits) if len(digits) <= _SHOWN_DIGITS else most + 1
    if number > most:
        shown = digits if len(digits) <= _SHOWN_DIGITS else f"{digits[:_SHOWN_DIGITS]}…"
        raise UsageError(f"{flag} {shown} is too large: the limit is {most}")
    return number


def number(flag: str, least: int = 0, most: int = MOST) -> Callable[[str], int]:
    """Return the reader of an option that is a whole number."""

    def read(text: str) -> int:
        if not text.isdecimal() or at_most(flag, text, most) < least:
            raise UsageError(f"{flag} {text} is not a number of {least} or more", help=f"for example {flag} 8")
        return int(text)

    return read


seed = number("--seed", most=2**64 - 1)
