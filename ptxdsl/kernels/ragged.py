"""Products of groups of rows whose sizes only the GPU knows, as mixtures of experts have them: no copy, no waiting.

The groups lie one behind the other (`grouped_gemm_ragged`), or each at the start of a matrix of its own
(`grouped_gemm_masked`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import ptxdsl as pd
from ptxdsl import ptr, s32, s64, u32
from ptxdsl.arguments import overlap
from ptxdsl.arrays import HOST, strided
from ptxdsl.calls import target
from ptxdsl.errors import LaunchError
from ptxdsl.kernels.block import Product
from ptxdsl.kernels.config import ATOMS, GemmConfig, outputs
from ptxdsl.kernels.epilogue import Target
from ptxdsl.kernels.given import check_is_bool, check_is_config
from ptxdsl.kernels.grouped_choice import configured
from ptxdsl.kernels.matrix import Matrix, Tensor, describe_type, empty, matrix, tensor
from ptxdsl.kernels.plan import Call, Plans, look
from ptxdsl.kernels.problem import check_devices
from ptxdsl.kernels.residency import resident_blocks
from ptxdsl.kernels.scheduled import settled
from ptxdsl.kernels.tiles import AHEAD, Tiles, Work
from ptxdsl.kernels.visitor import EVERY_LANE, WARP, DeviceVisitor, from_before, from_lane, prefix_max
from ptxdsl.schedule import GroupedRowsThreadblockSwizzle
from ptxdsl.schedule.arithmetic import ceil_div
from ptxdsl.schedule.problems import MOST_TILES

USUAL = GemmConfig()
STRIPS = GroupedRowsThreadblockSwizzle(8)  # the tiles of a group: down the rows first, for what L2 still holds of B
PLANS = Plans()
NOTHING = slice(0, 0)


@pd.kernel
def ragged_kernel(
    a: ptr[config.inputs],
    b: ptr[config.inputs],
    out: ptr[config.output],
    sizes: ptr[s32],
    groups: u32,
    rows: u32,
    n: u32,
    k: u32,
    lda: s64,
    ldb: s64,
    ldo: s64,
    apart_a: s64,
    apart_b: s64,
    apart_out: s64,
    *,
    config: GemmConfig = USUAL,
    form: str = "ragged",
    validate: bool = False,
) -> None:
    """`sizes` are the end offsets of the groups, or with form="masked" how many rows of each matrix count.

    `rows` is how many there are of a, or of each matrix; `apart_*` are the elements from one group's matrix to the
    next. Sizes that make no sense are taken for others that do; with `validate` the kernel stops instead.
    """
    if validate:
        _check(sizes, groups, rows, form)
    tiles, across = Tiles(config), ceil_div(n, config.tile[1])
    visitor = VISITORS[form](sizes, groups, rows, (config.tile[0], across))

    def locate(group: Any, tile: Any, first: Any) -> Work:
        count = visitor.size(group) - first
        product = Product(
            count, n, k,
            _moved(Target(a, lda), first, group, apart_a, config.a_major == "mn"),
            Target(b + group.to(s64) * apart_b, ldb),
            Target(out, ldo),
            _moved(Target(out, ldo), first, group, apart_out),
            1, 0,
        )  # fmt: skip
        place = STRIPS.tile_offset((tile, 0, 0), tiled_shape=(ceil_div(count, config.tile[0]), across, 1))
        return Work(product, place[:2])

    tiles.visit(visitor, locate)


def _moved(matrix: Target, first: Any, group: Any, apart: Any, by_column: bool = False) -> Target:
    """A group's part of a matrix: its rows from the `first` one on."""
    row = first.to(s64) if by_column else first.to(s64) * matrix.stride
    return Target(matrix.pointer + (row + group.to(s64) * apart), matrix.stride)


class CountsVisitor(DeviceVisitor):
    """Finds groups by how many rows of each count, s32. Its work is (group, tile, 0): each is a matrix of its own."""

    def __init__(self, sizes: Any, groups: Any, rows: Any, tile: tuple[int, Any]) -> None:
        """`tile` is (rows of a tile, tiles across)."""
        self.sizes, self.most, self.tile = sizes, rows.to(s32), tile
        super().__init__(groups, lambda group: self._tiles(self.size(group)))

    def size(self, group: Any) -> Any:
        """Of a group, between 0 and the rows that there are."""
        return pd.min(pd.max(self.sizes[group], 0), self.most).to(u32)

    def _tiles(self, rows: Any) -> tuple[Any, Any]:
        return ceil_div(rows, self.tile[0]), self.tile[1]

    def work(self) -> tuple[Any, ...]:
        return *super().work(), pd.cast(0, u32)


class OffsetsVisitor(CountsVisitor):
    """Finds groups by where each ends, s32. Its work is (group, tile, first row); its size is where the group ends.

    An offset below one before it is taken for that one, so that no row is of two groups. A group that has rows then has
    the largest offset up to its own, and ends there: what one before it has left is all that must be kept.
    """

    def __init__(self, sizes: Any, groups: Any, rows: Any, tile: tuple[int, Any]) -> None:
        super().__init__(sizes, groups, rows, tile)
        self.first: Any = pd.var(u32, 0)  # row of this lane's group
        self.reached: Any = pd.var(u32, 0)  # the end of all groups up to the window's last

    def _measure(self, problem: Any) -> None:
        last = pd.min(problem, self.problems - 1)  # lanes past it find groups without rows
        end: Any = pd.var(u32, pd.max(self.size(last), self.reached))
        with pd.if_(pd.ptx.vote.sync.any.pred(end < from_before(end, 1), EVERY_LANE)):
            end.set(prefix_max(end))
        self.first.set(pd.select(pd.laneid > 0, from_before(end, 1), self.reached))
        self.reached.set(from_lane(end, WARP - 1))
        down, across = self._tiles(end - self.first)
        self.count.set(down * across)

    def work(self) -> tuple[Any, ...]:
        group, tile, _ = super().work()
        return group, tile, from_lane(self.first, group % WARP)


HELP_OF_SIZES = {
    "ragged": "pass where each group ends: an empty one ends where the one before it does",
    "masked": "pass how many rows of each matrix count: of an empty group, 0",
}
VISITORS = {"ragged": OffsetsVisitor, "masked": CountsVisitor}


def _check(sizes: Any, groups: Any, rows: Any, form: str) -> None:
    """Stops the kernel at sizes that make no sense, before any block has written."""
    for first in pd.range(pd.cast(0, u32), groups, WARP):
        group = first + pd.laneid
        wrong: Any = pd.var(u32, 0)
        with pd.if_(group < groups):
            size, least = sizes[group], pd.var(s32, 0)
            if form == "ragged":
                with pd.if_(group > 0):
                    least.set(sizes[group - 1])
            wrong.set(pd.select((size < least) | (size > rows.to(s32)), pd.cast(1, u32), 0))
        with pd.if_(pd.ptx.vote.sync.any.pred(wrong > 0, EVERY_LANE)):
            pd.ptx.trap()


@dataclass(frozen=True)
class Groups:
    """The arrays of a call, checked: rows of a, a matrix of b for each group, rows of out."""

    a: Matrix
    b: Matrix
    out: Matrix
    sizes: Tensor

    @property
    def shape(self) -> tuple[int, int, int]:
        """Rows in all, or of each matrix; N; K."""
        return self.a.shape[0], self.b.shape[1], self.a.shape[1]


def grouped_gemm_ragged(
    a: Any,
    b: Any,
    offsets: Any,
    *,
    out: Any = None,
    config: GemmConfig | None = None,
    validate: bool = False,
) -> Any:
    """out[offsets[i - 1]:offsets[i]] = a[offsets[i - 1]:offsets[i]] @ b[i] for each group i. Returns out.

    a is (rows, K), b (groups, K, N), out (rows, N) and row-major; `offsets`, int32 (groups,) on the same GPU, say where
    the rows of each group end. The host does not read them: nothing waits, and a CUDA graph can capture the call.
    Groups may be empty. Rows behind the last offset are not written; without `out`, these are not set.

    An offset below 0 or below one before it is taken for the largest of these, one past the rows for their number: no
    row is of two groups. With `validate`, such offsets are errors. Those of CUDA arrays stop the kernel before it
    writes anything: an error of the GPU, as from a failed assertion, which the next call that waits for it reports.

    Raises LaunchError for arrays that do not fit, and with `validate` for such offsets in host memory; nothing is
    written then.
    """
    return _call("ragged", a, b, offsets, out, config, validate)


def grouped_gemm_masked(
    a: Any,
    b: Any,
    counts: Any,
    *,
    out: Any = None,
    config: GemmConfig | None = None,
    validate: bool = False,
) -> Any:
    """out[i, :counts[i]] = a[i, :counts[i]] @ b[i] for each group i. Returns out.

    a is (groups, M, K), b (groups, K, N), out (groups, M, N) with row-major matrices; `counts`, int32 (groups,) on the
    same GPU, say how many rows of each matrix count. Other rows are not written. A count below 0 is taken for 0, one
    above M for M; with `validate`, these are errors as those of `grouped_gemm_ragged`.
    """
    return _call("masked", a, b, counts, out, config, validate)


def _call(form: str, a: Any, b: Any, sizes: Any, out: Any, config: GemmConfig | None, validate: bool) -> Any:
    check_is_config(config)
    check_is_bool("validate", validate)
    config = settled(config)
    arrays, what = (a, b, out, sizes), (form, config, bool(validate))
    sight = None if out is None else look(arrays)
    if PLANS.launch(what, sight, ()):
        return out
    groups = groups_of(form, a, b, sizes, out)
    if validate and groups.sizes.array.device == HOST:
        _check_values(form, groups)
    if groups.out.array.size and groups.b.batches:
        call = call_of(form, groups, configure(groups, form, config), bool(validate))
        call.run()
        PLANS.learn(what, sight, arrays, call)
    return groups.out.owner


def groups_of(form: str, a: Any, b: Any, sizes: Any, out: Any) -> Groups:
    """The arrays of a call; out is made where it is not given. Raises LaunchError for what does not fit."""
    name, dimensions = ("offsets", 2) if form == "ragged" else ("counts", 3)
    left = _of_rank("a", a, dimensions, "(rows, K)" if form == "ragged" else "(groups, M, K)")
    right = _of_rank("b", b, 3, "(groups, K, N)")
    _check_inputs(left, right)
    counted = tensor(name, sizes, 1, "it has one number for each group", f"pass {name} of the shape (groups,)")
    _check_sizes(counted, right)
    shape = (*left.full_shape[:-1], right.shape[1])
    written = _of_rank("out", empty(left, shape, outputs(left.type)[0]) if out is None else out, dimensions, str(shape))
    _check_output(written, shape, left)
    check_devices([left, right, written, counted])
    _check_written(written, [left, right, counted])
    return Groups(left, right, written, counted)


def _of_rank(name: str, owner: Any, dimensions: int, wanted: str) -> Matrix:
    found = matrix(name, owner, f"pass `{name}` of {wanted}", batched=True)
    if len(found.full_shape) != dimensions:
        raise LaunchError(
            f"`{name}` has the shape {found.full_shape}; it has {dimensions} dimensions",
            help=f"pass `{name}` of {wanted}",
        )
    return found


def _check_inputs(left: Matrix, right: Matrix) -> None:
    if left.type not in ATOMS or left.type is not right.type:
        raise LaunchError(
            f"`a` is {describe_type(left.type)} and `b` is {describe_type(right.type)}",
            help=f"pass two arrays of one type, one of {', '.join(map(describe_type, ATOMS))}",
        )
    if left.shape[1] != right.shape[0]:
        raise LaunchError(
            f"`a` has the shape {left.full_shape} and `b` {right.full_shape}: "
            f"{left.shape[1]} columns meet {right.shape[0]} rows",
            help="pass b of (groups, K, N); of (groups, N, K), pass a view with the last two exchanged",
        )
    if left.batches not in (None, right.batches):
        raise LaunchError(
            f"`a` has {left.batches} groups and `b` {right.batches}", help="give each group one matrix in each"
        )


def _check_sizes(found: Tensor, right: Matrix) -> None:
    if found.type is not s32:
        raise LaunchError(f"`{found.name}` is {describe_type(found.type)}; it takes int32", help="convert it before")
    if found.array.shape != (right.batches,) or not found.array.contiguous:
        raise LaunchError(
            f"`{found.name}` has the shape {found.array.shape} and strides of {found.array.strides} elements; "
            f"`b` has {right.batches} groups",
            help=f"pass {right.batches} numbers without gaps, one for each group",
        )


def _check_output(found: Matrix, shape: tuple[int, ...], left: Matrix) -> None:
    if found.full_shape != shape:
        raise LaunchError(f"`out` has the shape {found.full_shape}; a@b has {shape}", help="pass `out` of that shape")
    if found.type not in outputs(left.type):
        raise LaunchError(
            f"`out` is {describe_type(found.type)}; of {describe_type(left.type)} arrays it may be "
            f"{', '.join(map(describe_type, outputs(left.type)))}",
            help="pass one of these, and convert it afterwards",
        )
    if found.array.size and (found.major != "row" or not found.is_disjoint):
        raise LaunchError(
            f"`out` has strides of {found.array.strides} elements; its rows lie without gaps, one behind the other",
            help="make a row-major output",
        )


def _check_written(out: Matrix, others: Sequence[Tensor]) -> None:
    if out.array.readonly:
        raise LaunchError("`out` is read-only", help="pass an array that may be written")
    for other in others:
        if overlap(out.array, other.array):
            raise LaunchError(
                f"`out` is written and shares memory with `{other.name}`", help="give the output memory of its own"
            )


def _check_values(form: str, groups: Groups) -> None:
    """Raises LaunchError for the first size in host memory that makes no sense."""
    name, rows = groups.sizes.name, groups.shape[0]
    sizes = groups.sizes.array.view().view(np.int32)
    least = np.append(0, sizes[:-1]) if form == "ragged" else np.zeros_like(sizes)
    for group in np.flatnonzero((sizes < least) | (sizes > rows))[:1]:
        most = f"the {rows} rows of `a`" if form == "ragged" else f"the {rows} rows of each matrix"
        from_least = f"`{name}[{group - 1}]`, which is {least[group]}," if least[group] else "0"
        raise LaunchError(
            f"`{name}[{group}]` is {sizes[group]}; group {group} takes a number from {from_least} to {most}",
            help=HELP_OF_SIZES[form],
        )


def configure(groups: Groups, form: str, config: GemmConfig | None) -> GemmConfig:
    """The kernel: `config` gives the tiles, else they are chosen; the arrays give types, orders and widths."""
    a, b, out = groups.a, groups.b, groups.out
    rows, n, k = groups.shape
    by_row = a.major == "row"
    of_a = a.widest(a.length) if by_row or form == "masked" else a.type.bytes  # a group begins at any row
    count = b.batches or 1
    average = np.full(count, rows if form == "masked" else rows / count)
    from_arrays = dict(
        inputs=a.type,
        output=out.type,
        a_major="k" if by_row else "mn",
        b_major="k" if b.major == "column" else "mn",
        a_bytes=of_a,
        b_bytes=b.widest(b.length),
        out_bytes=out.widest(n),
        c="none",
        batches="none",
        extras=(),
    )
    sizes = average, n, np.full(count, k)
    return configured(config, sizes, target(a.place[0]), from_arrays, AHEAD, average=True)


def call_of(form: str, groups: Groups, config: GemmConfig, validate: bool) -> Call:
    """The launch: as many blocks as are resident, or as there can be tiles."""
    a, b, out, count = groups.a, groups.b, groups.out, groups.b.batches or 0
    rows, n, k = groups.shape
    constants = {"config": config, "form": form, "validate": validate}
    down = count * -(-rows // config.tile[0]) if form == "masked" else rows // config.tile[0] + min(count, rows)
    tiles = down * -(-n // config.tile[1])
    if tiles > MOST_TILES:
        raise LaunchError(
            f"{count} groups in {rows} rows and {n} columns may have {tiles} tiles, more than 2**31",
            help="take larger tiles, or compute the groups in parts",
        )
    blocks = min(tiles, resident_blocks(ragged_kernel, config.threads, a.place[0], **constants))
    matrices = strided(a.owner), strided(b.owner), strided(out.owner), strided(groups.sizes.owner)
    strides = a.stride, b.stride, out.stride, a.batch_stride, b.batch_stride, out.batch_stride
    return Call(ragged_kernel[blocks, config.threads], (*matrices, count, rows, n, k, *strides), constants, NOTHING)
