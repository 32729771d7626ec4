"""Random calls of gemm: matrices, batches in one array, lists."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ptxdsl.kernels.epilogue import per_column, per_row
from ptxdsl.kernels.gemm import gemm
from tests.machines import NAMES
from tests.random_calls.call import Call, Result
from tests.random_calls.configs import FUNCTIONS, config, scheduled
from tests.random_calls.drawing import FLOATS, FP8, OUTPUTS, WHOLE, Draw
from tests.random_calls.views import View, matrix, vector

# Of one rounding, relative: of an operand as tensor cores read it, of a step of a sum
READ, SUMMED = {"f32": 2.0**-10}, {"f64": 2.0**-53, "s8": 0.0, "u8": 0.0}
LARGEST = 2400
ON_GPU = 3e8  # products of numbers
APPROXIMATE = 3e-6, 2.0**-20  # of functions that are no sums: absolute, and of their argument


@dataclass
class Fused:
    """A function of the output with its operands, as options of a call and as a function of numpy."""

    options: dict[str, Any]
    apply: Callable[[np.ndarray], np.ndarray]
    factor: float = 1.0  # by which errors grow at most
    is_approximate: bool = False

    def result(self, sums: np.ndarray, allowed: np.ndarray | float, written: np.ndarray | None = None) -> Result:
        values = self.apply(sums)
        if self.is_approximate:
            allowed = allowed + APPROXIMATE[0] + APPROXIMATE[1] * np.abs(sums)
        return Result(values, self.factor * allowed, written)


NO_FUNCTION = Fused({}, lambda x: x)


def allowed(type: str, exact: bool, terms: int, scale: np.ndarray | float) -> np.ndarray | float:
    """By how much a sum of so many products may be off, whose absolute values add up to `scale`."""
    if exact:
        return 0.0
    relative = 4 * READ.get(type, 0.0) + (terms / 8 + 8) * SUMMED.get(type, 2.0**-22) + 2.0**-22
    if type == "f64":
        relative = (terms + 8) * 2.0**-52
    return relative * scale


def fused(
    draw: Draw, output: str, shape: Sequence[int], out: View | None, lay: Callable[[str], View], exact: bool,
    kinds: str = "Mmn",
) -> Fused:  # fmt: skip
    """`lay` makes a matrix of a type like the output; `kinds` are those of operands that the call takes."""
    known = [name for name, (_, wanted, _, in_f32) in FUNCTIONS.items() if set(wanted) - {"?"} <= set(kinds)]
    known = [name for name in known if not (FUNCTIONS[name][3] and output in ("s32", "f64"))]
    if draw.chance(0.5) or not known:
        return NO_FUNCTION
    name = draw.one_of(*known)
    function, wanted, of_numpy, _ = FUNCTIONS[name]
    operands, values = [], []
    for kind in wanted:
        operand, value = _operand(draw, draw.one_of(*kinds) if kind == "?" else kind, output, shape, out, lay)
        operands.append(operand)
        values.append(value)
    options: dict[str, Any] = {"epilogue": function}
    if operands:
        options["operands"] = tuple(operands)
    whole = name in ("relu", "add", "add_relu", "scale", "scale both", "blend")
    return Fused(options, lambda x: of_numpy(x, *values), 9.0 if not exact else 1.0, not whole)


def _operand(
    draw: Draw, kind: str, output: str, shape: Sequence[int], out: View | None, lay: Callable[[str], View]
) -> tuple[Any, np.ndarray]:
    type = "s32" if output == "s32" else draw.one_of(*FLOATS, "f64", "s32")
    if kind == "M":
        in_place = out is not None and output not in FP8 and draw.chance(0.3)
        view = out if in_place else lay(type)
        assert view is not None
        fill(draw, view, view.type, True)
        return view, np.broadcast_to(view.array.astype(np.float64), shape)
    *_, rows, columns = shape
    view = vector(draw, (rows if kind == "m" else columns,), type)
    fill(draw, view, type, True)
    values = view.array.astype(np.float64)
    return (per_row(view), values[:, None]) if kind == "m" else (per_column(view), values)


def fill(draw: Draw, view: View, type: str, exact: bool, most: int = 2) -> np.ndarray:
    """Numbers to a view. Returns them in float64; lines that share memory are written once."""
    if view.array.size:
        whole = view.array
        for axis, stride in enumerate(whole.strides):
            if stride == 0 and whole.shape[axis] > 1:
                whole = whole[tuple([slice(0, 1) if n == axis else slice(None) for n in range(whole.ndim)])]
        whole[...] = draw.numbers(whole.shape, type, exact, most)
    return view.array.astype(np.float64)


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """In float64, on a GPU where one is at work and the sizes are for it."""
    torch = sys.modules.get("torch")
    if torch is None or a.size * b.shape[-1] < ON_GPU or not torch.cuda.is_available():
        return np.matmul(a, b)
    on_gpu = [torch.from_numpy(np.ascontiguousarray(each)).cuda() for each in (a, b)]
    return np.asarray((on_gpu[0] @ on_gpu[1]).cpu().numpy())


def is_exact(draw: Draw, inputs: str, output: str) -> bool:
    """Whether sums are exact; the largest integers are for outputs that hold them."""
    return inputs in FP8 or (inputs in WHOLE and output != "s32") or draw.chance(0.7)


def draw_product(draw: Draw) -> Call:
    """gemm of two matrices, or of batches in one array."""
    inputs = draw.input_type()
    rounded = FP8 if inputs in ("f16", "bf16") and draw.arch == "sm_90a" else ()
    output = draw.one_of(*OUTPUTS[inputs], *rounded)
    if draw.chance(0.4):
        output = "f32" if inputs in (*FP8, "f32") else OUTPUTS[inputs][0] if inputs not in FLOATS else inputs
    exact = is_exact(draw, inputs, output)
    batches = draw.weighted({(): 6, (1,): 1, (draw.to(5, 2),): 2, (0,): 0.2})
    if inputs in FP8 and draw.chance(0.7):
        batches = ()
    most = LARGEST if draw.large and not batches and draw.chance(0.15) else 0
    m, n = draw.size(16, 64, 128, most=most), draw.size(16, 64, 128, most=most)
    k = draw.size(32, 64, 128, most=3 * draw.most)
    along_k = draw.chance(0.4 if inputs in FP8 else 0.3)
    orders = ("row", "column") if along_k else (draw.one_of("row", "column"), "")
    kind = "whole words" if draw.chance(0.75 if inputs in FP8 else 0.5) else ""
    a_batches, b_batches = (batches if draw.chance(0.8) else () for _ in "ab")
    if batches and not a_batches and not b_batches:
        a_batches = batches
    a = matrix(draw, (*a_batches, m, k), inputs, orders[0], kind=kind, shared=draw.chance(0.15))
    b = matrix(draw, (*b_batches, k, n), inputs, orders[1], kind=kind, shared=draw.chance(0.15))
    shape = (*batches, m, n)
    out = matrix(draw, shape, output, draw.one_of("row", "row", "column"), "noise") if draw.chance(0.85) else None
    return _call(draw, inputs, output, exact, a, b, out, shape)


def _call(
    draw: Draw, inputs: str, output: str, exact: bool, a: View, b: View, out: View | None, shape: Sequence[int]
) -> Call:
    k = a.array.shape[-1]
    x, y = fill(draw, a, inputs, exact), fill(draw, b, inputs, exact)
    values, scale = product(x, y), 0.0 if exact else product(np.abs(x), np.abs(y))
    function = fused(draw, output, shape, out, lambda type: matrix(draw, shape, type), exact) if out else NO_FUNCTION
    is_read = any(value is out for value in function.options.get("operands", ()))
    alpha, beta, c = _factors(draw, output, shape, out, is_read)
    options: dict[str, Any] = {**function.options, **_how(draw, inputs, len(shape) > 2)}
    if alpha != 1:
        options["alpha"] = alpha
    values, scale = alpha * values, abs(alpha) * scale
    if c is not None:
        options |= {"c": c, "beta": beta}
        if beta:
            values, scale = values + beta * _filled_c(draw, c, out, is_read), scale + 9 * abs(beta) * (not exact)
    if out is not None:
        options["out"] = out
    blocks = draw.one_of(None, 1, 2, 3, 7)
    result = function.result(values, allowed(inputs, exact, k, scale))
    return Call(gemm, (a, b), options, [result], [out] if out is not None else [], blocks, f"K={k}")


def _filled_c(draw: Draw, c: View, out: View | None, is_read: bool) -> np.ndarray:
    if c is out and is_read:
        return c.array.astype(np.float64)
    return fill(draw, c, c.type, True)


def _factors(
    draw: Draw, output: str, shape: Sequence[int], out: View | None, is_read: bool
) -> tuple[float, float, View | None]:
    whole = output == "s32"
    alpha = draw.one_of(1, 1, 1, -3, 2) if whole else draw.one_of(1.0, 1.0, 1.0, 0.5, -2.0, 0.25, 0.0)
    if output in FP8 or out is None or draw.chance(0.55):
        return alpha, 0.0, None
    beta = draw.one_of(1, 2, -1, 0) if whole else draw.one_of(1.0, 0.5, -2.0, 0.0)
    if draw.chance(0.4):
        return alpha, beta, out
    extents = shape if draw.chance(0.7) else shape[-2:]
    return alpha, beta, matrix(draw, extents, output, draw.one_of("row", "row", "column"))


def _how(draw: Draw, inputs: str, batched: bool) -> dict[str, Any]:
    """The configuration, and what says which block computes what: in it, or beside it."""
    fields = scheduled(draw, batched)
    beside = draw.chance(0.4)
    chosen = config(draw, inputs, **({} if beside else fields))
    options = dict(fields) if beside else {}
    return options if chosen is None else {**options, "config": chosen}


def draw_list(draw: Draw) -> Call:
    """gemm of lists of matrices that lie alike, each anywhere; a single one is for all."""
    inputs = draw.input_type()
    output = inputs if inputs in FLOATS else OUTPUTS[inputs][0]
    exact, count = is_exact(draw, inputs, output), draw.to(4, 1)
    m, n, k = draw.extent(16, 64), draw.extent(16, 64), draw.size(32, 64)
    orders = [draw.one_of("row", "column") for _ in range(3)]
    if inputs in FP8 or draw.chance(0.3):
        orders[:2] = "row", "column"
    kind = "whole words" if inputs in FP8 or draw.chance(0.5) else ""
    lists: list[list[View]] = []
    for extents, order, type, poison in (
        ((m, k), orders[0], inputs, "nan"), ((k, n), orders[1], inputs, "nan"), ((m, n), orders[2], output, "noise"),
    ):  # fmt: skip
        lists.append(_alike(draw, extents, type, order, count, poison, kind))
    alone = draw.one_of(-1, -1, -1, 0, 1)  # which of both is a single matrix for all
    values = [[fill(draw, view, inputs, exact) for view in views] for views in lists[:2]]
    if alone >= 0:
        values[alone] = [values[alone][0]] * count
    arguments = [views[0] if n == alone else views for n, views in enumerate(lists[:2])]
    alpha = draw.one_of(1, 1, -2)
    beta, in_place = draw.one_of(0, 0, 2), draw.chance(0.5)
    added = lists[2] if in_place else _alike(draw, (m, n), output, orders[2], count, "nan")
    results = []
    for x, y, c in zip(*values, added, strict=True):
        sums, scale = alpha * product(x, y), abs(alpha) * product(np.abs(x), np.abs(y)) + 9 * abs(beta)
        sums = sums + beta * fill(draw, c, output, True) if beta else sums
        results.append(Result(sums, allowed(inputs, exact, k, scale)))
    chosen = config(draw, inputs, groups=not draw.chance(0.15)) if draw.chance(0.7) else None
    options: dict[str, Any] = {"out": lists[2], "alpha": alpha}
    if beta:
        options |= {"c": added, "beta": beta}
    if chosen is not None:
        options["config"] = chosen
    return Call(gemm, arguments, options, results, lists[2], draw.one_of(None, 2))


def _alike(
    draw: Draw, shape: Sequence[int], type: str, order: str, count: int, poison: str, kind: str = ""
) -> list[View]:
    """Matrices with the same strides."""
    state, numbers = draw.random.getstate(), draw.numpy
    views = []
    for _ in range(count):
        draw.random.setstate(state)
        views.append(matrix(draw, shape, type, order, poison, kind))
    assert NAMES[type] and numbers is draw.numpy
    return views
