"""A call of scaled_gemm(): its arrays are checked, its launch made and remembered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

from ptxdsl.errors import LaunchError
from ptxdsl.kernel import Kernel
from ptxdsl.kernels.call.launching.launches import LaunchPlan, carry_out
from ptxdsl.kernels.call.launching.memory import CALLS, key_of, placement_of
from ptxdsl.kernels.call.matrix import WIDEST_ACCESS
from ptxdsl.kernels.call.products import scheduled
from ptxdsl.kernels.call.products.configure import check_mappable, check_not_split, configure, fused, settled
from ptxdsl.kernels.call.products.lines import as_wgmma_reads, with_k
from ptxdsl.kernels.call.products.plan import (
    check_factors,
    is_stored_in_boxes,
    with_fewer_copies,
)
from ptxdsl.kernels.call.products.problem import GemmProblem, problem_of
from ptxdsl.kernels.call.products.selection import facts_of
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
from ptxdsl.kernels.call.tuned import Trials, TuningSubject, text_of, timed_output, tuned_once, wants_tuning, with_best
from ptxdsl.kernels.choose.model import model_of
from ptxdsl.kernels.choose.promising import TuningCandidate
from ptxdsl.kernels.choose.scaled import MOST_SWAPPED, choose_scaled_product, ranked_scaled_products
from ptxdsl.kernels.choose.shape_class import VERSION, class_of
from ptxdsl.kernels.choose.warpgroups import PERSISTENT, ProductFacts
from ptxdsl.kernels.config import NO_OPERANDS, ROWS_OF_EIGHT, GemmConfig, specialise
from ptxdsl.kernels.sm90.parameters import scaled_parameters
from ptxdsl.kernels.sm90.scales import BLOCK
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.kernels.store.function import factors_of
from ptxdsl.runtime.dispatch import target

WHOLE_TOGETHER = {
    "pingpong": "with scales of blocks warpgroups multiply their shares of a tile at the same time",
    "stagger": "with scales of blocks warpgroups end a tile at the same time",
}


@dataclass(frozen=True)
class ScaledProduct:
    """The arrays of a call, checked: a row-major product with its scales, by what it is multiplied and added to."""

    problem: GemmProblem
    scaled: ScaledOperands
    factors: tuple[float, float]
    epilogue: Callable[..., Any] | None

    @property
    def device(self) -> int | None:
        """The GPU of the arrays, None for host memory."""
        return self.problem.device_stream[0]

    @property
    def facts(self) -> ProductFacts:
        """What the choice of a tile depends on."""
        return product_facts(self.problem, self.epilogue is not None)

    @property
    def chosen(self) -> GemmConfig:
        """The configuration that should take the least time."""
        return choose_scaled_product(self.facts, model_of(self.device), self.scaled.scaling)


def product_facts(problem: GemmProblem, computes: bool) -> ProductFacts:
    """What is known of a product; operands that are not read as they lie are copied so."""
    operands = replace(facts_of(problem), a_bytes=WIDEST_ACCESS, b_bytes=WIDEST_ACCESS, a_major="k", b_major="k")
    return ProductFacts(problem.m, problem.n, problem.k, problem.batches or 1, operands, computes)


def run(
    kernel: Kernel,
    a: object,
    b: object,
    scale_a: object,
    scale_b: object,
    c: object,
    out: object,
    alpha: float,
    beta: float,
    config: GemmConfig | Literal["tune"] | None,
    epilogue: Callable[..., Any] | None,
    operands: Sequence[object],
) -> Any:
    """The product, by a kernel. Returns out."""
    factors = factors_of(alpha, beta)
    arrays: tuple[Any, ...] = out, a, b, scale_a, scale_b, c
    said: tuple[object, ...] = ()
    if config is not None or epilogue is not None or operands is not NO_OPERANDS:
        arrays, config, epilogue, operands = fused(arrays, config, epilogue, operands)
        said = epilogue, *map(type, operands)
    key = key_of(kernel, config, (out is None, c is None, *said), a, b)
    launched = CALLS.launch(key, arrays, factors)
    if launched is not None:
        return launched
    is_tuned = wants_tuning(config)
    tiles = None if is_tuned else settled(cast("GemmConfig | None", config))
    problem = problem_of(a, b, c, out, factors[1], epilogue, operands)
    scaled = _scales_of(problem, scale_a, scale_b)
    problem = problem.scaled(factors[0])
    if problem.k == 0:
        problem, scaled = with_k(problem), scaled.without_k(problem.device_stream)
    product = ScaledProduct(problem.row_major, scaled, factors, epilogue)
    plan = None
    if problem.out.array.size:
        best = _best(kernel, product, arrays, operands) if is_tuned and problem.k else None
        plan = with_best(best, lambda candidate: _plan_of(kernel, product, candidate.config if candidate else tiles))
    return carry_out(plan, key, arrays, problem.out.owner, factors)


def _scales_of(problem: GemmProblem, scale_a: object, scale_b: object) -> ScaledOperands:
    """The scales of a product of 8-bit floats, checked, and what they are of: those of the row-major one."""
    check_type(problem.a)
    m, n, k = problem.m, problem.n, problem.k
    blocks, (*of_a, _, _), (*of_b, _, _) = (-(-k // BLOCK), -(-n // BLOCK)), problem.a.full_shape, problem.b.full_shape
    shapes = ScaleShapes(((*of_a, m, 1), (*of_b, 1, n)), ((*of_a, m, blocks[0]), (*of_b, *blocks)))
    is_turned = problem.out.major != "row"
    scaled = scales_of((scale_a, scale_b), shapes, [problem.a, problem.b, problem.out], is_turned)
    if is_turned and scaled.scaling == "blocks" and problem.out.array.size:
        raise LaunchError(
            "`out` is column-major, and scales are of blocks: of its transpose each column has a scale for each "
            f"{BLOCK} along K, which the kernel takes of rows alone",
            help="make a row-major output, or pass scales of tensors or of rows and columns",
        )
    return scaled


def _best(
    kernel: Kernel, product: ScaledProduct, arrays: tuple[Any, ...], operands: Sequence[object]
) -> TuningCandidate | None:
    """What config="tune" stands for; None for the choice of the model: on the emulator, and for arrays of other
    libraries than torch and CuPy. Where `out` is read as well, another output is timed."""
    if placement_of(arrays) is None:
        return None
    _, a, b, scale_a, scale_b, c, *_ = arrays
    written = timed_output(arrays)
    known, scaling = product.facts, product.scaled.scaling
    shape_class = class_of(known)
    subject = TuningSubject(
        "scaled_gemm", f"{VERSION}: {shape_class}, scales of {scaling}", product.problem.device_stream
    )

    def run_with(candidate: TuningCandidate) -> None:
        beside = *product.factors, candidate.config, product.epilogue, operands
        run(kernel, a, b, scale_a, scale_b, c, written, *beside)

    def text(candidate: TuningCandidate) -> str:
        plain = replace(known.operands, c="none", c_major="row", extras=())
        traits = configure(_scheduled(candidate.config), plain, subject.device, True, shares_copies=True).general
        return text_of(kernel, {"traits": traits, "scaling": scaling}, subject.device)

    def timed() -> list[tuple[float, TuningCandidate]]:
        ranked = ranked_scaled_products(shape_class, model_of(subject.device), scaling)
        return [(time, TuningCandidate(config)) for time, config in ranked]

    return tuned_once(subject, kernel, lambda: Trials(timed(), run_with, text))


def _plan_of(kernel: Kernel, product: ScaledProduct, config: GemmConfig | None) -> LaunchPlan:
    """The launch: `config` gives the tile, else it is chosen."""
    problem, scaling = product.problem, product.scaled.scaling
    traits = _traits_of(product, config or product.chosen)
    check_factors(product.factors, traits)
    a, b, before = as_wgmma_reads(problem.a, problem.b, problem.device_stream)
    check_mappable(problem.k, a, b)
    problem = replace(problem, a=a, b=b)
    launch = scheduled.schedule(problem, with_fewer_copies(problem, traits), kernel, scaling=scaling)
    assert isinstance(launch.traits, WarpgroupTraits)
    values = scaled_parameters(launch.traits)(
        **product_values(problem, launch, product.factors), **product.scaled.values
    )
    constants = {"traits": launch.traits, "scaling": scaling}
    stream = problem.device_stream[1] if problem.is_in_workspace else launch.stream
    return LaunchPlan(kernel, launch.grid, traits.threads, values, constants, ("alpha", "beta"), stream, before)


def _traits_of(product: ScaledProduct, config: GemmConfig) -> WarpgroupTraits:
    """What the kernel is made for. Raises LaunchError for a configuration of which there is none."""
    problem, operands, device = product.problem, product.facts.operands, product.device
    config = _scheduled(config if product.epilogue is None else specialise(config, epilogue=product.epilogue))
    check_path(config, operands, device)
    if product.scaled.scaling == "blocks":
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
