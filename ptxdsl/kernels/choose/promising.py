"""The candidates that are worth timing: those with the least estimates, and the best of each kind."""

from __future__ import annotations

from collections.abc import Iterable
from operator import itemgetter
from typing import NamedTuple

from ptxdsl.kernels.config import WGMMA, GemmConfig

CLOSE, MOST = 3.0, 24  # times the least estimate; candidates that are timed


class TuningCandidate(NamedTuple):
    """A configuration to time, after copies of the operands that `copied` names, "a", "b" or "ab". Groups are launched
    with what their kernel makes of a configuration that is chosen, of which `chosen` is the label."""

    config: GemmConfig
    copied: str = ""
    chosen: str = ""

    @property
    def label(self) -> str:
        """The name of the configuration in tables of measured winners, with the copies before it."""
        copies = [f"copies of {' and '.join(self.copied)}"] if self.copied else []
        return ", ".join([*copies, self.chosen or self.config.label])

    @property
    def kind(self) -> str:
        """The kind of its kernel: the words of its label."""
        words = [word for word in self.config.label.split() if not any(map(str.isdigit, word))]
        return " ".join([self.config.atom, *words])


def promising(timed: Iterable[tuple[float, TuningCandidate]]) -> list[TuningCandidate]:
    """Return up to MOST candidates, the least estimate first: those that come CLOSE to it, and the first of each kind
    of kernel, of which the estimate may be wrong; not of mma.sync if wgmma has the least."""
    ranked = sorted(timed, key=itemgetter(0))
    ordered = [candidate for _, candidate in ranked]
    close = [candidate for time, candidate in ranked if time <= CLOSE * ranked[0][0]]
    firsts: dict[str, TuningCandidate] = {}
    for each in ordered:
        if each.config.atom in (ordered[0].config.atom, WGMMA):
            firsts.setdefault(each.kind, each)
    kinds = [*firsts.values()][: MOST - 1]
    return [*dict.fromkeys([*close[: MOST - len(kinds)], *kinds, *close])][:MOST]
