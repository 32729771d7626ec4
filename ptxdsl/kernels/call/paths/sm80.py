"""The sm_80 path: mma.sync and cp.async, for all GPUs and layouts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf
from typing import Any

from ptxdsl.kernels.call.matrix import describe_type
from ptxdsl.kernels.call.paths.groups import scheduled
from ptxdsl.kernels.call.paths.kernel import configure
from ptxdsl.kernels.call.paths.path import ConvolutionRequest, GroupRequest, InputLayout, Path, Refusal, Request
from ptxdsl.kernels.candidates.facts import Facts, ProductFacts
from ptxdsl.kernels.candidates.sm90 import Decomposition
from ptxdsl.kernels.choose.products import (
    Ranked,
    ranked_by_warps,
    ranked_convolutions,
    ranked_groups_by_warps,
    time_by_warps,
)
from ptxdsl.kernels.config import GemmConfig, specialise
from ptxdsl.kernels.product.operands import FP8, Batches
from ptxdsl.kernels.product.words import WIDEST
from ptxdsl.kernels.tiles.many import AHEAD
from ptxdsl.kernels.traits.parameters import Group, parameters
from ptxdsl.kernels.traits.traits import Traits
from ptxdsl.schedule import StreamKThreadblockSwizzle


class WarpPath(Path):
    """Blocks of warps that load, multiply and store."""

    name = "sm80"

    def refusal(self, request: Request) -> Refusal | None:
        types = request.facts.operands.inputs, request.facts.operands.output
        unknown = next((type for type in types if type in FP8), None)
        return (f"mma.sync neither multiplies {describe_type(unknown)} nor rounds to it", "") if unknown else None

    def layouts(self, request: Request) -> Sequence[InputLayout]:
        facts = request.facts
        if isinstance(facts, ProductFacts) and request.shares_b:
            facts = facts.joined
        return [InputLayout(facts)]

    def ranked(self, facts: Facts, request: Request) -> Ranked:
        if not isinstance(facts, ProductFacts):
            usual = request.usual if isinstance(request, GroupRequest) else AHEAD
            plain = replace(facts.operands, batches=Batches.NONE, out_boxes=False)
            return ranked_groups_by_warps(facts, request.arch, plain, usual, request.rates)
        if isinstance(request, ConvolutionRequest):
            facts, is_wide = facts._replace(k=request.depth), facts.operands.a_bytes == WIDEST
            ranked = ranked_convolutions(facts, request.rates, is_wide, request.slices)
            return [(request.slowness * time, config) for time, config in ranked]
        ranked = ranked_by_warps(facts, request.arch, request.rates, request.is_scheduled)
        decomposition = request.decomposition
        if decomposition is None or not decomposition.splits_k:
            return ranked
        if decomposition.reduction == "cluster":  # which these kernels do not have
            return [(inf, config) for _, config in ranked[:1]]
        return [
            (time_by_warps(_split(config, decomposition), facts, request.rates), config) for _, config in ranked[:1]
        ]

    def grouped(self, config: GemmConfig, request: GroupRequest, is_chosen: bool) -> Traits:
        config = scheduled(config, request.usual)
        config = config if request.epilogue is None else specialise(config, epilogue=request.epilogue)
        return configure(config, replace(request.facts.operands, batches=Batches.NONE, out_boxes=False), request.device)

    def parameters(self, traits: Any) -> Group:
        return parameters(traits)

    def matrices(self, traits: Any, matrices: dict[str, Any]) -> dict[str, Any]:
        return {}


def _split(config: GemmConfig, decomposition: Decomposition) -> GemmConfig:
    """Return a configuration with the decomposition of K that the caller asks for."""
    if decomposition.blocks:
        return specialise(config, schedule=StreamKThreadblockSwizzle(decomposition.blocks))
    return specialise(config, split_k=decomposition.slices, reduction=decomposition.reduction)
