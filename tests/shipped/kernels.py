"""The kernels that calls would launch, and what the assembler says of each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from unittest.mock import patch

from ptxdsl import config
from ptxdsl.errors import Error
from ptxdsl.kernel import Kernel
from ptxdsl.kernels.call.launching import residency
from ptxdsl.kernels.call.launching.launches import LaunchPlan
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from tests.shipped.calls import KINDS
from tests.shipped.drawing import Draw, TooLarge

ARCH = "sm_90a"
REFUSED = "TMA takes multiples of", "is not K-major"  # of arrays that have no other path


class Chosen(NamedTuple):
    """A kernel for some constants, by their names."""

    kernel: Kernel
    constants: tuple[tuple[str, Any], ...]

    def __str__(self) -> str:
        return f"{self.kernel.name}({', '.join(f'{name}={value!r}' for name, value in self.constants)})"

    @property
    def is_of_warpgroups(self) -> bool:
        return any(isinstance(value, WarpgroupTraits) for _, value in self.constants)

    def fault(self) -> str:
        """What is wrong with it, "" if nothing is: it cannot be traced; or the assembler lets products go one after
        another (C7510 and its like), spills registers, or warns of something else."""
        try:
            cubin = self.kernel.cubin(ARCH, **dict(self.constants))
        except Error as refusal:
            return refusal.message
        needs = cubin.kernels[self.kernel.name]
        spills = needs.spill_store_bytes or needs.spill_load_bytes or needs.stack_bytes
        return "; ".join([*cubin.warnings, *([str(needs)] if spills else [])])


@contextmanager
def recorded() -> Iterator[list[Chosen]]:
    """The kernels of all launches within, of which none is made. Blocks are as many as a GPU holds of the largest."""
    kernels: list[Chosen] = []

    def record(plan: LaunchPlan) -> None:
        for before in plan.before:
            record(before)
        kernels.append(Chosen(plan.kernel, tuple(plan.constants.items())))

    with (
        config.using(arch=ARCH),
        patch.object(LaunchPlan, "run", record),
        patch.object(residency, "_resident_blocks", lambda *_, **__: residency.EMULATED),
    ):
        yield kernels


def chosen(seed: int) -> list[Chosen]:
    """The kernels of warpgroups that a drawn call chooses; none where its arrays are refused, or it takes the other path.
    Raises AssertionError where it is refused for anything else: what is chosen has to fit."""
    draw = Draw(seed)
    call = draw.random.choices([*KINDS], [*KINDS.values()])[0]
    with recorded() as kernels:
        try:
            call(draw)
        except TooLarge:
            return []
        except Error as error:
            if not any(of_arrays in error.message for of_arrays in REFUSED):
                raise AssertionError(f"seed {seed}, {call.__name__}: {error}") from error
            return []
    return [kernel for kernel in kernels if kernel.is_of_warpgroups]
