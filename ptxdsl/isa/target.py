"""Targets and directives, and the PTX version that each of them needs (PTX ISA, "Directives")."""

from __future__ import annotations

import re

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
"""Every target that we write PTX for, with the least `.version` that knows it."""

OLDEST: Version = (3, 1)
"""The least version that we print: assemblers compile nothing older as a separate module."""

DIRECTIVES: dict[str, tuple[Version, int]] = {
    "noreturn": ((6, 4), 30),
    "branchtargets": ((6, 0), 30), "alias": ((6, 3), 30),
    "explicitcluster": ((7, 8), 90), "reqnctapercluster": ((7, 8), 90), "maxclusterrank": ((7, 8), 90),
    "blocksareclusters": ((9, 0), 90), "abi_preserve": ((9, 0), 80), "abi_preserve_control": ((9, 0), 80),
}  # fmt: skip
"""What a directive needs, as (version, least sm), where that is more than `OLDEST`."""

COMMON: Version = (5, 0)
ATTRIBUTES: dict[str, tuple[Version, int]] = {"managed": ((4, 0), 30), "unified": ((8, 0), 90)}
INLINED_AT: Version = (7, 2)
WIDE_REGISTERS: tuple[Version, int] = ((8, 3), 70)
LARGE_PARAMETERS: tuple[Version, int] = ((8, 1), 70)
LARGE_PARAMETER_BYTES = 4352
"""More parameter bytes than this need LARGE_PARAMETERS."""


def has(arch: str, number: int, suffix: str) -> bool:
    """Whether a target such as sm_90a has what a compute capability introduced.

    Suffix a: in that architecture only. Suffix f: also in later ones of its family, whose number has the same tens.
    """
    parts = re.fullmatch(r"sm_(\d+)([af]?)", arch)
    assert parts, arch
    have = int(parts[1])
    if suffix == "a":
        return have == number and parts[2] == "a"
    if suffix == "f":
        return have // 10 == number // 10 and have >= number and parts[2] != ""
    return have >= number
