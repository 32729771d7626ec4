"""Route tokens to experts and back with torch operators, one kernel of `kernels.reorder.routing` each."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from ptxdsl.arrays import type_of
from ptxdsl.emulate.report import counted
from ptxdsl.errors import LaunchError
from ptxdsl.kernels.reorder.routing import (
    COUNTERS,
    LANES,
    MOST_WARPS,
    THREADS,
    WORD_BYTES,
    combine_backward_kernel,
    combine_kernel,
    gather_kernel,
    sort_kernel,
    spread_kernel,
)
from ptxdsl.torch.operator import op

TYPES = torch.float16, torch.bfloat16, torch.float32  # of rows that these kernels move


def _sort(chosen: Tensor, experts: int) -> tuple[Tensor, Tensor]:
    """Sort the entries of `chosen`, int64 experts of any shape, by expert; the sort is stable.

    Return the position of each entry in sorted order, and the end of each expert's entries, both int32.
    """
    if not 0 < experts <= COUNTERS:
        raise LaunchError(f"`experts` is {experts}; the sort kernel supports 1 to {COUNTERS}", help="use torch.sort")
    rank, ends = _sort_fake(chosen, experts)
    warps = min(MOST_WARPS, 1 << (COUNTERS // experts).bit_length() - 1)
    sort_kernel[1, LANES * warps](chosen.contiguous(), rank, ends, chosen.numel(), experts=experts, warps=warps)
    return rank, ends


def _sort_fake(chosen: Tensor, experts: int) -> tuple[Tensor, Tensor]:
    return chosen.new_empty(chosen.shape, dtype=torch.int32), chosen.new_empty(experts, dtype=torch.int32)


sort_by_expert = op("ptxdsl::sort_by_expert", _sort, fake=_sort_fake)


def _access(*rows: Tensor) -> dict[str, Any]:
    """Return the constants of kernels that move these rows: their type, and the bytes that a thread moves at a time."""
    dtype, size = rows[0].dtype, rows[0].element_size()
    if dtype not in TYPES:
        raise LaunchError(
            f"rows of {dtype} are not supported; they must be float16, bfloat16 or float32", help="convert them first"
        )
    is_wide = rows[0].shape[1] * size % WORD_BYTES == 0 and all(each.data_ptr() % WORD_BYTES == 0 for each in rows)
    return {"type": type_of(dtype), "access": WORD_BYTES if is_wide else size}


def _spread(tokens: Tensor, rank: Tensor) -> Tensor:
    """Return rows with rows[rank[t, j]] = tokens[t]: (tokens, width) and int32 (tokens, chosen) to (rows, width).

    The entries of rank are unique.
    """
    tokens, rank = tokens.contiguous(), rank.contiguous()
    rows = _spread_fake(tokens, rank)
    if rows.numel():
        constants = _access(tokens, rows)
        spread_kernel[len(tokens), THREADS](tokens, rank, rows, rows.shape[1], chosen=rank.shape[1], **constants)
    return rows


def _spread_fake(tokens: Tensor, rank: Tensor) -> Tensor:
    return tokens.new_empty((rank.shape[0] * rank.shape[1], tokens.shape[1]))


def _spread_backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
    return gather_rows(gradient, ctx.saved_tensors[1]), None


spread = op("ptxdsl::spread", _spread, fake=_spread_fake, backward=_spread_backward)


def _gather(rows: Tensor, rank: Tensor) -> Tensor:
    """Return the sum over j of rows[rank[t, j]], accumulated in float32."""
    rows, rank = rows.contiguous(), rank.contiguous()
    out = _gather_fake(rows, rank)
    if out.numel():
        constants = _access(rows, out)
        gather_kernel[len(rank), THREADS](rows, rank, out, rows.shape[1], chosen=rank.shape[1], **constants)
    return out


def _gather_fake(rows: Tensor, rank: Tensor) -> Tensor:
    return rows.new_empty((rank.shape[0], rows.shape[1]))


gather_rows = op("ptxdsl::gather_rows", _gather, fake=_gather_fake)


def _combine(rows: Tensor, rank: Tensor, weights: Tensor) -> Tensor:
    """Return the sum over j of weights[t, j] * rows[rank[t, j]], accumulated in float32.

    The weights are float32 (tokens, chosen).
    """
    rows, rank, weights = rows.contiguous(), rank.contiguous(), weights.contiguous()
    out = _combine_fake(rows, rank, weights)
    if out.numel():
        constants = _access(rows, out)
        combine_kernel[len(rank), THREADS](rows, rank, weights, out, rows.shape[1], chosen=rank.shape[1], **constants)
    return out


def _combine_fake(rows: Tensor, rank: Tensor, weights: Tensor) -> Tensor:
    return rows.new_empty((rank.shape[0], rows.shape[1]))


def _combine_backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
    of_rows, of_weights = combine_gradients(gradient, *ctx.saved_tensors)
    return of_rows, None, of_weights


combine_rows = op("ptxdsl::combine_rows", _combine, fake=_combine_fake, backward=_combine_backward)


def _gradients(gradient: Tensor, rows: Tensor, rank: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """Return the gradients of rows and weights from that of the combined rows."""
    gradient, rows, rank, weights = (each.contiguous() for each in (gradient, rows, rank, weights))
    of_rows, of_weights = _gradients_fake(gradient, rows, rank, weights)
    if of_weights.numel():
        constants = _access(gradient, rows, of_rows)
        combine_backward_kernel[len(rank), THREADS](
            gradient, rows, rank, weights, of_rows, of_weights, rows.shape[1], chosen=rank.shape[1], **constants
        )
    return of_rows, of_weights


def _gradients_fake(gradient: Tensor, rows: Tensor, rank: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    return torch.empty_like(rows), torch.empty_like(weights)


combine_gradients = op("ptxdsl::combine_gradients", _gradients, fake=_gradients_fake)


class Routes(NamedTuple):
    """The destinations of rows sorted by expert.

    `rank` (tokens, chosen) are the rows of each token and `ends` the end of each expert's rows, both int32; `weights`
    (tokens, chosen) are the float32 weights of each choice.
    """

    rank: Tensor
    ends: Tensor
    weights: Tensor


def check_chosen(chosen: object, experts: int) -> None:
    """Refuse a number of experts per token that is less than 1 or more than the number of experts."""
    if isinstance(chosen, bool) or not isinstance(chosen, int | torch.SymInt):
        raise LaunchError(
            f"`chosen` is {chosen!r}; it must be the number of experts per token", help="pass an int, such as 2"
        )
    if not 0 < chosen <= experts:
        many = f"there {'is' if experts == 1 else 'are'} {counted(experts, 'expert')}"
        raise LaunchError(f"`chosen` is {chosen}; {many}", help=f"choose 1 to {experts} for each token")


def route(scores: Tensor, chosen: int) -> Routes:
    """Return the best experts of each token by scores (tokens, experts), without waiting on the host.

    Raises LaunchError for scores of another rank, and if `chosen` exceeds the number of experts.
    """
    if scores.dim() != 2:
        shape = tuple(scores.shape)
        raise LaunchError(
            f"`scores` has the shape {shape}; it must be (tokens, experts)", help="reshape it to two dimensions"
        )
    check_chosen(chosen, scores.shape[1])
    best, experts = scores.topk(chosen, dim=-1)
    rank, ends = sort_by_expert(experts, scores.shape[1])
    return Routes(rank, ends, best.softmax(-1, dtype=torch.float32))


def dispatch(tokens: Tensor, routes: Routes) -> Tensor:
    """Return the rows of tokens (tokens, width), sorted by expert: (tokens * chosen, width)."""
    rows: Tensor = spread(tokens, routes.rank)
    return rows


def combine(rows: Tensor, routes: Routes) -> Tensor:
    """Return the weighted sum of the rows of each token, (tokens, width)."""
    combined: Tensor = combine_rows(rows, routes.rank, routes.weights)
    return combined
