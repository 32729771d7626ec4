"""Calls of scaled_gemm()."""

from __future__ import annotations

from dataclasses import replace

from ptxdsl.errors import LaunchError
from ptxdsl.kernels.call.call import CheckedCall, PublicCall
from ptxdsl.kernels.call.launching.launches import LaunchPlan
from ptxdsl.kernels.call.matrix import WIDEST_ACCESS
from ptxdsl.kernels.call.paths.kernel import check_mappable, configure
from ptxdsl.kernels.call.products.configure import check_not_split
from ptxdsl.kernels.call.products.lines import as_wgmma_reads, with_k
from ptxdsl.kernels.call.products.plan import check_factors, is_stored_in_boxes, planned_with
from ptxdsl.kernels.call.products.problem import GemmProblem, problem_of
from ptxdsl.kernels.call.products.selection import facts_of
from ptxdsl.kernels.call.scaled.scales import (
    ScaleShapes,
    check_columns,
    check_path,
    check_type,
    check_warpgroups,
    scales_of,
)
from ptxdsl.kernels.call.scales import ScaledOperands
from ptxdsl.kernels.candidates.candidate import PERSISTENT
from ptxdsl.kernels.candidates.facts import ProductFacts, class_of
from ptxdsl.kernels.candidates.sm90 import BLOCK_SCALED_SWAPPED
from ptxdsl.kernels.choose.products import choose_product, ranked_products
from ptxdsl.kernels.choose.promising import TuningCandidate
from ptxdsl.kernels.choose.rates import rates_of
from ptxdsl.kernels.config import ROWS_OF_EIGHT, GemmConfig, specialise
from ptxdsl.kernels.product.operands import Major, Operands, Scaling
from ptxdsl.kernels.sm90.scales import BLOCK
from ptxdsl.kernels.traits.traits import Traits
from ptxdsl.runtime.dispatch import target

WHOLE_TOGETHER = {
    "pingpong": "with scales of blocks warpgroups multiply their shares of a tile at the same time",
    "stagger": "with scales of blocks warpgroups end a tile at the same time",
}


class ScaledCall(CheckedCall):
    """A call of scaled_gemm(): one product or batches, with scales; `problem` is row-major."""

    name = "scaled_gemm"
    problem: GemmProblem

    def __init__(self, call: PublicCall) -> None:
        out, a, b, scale_a, scale_b, c, *_ = call.arrays
        self.kernels, self.factors, self.epilogue = call.kernels, call.factors, call.epilogue
        problem = problem_of(a, b, c, out, call.beta, call.epilogue, call.operands)
        problem = replace(problem, scales=_scales_of(problem, scale_a, scale_b)).scaled(call.alpha)
        if problem.k == 0:
            problem = with_k(problem)
        self.out, self.problem = problem.out.owner, problem.row_major
        self.is_empty = not problem.out.array.size

    @property
    def facts(self) -> ProductFacts:
        """The facts on which the choice of a configuration depends."""
        return product_facts(self.problem, self.epilogue is not None)

    def plan(self, config: GemmConfig | None, copied: str = "") -> LaunchPlan | None:
        """Return the launch; None if there is nothing to write."""
        problem, device = self.problem, self.device_stream[0]
        config = config or choose_product(self.facts, rates_of(device))
        assert config is not None  # there is no other path
        config = config if self.epilogue is None else specialise(config, epilogue=self.epilogue)
        traits = _traits_of(problem, self.facts.operands, config, device)
        check_factors(self.factors, traits)
        a, b, before = as_wgmma_reads(problem.a, problem.b, problem.device_stream)
        check_mappable(problem.k, a, b)
        return planned_with(self.kernels, replace(problem, a=a, b=b), traits, self.factors, before)

    @property
    def shape_class(self) -> str:
        """The key under which the best configuration is kept."""
        return str(class_of(self.facts))

    def candidates(self) -> list[tuple[float, TuningCandidate]]:
        """Return what may be timed for the shape class."""
        ranked = ranked_products(class_of(self.facts), rates_of(self.device_stream[0]))
        return [(time, TuningCandidate(config)) for time, config in ranked]


def product_facts(problem: GemmProblem, computes: bool) -> ProductFacts:
    """Return the facts of a product, whose A and B are copied if wgmma cannot read them in place."""
    operands = replace(
        facts_of(problem), a_bytes=WIDEST_ACCESS, b_bytes=WIDEST_ACCESS, a_major=Major.K, b_major=Major.K
    )
    return ProductFacts(problem.m, problem.n, problem.k, problem.batches or 1, operands, computes)


def _scales_of(problem: GemmProblem, scale_a: object, scale_b: object) -> ScaledOperands:
    """Check the scales of a product."""
    check_type(problem.a)
    m, n, k = problem.m, problem.n, problem.k
    blocks, (*of_a, _, _), (*of_b, _, _) = (-(-k // BLOCK), -(-n // BLOCK)), problem.a.full_shape, problem.b.full_shape
    shapes = ScaleShapes(((*of_a, m, 1), (*of_b, 1, n)), ((*of_a, m, blocks[0]), (*of_b, *blocks)))
    is_turned = problem.out.major != "row"
    scales = scales_of((scale_a, scale_b), shapes, [problem.a, problem.b, problem.out], is_turned)
    if is_turned and scales.scaling is Scaling.BLOCKS and problem.out.array.size:
        raise LaunchError(
            "`out` is column-major, and scales are of blocks: of its transpose each column has a scale for each "
            f"{BLOCK} along K, which the kernel takes of rows alone",
            help="make a row-major output, or pass scales of tensors or of rows and columns",
        )
    return scales


def _traits_of(problem: GemmProblem, operands: Operands, config: GemmConfig, device: int | None) -> Traits:
    """Return the traits of the kernel. Raises LaunchError for a configuration that has no such kernel."""
    config = _scheduled(config)
    check_path(config, operands, device)
    if operands.scaling is Scaling.BLOCKS:
        _check_blocks(config)
    if config.tile_schedule.joins_batches:
        raise LaunchError(
            f"`config` has schedule={config.schedule!r}, which takes rows of A as batches in turn; those with "
            "scales are taken as they lie",
            help="leave schedule out",
        )
    if problem.batches is not None:
        check_not_split(config.split_k)
    traits = configure(config, operands, device, shares_copies=True)
    if not is_stored_in_boxes(problem, config):
        return traits
    boxed = replace(traits, operands=replace(operands, out_boxes=True))
    return boxed if boxed.fits(target(device)) else traits


def _scheduled(config: GemmConfig) -> GemmConfig:
    """Return the configuration, with persistent blocks unless it has a schedule or a split of K."""
    if config.schedule != ROWS_OF_EIGHT or config.split_k > 1:
        return config
    return specialise(config, schedule=PERSISTENT)


def _check_blocks(config: GemmConfig) -> None:
    """Raise LaunchError for a configuration that block scales do not support."""
    for field, why in WHOLE_TOGETHER.items():
        if getattr(config, field):
            raise LaunchError(
                f"`config` has {field}={getattr(config, field)!r}; {why}",
                help=f"leave {field} out, or pass scales of tensors or of rows and columns",
            )
    check_warpgroups(config)
    check_columns(config)
    if config.swap_ab and config.tile[0] > BLOCK_SCALED_SWAPPED:
        raise LaunchError(
            f"tile is {config.tile}, and swap_ab is True; with scales of blocks its M is {BLOCK_SCALED_SWAPPED} at "
            "most: a thread has the scales of a quarter of the rows beside products and sums",
            help="take fewer rows, or leave swap_ab out",
        )
