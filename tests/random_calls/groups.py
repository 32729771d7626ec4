"""Random calls of grouped products: lists of problems, groups of rows, groups along K, scaled 8-bit floats."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ptxdsl.kernels.epilogue import per_column, per_row
from ptxdsl.kernels.grouped import grouped_gemm
from ptxdsl.kernels.ragged import grouped_gemm_masked, grouped_gemm_ragged
from ptxdsl.kernels.ragged_k import grouped_gemm_ragged_k
from ptxdsl.kernels.scaled import scaled_gemm, scaled_gemm_masked, scaled_gemm_ragged, scaled_gemm_ragged_k
from tests.random_calls.call import Call, Result
from tests.random_calls.configs import FUNCTIONS, config, scheduled, wgmma_config
from tests.random_calls.drawing import FLOATS, FP8, OUTPUTS, Draw
from tests.random_calls.products import NO_FUNCTION, Fused, allowed, fill, is_exact, product
from tests.random_calls.views import View, matrix, vector

TYPES = ("f16", "bf16", "f32", "f64", "s8", "u8")
BLOCK = 128  # elements that share a scale
UNIT = 16  # of K, at which groups of 8-bit floats begin


def _config(draw: Draw, inputs: str) -> dict[str, Any]:
    chosen = config(draw, inputs, groups=not draw.chance(0.15))
    return {} if chosen is None else {"config": chosen}


def draw_grouped(draw: Draw) -> Call:
    inputs = draw.input_type((*TYPES, *FP8))
    output = draw.one_of(inputs if inputs in FLOATS else OUTPUTS[inputs][0], *OUTPUTS[inputs])
    exact, count = is_exact(draw, inputs, output), draw.to(6)
    orders = [draw.one_of("row", "column") for _ in range(3)]
    if inputs in FP8:
        orders[:2] = "row", "column"
    kind = "whole words" if inputs in FP8 else draw.one_of("whole words", "")
    beta = 0 if output in FP8 else draw.one_of(0, 0, 1, -2)
    alpha = draw.one_of(1, 1, -3) if output == "s32" else draw.one_of(1.0, 1.0, 0.5)
    in_place = draw.chance(0.4)
    lists: list[list[View]] = [[], [], [], []]
    results = []
    for _ in range(count):
        m, n, k = draw.size(16, 64, 128), draw.size(16, 64, 128), draw.size(32, 64, 128)
        a = matrix(draw, (m, k), inputs, orders[0], kind=kind)
        b = matrix(draw, (k, n), inputs, orders[1], kind=kind)
        out = matrix(draw, (m, n), output, orders[2], "noise", kind=kind)
        c = out if in_place else matrix(draw, (m, n), output, orders[2], kind=kind)
        x, y = fill(draw, a, inputs, exact), fill(draw, b, inputs, exact)
        values, scale = alpha * product(x, y), abs(alpha) * product(np.abs(x), np.abs(y)) + 9 * abs(beta)
        if beta:
            values = values + beta * fill(draw, c, output, True)
        results.append(Result(values, allowed(inputs, exact, k, scale)))
        for views, view in zip(lists, (a, b, c, out), strict=True):
            views.append(view)
    options: dict[str, Any] = {"out": lists[3], "sort": draw.chance(0.3), **_config(draw, inputs)}
    if alpha != 1:
        options["alpha"] = alpha
    if beta:
        options |= {"c": lists[2], "beta": beta}
    if draw.chance(0.35):
        options |= {"schedule": "host", **({"balance": "k"} if draw.chance(0.5) else {})}
    return Call(grouped_gemm, (lists[0], lists[1]), options, results, lists[3], draw.one_of(None, 1, 2, 5))


def counts_of(draw: Draw, groups: int, most: int) -> list[int]:
    """Rows of each group: none, one, few, or many."""
    with draw.varying():
        return [min(most, draw.one_of(0, 1, draw.to(9), draw.size(16, 64, 128, most=most))) for _ in range(groups)]


def offsets_of(draw: Draw) -> tuple[np.ndarray, int, list[tuple[int, int]]]:
    """Offsets, the rows in all, and where each group begins and ends. Some offsets make no sense."""
    most = draw.most
    with draw.varying():
        counts = counts_of(draw, draw.to(7), most)
        rows = sum(counts) + draw.one_of(0, 0, 1, draw.to(40))
        offsets = np.cumsum(counts, dtype=np.int64)
        if counts and draw.chance(0.15):
            offsets[draw.to(len(counts) - 1)] += draw.one_of(-1000, -3, 5, 1000)
    ends = np.maximum.accumulate(np.clip(offsets, 0, rows)) if counts else offsets
    bounds = [*zip([0, *ends[:-1].tolist()], ends.tolist(), strict=False)]
    return offsets.astype(np.int32), rows, bounds if counts else []


def indices(draw: Draw, values: np.ndarray) -> View:
    found = vector(draw, values.shape, "s32")
    found.array[...] = values
    return found


def draw_ragged(draw: Draw) -> Call:
    inputs = draw.input_type((*TYPES, *FP8))
    output = draw.one_of(inputs if inputs in FLOATS else "f32" if inputs in FP8 else OUTPUTS[inputs][0])
    exact = is_exact(draw, inputs, output)
    offsets, rows, bounds = offsets_of(draw)
    n, k = draw.size(16, 64, 128), draw.size(32, 64, 128, most=2 * draw.most)
    kind = "whole words" if inputs in FP8 or draw.chance(0.6) else ""
    gathered = draw.chance(0.3)
    tokens = draw.extent(16, 64) if gathered else rows
    a = matrix(
        draw,
        (tokens, k),
        inputs,
        "row" if inputs in FP8 or gathered else draw.one_of("row", "row", "column"),
        kind=kind,
    )
    b = matrix(draw, (len(bounds), k, n), inputs, "column" if inputs in FP8 else "", kind=kind)
    x, y = fill(draw, a, inputs, exact), fill(draw, b, inputs, exact)
    options: dict[str, Any] = {}
    if gathered:
        index = draw.numpy.integers(-2 if draw.chance(0.4) else 0, tokens + 1 if draw.chance(0.4) else tokens, rows)
        options["rows"] = indices(draw, index)
        x = np.where(((index >= 0) & (index < tokens))[:, None], x[np.clip(index, 0, tokens - 1)], 0.0)
    sums, scale, valid = np.zeros((rows, n)), np.zeros((rows, n)), np.zeros(rows, bool)
    for group, (begin, end) in enumerate(bounds):
        sums[begin:end] = product(x[begin:end], y[group])
        scale[begin:end] = product(np.abs(x[begin:end]), np.abs(y[group]))
        valid[begin:end] = True
    function = _function(draw, output, (rows,), len(bounds), n, partial(_beside_rows, (rows, n), bounds))
    options |= function.options
    result = function.result(sums, allowed(inputs, exact, k, scale), np.repeat(valid[:, None], n, 1))
    out_rows = rows
    if draw.chance(0.3):
        out_rows = rows + draw.to(9)
        targets = draw.numpy.permutation(max(1, out_rows))[:rows].astype(np.int64)
        dropped = draw.numpy.random(rows) < 0.2
        targets[dropped] = draw.numpy.choice([-1, out_rows, out_rows + 7], int(dropped.sum()))
        options["out_rows"] = indices(draw, targets)
        result = _scattered(result, targets, ~dropped & valid, out_rows, n)
    out = matrix(draw, (out_rows, n), output, "row", "noise", kind=kind)
    options |= {"out": out, **_config(draw, inputs)}
    if draw.chance(0.1) and np.array_equal([end for _, end in bounds], offsets):
        options["validate"] = True
    arguments = a, b, indices(draw, offsets)
    return Call(
        grouped_gemm_ragged, arguments, options, [result], [out], draw.one_of(None, 1, 2, 5), f"{offsets.tolist()}"
    )


def _scattered(result: Result, targets: np.ndarray, sent: np.ndarray, rows: int, n: int) -> Result:
    values, errors, written = np.zeros((rows, n)), np.zeros((rows, n)), np.zeros((rows, n), bool)
    values[targets[sent]] = result.values[sent]
    errors[targets[sent]] = np.broadcast_to(result.allowed, result.values.shape)[sent]
    written[targets[sent]] = True
    return Result(values, errors, written)


def _beside_rows(shape: tuple[int, int], bounds: list[tuple[int, int]], kind: str, values: np.ndarray) -> np.ndarray:
    """Values of a kind beside rows of groups that lie one behind the other."""
    if kind != "g":
        return values[:, None] if kind == "m" else values
    whole = np.zeros(shape)
    for group, (begin, end) in enumerate(bounds):
        whole[begin:end] = values[group]
    return whole


def _beside_matrices(kind: str, values: np.ndarray) -> np.ndarray:
    """The same of groups with a matrix each."""
    return {"m": values[..., None], "n": values, "g": values[:, None]}[kind]


def _function(
    draw: Draw,
    output: str,
    lines: tuple[int, ...],
    groups: int,
    n: int,
    beside: Callable[[str, np.ndarray], np.ndarray],
) -> Fused:
    """A function with values of rows, of which there are so many `lines`, of columns, or of columns of each group;
    `beside` lays values of such a kind beside the product."""
    if draw.chance(0.55) or not groups:
        return NO_FUNCTION
    names = [name for name in FUNCTIONS if name != "blend" and not (FUNCTIONS[name][3] and output in ("s32", "f64"))]
    name = draw.one_of(*names)
    function, wanted, of_numpy, _ = FUNCTIONS[name]
    operands, values = [], []
    for kind in wanted:
        kind = draw.one_of("m", "n", "g") if kind == "?" else draw.one_of("n", "g") if kind == "n" else kind
        type = "s32" if output == "s32" else draw.one_of(*FLOATS)
        view = vector(draw, {"m": lines, "n": (n,), "g": (groups, n)}[kind], type)
        values.append(beside(kind, fill(draw, view, type, True)))
        operands.append(per_row(view) if kind == "m" else per_column(view))
    options: dict[str, Any] = {"epilogue": function, **({"operands": tuple(operands)} if operands else {})}
    return Fused(
        options,
        lambda each: of_numpy(each, *values),
        9.0,
        name not in ("relu", "add", "add_relu", "scale", "scale both"),
    )


def draw_masked(draw: Draw) -> Call:
    inputs = draw.input_type((*TYPES, *FP8))
    output = inputs if inputs in FLOATS else "f32" if inputs in FP8 else OUTPUTS[inputs][0]
    exact, groups = is_exact(draw, inputs, output), draw.to(5)
    m, n, k = draw.size(16, 64, 128), draw.size(16, 64, 128), draw.size(32, 64, 128)
    counts = np.array(counts_of(draw, groups, m), np.int32) + (draw.to(9, -9) if draw.chance(0.2) else 0)
    kind = "whole words" if inputs in FP8 or draw.chance(0.6) else ""
    a = matrix(draw, (groups, m, k), inputs, "row", kind=kind)
    b = matrix(draw, (groups, k, n), inputs, "column" if inputs in FP8 else "", kind=kind)
    out = matrix(draw, (groups, m, n), output, "row", "noise", kind=kind)
    x, y = fill(draw, a, inputs, exact), fill(draw, b, inputs, exact)
    written = np.arange(m)[None, :, None] < np.clip(counts, 0, m)[:, None, None]
    written = np.broadcast_to(written, (groups, m, n)).copy()
    function = _function(draw, output, (groups, m), groups, n, _beside_matrices)
    result = function.result(product(x, y), allowed(inputs, exact, k, product(np.abs(x), np.abs(y))), written)
    arguments = a, b, indices(draw, counts.astype(np.int32))
    options = {"out": out, **function.options, **_config(draw, inputs)}
    return Call(grouped_gemm_masked, arguments, options, [result], [out], draw.one_of(None, 1, 3), f"{counts.tolist()}")


def draw_ragged_k(draw: Draw) -> Call:
    inputs = draw.input_type(TYPES)
    output = draw.one_of(*OUTPUTS[inputs])
    exact = is_exact(draw, inputs, output)
    offsets, rows, bounds = offsets_of(draw)
    m, n = draw.size(16, 64, 128), draw.size(16, 64, 128)
    kind = draw.one_of("whole words", "whole words", "")
    a = matrix(draw, (rows, m), inputs, draw.one_of("row", "row", "column"), kind=kind)
    b = matrix(draw, (rows, n), inputs, draw.one_of("row", "row", "column"), kind=kind)
    out = matrix(draw, (len(bounds), m, n), output, "row", "noise", kind=kind)
    x, y = fill(draw, a, inputs, exact), fill(draw, b, inputs, exact)
    values, scale = np.zeros((len(bounds), m, n)), np.zeros((len(bounds), m, n))
    for group, (begin, end) in enumerate(bounds):
        values[group] = product(x[begin:end].T, y[begin:end])
        scale[group] = product(np.abs(x[begin:end]).T, np.abs(y[begin:end]))
    options = {"out": out, **_config(draw, inputs)}
    arguments = a, b, indices(draw, offsets)
    result = Result(values, allowed(inputs, exact, rows, scale))
    return Call(
        grouped_gemm_ragged_k, arguments, options, [result], [out], draw.one_of(None, 1, 3), f"{offsets.tolist()}"
    )


def draw_scaled(draw: Draw) -> Call:
    """8-bit floats with scales: a product, groups of rows, or the first rows of matrices."""
    inputs, form = draw.one_of(*FP8), draw.one_of("", "ragged", "masked")
    output = draw.one_of("f32", "f32", "f16", "bf16", *FP8)
    n, k = draw.extent(16, 64, 128), draw.extent(32, 128, most=3 * draw.most if not draw.large else draw.most)
    offsets, rows, bounds = offsets_of(draw)
    counts = np.array([end - begin for begin, end in bounds], np.int32)
    m = draw.extent(16, 64, 128)
    groups = () if form == "" else (len(bounds),)
    lines = {"": (m,), "ragged": (rows,), "masked": (*groups, m)}[form]
    a, b = _scaled_operands(draw, inputs, (*lines, k), (*groups, k, n))
    out = matrix(draw, (*lines, n), output, "row", "noise", kind=draw.one_of("whole words", ""))
    x, y = fill(draw, a, inputs, True), fill(draw, b, inputs, True)
    scales, (of_a, of_b) = _scales(draw, lines, groups, n, k)
    x, y = x * of_a, y * of_b
    written, shape = None, (*lines, n)
    if form == "ragged":
        values, written = np.zeros(shape), np.zeros(shape, bool)
        for group, (begin, end) in enumerate(bounds):
            values[begin:end] = product(x[begin:end], y[group])
            written[begin:end] = True
    else:
        values = product(x, y)
    if form == "masked":
        whole = np.arange(m)[None, :, None] < np.clip(counts, 0, m)[:, None, None]
        written = np.broadcast_to(whole, shape).copy()
    function: Any = {"": scaled_gemm, "ragged": scaled_gemm_ragged, "masked": scaled_gemm_masked}[form]
    sizes = {"": [], "ragged": [indices(draw, offsets)], "masked": [indices(draw, counts)]}[form]
    options: dict[str, Any] = {"out": out}
    if form == "" and output not in FP8 and draw.chance(0.4):
        alpha, beta, c = draw.one_of(1.0, -0.5), draw.one_of(1.0, 2.0), draw.one_of(out, None)
        c = c or matrix(draw, (m, n), output, "row", kind=draw.one_of("whole words", ""))
        values = alpha * values + beta * fill(draw, c, output, True)
        options |= {"c": c, "alpha": alpha, "beta": beta}
    shared = scheduled(draw, False) if form == "" else {}
    chosen = wgmma_config(draw, inputs, groups=form != "", **shared) if draw.chance(0.6) else None
    if chosen is not None:
        options["config"] = chosen
    arguments = a, b, *sizes, *scales
    return Call(
        function,
        arguments,
        options,
        [Result(values, 0.0, written)],
        [out],
        draw.one_of(None, 1, 3),
        f"{counts.tolist()}",
    )


def _scaled_operands(draw: Draw, inputs: str, of_a: tuple[int, ...], of_b: tuple[int, ...]) -> tuple[View, View]:
    """A and B, mostly as wgmma reads them."""
    if draw.chance(0.6):
        return matrix(draw, of_a, inputs, "row", kind="whole words"), matrix(
            draw, of_b, inputs, "column", kind="whole words"
        )
    a, b = (matrix(draw, shape, inputs, draw.one_of("row", "column")) for shape in (of_a, of_b))
    return a, b


def _scales(
    draw: Draw, lines: tuple[int, ...], groups: tuple[int, ...], n: int, k: int
) -> tuple[list[View], tuple[np.ndarray, np.ndarray]]:
    """Powers of two, and the same for each element of a and b."""
    across, down = -(-k // BLOCK), -(-n // BLOCK)
    kind = draw.one_of("tensors", "rows", "blocks")
    if kind == "tensors":
        views = [vector(draw, (1,), "f32") for _ in "ab"]
    elif kind == "rows":
        views = [matrix(draw, (*lines, 1), "f32"), matrix(draw, (*groups, 1, n), "f32", "row")]
    else:
        views = [matrix(draw, (*lines, across), "f32"), matrix(draw, (*groups, across, down), "f32")]
    for each in views:
        each.array[...] = np.exp2(draw.numpy.integers(-2, 3, each.array.shape))
    of_a, of_b = (each.array.astype(np.float64) for each in views)
    if kind == "blocks":
        of_a = of_a.repeat(BLOCK, -1)[..., :k]
        of_b = of_b.repeat(BLOCK, -2)[..., :k, :].repeat(BLOCK, -1)[..., :n]
    return views, (of_a, of_b)


def draw_scaled_ragged_k(draw: Draw) -> Call:
    """8-bit floats with scales, in groups that are ranges of K."""
    inputs, output = draw.one_of(*FP8), draw.one_of("f32", "f32", "f16", "bf16")
    offsets, k, _ = offsets_of(draw)
    if draw.chance(0.7):
        offsets = offsets // UNIT * UNIT
    ends = np.minimum(-(-np.maximum.accumulate(np.clip(offsets, 0, k)) // UNIT) * UNIT, k).tolist()
    bounds = [*zip([0, *ends[:-1]], ends, strict=False)] if ends else []
    m, n = draw.size(16, 64, 128), draw.size(16, 64, 128)
    a, b = _scaled_operands(draw, inputs, (m, k), (k, n))
    out = matrix(draw, (len(bounds), m, n), output, "row", "noise", kind=draw.one_of("whole words", ""))
    x, y = fill(draw, a, inputs, True), fill(draw, b, inputs, True)
    scales, factors = _scales_along_k(draw, bounds, m, n, k)
    values = np.zeros((len(bounds), m, n))
    for group, (begin, end) in enumerate(bounds):
        of_a, of_b = factors(group, begin, end)
        values[group] = product(x[:, begin:end] * of_a, y[begin:end] * of_b)
    options: dict[str, Any] = {"out": out}
    chosen = wgmma_config(draw, inputs, groups=True) if draw.chance(0.6) else None
    if chosen is not None:
        options["config"] = chosen
    arguments = a, b, indices(draw, offsets), *scales
    blocks = draw.one_of(None, 1, 3)
    return Call(scaled_gemm_ragged_k, arguments, options, [Result(values, 0.0)], [out], blocks, f"{ends}")


def _scales_along_k(
    draw: Draw, bounds: list[tuple[int, int]], m: int, n: int, k: int
) -> tuple[list[View], Callable[[int, int, int], tuple[np.ndarray, np.ndarray]]]:
    """Powers of two, and the same for each element of a group that begins and ends there."""
    groups, blocks = len(bounds), -(-k // BLOCK)
    kind = draw.one_of("tensors", "rows", "blocks", "blocks")
    if kind == "tensors":
        views = [vector(draw, (1,), "f32") for _ in "ab"]
    elif kind == "rows":
        views = [matrix(draw, (groups, m, 1), "f32"), matrix(draw, (groups, 1, n), "f32", "row")]
    else:
        views = [matrix(draw, (m, blocks), "f32"), matrix(draw, (blocks, n), "f32", "row")]
    for each in views:
        each.array[...] = np.exp2(draw.numpy.integers(-2, 3, each.array.shape))
    of_a, of_b = (each.array.astype(np.float64) for each in views)

    def factors(group: int, begin: int, end: int) -> tuple[np.ndarray, np.ndarray]:
        if kind == "blocks":
            return of_a.repeat(BLOCK, 1)[:, begin:end], of_b.repeat(BLOCK, 0)[begin:end]
        return (of_a[group], of_b[group]) if kind == "rows" else (of_a, of_b)

    return views, factors
