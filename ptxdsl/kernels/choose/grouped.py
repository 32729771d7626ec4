"""The configuration of grouped problems: as given, or with the tiles that should cost least on persistent blocks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ptxdsl.errors import LaunchError
from ptxdsl.kernels.choose import candidates
from ptxdsl.kernels.choose.large_products import ROWS
from ptxdsl.kernels.choose.model import CostModel, Sizes, model_of
from ptxdsl.kernels.choose.warpgroups import (
    GroupFacts,
    ListFacts,
    choose_warpgroups,
    most_stagger,
    ranked_warpgroups,
    stages_of,
)
from ptxdsl.kernels.config import WGMMA, GemmConfig, specialise
from ptxdsl.kernels.product.operands import Operands
from ptxdsl.kernels.sm90.boxes import LINE_BYTES
from ptxdsl.kernels.sm90.tiling import GROUP_ROWS
from ptxdsl.kernels.tiles.many import IN_PAIRS
from ptxdsl.kernels.tiles.schedule import TileSchedule
from ptxdsl.types import bf16, f16

USUAL = GemmConfig()
SHARED, ROUNDS = (256, 128), 2  # M and N of tiles with shares of groups, and how many of them a block has at least
MOST_GATHERED = 64  # rows of a tile that warps gather as quickly as the products of its group take
MANY = 16  # tiles, beside which one more is little
STREAMED = tuple(Operands(type, type) for type in (bf16, f16))  # low tiles were measured of bf16, which is as fast
LOW, LOW_COLUMNS, MOST_LOW = 16, 64, 1.1  # M and N of such a tile, and how many times its rows a group has at most
LONG_LINES, SEVERAL = 96, 5  # lines of K, and tiles of a multiprocessor, that weights are streamed for
OF_ONE_PRODUCT = "schedule", "split_k", "reduction"


def of_groups(
    config: GemmConfig, schedule: TileSchedule, takes_turns: bool = False, staggers: bool = False
) -> GemmConfig:
    """A caller's configuration with the schedule of groups. Raises LaunchError for one that says another, or whose
    warpgroups take turns, or end tiles one after the other, where no kernel of such groups does."""
    _check_schedule(config)
    if config.pingpong and not takes_turns:
        raise LaunchError(
            "`config` says that pingpong is True; tiles of groups are dealt while a kernel runs, to all warpgroups",
            help="leave pingpong out of the GemmConfig",
        )
    if config.pingpong and config.swap_ab:
        raise LaunchError(
            "`config` says that pingpong and swap_ab are True; of groups, warpgroups take turns at rows",
            help="leave one of them out of the GemmConfig",
        )
    if config.stagger and not staggers and not (takes_turns and config.swap_ab):
        raise LaunchError(
            f"`config` says that stagger is {config.stagger}; warpgroups end tiles of groups at the same time",
            help="leave stagger out of the GemmConfig",
        )
    return specialise(config, schedule=schedule)


def _check_schedule(config: GemmConfig) -> None:
    for field in OF_ONE_PRODUCT:
        value = getattr(config, field)
        if value != getattr(USUAL, field):
            raise LaunchError(
                f"`config` says that {field} is {value!r}; tiles of grouped products are dealt to persistent blocks",
                help=f"leave {field} out of the GemmConfig; "
                'grouped_gemm(…, schedule="host", balance="k") shares a long K',
            )


def choose_tiles(
    sizes: Sizes,
    arch: str,
    operands: Operands,
    schedule: TileSchedule,
    model: CostModel | None = None,
    *,
    balanced: bool = False,
    average: bool = False,
) -> GemmConfig:
    """The configuration by this schedule whose tiles fit a GPU and should cost least there.

    `balanced` says that long tiles are cut. With `average`, each M is that of many problems.
    """
    costs = model or model_of()
    along_k = operands.a_major == operands.b_major == "k"
    known = candidates.of_groups(operands.inputs, operands.narrowest, along_k)
    scheduled = {config: specialise(config, schedule=schedule) for config in known}
    fitting = (config for config in known if scheduled[config].traits(operands, arch).fits(arch))
    return scheduled[min(fitting, key=lambda config: costs.group(config, operands.inputs, sizes, balanced, average))]


def streams_weights(facts: GroupFacts, operands: Operands, multiprocessors: int) -> bool:
    """Whether low tiles of the sm_80 path multiply groups of rows as fast as their weights come from DRAM: groups have
    about as few rows, and tiles along a long K end seldom. It was measured of such operands alone."""
    depth = LINE_BYTES // operands.inputs.bytes
    are_long = facts.rows <= MOST_LOW * LOW and facts.k > LONG_LINES * depth
    return operands in STREAMED and are_long and facts.tiles((LOW, LOW_COLUMNS, depth)) >= SEVERAL * multiprocessors


def time_of_tiles(
    config: GemmConfig, sizes: Sizes, operands: Operands, model: CostModel, *, average: bool = False, streams: bool
) -> float:
    """The microseconds that tensor cores of the sm_80 path should be busy for; `streams` says that weights are."""
    return _streamed(model.group(config, operands.inputs, sizes, average=average), config, model, streams)


def _streamed(time: float, config: GemmConfig, model: CostModel, streams: bool) -> float:
    """A time by the rates of lists, whose K is shorter: low tiles take less where weights are streamed."""
    return time * model.rates.groups.low if streams and config.tile[0] == LOW else time


def least_of_tiles(
    sizes: Sizes, operands: Operands, model: CostModel, *, average: bool = False, streams: bool = False
) -> float:
    """The microseconds for which none of the configurations that `choose_tiles` chooses from keeps tensor cores less
    busy. It lays out no tiles, which takes longer."""
    known = candidates.of_groups(operands.inputs, operands.narrowest, operands.a_major == operands.b_major == "k")
    times = ((model.least_of_group(config, operands.inputs, sizes, average), config) for config in known)
    return min(_streamed(time, config, model, streams) for time, config in times)


def ranked_tiles(
    sizes: Sizes,
    arch: str,
    operands: Operands,
    schedule: TileSchedule,
    model: CostModel,
    *,
    average: bool = False,
    streams: bool = False,
) -> list[tuple[float, GemmConfig]]:
    """The configurations that `choose_tiles` chooses from, without a schedule, with the microseconds that tensor cores
    should be busy for."""
    along_k = operands.a_major == operands.b_major == "k"
    known = candidates.of_groups(operands.inputs, operands.narrowest, along_k)
    fitting = [each for each in known if specialise(each, schedule=schedule).traits(operands, arch).fits(arch)]
    how = {"average": average, "streams": streams}
    return [(time_of_tiles(each, sizes, operands, model, **how), each) for each in fitting]


def ranked_of_groups(
    by_warps: list[tuple[float, GemmConfig]],
    facts: GroupFacts | ListFacts,
    model: CostModel,
    takes_wgmma: bool,
    in_turns: bool = False,
) -> list[tuple[float, GemmConfig]]:
    """Configurations of both paths, without a schedule, with the microseconds that they should take."""
    known = [(time_by_warps(time, facts, model), config) for time, config in by_warps]
    if takes_wgmma:
        ranked = ranked_warpgroups(facts, model, in_turns)
        known += [(time, specialise(config, schedule=USUAL.schedule)) for time, config in ranked]
    return known


def choose_warpgroup_tiles(
    facts: GroupFacts | ListFacts,
    schedule: TileSchedule,
    model: CostModel,
    computing: float,
    in_turns: bool = False,
) -> GemmConfig | None:
    """The configuration by this schedule on the sm_90a path; None where another path, whose tensor cores are busy for
    `computing` microseconds, should take less time."""
    config = choose_warpgroups(facts, model, time_by_warps(computing, facts, model), in_turns)
    return config and specialise(config, schedule=schedule)


def time_by_warps(computing: float, facts: GroupFacts | ListFacts, model: CostModel) -> float:
    """The microseconds that the sm_80 path should take, whose tensor cores are busy for `computing`."""
    rates = model.rates.groups
    return rates.beginning + max(computing, facts.moved / rates.dram_bandwidth)


def by_shares(config: GemmConfig, facts: GroupFacts | ListFacts, multiprocessors: int) -> GemmConfig:
    """The same for groups of rows, with large tiles that are swapped, of which blocks have several: wgmma multiplies
    any number of their rows, of which all tiles of a group have about as many, where others are half empty at its end.
    """
    tile, operands = (*SHARED, config.tile[2]), facts.operands
    is_large = config.tile[0] == ROWS and config.tile[1] >= ROWS and facts.tiles(tile) >= ROUNDS * multiprocessors
    if not is_large or operands.a_major != "k" or not operands.out_boxes:
        return config
    stages = stages_of(tile, operands, swap_ab=True)
    stagger = most_stagger(stages)
    return specialise(config, tile=tile, swap_ab=True, pingpong=False, stages=stages, stagger=stagger)


def with_shares(
    ranked: list[tuple[float, GemmConfig]], in_shares: Callable[[GemmConfig], GemmConfig]
) -> list[tuple[float, GemmConfig]]:
    """Configurations, and the first of those that they are `in_shares`."""
    shared = [(time, in_shares(config)) for time, config in ranked if config.atom == WGMMA]
    return ranked + [pair for pair in shared if pair[1].swap_ab][:1]


def with_copies(config: GemmConfig) -> GemmConfig:
    """The same for groups whose rows an index names: where tiles have few rows these are gathered, else copied before.
    Two warps bring a line in some eight cycles, as was measured: of 256 rows they take twice as long as products."""
    return specialise(config, copies_rows=config.tile[0] > MOST_GATHERED)


def ranked_copies(ranked: list[tuple[float, GemmConfig]], copying: float) -> list[tuple[float, GemmConfig]]:
    """Some configurations with copies of rows before."""
    known = [(time, config) for time, config in ranked if config.atom == WGMMA]
    return [(time + copying, specialise(config, copies_rows=True)) for time, config in known]


def staggered(config: GemmConfig) -> GemmConfig:
    """The same, where warpgroups that share a tile end it one after the other."""
    warpgroups = config.tile[config.swap_ab] // GROUP_ROWS
    is_shared = config.atom == WGMMA and warpgroups > 1 and not config.pingpong
    return specialise(config, stagger=most_stagger(config.stages, warpgroups)) if is_shared else config


def in_pairs(config: GemmConfig, operands: Operands, m: np.ndarray | int, n: np.ndarray | int) -> GemmConfig:
    """The same with clusters of two blocks that have neighbouring columns of the same share of a group, and each half
    of these rows to bring. A last column of tiles without a neighbour is multiplied as zeros: where there are many.
    `m` and `n` are those of all groups or problems."""
    down, across = (-(-np.asarray(size) // extent) for size, extent in zip((m, n), config.tile, strict=False))
    shares = config.swap_ab and config.tile[0] % GROUP_ROWS == 0 and operands.a_major == "k"
    are_few = (down * (across % 2)).sum() * MANY < (down * across).sum()
    return specialise(config, schedule=IN_PAIRS) if shares and are_few else config
