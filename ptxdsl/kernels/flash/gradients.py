"""A call of the gradient of attention: checked arrays, and the launches."""

from __future__ import annotations

from typing import Any

from ptxdsl.errors import LaunchError
from ptxdsl.kernels.call.call import CheckedCall, PublicCall
from ptxdsl.kernels.call.launching.launches import LaunchPlan
from ptxdsl.kernels.call.matrix import ArrayArgument, array_argument
from ptxdsl.kernels.flash.backward import (
    ADDING_TILE,
    KEY_TILES,
    QUERY_TILES,
    BackwardTraits,
    backward_parameters,
)
from ptxdsl.kernels.flash.call import planned
from ptxdsl.kernels.flash.problem import (
    LOG2_E,
    AttentionProblem,
    allocated,
    bounds_of,
    check_number,
    check_strides,
    problem_of,
    scale_of,
    strides,
)
from ptxdsl.kernels.flash.statistics import BLOCK_ROWS, PADDED, statistics_parameters
from ptxdsl.kernels.flash.traits import WARPGROUP, band_of
from ptxdsl.types import f32

HEADS = (64, 128)
ADDED_HEAD = 128  # columns of the heads whose dq may be added; with 64, that is slower


class BackwardCall(CheckedCall):
    """A call of attention_backward(): three or four launches."""

    name = "attention_backward"
    problem: AttentionProblem

    def __init__(self, call: PublicCall) -> None:
        dq, q, k, v, dout, out, lse, dk, dv, lse2, delta, *offsets = call.arrays
        *_, window, scale, softcap, is_deterministic = call.options
        self.kernels = call.kernels
        self.problem = problem = problem_of(q, k, v, (offsets[0], offsets[1]) if offsets else None)
        check_head(problem)
        self.forward = tuple(_like_output(*each, problem) for each in (("out", out), ("dout", dout)))
        self.lse = _checked_lse(lse, problem)
        self.scale, self.cap = scale_of(scale, problem.head), check_number("softcap", softcap, is_positive=False)
        bounds, self.window = bounds_of(window)
        self.results = [
            allocated(name, owner, x, x.array.shape, x.type)
            for name, owner, x in (("dq", dq, problem.q), ("dk", dk, problem.k), ("dv", dv, problem.v))
        ]
        self.statistics = [
            allocated(name, owner, problem.q, statistics_shape(problem), f32)
            for name, owner in (("lse2", lse2), ("delta", delta))
        ]
        head, is_packed = problem.head, problem.offsets is not None
        adds_dq = head == ADDED_HEAD and not is_deterministic
        self.of_queries, self.of_keys = (
            BackwardTraits(problem.q.type, head, head, config, bounds, self.cap > 0, is_packed, adds_dq=adds)
            for config, adds in ((QUERY_TILES[head], False), (ADDING_TILE if adds_dq else KEY_TILES[head], adds_dq))
        )
        self.out = tuple(result.owner for result in self.results)

    def plan(self, config: Any, copied: str = "") -> LaunchPlan | None:
        """Return the launches: of the statistics, then of the kernels that compute dq, dk and dv. Without queries or
        keys, set the gradients to zero."""
        if not self.problem.q.array.size or not self.problem.k.array.size:
            for result in self.out:
                result[...] = 0
            return None
        statistics, of_queries, of_both, converting = self.kernels
        dq, dk, dv = self.results
        fields = self._fields()
        plan = self._plan_of_statistics(statistics, fields.get("sums"))
        if not self.of_keys.adds_dq:
            plan = self._plan(of_queries, self.of_queries, fields, (dq, dq), plan)
        plan = self._plan(of_both, self.of_keys, fields, (dk, dv), plan)
        if self.of_keys.adds_dq:
            plan = self._plan(converting, self.of_keys, fields, (dq, dq), plan)
        return plan

    def _fields(self) -> dict[str, Any]:
        """Return the parameters that the kernels share."""
        problem, (lse2, delta) = self.problem, self.statistics
        (_, heads, rows, head), (kv_heads, keys) = problem.shape, problem.keys
        fields: dict[str, Any] = {x.name: x for x in (problem.q, problem.k, problem.v, *(problem.offsets or ()))}
        fields |= {
            "dout": self.forward[1], "lse": lse2, "delta": delta, "padded": lse2.array.shape[2],
            "extents": (problem.sequences or rows, keys), "heads": heads, "group": heads // kv_heads,
            "window": self.window, "scale": (self.cap or self.scale) * LOG2_E, "factor": self.scale,
        }  # fmt: skip
        if self.cap:
            fields["cap"] = self.scale / self.cap
        if self.of_keys.adds_dq:
            fields["sums"] = allocated("sums", None, problem.q, (*statistics_shape(problem), head), f32)
        return fields

    def _plan(
        self,
        kernel: Any,
        traits: BackwardTraits,
        fields: dict[str, Any],
        outputs: tuple[ArrayArgument, ArrayArgument],
        before: LaunchPlan,
    ) -> LaunchPlan:
        """Return the launch of a kernel whose blocks own tiles of the outputs, which are dq, or dk and dv."""
        (batch, heads, rows, head), (kv_heads, keys), config = self.problem.shape, self.problem.keys, traits.config
        if outputs[0].name == "dq":
            tiles, shared, loaded = -(-rows // config.queries), heads // kv_heads, keys
        else:
            heads, tiles, shared, loaded = kv_heads, -(-keys // config.keys), 1, rows
        band = band_of(traits, heads, shared, 2 * 2 * loaded * head)
        grid = (tiles + self.problem.sequences) * band, heads // band, batch
        threads = WARPGROUP if kernel is self.kernels[-1] else traits.threads
        steps = tuple(stride for x in outputs for stride in strides(x.array)[:3])
        fields = fields | {"outputs": outputs, "strides": steps, "band": band}
        return planned(kernel, grid, threads, backward_parameters(traits), {"traits": traits}, fields, before=before)

    def _plan_of_statistics(self, kernel: Any, sums: ArrayArgument | None) -> LaunchPlan:
        """Return the launch that computes the statistics of the output, its gradient and the log-sum-exp."""
        problem, (out, dout), (lse2, delta) = self.problem, self.forward, self.statistics
        (batch, heads, rows, _), (*_, padded) = problem.shape, statistics_shape(problem)
        fields: dict[str, Any] = {
            "out": out, "dout": dout, "lse": self.lse, "out_strides": strides(out.array)[:3],
            "dout_strides": strides(dout.array)[:3], "rows": rows, "padded": padded, "lse2": lse2, "delta": delta,
        }  # fmt: skip
        if problem.offsets:
            fields |= {"q_offsets": problem.offsets[0], "sequences": problem.sequences}
        traits = self.of_queries
        if sums is not None:
            fields["sums"], traits = sums, self.of_keys
        grid = padded // BLOCK_ROWS, heads, batch
        return planned(kernel, grid, WARPGROUP, statistics_parameters(traits), {"traits": traits}, fields)


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
