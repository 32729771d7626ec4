"""Which of many candidates are worth timing: those that the model finds best, and the best of each kind."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import NamedTuple

from ptxdsl.kernels.config import WGMMA, GemmConfig
from ptxdsl.schedule import StreamKThreadblockSwizzle

CLOSE = 3.0  # times what the model finds best: of each kind, only the best is timed beyond that
MOST = 24
USUAL = GemmConfig()


class TuningCandidate(NamedTuple):
    """A configuration to time; of the operands that `copied` names, "a", "b" or "ab", copies are made before, with
    better lines."""

    config: GemmConfig
    copied: str = ""

    @property
    def label(self) -> str:
        """Its name on disk: what is not usual in it."""
        told = ((field.name, getattr(self.config, field.name)) for field in fields(GemmConfig))
        unusual = [f"{name}={value!r}" for name, value in told if name != "epilogue" and value != getattr(USUAL, name)]
        copies = [f"copies of {' and '.join(self.copied)}"] if self.copied else []
        return ", ".join(copies + unusual) or "usual"

    @property
    def kind(self) -> str:
        """What tells it from others but for the tile, the length of the ring and copies."""
        return f"{self.config.atom} {_sharing(self.config)} {_roles(self.config)}"


def promising(timed: Iterable[tuple[float, TuningCandidate]]) -> list[TuningCandidate]:
    """MOST candidates at most: those that the model finds best, the best first, as far as they come CLOSE; and of each
    kind, the best one, however long the model says that it takes; not of mma.sync where wgmma is the best."""
    ordered = sorted(timed, key=lambda pair: pair[0])
    if not ordered:
        return []
    least, best = ordered[0]
    close = [candidate for time, candidate in ordered if time <= CLOSE * least]
    firsts: dict[str, TuningCandidate] = {}
    for _, candidate in ordered:
        if candidate.config.atom in (best.config.atom, WGMMA):
            firsts.setdefault(candidate.kind, candidate)
    kinds = [*firsts.values()][: MOST - 1]
    return [*dict.fromkeys([*close[: MOST - len(kinds)], *kinds, *close])][:MOST]


def _sharing(config: GemmConfig) -> str:
    """How blocks share tiles or copies."""
    if isinstance(config.schedule, StreamKThreadblockSwizzle):
        return "stream-k"
    if config.split_k > 1:
        return f"split {config.reduction}"
    return "clusters" if config.tile_schedule.multicast != (1, 1) else "whole"


def _roles(config: GemmConfig) -> str:
    """How warpgroups share tiles."""
    ways = {"swapped": config.swap_ab, "in turns": config.pingpong, "staggered": config.stagger > 0}
    return " ".join(name for name, is_so in ways.items() if is_so) or "together"
