"""Calls of scaled_gemm(): their arrays, and their launch."""

from __future__ import annotations

from dataclasses import replace

from ptxdsl.errors import LaunchError
from ptxdsl.kernels.call.call import CheckedCall, PublicCall
from ptxdsl.kernels.call.launching.launches import LaunchPlan
from ptxdsl.kernels.call.matrix import WIDEST_ACCESS
from ptxdsl.kernels.call.products import scheduled
from ptxdsl.kernels.call.products.configure import check_mappable, check_not_split, configure
from ptxdsl.kernels.call.products.lines import as_wgmma_reads, with_k
from ptxdsl.kernels.call.products.plan import (
    check_factors,
    is_stored_in_boxes,
)
from ptxdsl.kernels.call.products.problem import GemmProblem, problem_of
from ptxdsl.kernels.call.products.selection import facts_of
from ptxdsl.kernels.call.products.tma import with_tma
from ptxdsl.kernels.call.products.values import product_values
from ptxdsl.kernels.call.scaled.scales import (
    ScaledOperands,
    ScaleShapes,
    check_columns,
    check_path,
    check_type,
    check_warpgroups,
    scales_of,
)
from ptxdsl.kernels.choose.model import model_of
from ptxdsl.kernels.choose.promising import TuningCandidate
from ptxdsl.kernels.choose.scaled import MOST_SWAPPED, choose_scaled_product, ranked_scaled_products
from ptxdsl.kernels.choose.shape_class import class_of
from ptxdsl.kernels.choose.warpgroups import PERSISTENT, ProductFacts
from ptxdsl.kernels.config import ROWS_OF_EIGHT, GemmConfig, specialise
from ptxdsl.kernels.product.operands import Scaling
from ptxdsl.kernels.sm90.parameters import tensor_parameters
from ptxdsl.kernels.sm90.scales import BLOCK
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.runtime.dispatch import target

WHOLE_TOGETHER = {
    "pingpong": "with scales of blocks warpgroups multiply their shares of a tile at the same time",
    "stagger": "with scales of blocks warpgroups end a tile at the same time",
}


class ScaledCall(CheckedCall):
    """A call of scaled_gemm(): `problem` is row-major, with its scales."""

    name = "scaled_gemm"

    def __init__(self, call: PublicCall) -> None:
        out, a, b, scale_a, scale_b, c, *_ = call.arrays
        self.kernel, self.factors, self.epilogue = call.kernels.warpgroups, call.factors, call.epilogue
        problem = problem_of(a, b, c, out, call.beta, call.epilogue, call.operands)
        scaled = _scales_of(problem, scale_a, scale_b)
        problem = problem.scaled(call.alpha)
        if problem.k == 0:
            problem, scaled = with_k(problem), scaled.without_k(problem.device_stream)
        self.out, self.problem, self.scaled = problem.out.owner, problem.row_major, scaled
        self.is_empty = not problem.out.array.size

    @property
    def device_stream(self) -> tuple[int | None, int]:
        """The GPU of the arrays, None for host memory, and the stream on which their library works."""
        return self.problem.device_stream

    @property
    def device(self) -> int | None:
        """The GPU of the arrays, None for host memory."""
        return self.problem.device_stream[0]

    @property
    def facts(self) -> ProductFacts:
        """What the choice of a tile depends on."""
        return product_facts(self.problem, self.epilogue is not None, self.scaled.scaling)

    def plan(self, config: GemmConfig | None, copied: str = "") -> LaunchPlan:
        """Return the launch."""
        return _plan_of(self, config)

    @property
    def shape_class(self) -> str:
        """The key under which the best configuration is kept."""
        return str(class_of(self.facts))

    def candidates(self) -> list[tuple[float, TuningCandidate]]:
        """Return what may be timed for the shape class."""
        ranked = ranked_scaled_products(class_of(self.facts), model_of(self.device))
        return [(time, TuningCandidate(config)) for time, config in ranked]


def product_facts(problem: GemmProblem, computes: bool, scaling: Scaling) -> ProductFacts:
    """What is known of a product; operands that are not read as they lie are copied so."""
    copied = {"a_bytes": WIDEST_ACCESS, "b_bytes": WIDEST_ACCESS, "a_major": "k", "b_major": "k"}
    operands = replace(facts_of(problem), **copied, scaling=scaling)
    return ProductFacts(problem.m, problem.n, problem.k, problem.batches or 1, operands, computes)


def _scales_of(problem: GemmProblem, scale_a: object, scale_b: object) -> ScaledOperands:
    """The scales of a product of 8-bit floats, checked, and what they are of: those of the row-major one."""
    check_type(problem.a)
    m, n, k = problem.m, problem.n, problem.k
    blocks, (*of_a, _, _), (*of_b, _, _) = (-(-k // BLOCK), -(-n // BLOCK)), problem.a.full_shape, problem.b.full_shape
    shapes = ScaleShapes(((*of_a, m, 1), (*of_b, 1, n)), ((*of_a, m, blocks[0]), (*of_b, *blocks)))
    is_turned = problem.out.major != "row"
    scaled = scales_of((scale_a, scale_b), shapes, [problem.a, problem.b, problem.out], is_turned)
    if is_turned and scaled.scaling is Scaling.BLOCKS and problem.out.array.size:
        raise LaunchError(
            "`out` is column-major, and scales are of blocks: of its transpose each column has a scale for each "
            f"{BLOCK} along K, which the kernel takes of rows alone",
            help="make a row-major output, or pass scales of tensors or of rows and columns",
        )
    return scaled


def _plan_of(product: ScaledCall, config: GemmConfig | None) -> LaunchPlan:
    """The launch: `config` gives the tile, else it is chosen."""
    kernel, problem = product.kernel, product.problem
    traits = _traits_of(product, config or choose_scaled_product(product.facts, model_of(product.device)))
    check_factors(product.factors, traits)
    a, b, before = as_wgmma_reads(problem.a, problem.b, problem.device_stream)
    check_mappable(problem.k, a, b)
    problem = replace(problem, a=a, b=b)
    problem, adapted = with_tma(problem, traits)
    launch = scheduled.schedule(problem, adapted, kernel)
    assert isinstance(launch.traits, WarpgroupTraits)
    values = tensor_parameters(launch.traits)(
        **product_values(problem, launch, product.factors), **product.scaled.values
    )
    constants = {"traits": launch.traits}
    stream = problem.device_stream[1] if problem.is_in_workspace else launch.stream
    return LaunchPlan(kernel, launch.grid, traits.threads, values, constants, ("alpha", "beta"), stream, before)


def _traits_of(product: ScaledCall, config: GemmConfig) -> WarpgroupTraits:
    """What the kernel is made for. Raises LaunchError for a configuration of which there is none."""
    problem, operands, device = product.problem, product.facts.operands, product.device
    config = _scheduled(config if product.epilogue is None else specialise(config, epilogue=product.epilogue))
    check_path(config, operands, device)
    if product.scaled.scaling is Scaling.BLOCKS:
        _check_blocks(config)
    if config.tile_schedule.joins_batches:
        raise LaunchError(
            f"`config` has schedule={config.schedule!r}, which takes rows of A as batches in turn; those with "
            "scales are taken as they lie",
            help="leave schedule out",
        )
    if problem.batches is not None:
        check_not_split(config.split_k)
    traits = configure(config, operands, device, takes_warpgroups=True, shares_copies=True)
    assert isinstance(traits, WarpgroupTraits)
    if not is_stored_in_boxes(problem, config):
        return traits
    boxed = replace(traits, operands=replace(operands, out_boxes=True))
    return boxed if boxed.fits(target(device)) else traits


def _scheduled(config: GemmConfig) -> GemmConfig:
    """A configuration whose blocks are persistent, where it says nothing else."""
    if config.schedule != ROWS_OF_EIGHT or config.split_k > 1:
        return config
    return specialise(config, schedule=PERSISTENT)


def _check_blocks(config: GemmConfig) -> None:
    """Raises LaunchError for what there is not with scales of blocks."""
    for field, why in WHOLE_TOGETHER.items():
        if getattr(config, field):
            raise LaunchError(
                f"`config` has {field}={getattr(config, field)!r}; {why}",
                help=f"leave {field} out, or pass scales of tensors or of rows and columns",
            )
    check_warpgroups(config)
    check_columns(config)
    if config.swap_ab and config.tile[0] > MOST_SWAPPED:
        raise LaunchError(
            f"tile is {config.tile}, and swap_ab is True; with scales of blocks its M is {MOST_SWAPPED} at most: "
            "a thread has the scales of a quarter of the rows beside products and sums",
            help="take fewer rows, or leave swap_ab out",
        )
