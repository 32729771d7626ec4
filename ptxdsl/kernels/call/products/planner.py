"""The configuration of a product: that of the caller, else the one that is expected to be fastest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ptxdsl.cached import cached_property
from ptxdsl.errors import Error
from ptxdsl.kernels.call.paths.kernel import configure, refuse, unmappable
from ptxdsl.kernels.call.paths.path import Path, Request
from ptxdsl.kernels.call.paths.select import PATHS, path_of, select, trials_of_class
from ptxdsl.kernels.call.products.copies import (
    CopiedOperands,
    can_copy,
    copies_along_k,
    copies_needed,
    copy_candidates,
    layouts_of,
)
from ptxdsl.kernels.call.products.options import GemmOptions, check_not_split, facts, for_batches, narrower
from ptxdsl.kernels.call.products.problem import GemmProblem
from ptxdsl.kernels.candidates.facts import ProductFacts
from ptxdsl.kernels.candidates.sm90 import DATA_PARALLEL, HEURISTIC, Decomposition
from ptxdsl.kernels.choose.promising import TuningCandidate
from ptxdsl.kernels.choose.rates import Rates, rates_of
from ptxdsl.kernels.config import WGMMA, GemmConfig
from ptxdsl.kernels.product.operands import Operands, takes_wgmma
from ptxdsl.kernels.sm90.tiling import INPUTS, WARP_ROWS
from ptxdsl.kernels.tiles.cluster_split import MOST_BLOCKS
from ptxdsl.kernels.tiles.resolve import REDUCTIONS
from ptxdsl.kernels.tiles.schedule import TileSchedule
from ptxdsl.kernels.traits.traits import Traits
from ptxdsl.schedule import StreamKThreadblockSwizzle


@dataclass(frozen=True)
class GemmPlanner:
    """Select the configuration and the traits of the kernel for a row-major product and the options of the caller.

    For lists, `problem` is the first product and `all_operands` are the facts of all. Only `paths` are considered.
    """

    problem: GemmProblem
    options: GemmOptions
    paths: Sequence[Path] = field(default_factory=lambda: PATHS)
    all_operands: Operands | None = None

    @property
    def device(self) -> int | None:
        """The GPU of the arrays, None for host memory."""
        return self.problem.device_stream[0]

    @property
    def rates(self) -> Rates:
        return rates_of(self.device)

    @cached_property
    def operands(self) -> Operands:
        """The operand facts of the kernel."""
        return self.all_operands or facts_of(self.problem)

    @cached_property
    def facts(self) -> ProductFacts:
        """The facts that the estimates depend on."""
        problem, computes = self.problem, self.options.epilogue is not None
        split_lines = not problem.a.is_sector_aligned, not problem.b.is_sector_aligned
        sizes = problem.m, problem.n, problem.k, problem.batches or 1
        return ProductFacts(*sizes, self.operands, computes, split_lines)

    @cached_property
    def request(self) -> Request:
        """The request to the paths, with the copies of operands that may be made before."""
        problem = self.problem
        return Request(
            "gemm",
            self.facts,
            self.device,
            obstacles=tuple(unmappable(problem.k, problem.a, problem.b, problem.out.type)),
            copies=layouts_of(problem, self.facts, self.copies),
            decomposition=self.decomposition,
            is_scheduled=self.options.is_scheduled or problem.batches is not None,
            shares_b=not problem.b.batch_stride,
        )

    @property
    def decomposition(self) -> Decomposition | None:
        """The decomposition of K that the caller asks for. None for a custom TileSchedule, which has its own and may be
        for one path only, and for invalid values."""
        schedule, slices = self.options.schedule, 1 if self.options.split_k is None else self.options.split_k
        reduction = GemmConfig.reduction if self.options.reduction is None else self.options.reduction
        if isinstance(schedule, TileSchedule) or type(slices) is not int or slices < 1 or reduction not in REDUCTIONS:
            return None
        if not self.options.is_scheduled:
            return HEURISTIC
        if isinstance(schedule, StreamKThreadblockSwizzle):
            return Decomposition(blocks=schedule.resident_blocks)
        if slices > 1 and reduction == "cluster" and slices > MOST_BLOCKS:
            return None
        return Decomposition(slices, reduction) if slices > 1 else DATA_PARALLEL

    @cached_property
    def copies(self) -> tuple[CopiedOperands, ...]:
        """The sets of operands that may be copied before the product."""
        problem = self.problem
        if problem.a.type not in INPUTS or not can_copy(problem):
            return ()
        return tuple(copies for copies in copy_candidates(problem, self.rates) if copies.names)

    def select(self) -> tuple[GemmConfig, CopiedOperands]:
        """Return the configuration, without the options of the caller, and the operands to copy first.

        If the caller asks for wgmma, operands in a major order that it does not read are copied. If no other path
        multiplies the types, so are operands that TMA cannot load.
        """
        problem, config = self.problem, self.options.config
        if config is None:
            config, names = select(self.request, self.paths)
            return config, CopiedOperands.named(names)
        if not path_of(config).uses_tma or problem.a.type not in INPUTS or not can_copy(problem):
            return config, CopiedOperands.named("")
        if takes_wgmma(problem.a.type, problem.out.type):
            return config, copies_needed(problem)
        config = self.options.of(config)
        is_open = config == GemmConfig(atom=WGMMA, epilogue=config.epilogue)
        return config, copies_along_k(problem, None if is_open else "b" if config.swap_ab else "a")

    def config(self) -> GemmConfig:
        """Return the configuration for operands that are not copied, with the options of the caller. Raises LaunchError
        for options that do not agree with it."""
        is_batch = self.problem.batches is not None
        if is_batch:
            check_not_split(self.options.split_k)
        request = replace(self.request, copies=())
        config = self.options.of(select(request, self.paths)[0] if self.options.config is None else self.options.config)
        config = path_of(config).completed(config, request)
        if not is_batch:
            return config
        check_not_split(config.split_k)
        return for_batches(config)

    def traits(self) -> Traits:
        """Return the traits of the kernel for operands that are not copied. Raises LaunchError if the GPU lacks
        resources, or if the path of the configuration does not read the operands."""
        problem, config, operands = self.problem, self.config(), self.operands
        path = path_of(config)
        if path.uses_tma and stores_by_tma(problem, config):
            operands = replace(operands, out_boxes=True)
        traits = configure(config, operands, self.device, shares_copies=True)
        refuse(path.obstacles(problem, traits))
        return traits

    def candidates(self) -> list[tuple[float, TuningCandidate]]:
        """Return the tuning candidates that can be launched for the shape class, with their estimates in microseconds
        for the largest product of the class."""
        timed, layouts = trials_of_class(self.request, self.paths), self.request.copies
        operands = {layout.copied: layout.facts.operands for layout in layouts}
        return [(time, each) for time, each in timed if self._is_launchable(each, operands.get(each.copied))]

    def _is_launchable(self, candidate: TuningCandidate, operands: Operands | None) -> bool:
        """Return True if a candidate agrees with the options of the caller, and its kernel fits the GPU."""
        options = self.options._replace(config=candidate.config, epilogue=None)
        try:
            config = replace(self, options=options).config()
            configure(config, operands or self.operands, self.device, shares_copies=True)
        except Error:
            return False
        return True


def stores_by_tma(problem: GemmProblem, config: GemmConfig) -> bool:
    """Return True if TMA can store the output from whole tiles of a configuration."""
    is_whole = config.tile_schedule.has_whole_tiles and (not config.swap_ab or _turns_boxes(problem, config))
    return is_whole and can_store_by_tma(problem)


def can_store_by_tma(problem: GemmProblem) -> bool:
    """Return True if the arrays allow TMA stores: TMA loads C too, and the epilogue has no other matrix."""
    out = problem.out
    loads_c = problem.c is None or (problem.c.major == "row" and problem.c.is_mappable)
    has_matrices = any(operand.extra.is_matrix for operand in problem.operands)
    return loads_c and not has_matrices and out.type.bits == 16 and out.is_storable


def _turns_boxes(problem: GemmProblem, config: GemmConfig) -> bool:
    """Return True if swapped tiles are transposed on their way to TMA stores: for a single product with several tiles
    along M."""
    is_single = problem.c is None and problem.batches is None and config.tile_schedule.cluster is None
    return is_single and problem.m > config.tile[0] and not config.tile[0] % WARP_ROWS


def facts_of(problem: GemmProblem) -> Operands:
    """Return the operand facts of a row-major problem."""
    a, b, c, out = problem.a, problem.b, problem.c, problem.out
    return facts(
        a, b, c, out, (a.widest(a.inner_extent), b.widest(b.inner_extent), narrower(out, c, problem.n)),
        in_place=problem.in_place,
        batches="none" if problem.batches is None else "strided",
        extras=tuple(operand.extra for operand in problem.operands),
        rounded=problem.rounded,
        scaling=problem.scales.scaling if problem.scales else None,
    )  # fmt: skip
