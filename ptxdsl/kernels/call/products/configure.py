"""From a configuration to the traits of a kernel: options of the caller, facts of the arrays, limits of the GPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ptxdsl.errors import LaunchError
from ptxdsl.kernels.call.matrices import Matrices
from ptxdsl.kernels.call.matrix import WIDEST_ACCESS, Matrix, describe_type
from ptxdsl.kernels.config import NO_OPERANDS, ROWS_OF_EIGHT, WGMMA, GemmConfig, LeftOut, specialise
from ptxdsl.kernels.product.operands import FP8, Extra, Operands, Scaling
from ptxdsl.kernels.sm90.boxes import LINE_BYTES
from ptxdsl.kernels.sm90.tiling import INPUTS, TURNED
from ptxdsl.kernels.store.function import array_of, canonical, epilogue_of, sequence_of
from ptxdsl.kernels.tiles.resolve import Schedule
from ptxdsl.kernels.traits.traits import Traits
from ptxdsl.runtime.dispatch import target
from ptxdsl.schedule import BatchedIdentityThreadblockSwizzle
from ptxdsl.types import Type

SQUARE = 128, 128  # M and N of the tile of a configuration of wgmma that names none


class Choice(NamedTuple):
    """The options of a caller. `schedule`, `split_k`, `reduction` and `epilogue` override those of `config`; without a
    config, the rest is chosen."""

    config: GemmConfig | None = None
    schedule: Schedule | None = None
    split_k: int | None = None
    reduction: str | None = None
    epilogue: Callable[..., Any] | None = None

    @property
    def is_scheduled(self) -> bool:
        """True if the caller assigns tiles to blocks."""
        return self.schedule is not None or self.split_k is not None

    def check(self) -> None:
        """Raise LaunchError for values of types that no schedule, split of K or reduction has: they are compared before
        a configuration checks them."""
        if not _is_hashable(self.schedule):
            raise LaunchError(
                f"schedule is {self.schedule!r}; it takes one schedule, a value of ptxdsl.schedule",
                help="such as IdentityThreadblockSwizzle(8), PersistentScheduler() or StreamKThreadblockSwizzle()",
            )
        if self.split_k is not None and type(self.split_k) is not int:
            GemmConfig(split_k=self.split_k)
        reduction: Any = self.reduction
        if reduction is not None and not isinstance(reduction, str):
            GemmConfig(reduction=reduction)

    def of(self, config: GemmConfig) -> GemmConfig:
        """Return a configuration with these options. Raises LaunchError for invalid values."""
        check_is_config(config)
        said = {"schedule": self.schedule, "split_k": self.split_k, "reduction": self.reduction}
        known = {field: value for field, value in said.items() if value is not None}
        return specialise(config, epilogue=self.epilogue, **known)


def _is_hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def fused(
    arrays: tuple[Any, ...], config: Any, epilogue: Callable[..., Any] | None, operands: Sequence[object]
) -> tuple[tuple[Any, ...], Any, Callable[..., Any] | None, Sequence[object]]:
    """Return the arrays of a call with those of its epilogue operands, the configuration without its epilogue, the
    epilogue, represented by one function for all equal ones, and its operands."""
    if operands is not NO_OPERANDS:
        operands = sequence_of(operands)
        arrays += tuple(map(array_of, operands))
    if config is not None or epilogue is not None:
        epilogue = canonical(epilogue_of(config, epilogue), len(operands))
        config = getattr(config, "without_epilogue", config)
    return arrays, config, epilogue, operands


def check_not_split(slices: object) -> None:
    """Raise LaunchError for a split of K in batches."""
    if type(slices) is int and slices > 1:
        raise LaunchError(
            f"split_k is {slices}, and the products are batches: each of them is computed by blocks of its own",
            help="leave split_k out, or call gemm for each of the batches",
        )


def for_batches(config: GemmConfig) -> GemmConfig:
    """Return a configuration for batches: by default the grid's z counts them, also past 65535."""
    if config.schedule != ROWS_OF_EIGHT:
        return config
    return specialise(config, schedule=BatchedIdentityThreadblockSwizzle())


def configure(
    config: GemmConfig,
    operands: Operands,
    device: int | None,
    takes_warpgroups: bool = False,
    shares_copies: bool = False,
) -> Traits:
    """Return the traits of a kernel for a configuration on a GPU.

    Raises LaunchError if the GPU lacks resources, or if the path has no such kernel.
    """
    if not shares_copies:
        check_copies(config)
    if config.atom == WGMMA and not takes_warpgroups:
        raise LaunchError(
            'GemmConfig: atom is "wgmma", which this call does not take; gemm, grouped_gemm with schedule="device", '
            "grouped_gemm_ragged, grouped_gemm_masked, grouped_gemm_ragged_k, conv2d and its gradients, and the scaled "
            "products take it",
            help="leave atom out here",
        )
    arch = target(device)
    traits = _with_tile(config, operands).traits(operands, arch)
    traits.check(arch)
    return traits


def _with_tile(config: GemmConfig, operands: Operands) -> GemmConfig:
    """Return the configuration, with a square tile if it asks for wgmma without a tile."""
    if config.atom != WGMMA or not isinstance(config.tile, LeftOut):
        return config
    return specialise(config, tile=(*SQUARE, LINE_BYTES // operands.inputs.bytes))


def check_copies(config: GemmConfig) -> None:
    """Raise LaunchError for multicast schedules, where no kernel supports them."""
    if config.tile_schedule.multicast != (1, 1):
        raise LaunchError(
            f"schedule is {config.schedule!r}, whose blocks share TMA loads, and this call has no such kernel",
            help="leave it out here",
        )


def by_wgmma(inputs: Type, output: Type | None = None) -> tuple[str, str]:
    """Return why a product uses wgmma, and the end of the help text if other instructions support its types."""
    if inputs in FP8:
        return f"`a` and `b` are {describe_type(inputs)}, which takes wgmma", ""
    if output in FP8:
        return f"`out` is {describe_type(output)}, which takes wgmma", ""
    return 'atom is "wgmma"', ", or leave atom out"


def are_mappable(k: int, a: Matrix, b: Matrix) -> bool:
    """Return True if TMA can load A and B in an order that wgmma reads."""
    return is_read_by_wgmma(a, b) and k > 0 and a.is_mappable and b.is_mappable


def is_read_by_wgmma(a: Matrix, b: Matrix) -> bool:
    """Return True if wgmma reads A and B of these types in this order."""
    return a.type in TURNED or (a.type in INPUTS and a.major == "row" and b.major == "column")


def check_mappable(k: int, a: Matrix, b: Matrix, output: Type | None = None, first: str = "none") -> None:
    """Raise LaunchError for A and B that TMA cannot address or wgmma cannot read. `first` is the operand that comes
    from registers, "a" or "b", for float32."""
    cause, otherwise = by_wgmma(a.type, output)
    if k == 0:
        help = "leave atom out" if otherwise else "write to `out` what follows of products that are 0, without a launch"
        raise LaunchError(f"{cause}, and K is 0: there is nothing to multiply", help=help)
    operands = [
        (matrix, a.type in TURNED or matrix.major == along_k or name == first)
        for matrix, along_k, name in ((a, "row", "a"), (b, "column", "b"))
    ]
    for matrix, is_read in operands:
        if is_read:
            _check_lines(matrix, f"{otherwise}: then they are loaded without TMA" if otherwise else "")
    for matrix, is_read in operands:
        if not is_read:
            raise LaunchError(
                f"`{matrix.name}` is not K-major, as wgmma needs {describe_type(a.type)} operands to be",
                help=f"pass a row-major `a` and a column-major `b`{otherwise}",
            )


def _check_lines(matrix: Matrix, otherwise: str) -> None:
    if matrix.is_mappable:
        return
    apart, planes = matrix.stride * matrix.type.bytes, matrix.batch_stride * matrix.type.bytes
    matrices = f", and matrices {planes} bytes apart" if (matrix.batches or 1) > 1 else ""
    raise LaunchError(
        f"`{matrix.name}` has lines {apart} bytes apart{matrices} from the address {matrix.array.pointer:#x} on; "
        f"TMA takes multiples of {WIDEST_ACCESS} bytes{', 0 or more' if planes < 0 else ''}",
        help=f"pad its lines{otherwise}",
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
    rounded: str = "none",
    scaling: Scaling | None = None,
) -> Operands:
    """Return the operand facts of row-major arrays; `widths` are the access widths in bytes of a, of b, and of c and
    out."""
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
        c_type=c.type if c and c.type is not out.type else None,
        b_type=b.type if b.type is not a.type else None,
        batches=batches,
        extras=extras,
        rounded=rounded,
        scaling=scaling,
    )


def narrower(out: Matrix | Matrices, c: Matrix | Matrices | None, columns: Any) -> int:
    """Return the access width that suits C and out, with rows of this many columns."""
    return out.widest(columns) if c is None else min(out.widest(columns), c.widest(columns))


def check_is_config(config: object) -> None:
    """Raise LaunchError for anything but a configuration or None."""
    if config is not None and not isinstance(config, GemmConfig):
        help = "pass a GemmConfig, such as GemmConfig(tile=(64, 64, 32))"
        if isinstance(config, str):
            help += ', or None to have it chosen; all but gradients of convolutions take "tune" too, which times tiles'
        raise LaunchError(f"`config` is {config!r}", help=help)
