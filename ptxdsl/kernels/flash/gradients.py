"""The arguments of the gradient of attention: checked arrays, and the three launches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ptxdsl import arrays
from ptxdsl.errors import LaunchError
from ptxdsl.kernels.call.matrix import ArrayArgument, array_argument, empty
from ptxdsl.kernels.flash.backward import (
    KEY_TILE,
    PADDED,
    QUERY_TILE,
    BackwardTraits,
    RowExtents,
    RowStrides,
    backward_parameters,
)
from ptxdsl.kernels.flash.problem import (
    DENSE,
    LOG2_E,
    AttentionProblem,
    bounds_of,
    check_strides,
    problem_of,
    scale_of,
)
from ptxdsl.types import f32

HEADS = (64, 128)
ROWS_A_BLOCK = 4  # of the statistics kernel


def run_backward(
    kernels: Sequence[Any],
    dout: object,
    operands: Sequence[object],
    out: object,
    lse: object,
    window: tuple[int | None, int | None],
    scale: float | None,
) -> tuple[Any, Any, Any]:
    """Check a call of attention_backward and launch it. Returns (dq, dk, dv)."""
    q, k, v = operands
    problem = problem_of(q, k, v, None)
    batch, heads, m, head = problem.q.array.shape
    _, kv_heads, n, dv = problem.v.array.shape
    if head not in HEADS or dv != head:
        raise LaunchError(
            f"attention_backward has no kernel for a head dimension of {head} with values of {dv}",
            help=f"D is {' or '.join(map(str, HEADS))}, for q, k and v alike",
        )
    output, gradient = (_like_output(name, owner, problem) for name, owner in (("out", out), ("dout", dout)))
    sums = _checked_lse(lse, problem)
    factor, (bounds, sides) = scale_of(scale, head), bounds_of(window)
    results = [empty(x, x.array.shape, x.type) for x in (problem.q, problem.k, problem.v)]
    if not problem.q.array.size or not problem.k.array.size:
        for result in results:
            result[...] = 0
        return results[0], results[1], results[2]
    padded = -(-m // PADDED) * PADDED
    lse2, delta = (empty(problem.q, (batch, heads, padded), f32) for _ in range(2))
    statistics, dq_kernel, dkv_kernel = kernels
    strides = RowStrides(out=output.array.strides[:3], dout=gradient.array.strides[:3])
    statistics[(padded // ROWS_A_BLOCK, heads, batch), ROWS_A_BLOCK * 32](
        arrays.strided(output.owner), arrays.strided(gradient.owner), sums.owner, strides,
        RowExtents(rows=m, padded=padded), lse2, delta, dtype=problem.q.type, head=head,
    )  # fmt: skip
    shared: dict[str, Any] = {
        "q": problem.q.owner, "k": problem.k.owner, "v": problem.v.owner, "dout": gradient.owner, "lse": lse2,
        "delta": delta, "padded": padded, "extents": (m, n), "heads": heads, "group": heads // kv_heads,
        "window": sides, "scale": factor * LOG2_E, "factor": factor,
    }  # fmt: skip
    dq, dk, dv_ = results
    for kernel, config, grid, outputs in (
        (dq_kernel, QUERY_TILE, (-(-m // QUERY_TILE.queries), heads, batch), (dq, dq)),
        (dkv_kernel, KEY_TILE, (-(-n // KEY_TILE.keys), kv_heads, batch), (dk, dv_)),
    ):
        traits = BackwardTraits(problem.q.type, head, head, config, bounds)
        described = [arrays.describe(x) for x in outputs]
        steps = [stride for x in described if x is not None for stride in x.strides[:3]]
        launched = backward_parameters(traits)(**shared, outputs=outputs, strides=tuple(steps))
        kernel[grid, 384](launched, traits=traits)
    return dq, dk, dv_


def _like_output(name: str, owner: object, problem: AttentionProblem) -> ArrayArgument:
    """Check the output or its gradient."""
    argument = array_argument(name, owner, 4, DENSE, "reshape it, or permute its axes", "float16 or bfloat16")
    if argument.array.shape != problem.out_shape or argument.type is not problem.q.type:
        raise LaunchError(
            f"`{name}` is {argument.array}; the output has the shape {problem.out_shape} and elements of "
            f"{problem.q.array.dtype}",
            help="pass what `attention` returned" if name == "out" else "pass an array like the output",
        )
    check_strides(argument)
    return argument


def _checked_lse(owner: object, problem: AttentionProblem) -> ArrayArgument:
    argument = array_argument("lse", owner, 3, "it is (B, H, M)", "pass what `attention` returned", "float32")
    if argument.array.shape != problem.lse_shape or argument.type is not f32 or not argument.array.contiguous:
        raise LaunchError(
            f"`lse` is {argument.array}; it is a contiguous float32 array with shape {problem.lse_shape}",
            help="pass the second result of attention(…, return_lse=True)",
        )
    return argument
