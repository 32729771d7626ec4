"""Choose the tiles and the schedule of a product: those of the caller, else those that are expected to be fastest."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from ptxdsl.cached import cached_property
from ptxdsl.errors import LaunchError
from ptxdsl.kernels.call.matrix import describe_type
from ptxdsl.kernels.call.products.configure import (
    Choice,
    are_mappable,
    check_not_split,
    facts,
    for_batches,
    narrower,
)
from ptxdsl.kernels.call.products.lines import (
    LineCopies,
    copies_along_k,
    copies_needed,
    copies_of,
    facts_with,
    is_rounded,
    takes_copies,
)
from ptxdsl.kernels.call.products.problem import GemmProblem
from ptxdsl.kernels.call.products.tma import may_interleave
from ptxdsl.kernels.candidates.facts import ProductFacts
from ptxdsl.kernels.candidates.sm90 import ANY, WHOLE, Sharing
from ptxdsl.kernels.choose.products import (
    best,
    choose_product,
    ranked_by_warps,
    time_by_warps,
    time_of_product,
    usual_tile,
)
from ptxdsl.kernels.choose.rates import Rates, rates_of
from ptxdsl.kernels.config import WGMMA, GemmConfig, LeftOut, specialise
from ptxdsl.kernels.product.operands import FP8, Operands, takes_wgmma
from ptxdsl.kernels.sm90.tiling import ARCH, INPUTS
from ptxdsl.kernels.tiles.cluster_split import MOST_BLOCKS
from ptxdsl.kernels.tiles.resolve import REDUCTIONS
from ptxdsl.kernels.tiles.schedule import TileSchedule
from ptxdsl.runtime.dispatch import target
from ptxdsl.schedule import StreamKThreadblockSwizzle


@dataclass(frozen=True)
class Selection:
    """The inputs of the choice of a configuration: a row-major product with its GPU, and the options of the caller.

    Unless it `takes_warpgroups`, the sm_90a path is only for types that no other path multiplies. For lists, `problem`
    is the first product and `all_operands` are the facts of all.
    """

    problem: GemmProblem
    choice: Choice
    takes_warpgroups: bool = True
    all_operands: Operands | None = None

    @property
    def device(self) -> int | None:
        """The GPU of the arrays, None for host memory."""
        return self.problem.device_stream[0]

    @property
    def arch(self) -> str:
        return target(self.device)

    @property
    def rates(self) -> Rates:
        return rates_of(self.device)

    @cached_property
    def operands(self) -> Operands:
        """The operand facts of the kernel."""
        return self.all_operands or facts_of(self.problem)

    @property
    def facts(self) -> ProductFacts:
        """The facts that the time on the sm_90a path depends on."""
        problem, computes = self.problem, self.choice.epilogue is not None
        split_lines = not problem.a.is_in_sectors, not problem.b.is_in_sectors
        sizes = problem.m, problem.n, problem.k, problem.batches or 1
        return ProductFacts(*sizes, self.operands, computes, split_lines, may_interleave(problem))

    @property
    def may_take_warpgroups(self) -> bool:
        """True if wgmma may be chosen for a call that does not ask for it: not with a TileSchedule of the caller."""
        return self.sharing_said is not None and self.arch == ARCH

    @property
    def takes_wgmma(self) -> bool:
        """True if only the sm_90a path has products of these types."""
        return takes_wgmma(self.problem.a.type, self.problem.out.type)

    @property
    def is_for_wgmma(self) -> bool:
        """True if wgmma may be chosen for a call that does not ask for it, or if no other path takes the call."""
        return self.arch == ARCH if self.takes_wgmma else self.may_take_warpgroups

    @property
    def is_mappable(self) -> bool:
        """True if TMA can load A and B as wgmma reads them, for a call that does not ask for wgmma."""
        problem = self.problem
        return not is_rounded(problem.a.type) and are_mappable(problem.k, problem.a, problem.b)

    @property
    def sharing(self) -> Sharing:
        """The split of K among blocks on the sm_90a path."""
        return self.sharing_said or WHOLE

    @property
    def sharing_said(self) -> Sharing | None:
        """The caller's split of K among blocks; None for a TileSchedule, which has its own and may be for one path
        only, and for invalid values."""
        schedule, slices = self.choice.schedule, 1 if self.choice.split_k is None else self.choice.split_k
        reduction = GemmConfig.reduction if self.choice.reduction is None else self.choice.reduction
        if isinstance(schedule, TileSchedule) or type(slices) is not int or slices < 1 or reduction not in REDUCTIONS:
            return None
        if not self.choice.is_scheduled:
            return ANY
        if isinstance(schedule, StreamKThreadblockSwizzle):
            return Sharing(blocks=schedule.resident_blocks)
        if slices > 1 and reduction == "cluster" and slices > MOST_BLOCKS:
            return None
        return Sharing(slices, reduction) if slices > 1 else WHOLE

    @cached_property
    def line_copies(self) -> LineCopies | None:
        """The copies of operands that are worth their time: of those that wgmma does not read in their order, that TMA
        cannot load or only slowly, or that are rounded on the way. If the caller chooses wgmma, only the first kind,
        and the second if no other path has such types. None without copies, or if the call does not use wgmma."""
        problem, is_chosen = self.problem, self.choice.config is not None
        if not self._may_copy or not takes_copies(problem):
            return None
        if is_chosen:
            copies = copies_needed(problem) if self.takes_wgmma else copies_along_k(problem, self._first_factor)
        else:
            copies = copies_of(problem, self.facts, self.rates)
        return copies if copies.a or copies.b else None

    @property
    def _first_factor(self) -> str | None:
        """The operand that a configuration of wgmma takes for its first factor; None if the caller leaves that open."""
        config = self.choice.config and self.choice.of(self.choice.config)
        return None if config is None or _is_bare(config) else "b" if config.swap_ab else "a"

    @property
    def needs_copies(self) -> bool:
        """True if no other path takes a call that wgmma takes, or if the caller chooses wgmma."""
        return self.choice.config is not None or self.takes_wgmma

    @property
    def _may_copy(self) -> bool:
        """True if wgmma takes the call once its operands are copied."""
        config = self.choice.config
        if self.problem.a.type not in INPUTS:
            return False
        if config is not None:
            return isinstance(config, GemmConfig) and config.atom == WGMMA
        return self.is_for_wgmma

    def config_with(self, copies: LineCopies) -> GemmConfig | None:
        """Return the wgmma configuration for these copies; None if another path is faster without them."""
        if self.choice.config is not None:
            return self.choice.config
        known = facts_with(copies, self.facts, self.problem)
        if self.takes_wgmma:
            return self._with_any_sharing(known)
        without = self._by_warps()[0] - copies.time
        if time_of_product(known, self.rates) >= without:  # a measured winner was timed without the copies
            return None
        return choose_product(known, self.rates, without, self.sharing)

    def config(self) -> GemmConfig:
        """Return the configuration. Raises LaunchError for anything else, and for options that do not agree with it."""
        if self.problem.batches is not None:
            check_not_split(self.choice.split_k)
        config = self._with_tile(self.choice.of(self._chosen() if self.choice.config is None else self.choice.config))
        if self.problem.batches is None:
            return config
        check_not_split(config.split_k)
        return for_batches(config)

    def _with_tile(self, config: GemmConfig) -> GemmConfig:
        """A configuration with a tile, where its caller chooses wgmma and none: that which is chosen, where the caller
        says nothing else; and another tile, where tiles are whole ones that warpgroups share: the sums of others leave
        less room."""
        if _is_bare(config):
            chosen = self._with_any_sharing(self.facts)
            return config if chosen is None else specialise(chosen, epilogue=config.epilogue)
        is_whole = config.tile_schedule.has_whole_tiles and not (config.swap_ab or config.pingpong)
        if not is_whole or not isinstance(config.tile, LeftOut):
            return config
        return specialise(config, tile=usual_tile(self.facts, self.rates))

    def _chosen(self) -> GemmConfig:
        if self.takes_wgmma:
            return self._by_wgmma()
        shares_batches = self.sharing.is_shared and self.problem.batches is not None  # stream-K: not by wgmma
        is_open = self.takes_warpgroups and self.may_take_warpgroups and self.is_mappable and not shares_batches
        time, by_warps = self._by_warps()
        return (choose_product(self.facts, self.rates, time, self.sharing) or by_warps) if is_open else by_warps

    def _by_warps(self) -> tuple[float, GemmConfig]:
        """Return the best configuration of the sm_80 path, which has no clusters, and the expected microseconds."""
        facts, sharing = self._facts_of_warps, self.sharing_said
        ranked = ranked_by_warps(facts, self.arch, self.rates, *self.lines, self.is_scheduled)
        time, config = best(ranked, facts, self.rates)
        if sharing is None or not sharing.is_shared:
            return time, config
        if sharing.reduction == "cluster":
            return inf, config
        shared = self.choice._replace(epilogue=None).of(config)
        return time_by_warps(shared, facts, self.rates), config

    @property
    def _facts_of_warps(self) -> ProductFacts:
        """The facts for the sm_80 path, where batches that share B are one product of all their rows."""
        problem = self.problem
        if problem.b.batch_stride:
            return self.facts
        return self.facts._replace(m=problem.m * (problem.batches or 1), batches=1)

    def _by_wgmma(self) -> GemmConfig:
        """Return the configuration for types that only the sm_90a path has. Raises LaunchError on other GPUs."""
        config = self._with_any_sharing(self.facts)
        if self.arch != ARCH or config is None:
            inputs, output = self.problem.a.type, self.problem.out.type
            cause, help = (
                f"`out` is {describe_type(output)}, to which gemm rounds",
                "convert a float16 `out` afterwards",
            )
            if inputs in FP8:
                cause, help = (
                    f"`a` and `b` are {describe_type(inputs)}, which gemm multiplies",
                    "convert them to float16 before",
                )
            raise LaunchError(
                f"{cause} on {ARCH}; the kernel is for {self.arch}",
                help=f"{help}; on the emulator, PTXDSL_ARCH={ARCH} says that it is such a GPU",
            )
        return config

    def _with_any_sharing(self, known: ProductFacts) -> GemmConfig | None:
        """Return the best wgmma configuration with the caller's split of K, or else without one."""
        return choose_product(known, self.rates, inf, self.sharing) or choose_product(known, self.rates, inf, WHOLE)

    @property
    def lines(self) -> tuple[int, bool]:
        """The bytes of the narrower load on the sm_80 path, and True if A and B are K-major."""
        return self.operands.narrowest, self.problem.a.major == "row" and self.problem.b.major == "column"

    @property
    def is_scheduled(self) -> bool:
        """True if the assignment of tiles to blocks is fixed."""
        return self.choice.is_scheduled or self.problem.batches is not None


def _is_bare(config: GemmConfig) -> bool:
    """Return True if a configuration asks for wgmma and for nothing else."""
    return config == GemmConfig(atom=WGMMA, epilogue=config.epilogue)


def facts_of(problem: GemmProblem) -> Operands:
    """Return the operand facts of a row-major problem."""
    a, b, c, out = problem.a, problem.b, problem.c, problem.out
    return facts(
        a, b, c, out, (a.widest(a.length), b.widest(b.length), narrower(out, c, problem.n)),
        in_place=problem.in_place,
        batches="none" if problem.batches is None else "strided",
        extras=tuple(operand.extra for operand in problem.operands),
        rounded=problem.rounded,
        scaling=problem.scales.scaling if problem.scales else None,
    )  # fmt: skip
