"""The kernel of a call: what its caller chooses, what the arrays say, and what the GPU has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ptxdsl.errors import LaunchError
from ptxdsl.kernels.call.group import Matrices
from ptxdsl.kernels.call.matrix import WIDEST_ACCESS, Matrix
from ptxdsl.kernels.config import ROWS_OF_EIGHT, WGMMA, GemmConfig, specialise
from ptxdsl.kernels.operands import Extra, Operands
from ptxdsl.kernels.store.function import canonical
from ptxdsl.kernels.tiles.choice import Schedule
from ptxdsl.kernels.traits import Traits
from ptxdsl.runtime.dispatch import target
from ptxdsl.schedule import BatchedIdentityThreadblockSwizzle


class Choice(NamedTuple):
    """What a caller says of the kernel. The others replace what `config` says, and None leaves them to it; without a
    config the rest is chosen."""

    config: GemmConfig | None = None
    schedule: Schedule | None = None
    split_k: int | None = None
    reduction: str | None = None
    epilogue: Callable[..., Any] | None = None

    @property
    def is_scheduled(self) -> bool:
        """Whether it says which blocks compute a tile."""
        return self.schedule is not None or self.split_k is not None

    def of(self, config: GemmConfig) -> GemmConfig:
        """A configuration with what is said beside it. Raises LaunchError for what is no such value."""
        check_is_config(config)
        said = {"schedule": self.schedule, "split_k": self.split_k, "reduction": self.reduction}
        known = {field: value for field, value in said.items() if value is not None}
        return specialise(config, epilogue=self.epilogue, **known)


def settled(config: GemmConfig | None) -> GemmConfig | None:
    """A configuration of a call whose function is known by all that it reads now."""
    epilogue = getattr(config, "epilogue", None)
    return config if config is None or epilogue is None else specialise(config, epilogue=canonical(epilogue))


def for_batches(config: GemmConfig) -> GemmConfig:
    """A configuration of batches: z of the grid counts them past 65535 too, where no other schedule is asked for."""
    if config.schedule != ROWS_OF_EIGHT:
        return config
    return specialise(config, schedule=BatchedIdentityThreadblockSwizzle())


def configure(config: GemmConfig, operands: Operands, device: int | None, takes_warpgroups: bool = False) -> Traits:
    """What the kernel is made for, by a configuration, on a GPU.

    Raises LaunchError for what that has not enough of, and for a path on which there is no such kernel.
    """
    if config.atom == WGMMA and not takes_warpgroups:
        raise LaunchError(
            'GemmConfig: atom is "wgmma", which gemm takes for matrices, and for batches in one array, and '
            "grouped_gemm_ragged and grouped_gemm_masked for groups of rows",
            help="leave atom out here",
        )
    arch = target(device)
    traits = config.traits(operands, arch)
    traits.check(arch)
    return traits


def check_mappable(k: int, *inputs: Matrix) -> None:
    """Raises LaunchError for A and B that tensor copies cannot address."""
    if k == 0:
        raise LaunchError('atom is "wgmma", and K is 0: there is nothing to multiply', help="leave atom out")
    for matrix in inputs:
        if matrix.is_mappable:
            continue
        apart, planes = matrix.stride * matrix.type.bytes, matrix.batch_stride * matrix.type.bytes
        matrices = f", and matrices {planes} bytes apart" if (matrix.batches or 1) > 1 else ""
        raise LaunchError(
            f"`{matrix.name}` has lines {apart} bytes apart{matrices} from the address {matrix.array.pointer:#x} on; "
            f"tensor copies take multiples of {WIDEST_ACCESS} bytes{', 0 or more' if planes < 0 else ''}",
            help="pad its lines, or leave atom out: then such arrays are copied otherwise",
        )


def facts(
    a: Matrix | Matrices,
    b: Matrix | Matrices,
    c: Matrix | Matrices | None,
    out: Matrix | Matrices,
    widths: tuple[int, int, int],
    *,
    in_place: bool = False,
    batches: str = "none",
    extras: tuple[Extra, ...] = (),
) -> Operands:
    """What row-major arrays say of their kernel; `widths` are the bytes of a copy of a, b, and c and out."""
    a_bytes, b_bytes, out_bytes = widths
    return Operands(
        inputs=a.type,
        output=out.type,
        a_major="k" if a.major == "row" else "mn",
        b_major="k" if b.major == "column" else "mn",
        a_bytes=a_bytes,
        b_bytes=b_bytes,
        out_bytes=out_bytes,
        c="none" if c is None else "in place" if in_place else "separate",
        c_major=c.major if c else "row",
        batches=batches,
        extras=extras,
    )


def narrower(out: Matrix | Matrices, c: Matrix | Matrices | None, columns: Any) -> int:
    """The bytes of a copy that suits both, with rows of so many columns."""
    return out.widest(columns) if c is None else min(out.widest(columns), c.widest(columns))


def check_is_config(config: object) -> None:
    """Raises LaunchError for what is no configuration; None is for one that is chosen."""
    if config is not None and not isinstance(config, GemmConfig):
        raise LaunchError(f"`config` is {config!r}", help="pass a GemmConfig, such as GemmConfig(tile=(64, 64, 32))")


def check_is_bool(name: str, value: object) -> None:
    """Raises LaunchError for what is neither true nor false."""
    if not isinstance(value, bool | np.bool_):
        raise LaunchError(f"`{name}` is {value!r}", help="pass True or False")
