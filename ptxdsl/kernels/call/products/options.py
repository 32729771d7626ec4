"""The options of a GEMM call, and the operand facts of its arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ptxdsl.errors import LaunchError
from ptxdsl.kernels.call.matrices import Matrices
from ptxdsl.kernels.call.matrix import Matrix
from ptxdsl.kernels.config import NO_OPERANDS, ROWS_OF_EIGHT, GemmConfig, specialise
from ptxdsl.kernels.product.operands import Batches, COrder, CSource, Extra, Major, Operands, Scaling, Side
from ptxdsl.kernels.store.function import array_of, canonical, epilogue_of, sequence_of
from ptxdsl.kernels.tiles.resolve import Schedule
from ptxdsl.schedule import BatchedIdentityThreadblockSwizzle


class GemmOptions(NamedTuple):
    """The options of a call. `schedule`, `split_k`, `reduction` and `epilogue` override those of `config`. Without a
    config, the remaining fields are selected."""

    config: GemmConfig | None = None
    schedule: Schedule | None = None
    split_k: int | None = None
    reduction: str | None = None
    epilogue: Callable[..., Any] | None = None

    @property
    def is_scheduled(self) -> bool:
        """True if the caller sets the schedule or the split of K."""
        return self.schedule is not None or self.split_k is not None

    @property
    def class_suffix(self) -> str:
        """The options that tables of measured winners do not know, "" for none."""
        options = self.schedule, self.split_k, self.reduction
        return "" if options == (None, None, None) else f", said {options}"

    def check(self) -> None:
        """Raise LaunchError for values of the wrong type, before they are compared with the fields of a
        configuration."""
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
        fields = {"schedule": self.schedule, "split_k": self.split_k, "reduction": self.reduction}
        overrides = {field: value for field, value in fields.items() if value is not None}
        return specialise(config, epilogue=self.epilogue, **overrides)


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
    """Return a configuration for batches, which are counted by the grid's z by default, also past 65535."""
    if config.schedule != ROWS_OF_EIGHT:
        return config
    return specialise(config, schedule=BatchedIdentityThreadblockSwizzle())


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
        a_major=Major.K if a.major == "row" else Major.MN,
        b_major=Major.K if b.major == "column" else Major.MN,
        a_bytes=a_bytes,
        b_bytes=b_bytes,
        out_bytes=out_bytes,
        c=CSource.NONE if c is None else CSource.IN_PLACE if in_place else CSource.SEPARATE,
        c_major=COrder(c.major) if c else COrder.ROW,
        c_type=c.type if c and c.type is not out.type else None,
        b_type=b.type if b.type is not a.type else None,
        batches=Batches(batches),
        extras=extras,
        rounded=Side(rounded),
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
