"""Which tiles and which schedule a product gets: those that its caller chooses, else those that should take least."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf

from ptxdsl.cached import cached_property
from ptxdsl.errors import LaunchError
from ptxdsl.kernels.call.matrix import WIDEST_ACCESS, describe_type
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
    copies_of_large,
    is_rounded,
    takes_copies,
)
from ptxdsl.kernels.call.products.problem import GemmProblem
from ptxdsl.kernels.call.products.tma import may_interleave
from ptxdsl.kernels.choose.candidates import of_products
from ptxdsl.kernels.choose.gemm import choose
from ptxdsl.kernels.choose.model import CostModel, candidate, model_of
from ptxdsl.kernels.choose.product_options import ANY, WHOLE, Sharing
from ptxdsl.kernels.choose.warpgroup_products import choose_product, shares_split_lines
from ptxdsl.kernels.choose.warpgroups import CLEARLY, ProductFacts, usual_tile
from ptxdsl.kernels.config import WGMMA, GemmConfig, LeftOut, specialise
from ptxdsl.kernels.product.operands import FP8, Operands, takes_wgmma
from ptxdsl.kernels.sm90.tiling import ARCH, INPUTS, TURNED
from ptxdsl.kernels.tiles.cluster_split import MOST_BLOCKS
from ptxdsl.kernels.tiles.resolve import REDUCTIONS
from ptxdsl.kernels.tiles.schedule import TileSchedule
from ptxdsl.runtime.dispatch import target
from ptxdsl.schedule import StreamKThreadblockSwizzle


@dataclass(frozen=True)
class Selection:
    """What decides about the configuration of a row-major product: the arrays with their GPU, and what the caller says.

    Unless it `takes_warpgroups`, the path of sm_90a is only for types that no other multiplies. Of lists, the facts are
    those of `all_operands`, and the problem is the first of them.
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
    def model(self) -> CostModel:
        return model_of(self.device)

    @cached_property
    def operands(self) -> Operands:
        """What the arrays say of their kernel."""
        return self.all_operands or facts_of(self.problem)

    @property
    def facts(self) -> ProductFacts:
        """What the time on the sm_90a path depends on."""
        problem, computes = self.problem, self.choice.epilogue is not None
        split_lines = not problem.a.is_in_sectors, not problem.b.is_in_sectors
        sizes = problem.m, problem.n, problem.k, problem.batches or 1
        return ProductFacts(*sizes, self.operands, computes, split_lines, may_interleave(problem))

    @property
    def may_take_warpgroups(self) -> bool:
        """Whether wgmma is for a call that does not ask for it: not for schedules of one's own."""
        return self.sharing_said is not None and self.arch == ARCH

    @property
    def takes_wgmma(self) -> bool:
        """Whether no other path has products of such types."""
        return takes_wgmma(self.problem.a.type, self.problem.out.type)

    @property
    def is_for_wgmma(self) -> bool:
        """Whether wgmma may be chosen for a call that does not ask for it, or no other path is for the call."""
        return self.arch == ARCH if self.takes_wgmma else self.may_take_warpgroups

    @property
    def is_mappable(self) -> bool:
        """Whether tensor copies can bring A and B as wgmma reads them, where a call does not ask for it."""
        problem = self.problem
        return not is_rounded(problem.a.type) and are_mappable(problem.k, problem.a, problem.b)

    @property
    def sharing(self) -> Sharing:
        """How blocks share K on the sm_90a path."""
        return self.sharing_said or WHOLE

    @property
    def sharing_said(self) -> Sharing | None:
        """What a caller says of how blocks share K; None for a TileSchedule, which says it itself and may be written
        for one of the paths, and for what is no such value."""
        schedule, slices = self.choice.schedule, 1 if self.choice.split_k is None else self.choice.split_k
        way = GemmConfig.reduction if self.choice.reduction is None else self.choice.reduction
        if isinstance(schedule, TileSchedule) or type(slices) is not int or slices < 1 or way not in REDUCTIONS:
            return None
        if not self.choice.is_scheduled:
            return ANY
        if isinstance(schedule, StreamKThreadblockSwizzle):
            return Sharing(blocks=schedule.resident_blocks)
        if slices > 1 and way == "cluster" and slices > MOST_BLOCKS:
            return None
        return Sharing(slices, way) if slices > 1 else WHOLE

    @cached_property
    def line_copies(self) -> LineCopies | None:
        """The copies of operands that wgmma does not read as they lie, or tensor copies cannot address, or only slowly,
        or that are rounded on the way, where they are worth their time. Where a caller chooses wgmma, of the first
        alone, and of the second where no other path is for such types. None where there are none, or where wgmma is not
        for the call."""
        problem, is_chosen = self.problem, self.choice.config is not None
        if not self._may_copy or not takes_copies(problem):
            return None
        if is_chosen:
            copies = copies_needed(problem) if self.takes_wgmma else copies_along_k(problem, self._first_factor)
        else:
            are_shared = not self.sharing.is_shared and shares_split_lines(self.facts, self.model)
            copies = (copies_of_large if are_shared else copies_of)(problem, self.facts, self.model)
        return copies if copies.a or copies.b else None

    @property
    def _first_factor(self) -> str | None:
        """The operand that a configuration of wgmma takes for its first factor; None where what a caller says leaves
        that open."""
        config = self.choice.config and self.choice.of(self.choice.config)
        return None if config is None or _is_bare(config) else "b" if config.swap_ab else "a"

    @property
    def needs_copies(self) -> bool:
        """Whether no other path is for the call where wgmma is, or its caller chooses that."""
        return self.choice.config is not None or self.takes_wgmma

    @property
    def _may_copy(self) -> bool:
        """Whether wgmma is for the call once its operands are copied."""
        config = self.choice.config
        if self.problem.a.type not in INPUTS:
            return False
        if config is not None:
            return isinstance(config, GemmConfig) and config.atom == WGMMA
        return self.is_for_wgmma

    def config_with(self, copies: LineCopies) -> GemmConfig | None:
        """The configuration of wgmma with such copies; None where another path should take less time without."""
        if self.choice.config is not None:
            return self.choice.config
        known = facts_with(copies, self.facts, self.problem)
        if self.takes_wgmma:
            return self._with_any_sharing(known)
        without = self._by_warps()[0] - copies.time / CLEARLY
        return choose_product(known, self.model, without, self.sharing)

    def config(self) -> GemmConfig:
        """The configuration. Raises LaunchError for what is none, and for what a caller says of it that does not go."""
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
        return specialise(config, tile=usual_tile(self.facts, self.model))

    def _chosen(self) -> GemmConfig:
        if self.takes_wgmma:
            return self._by_wgmma()
        shares_batches = self.sharing.is_shared and self.problem.batches is not None  # stream-K: not by wgmma
        is_open = self.takes_warpgroups and self.may_take_warpgroups and self.is_mappable and not shares_batches
        if is_open and not self.sharing.is_shared:  # mostly the other path cannot be faster, whatever its tiles
            inputs = self.problem.a.type
            least = self.model.least(of_products(inputs, *self.lines), inputs, *self._of_each)
            config = choose_product(self.facts, self.model, least, self.sharing)
            if config is not None:
                return config
        time, by_warps = self._by_warps()
        return (choose_product(self.facts, self.model, time, self.sharing) or by_warps) if is_open else by_warps

    def _by_warps(self) -> tuple[float, GemmConfig]:
        """The best configuration of the sm_80 path, and the microseconds that it should take; it has no clusters."""
        time, config = self._by_warps_alone()
        return time + self.model.uncounted(self.problem.a.type, self.shape), config

    def _by_warps_alone(self) -> tuple[float, GemmConfig]:
        """The same, as the rates say that choose among its configurations."""
        inputs, (width, along_k), model = self.problem.a.type, self.lines, self.model
        config = choose(*self.shape, inputs, self.arch, width, along_k, self.is_scheduled, model=model)
        sharing = self.sharing_said
        if sharing is None or not sharing.is_shared:
            shape, batches = self._of_each
            return model.product(candidate(config, inputs), shape, width, batches), config
        if sharing.way == "cluster":
            return inf, config
        shared = self.choice._replace(epilogue=None).of(config)
        return model.product(candidate(shared, inputs), self.shape, width), config

    def _by_wgmma(self) -> GemmConfig:
        """That of types that only the path of wgmma has. Raises LaunchError on GPUs that have it not."""
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
        """The best configuration of wgmma for such facts: blocks share K as is said, or else not."""
        return choose_product(known, self.model, inf, self.sharing) or choose_product(known, self.model, inf, WHOLE)

    @property
    def shape(self) -> tuple[int, int, int]:
        """(M, N, K), with the rows of all batches."""
        return self.problem.m * (self.problem.batches or 1), self.problem.n, self.problem.k

    @property
    def _of_each(self) -> tuple[tuple[int, int, int], int]:
        """(M, N, K) of a product, and how many there are that share no operand."""
        problem, batches = self.problem, self.problem.batches or 1
        if problem.b.batch_stride == 0:
            return self.shape, 1
        return (problem.m, problem.n, problem.k), batches

    @property
    def lines(self) -> tuple[int, bool]:
        """The bytes of the narrower copy on the sm_80 path, and whether A and B are contiguous along K."""
        return self.operands.narrowest, self.problem.a.major == "row" and self.problem.b.major == "column"

    @property
    def is_scheduled(self) -> bool:
        """Whether it is settled which blocks compute a tile."""
        return self.choice.is_scheduled or self.problem.batches is not None


def _is_bare(config: GemmConfig) -> bool:
    """Whether it says that wgmma multiplies, and nothing else of how."""
    return config == GemmConfig(atom=WGMMA, epilogue=config.epilogue)


def facts_with(copies: LineCopies, known: ProductFacts, problem: GemmProblem) -> ProductFacts:
    """What is known of a product of copies."""
    operands = replace(known.operands, a_bytes=WIDEST_ACCESS, b_bytes=WIDEST_ACCESS)
    if operands.inputs not in TURNED:
        operands = replace(
            operands,
            a_major="k" if copies.a else operands.a_major,
            b_major="k" if copies.b else operands.b_major,
            rounded=copies.left if is_rounded(operands.inputs) else "none",
        )
    interleaves = known.interleaves and not copies.a
    return known._replace(operands=operands, split_lines=copies.split(problem), interleaves=interleaves)


def facts_of(problem: GemmProblem) -> Operands:
    """What the arrays of a row-major problem say of their kernel."""
    a, b, c, out = problem.a, problem.b, problem.c, problem.out
    return facts(
        a, b, c, out, (a.widest(a.length), b.widest(b.length), narrower(out, c, problem.n)),
        in_place=problem.in_place,
        batches="none" if problem.batches is None else "strided",
        extras=tuple(operand.extra for operand in problem.operands),
        rounded=problem.rounded,
        scaling=problem.scales.scaling if problem.scales else None,
    )  # fmt: skip
