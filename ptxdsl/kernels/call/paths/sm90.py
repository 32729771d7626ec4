"""The sm_90a path: wgmma and TMA loads, for operands that TMA can address in a layout that wgmma reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from ptxdsl.kernels.call.matrix import describe_type
from ptxdsl.kernels.call.paths.groups import adapted, in_boxes, scheduled
from ptxdsl.kernels.call.paths.kernel import configure, refuse, unmappable
from ptxdsl.kernels.call.paths.path import GroupRequest, InputLayout, Path, Refusal, Request
from ptxdsl.kernels.call.paths.tma import with_tma
from ptxdsl.kernels.candidates.facts import Facts, GroupFacts, ProductFacts
from ptxdsl.kernels.candidates.sm90 import DATA_PARALLEL, spills
from ptxdsl.kernels.choose.products import Ranked, choose_product, ranked_groups, ranked_products, usual_tile
from ptxdsl.kernels.config import WGMMA, GemmConfig, LeftOut, specialise
from ptxdsl.kernels.product.operands import FP8, takes_wgmma
from ptxdsl.kernels.sm90.parameters import tensor_parameters
from ptxdsl.kernels.sm90.tiling import ARCH
from ptxdsl.kernels.tiles.many import AHEAD
from ptxdsl.kernels.traits.parameters import Group
from ptxdsl.kernels.traits.traits import Traits
from ptxdsl.types import f32


class WarpgroupPath(Path):
    """Blocks of a producer warp, which issues TMA loads, and consumer warpgroups. 8-bit floats, as inputs or outputs,
    have no other path."""

    name, uses_tma = "sm90", True

    def refusal(self, request: Request) -> Refusal | None:
        operands = request.facts.operands
        is_alone = takes_wgmma(operands.inputs, operands.output)
        if request.arch != ARCH:
            return self._on_another_gpu(request)
        if is_alone:
            return None
        if request.decomposition is None:
            return "schedule is one of the caller's own, which may be for one path only", 'set atom="wgmma" in a config'
        if request.decomposition.splits_k and operands.is_batched:
            return "blocks share the K of batches", "leave schedule and split_k out"
        if not self.layouts(request):
            unrounded = "wgmma truncates float32 to tf32", 'set atom="wgmma" in a config'
            return next(iter(request.obstacles), unrounded)
        return None

    def _on_another_gpu(self, request: Request) -> Refusal:
        operands = request.facts.operands
        cause, help = (
            f"`out` is {describe_type(operands.output)}, to which {request.name} rounds",
            "convert a float16 `out` afterwards",
        )
        if operands.inputs in FP8:
            cause, help = (
                f"`a` and `b` are {describe_type(operands.inputs)}, which {request.name} multiplies",
                "convert them to float16 before",
            )
        return (
            f"{cause} on {ARCH}; the kernel is for {request.arch}",
            f"{help}; on the emulator, set PTXDSL_ARCH={ARCH}",
        )

    def layouts(self, request: Request) -> Sequence[InputLayout]:
        """Return the layout as passed, unless TMA cannot load it or wgmma would truncate it, and those after copies."""
        operands = request.facts.operands
        is_read = operands.inputs is not f32 and not any(request.obstacles)
        is_checked = takes_wgmma(operands.inputs, operands.output) and not request.copies  # by the launch
        return [*([InputLayout(request.facts)] if is_read or is_checked else []), *request.copies]

    def ranked(self, facts: Facts, request: Request) -> Ranked:
        if not isinstance(facts, ProductFacts):
            return ranked_groups(facts, request.rates)
        ranked = ranked_products(facts, request.rates, request.decomposition or DATA_PARALLEL)
        if not ranked and takes_wgmma(facts.operands.inputs, facts.operands.output):
            return ranked_products(facts, request.rates, DATA_PARALLEL)
        return ranked

    def completed(self, config: GemmConfig, request: Request) -> GemmConfig:
        """Return the configuration with a tile. A configuration that sets only atom="wgmma" becomes the selected one;
        cooperative whole tiles get the faster of two shapes."""
        facts, rates = request.facts, request.rates
        assert isinstance(facts, ProductFacts)
        if config == GemmConfig(atom=WGMMA, epilogue=config.epilogue):
            asked = request.decomposition or DATA_PARALLEL
            chosen = choose_product(facts, rates, asked) or choose_product(facts, rates, DATA_PARALLEL)
            return config if chosen is None else specialise(chosen, epilogue=config.epilogue)
        is_whole = config.tile_schedule.has_whole_tiles and not (config.swap_ab or config.pingpong)
        if not is_whole or not isinstance(config.tile, LeftOut):
            return config
        return specialise(config, tile=usual_tile(facts, rates))

    def grouped(self, config: GemmConfig, request: GroupRequest, is_chosen: bool) -> Traits:
        config = adapted(config, request) if is_chosen else config
        is_along_k, is_scaled = request.is_along_k, request.facts.operands.scaling is not None
        takes_pingpong = isinstance(request.facts, GroupFacts) and not is_scaled
        config = scheduled(config, AHEAD, takes_pingpong, staggers=(config.swap_ab or is_along_k) and not is_scaled)
        config = config if request.epilogue is None else specialise(config, epilogue=request.epilogue)
        gathers = request.gathers and not config.copies_rows
        operands = replace(request.facts.operands, out_boxes=False, a_gathered=gathers)
        traits = configure(config, operands, request.device)
        refuse(request.obstacles)
        if not request.boxed or (request.scatters and not config.swap_ab) or spills(config.tile, operands):
            return traits
        return in_boxes(traits, request.device, turned=not is_along_k)

    def as_chosen(self, config: GemmConfig, request: GroupRequest) -> GemmConfig:
        return adapted(config, request)

    def parameters(self, traits: Any) -> Group:
        return tensor_parameters(traits)

    def matrices(self, traits: Any, matrices: dict[str, Any]) -> dict[str, Any]:
        """Return the matrices that are passed as tensor maps."""
        maps = {"a": traits.a.map, "b": traits.b.map}
        if traits.operands.out_boxes:
            maps |= {"c": traits.out_map, "out": traits.out_map}
        return {name: matrix.mapped(maps[name]) for name, matrix in matrices.items() if name in maps}

    def obstacles(self, problem: Any, traits: Any) -> Iterable[Refusal]:
        first = traits.operands.from_registers if traits.from_registers else "none"
        return unmappable(problem.k, problem.a, problem.b, problem.out.type, first) if problem.out.array.size else ()

    def adapted(self, problem: Any, traits: Any) -> Traits:
        return with_tma(problem, traits)
