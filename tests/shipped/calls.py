"""Calls of all public functions that multiply on the sm_90a path, of sizes and types that one seed draws."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ptxdsl.kernels.call.convolutions.problem import convolution_problem
from ptxdsl.kernels.call.convolutions.problem import window as moves
from ptxdsl.kernels.call.convolutions.windows import window_facts
from ptxdsl.kernels.call.groups.group import problem_group
from ptxdsl.kernels.call.groups.grouped import request_of as request_of_lists
from ptxdsl.kernels.call.groups.ragged import ragged_groups, request_of
from ptxdsl.kernels.call.paths.select import trials_of_class
from ptxdsl.kernels.call.products.problem import problem_of
from ptxdsl.kernels.call.scaled import product_facts
from ptxdsl.kernels.choose.products import ranked_products
from ptxdsl.kernels.choose.rates import rates_of
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.conv import conv2d
from ptxdsl.kernels.conv_gradients import conv2d_dgrad, conv2d_wgrad
from ptxdsl.kernels.epilogue import add, add_relu, gelu, per_column, per_row, relu, silu
from ptxdsl.kernels.gemm import gemm
from ptxdsl.kernels.grouped import grouped_gemm, grouped_gemm_masked, grouped_gemm_ragged, grouped_gemm_ragged_k
from ptxdsl.kernels.product.operands import Scaling
from ptxdsl.kernels.scaled import scaled_gemm, scaled_gemm_masked, scaled_gemm_ragged
from ptxdsl.schedule import PersistentScheduler, StreamKThreadblockSwizzle
from tests.shipped.drawing import FLOATS, TURNED, Draw

Call = Callable[[Draw], object]
FP8 = "e4m3", "e5m2"
BLOCK = 128  # of scales
MOST_GROUPS, MOST_CHANNELS = 64, 1024
SCHEDULED: tuple[dict[str, Any], ...] = (
    {"split_k": 2},
    {"split_k": 3, "reduction": "cluster"},
    {"split_k": 4, "reduction": "scatter"},
    {"split_k": 2, "reduction": "serial"},
    {"schedule": StreamKThreadblockSwizzle(132)},
    {"schedule": PersistentScheduler()},
)


def product(draw: Draw) -> object:
    """As it is; with C; with a function, and what that takes; as a caller has blocks share K."""
    inputs = draw.inputs()
    (m, n, k), output = (draw.size(), draw.size(), draw.size()), draw.output(inputs)
    orders = draw.orders(inputs)
    a, b, out = draw.array((m, k), inputs, orders[0]), draw.array((k, n), inputs, orders[1]), draw.array((m, n), output)
    c, beta, how = None, 0.0, function_of(draw, out, output)
    if draw.chance(0.25) and output not in FP8:
        c, beta = (out if draw.chance(0.5) else draw.array((m, n), output, draw.one_of(("row", "row", "column")))), 1.0
    if draw.chance(0.1):
        return gemm(a, b, c, out=out, beta=beta, **draw.one_of(SCHEDULED), **how)
    config = draw.tiles_of(problem_of(a, b, c, out, beta, **how), how.get("epilogue"))
    return gemm(a, b, c, out=out, beta=beta, config=config, **how)


def function_of(draw: Draw, out: np.ndarray, output: str) -> dict[str, Any]:
    """An epilogue and its operands, at times."""
    if draw.chance(0.65):
        return {}
    if draw.chance(0.5):
        return {"epilogue": draw.one_of((relu, gelu, silu))}
    m, n = out.shape[-2:]
    beside = output if output not in FP8 else "f16"
    operands = per_column(draw.array((n,), beside)), per_row(draw.array((m,), beside)), draw.array(out.shape, beside)
    return {"epilogue": draw.one_of((add, add_relu)), "operands": [draw.one_of(operands)]}


def batches(draw: Draw) -> object:
    inputs = draw.inputs()
    count, (m, n, k), output = draw.size(16), (draw.size(4096), draw.size(4096), draw.size(4096)), draw.output(inputs)
    orders = draw.orders(inputs)
    a, b = draw.array((count, m, k), inputs, orders[0]), draw.array((count, k, n), inputs, orders[1])
    out = draw.array((count, m, n), output)
    beta = float(output not in FP8 and draw.chance(0.3))
    c = out if beta else None
    config = draw.tiles_of(problem_of(a, b, c, out, beta))
    return gemm(a, b, c, out=out, beta=beta, config=config)


def rows(draw: Draw) -> object:
    """Groups of rows: one behind the other, gathered and scattered, or at the start of matrices."""
    inputs, (n, k), groups = (
        draw.inputs("bf16", "f16", "s8", "u8"),
        (draw.size(4096), draw.size(4096)),
        draw.size(64, 8),
    )
    output, order = draw.output(inputs), draw.one_of(("row", "column")) if inputs in TURNED else "column"
    m, b = draw.size(), draw.array((groups, k, n), inputs, order)
    if draw.chance(0.3):
        m = min(m, 2048)
        a, out = draw.array((groups, m, k), inputs), draw.array((groups, m, n), output)
        how, config = function_of_rows(draw, (groups, m), n, output), tiles_of_rows(draw, "masked", a, b, out)
        return grouped_gemm_masked(a, b, np.zeros(groups, np.int32), out=out, config=config, **how)
    a, out = draw.array((m, k), inputs), draw.array((m, n), output)
    how = function_of_rows(draw, (m,), n, output)
    if draw.chance(0.2):
        how["rows"] = np.zeros(m, np.int32)
    if draw.chance(0.2):
        how["out_rows"] = np.arange(m, dtype=np.int32)
    config = tiles_of_rows(draw, "ragged", a, b, out)
    return grouped_gemm_ragged(a, b, np.full(groups, m, np.int32), out=out, config=config, **how)


def function_of_rows(draw: Draw, lines: tuple[int, ...], n: int, output: str) -> dict[str, Any]:
    """The same of groups of so many rows, with values of columns or of rows."""
    how = function_of(draw, draw.array((1, n), output), output)
    if "operands" in how:
        operands = per_column(draw.array((n,), output)), per_row(draw.array(lines, output))
        how["operands"] = [draw.one_of(operands)]
    return how


def tiles_of_rows(draw: Draw, form: str, a: np.ndarray, b: np.ndarray, out: np.ndarray) -> GemmConfig | None:
    """One of those that the choice for groups of rows is made of."""
    return draw.tuned(trials_of_class(request_of(ragged_groups(form, a, b, np.zeros(len(b), np.int32), out), form)))


def along_k(draw: Draw) -> object:
    inputs, (m, n, deep), groups = (
        draw.inputs("bf16", "f16"),
        (draw.size(4096), draw.size(4096), draw.size()),
        draw.size(16, 4),
    )
    out = draw.array((groups, m, n), draw.output(inputs))
    ends = np.full(groups, deep, np.int32)
    return grouped_gemm_ragged_k(draw.array((deep, m), inputs), draw.array((deep, n), inputs), ends, out=out)


def lists(draw: Draw) -> object:
    inputs, groups = draw.inputs("bf16", "f16", "s8", "u8"), draw.size(16, 4)
    output, orders = draw.output(inputs), draw.orders(inputs)
    sizes = [(draw.size(2048), draw.size(4096), draw.size(4096)) for _ in range(groups)]
    a = [draw.array((m, k), inputs, orders[0]) for m, _, k in sizes]
    b = [draw.array((k, n), inputs, orders[1]) for _, n, k in sizes]
    out = [draw.array((m, n), output) for m, n, _ in sizes]
    beta = float(draw.chance(0.3))
    c = out if beta else None
    group = problem_group(a, b, c, out, (1.0, beta))
    config = draw.tuned(trials_of_class(request_of_lists(group.row_major))) if group else None
    return grouped_gemm(a, b, c, out=out, beta=beta, config=config)


def scaled(draw: Draw) -> object:
    """A product or groups, by scales of tensors, of rows and columns, or of blocks."""
    inputs, (m, n, k), groups = draw.one_of(FP8), (draw.size(), draw.size(4096), draw.size(4096)), draw.size(16, 4)
    form, kind = draw.one_of(("product", "ragged", "masked")), draw.one_of(("tensors", "rows", "blocks"))
    of_a = (groups,) if form == "masked" else ()
    of_b = () if form == "product" else (groups,)
    m = min(m, 2048) if form == "masked" else m
    blocks = -(-k // BLOCK), -(-n // BLOCK)
    shapes = {
        "tensors": ((1,), (1,)),
        "rows": ((*of_a, m, 1), (*of_b, 1, n)),
        "blocks": ((*of_a, m, blocks[0]), (*of_b, *blocks)),
    }
    scales = [draw.array(shape, "f32") for shape in shapes[kind]]
    order = draw.one_of(("row", "column", "column"))
    a, b = draw.array((*of_a, m, k), inputs), draw.array((*of_b, k, n), inputs, order)
    output = draw.one_of((*FLOATS, "bf16", *FP8))
    out = draw.array((*of_a, m, n), output)
    if form == "product":
        beta, how = float(draw.chance(0.3)), function_of(draw, out, output)
        c = draw.array((m, n), output if output not in FP8 else "bf16") if beta else None
        facts = product_facts(problem_of(a, b, c, out, beta, **how), "epilogue" in how)
        facts = facts._replace(operands=replace(facts.operands, scaling=Scaling(kind)))
        config = draw.candidate(ranked_products(facts, rates_of())) if m and n and k else None
        return scaled_gemm(a, b, *scales, c, out=out, beta=beta, config=config, **how)
    if form == "ragged":
        operands = {"epilogue": add, "operands": [per_column(draw.array((n,), "bf16"))]} if draw.chance(0.3) else {}
        return scaled_gemm_ragged(a, b, np.full(groups, m, np.int32), *scales, out=out, **operands)
    return scaled_gemm_masked(a, b, np.zeros(groups, np.int32), *scales, out=out)


def convolution(draw: Draw) -> object:
    inputs, window = draw.inputs("bf16", "f16", "e4m3", "s8"), draw.one_of((1, 1, 3, 3, 3, 5, 7))
    images, size = draw.size(64, 8), draw.one_of((7, 8, 14, 16, 28, 32, 56, 112))
    channels, filters = draw.size(MOST_CHANNELS), draw.size(MOST_CHANNELS)
    output, pad = draw.output(inputs), window // 2
    x, w = draw.array((images, size, size, channels), inputs), draw.array((filters, window, window, channels), inputs)
    out, how = draw.array((images, size, size, filters), output), {}
    if draw.chance(0.3):
        how = {"epilogue": add_relu, "operands": [per_column(draw.array((filters,), "f32"))]}
    if draw.chance(0.5):
        problem = convolution_problem(x, w, out, moves(pad, 1, 1), **how)
        how["config"] = draw.candidate(ranked_products(window_facts(problem), rates_of()))
    return conv2d(x, w, pad=pad, out=out, **how)


def gradients(draw: Draw) -> object:
    """Of images, or of filters."""
    inputs, window = draw.inputs("bf16", "f16"), draw.one_of((1, 3, 3, 5))
    images, size = draw.size(64, 8), draw.one_of((7, 8, 14, 16, 28, 32, 56))
    channels, filters = 64 * draw.random.randint(1, 16), 64 * draw.random.randint(1, 16)
    x, dy = draw.array((images, size, size, channels), inputs), draw.array((images, size, size, filters), inputs)
    if draw.chance(0.6):
        return conv2d_wgrad(dy, x, (window, window), pad=window // 2)
    return conv2d_dgrad(dy, draw.array((filters, window, window, channels), inputs), x.shape[1:3], pad=window // 2)


KINDS: dict[Call, int] = {
    product: 12,
    batches: 2,
    rows: 4,
    along_k: 1,
    lists: 2,
    scaled: 3,
    convolution: 4,
    gradients: 2,
}
"""How often each is drawn."""
