"""torch modules that use the matrix products of ptxdsl: a linear layer and a mixture of experts."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt

import torch
from torch import Tensor, nn

from ptxdsl.torch.products import grouped_gemm_ragged, linear
from ptxdsl.torch.routing import check_chosen, combine, dispatch, route


def lowered(x: Tensor) -> Tensor:
    """Convert x to the type of torch.autocast if it is enabled."""
    kind = x.device.type
    return x.to(torch.get_autocast_dtype(kind)) if torch.is_autocast_enabled(kind) else x


class Linear(nn.Linear):
    """torch.nn.Linear computed by `linear`: the same parameters and state, converted to the type of x."""

    def forward(self, x: Tensor) -> Tensor:
        x = lowered(x)
        return linear(x, self.weight.to(x.dtype), None if self.bias is None else self.bias.to(x.dtype))


class Experts(nn.Module):
    """One two-layer network per group of rows: `experts(rows, ends)` maps (rows, width) to (rows, width).

    The weights are `up` (experts, width, hidden) and `down` (experts, hidden, width), converted to the type of rows.
    """

    def __init__(
        self,
        experts: int,
        width: int,
        hidden: int,
        activation: Callable[[Tensor], Tensor] = nn.functional.silu,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.activation = activation
        self.up = nn.Parameter(torch.empty(experts, width, hidden, device=device, dtype=dtype))
        self.down = nn.Parameter(torch.empty(experts, hidden, width, device=device, dtype=dtype))
        for weight in (self.up, self.down):
            nn.init.uniform_(weight, -1 / sqrt(weight.shape[1]), 1 / sqrt(weight.shape[1]))

    def forward(self, rows: Tensor, ends: Tensor) -> Tensor:
        rows = lowered(rows)
        up, down = (weight.to(rows.dtype) for weight in (self.up, self.down))
        return grouped_gemm_ragged(self.activation(grouped_gemm_ragged(rows, up, ends)), down, ends)


class MixtureOfExperts(nn.Module):
    """Send each token through the `chosen` experts with the best `router` scores; the shape (tokens, width) stays."""

    def __init__(
        self,
        experts: int,
        chosen: int,
        width: int,
        hidden: int,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        check_chosen(chosen, experts)
        self.chosen = chosen
        self.router = Linear(width, experts, bias=False, device=device, dtype=dtype)
        self.experts = Experts(experts, width, hidden, device=device, dtype=dtype)

    def forward(self, tokens: Tensor) -> Tensor:
        routes = route(self.router(tokens), self.chosen)
        return combine(self.experts(dispatch(tokens, routes), routes.ends), routes)
