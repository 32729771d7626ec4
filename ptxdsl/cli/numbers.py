"""Bounded numbers on the command line."""

from __future__ import annotations

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


def seed(text: str) -> int:
    """Read the seed of random numbers."""
    if not text.isdecimal():
        raise UsageError(f"--seed {text} is not a seed: write a whole number of 0 or more")
    return at_most("--seed", text, 2**64 - 1)
