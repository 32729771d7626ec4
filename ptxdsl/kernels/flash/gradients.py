"""The arguments of the gradient of attention: checked arrays, and the three launches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ptxdsl import arrays
from ptxdsl.errors import LaunchError
from ptxdsl.kernels.call.matrix import ArrayArgument, array_argument, empty
from ptxdsl.kernels.flash.backward import (
    KEY_TILE,
    QUERY_TILE,
    BackwardTraits,
    backward_parameters,
)
from ptxdsl.kernels.flash.problem import (
    LOG2_E,
    AttentionProblem,
    bounds_of,
    check_number,
    check_strides,
    problem_of,
    scale_of,
    strides,
)
from ptxdsl.kernels.flash.statistics import BLOCK_ROWS, PADDED, statistics_parameters
from ptxdsl.kernels.flash.traits import WARPGROUP
from ptxdsl.types import f32

HEADS = (64, 128)
ADDED_HEAD = 128  # columns of the heads whose dq may be added; with 64, that is slower


def run_backward(
    kernels: Sequence[Any],
    dout: object,
    operands: Sequence[object],
    forward: tuple[object, object],
    offsets: tuple[object, object] | None,
    window: tuple[int | None, int | None],
    scale: float | None,
    softcap: float,
    is_deterministic: bool = True,
    results: Sequence[Any] = (),
) -> tuple[Any, Any, Any]:
    """Check a call of attention_backward and launch it. Returns (dq, dk, dv).

    `forward` are the output and the log-sum-exp. `results` are dq, dk, dv and two arrays of `statistics_shape`, all
    allocated by default.
    """
    q, k, v = operands
    problem = problem_of(q, k, v, offsets)
    (_, heads, m, _), head, (kv_heads, n) = problem.shape, problem.head, problem.keys
    check_head(problem)
    output, gradient = (_like_output(*each, problem) for each in (("out", forward[0]), ("dout", dout)))
    sums = _checked_lse(forward[1], problem)
    factor, cap = scale_of(scale, head), check_number("softcap", softcap, is_positive=False)
    bounds, sides = bounds_of(window)
    if not results:
        results = [empty(x, x.array.shape, x.type) for x in (problem.q, problem.k, problem.v)]
        results += [empty(problem.q, statistics_shape(problem), f32) for _ in range(2)]
    dq, dk, dv, lse2, delta = results
    if not problem.q.array.size or not problem.k.array.size:
        for result in (dq, dk, dv):
            result[...] = 0
        return dq, dk, dv
    packed: dict[str, Any] = {x.name: x.owner for x in problem.offsets or ()}
    traits, of_keys = (
        BackwardTraits(problem.q.type, head, head, config, bounds, cap > 0, bool(packed), adds_dq=adds_dq)
        for config, adds_dq in ((QUERY_TILE, False), (KEY_TILE, head == ADDED_HEAD and not is_deterministic))
    )
    _write_statistics(kernels[0], problem, traits, (output, gradient, sums), (lse2, delta))
    shared: dict[str, Any] = {
        x.name: x.owner.swapaxes(0, 1)[None] if packed else x.owner for x in (problem.q, problem.k, problem.v, gradient)
    }
    shared |= packed | {
        "lse": lse2, "delta": delta, "padded": lse2.shape[2], "extents": (problem.sequences or m, n), "heads": heads,
        "group": heads // kv_heads, "window": sides, "scale": (cap or factor) * LOG2_E, "factor": factor,
    } | ({"cap": factor / cap} if cap else {})  # fmt: skip
    if of_keys.adds_dq:
        shared["sums"] = empty(problem.q, (*lse2.shape, head), f32)
        shared["sums"][...] = 0
    _launch(kernels[1:], problem, traits, of_keys, shared, (dq, dk, dv))
    return dq, dk, dv


def _launch(
    kernels: Sequence[Any],
    problem: AttentionProblem,
    traits: BackwardTraits,
    of_keys: BackwardTraits,
    shared: dict[str, Any],
    results: Sequence[Any],
) -> None:
    """Launch the kernels that compute dq, dk and dv; `of_keys` are the traits of those whose blocks own keys."""
    (batch, heads, rows, _), (kv_heads, keys), (dq, dk, dv) = problem.shape, problem.keys, results
    of_queries, of_both, converting = kernels

    def launch(kernel: Any, traits: BackwardTraits, rows: int, size: int, heads: int, *outputs: Any) -> None:
        steps = [stride for x in outputs for stride in strides(arrays.describe(x) or problem.q.array)[:3]]
        launched: Any = backward_parameters(traits)(**shared, outputs=outputs, strides=tuple(steps))
        threads = WARPGROUP if kernel is converting else traits.threads
        kernel[(-(-rows // size) + problem.sequences, heads, batch), threads](launched, traits=traits)

    if not of_keys.adds_dq:
        launch(of_queries, traits, rows, QUERY_TILE.queries, heads, dq, dq)
    launch(of_both, of_keys, keys, KEY_TILE.keys, kv_heads, dk, dv)
    if of_keys.adds_dq:
        launch(converting, of_keys, rows, KEY_TILE.queries, heads, dq, dq)


def _write_statistics(
    kernel: Any,
    problem: AttentionProblem,
    traits: BackwardTraits,
    operands: Sequence[ArrayArgument],
    results: Sequence[Any],
) -> None:
    """Launch the kernel that computes the statistics of the output, its gradient and the log-sum-exp."""
    out, dout, lse = operands
    (batch, heads, rows, _), (*_, padded), (lse2, delta) = problem.shape, statistics_shape(problem), results
    launched: Any = statistics_parameters(traits)(
        out=arrays.strided(out.owner), dout=arrays.strided(dout.owner), lse=lse.owner,
        out_strides=strides(out.array)[:3], dout_strides=strides(dout.array)[:3], rows=rows, padded=padded, lse2=lse2,
        delta=delta,
        **{"q_offsets": problem.offsets[0].owner, "sequences": problem.sequences} if problem.offsets else {},
    )  # fmt: skip
    kernel[(padded // BLOCK_ROWS, heads, batch), WARPGROUP](launched, traits=traits)


def check_head(problem: AttentionProblem) -> None:
    """Refuse head dimensions that the forward pass takes, but not the gradient."""
    if problem.head not in HEADS or problem.shape[3] != problem.head:
        raise LaunchError(
            f"attention_backward has no kernel for a head dimension of {problem.head} with values of "
            f"{problem.shape[3]}",
            help=f"D is {' or '.join(map(str, HEADS))}, for q, k and v alike",
        )


def statistics_shape(problem: AttentionProblem) -> tuple[int, int, int]:
    """Return the shape of the statistics, whose rows are padded for each sequence."""
    batch, heads, rows, _ = problem.shape
    return batch, heads, (-(-rows // PADDED) + problem.sequences) * PADDED


def _like_output(name: str, owner: object, problem: AttentionProblem) -> ArrayArgument:
    """Check the output or its gradient."""
    rank = len(problem.out_shape)
    argument = array_argument(name, owner, rank, problem.rule, "reshape it, or permute its axes", "float16 or bfloat16")
    if argument.array.shape != problem.out_shape or argument.type is not problem.q.type:
        raise LaunchError(
            f"`{name}` is {argument.array}; the output has the shape {problem.out_shape} and elements of "
            f"{problem.q.array.dtype}",
            help="pass what `attention` returned" if name == "out" else "pass an array like the output",
        )
    check_strides(argument)
    return argument


def _checked_lse(owner: object, problem: AttentionProblem) -> ArrayArgument:
    shape = problem.lse_shape
    rule = "it is (H, M)" if problem.offsets else "it is (B, H, M)"
    argument = array_argument("lse", owner, len(shape), rule, "pass what `attention` returned", "float32")
    if argument.array.shape != shape or argument.type is not f32 or not argument.array.contiguous:
        raise LaunchError(
            f"`lse` is {argument.array}; it is a contiguous float32 array with shape {shape}",
            help="pass the second result of attention(…, return_lse=True)",
        )
    return argument
