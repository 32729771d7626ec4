"""Targets and directives, and the PTX version that each requires (PTX ISA, "Directives")."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import prod

from ..cached import cached_property

Version = tuple[int, int]

TARGETS: dict[str, Version] = {
    "sm_50": (4, 0), "sm_52": (4, 1), "sm_53": (4, 2),
    "sm_60": (5, 0), "sm_61": (5, 0), "sm_62": (5, 0),
    "sm_70": (6, 0), "sm_72": (6, 1), "sm_75": (6, 3),
    "sm_80": (7, 0), "sm_86": (7, 1), "sm_87": (7, 4), "sm_88": (9, 0), "sm_89": (7, 8),
    "sm_90": (7, 8), "sm_90a": (8, 0),
    "sm_100": (8, 6), "sm_100a": (8, 6), "sm_100f": (8, 8), "sm_101": (8, 6), "sm_101a": (8, 6), "sm_101f": (8, 8),
    "sm_103": (8, 8), "sm_103a": (8, 8), "sm_103f": (8, 8), "sm_110": (9, 0), "sm_110a": (9, 0), "sm_110f": (9, 0),
    "sm_120": (8, 7), "sm_120a": (8, 7), "sm_120f": (8, 8), "sm_121": (8, 8), "sm_121a": (8, 8), "sm_121f": (8, 8),
}  # fmt: skip
"""Supported targets, with the minimum `.version` of each."""

EARLIER: dict[str, Version] = {
    "sm_10": (1, 0), "sm_11": (1, 0), "sm_12": (1, 2), "sm_13": (1, 2), "sm_20": (2, 0), "sm_21": (2, 0),
    "sm_30": (3, 0), "sm_32": (4, 0), "sm_35": (3, 1), "sm_37": (4, 1),
}  # fmt: skip
"""Targets that assemblers no longer support. PTX may still name them, and runs on all later GPUs."""

FLUSHING = ("sm_10", "sm_11", "sm_12", "sm_13")
"""Targets whose f32 arithmetic always flushes subnormals to zero, as `.ftz` does on later ones."""

OLDEST: Version = (3, 1)
"""The minimum version that we print: assemblers do not compile older ones as a separate module."""

DIRECTIVES: dict[str, tuple[Version, int]] = {
    "noreturn": ((6, 4), 30),
    "branchtargets": ((6, 0), 30), "alias": ((6, 3), 30),
    "explicitcluster": ((7, 8), 90), "reqnctapercluster": ((7, 8), 90), "maxclusterrank": ((7, 8), 90),
    "blocksareclusters": ((9, 0), 90), "abi_preserve": ((9, 0), 80), "abi_preserve_control": ((9, 0), 80),
}  # fmt: skip
"""The (version, minimum sm) of directives that need more than `OLDEST`."""

COMMON: Version = (5, 0)
ATTRIBUTES: dict[str, tuple[Version, int]] = {"managed": ((4, 0), 30), "unified": ((8, 0), 90)}
INLINED_AT: Version = (7, 2)
WIDE_REGISTERS: tuple[Version, int] = ((8, 3), 70)
LARGE_PARAMETERS: tuple[Version, int] = ((8, 1), 70)
WARPGROUP = 128  # threads
REGISTER_FILE = 1 << 16  # registers of a multiprocessor, 32 bits each
LEAST_REGISTERS, MOST_REGISTERS = 24, 248  # of a thread, in steps of 8; 255 is what a thread can address
CLUSTER_BLOCKS = 16
"""Maximum blocks of a cluster; more than 8 must be allowed at launch and are not supported by every GPU."""
LARGE_PARAMETER_BYTES = 4352
"""Kernels with more parameter bytes need LARGE_PARAMETERS."""


def registers_at_launch(promised: Mapping[str, Sequence[int]]) -> int:
    """Return the registers per thread at launch, from the directives of a kernel; 0 if they do not determine it."""
    threads = prod(promised.get("reqntid") or promised.get("maxntid") or [0])
    if not threads or "maxnreg" in promised:
        return promised["maxnreg"][0] if threads else 0
    (blocks,) = promised.get("minnctapersm", [1])
    return min(MOST_REGISTERS, REGISTER_FILE // (threads * max(1, blocks)) // 8 * 8)


@cache
def has(arch: str, number: int, suffix: str) -> bool:
    """True if a target such as sm_90a supports a feature introduced by a compute capability.

    Suffix a: only that architecture. Suffix f: also later architectures of the family, which have the same tens digit.
    """
    have, feature = capability(arch)
    if suffix == "a":
        return have == number and feature == "a"
    if suffix == "f":
        return have // 10 == number // 10 and have >= number and feature != ""
    return have >= number


def capability(name: str) -> tuple[int, str]:
    """Return (90, "a") for "sm_90a" or "90a"."""
    parts = re.fullmatch(r"(?:sm_)?(\d+)([af]?)", name)
    assert parts, name
    return int(parts[1]), parts[2]


@dataclass(frozen=True)
class Requirement:
    """A minimum PTX version and the targets: `sm` and later, and at least one of each group in `only`.

    A group such as ("90a", "100f") lists architecture- or family-specific targets.
    """

    version: Version = (1, 0)
    sm: int = 10
    only: tuple[tuple[str, ...], ...] = ()

    def supports(self, arch: str) -> bool:
        """True if a target such as sm_90a meets the requirement."""
        return has(arch, self.sm, "") and all(any(has(arch, *capability(t)) for t in group) for group in self.only)

    def joined(self, *others: Requirement) -> Requirement:
        """Combine several requirements."""
        if not others:
            return self
        every = (self, *others)
        groups = dict.fromkeys(group for requirement in every for group in requirement.only)
        return Requirement(max(r.version for r in every), max(r.sm for r in every), tuple(groups))

    @cached_property
    def targets(self) -> tuple[str, ...]:
        """The minimum target; for specific targets, the minimum of each."""
        if not self.only:
            return (f"sm_{self.sm}",)
        names = sorted({name for group in self.only for name in group}, key=capability)
        return tuple(f"sm_{name}" for name in names if self.supports(f"sm_{name}"))

    @property
    def least(self) -> str:
        """The minimum target."""
        return self.targets[0]

    @property
    def words(self) -> str:
        """The targets as a list: "sm_80", "sm_90a, sm_100f or sm_120f"."""
        *first, last = self.targets
        return f"{', '.join(first)} or {last}" if first else last

    def __str__(self) -> str:
        """Return the targets for a sentence: "sm_80 or later", "sm_90a"."""
        return self.words if self.only else f"{self.words} or later"


NOTHING = Requirement()


def requirement(ptx: str, sm: int | str) -> Requirement:
    """Parse a requirement such as ("7.8", 90), ("8.0", "90a") or ("8.6", "100f 110f")."""
    major, minor = map(int, ptx.split("."))
    if isinstance(sm, int) or sm.isdigit():
        return Requirement((major, minor), int(sm))
    names = tuple(sm.split())
    return Requirement((major, minor), min(capability(name)[0] for name in names), (names,))
