"""Adapt configurations to grouped kernels: persistent blocks that draw the tiles of all groups, tiles of equal shares,
copies of gathered rows, and staggered warpgroups."""

from __future__ import annotations

from dataclasses import replace

from ptxdsl.errors import LaunchError
from ptxdsl.kernels.call.paths.path import GroupRequest
from ptxdsl.kernels.config import GemmConfig, specialise
from ptxdsl.kernels.product.operands import Major
from ptxdsl.kernels.sm90.stages import most_stagger, stages_of
from ptxdsl.kernels.sm90.tiling import GROUP_ROWS
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.kernels.tiles.schedule import TileSchedule
from ptxdsl.kernels.traits.traits import Traits
from ptxdsl.runtime.dispatch import target

USUAL = GemmConfig()
SHARES, SHARE_WAVES = (256, 128), 2  # the swapped tile of equal shares of a group, and its least number of waves
MOST_GATHERED = 64  # rows of a tile that producer warps gather as fast as they are multiplied
OF_ONE_PRODUCT = "schedule", "split_k", "reduction"


def scheduled(
    config: GemmConfig, schedule: TileSchedule, takes_pingpong: bool = False, staggers: bool = False
) -> GemmConfig:
    """Return a configuration of the caller with the schedule of groups. Raises LaunchError if it sets another schedule,
    or ping-pong or a stagger that the kernel does not support."""
    for field in OF_ONE_PRODUCT:
        value = getattr(config, field)
        if value != getattr(USUAL, field):
            raise LaunchError(
                f"`config` says that {field} is {value!r}; tiles of grouped products are dealt to persistent blocks",
                help=f"leave {field} out of the GemmConfig; "
                'grouped_gemm(…, schedule="host", balance="k") shares a long K',
            )
    if config.pingpong and not takes_pingpong:
        raise LaunchError(
            "`config` says that pingpong is True; tiles of groups are dealt while a kernel runs, to all warpgroups",
            help="leave pingpong out of the GemmConfig",
        )
    if config.pingpong and config.swap_ab:
        raise LaunchError(
            "`config` says that pingpong and swap_ab are True; of groups, warpgroups take turns at rows",
            help="leave one of them out of the GemmConfig",
        )
    if config.stagger and not staggers and not (takes_pingpong and config.swap_ab):
        raise LaunchError(
            f"`config` says that stagger is {config.stagger}; warpgroups end tiles of groups at the same time",
            help="leave stagger out of the GemmConfig",
        )
    return specialise(config, schedule=schedule)


def adapted(config: GemmConfig, request: GroupRequest) -> GemmConfig:
    """Return a selected wgmma configuration, adapted to the kernel and the request."""
    if request.cut:
        config = in_shares(config, request)
    if request.gathers:
        config = with_copies(config)
    is_staggered = request.is_along_k and request.facts.operands.scaling is None
    return staggered(config) if is_staggered else config


def in_shares(config: GemmConfig, request: GroupRequest) -> GemmConfig:
    """Return the configuration with swapped tiles that cut each group into equal shares, if there are several waves of
    large tiles. Swapped tiles can have any number of rows; otherwise the last tile of a group is half empty."""
    tile, operands = (*SHARES, config.tile[2]), replace(request.facts.operands, out_boxes=request.boxed)
    is_large = config.tile[0] == 2 * GROUP_ROWS <= config.tile[1]
    has_waves = request.facts.tiles(tile) >= SHARE_WAVES * request.rates.multiprocessors
    if not (is_large and has_waves and request.boxed) or operands.a_major is not Major.K:
        return config
    stages = stages_of(tile, operands, swap_ab=True)
    return specialise(config, tile=tile, swap_ab=True, pingpong=False, stages=stages, stagger=most_stagger(stages))


def with_copies(config: GemmConfig) -> GemmConfig:
    """Return the configuration for gathered rows: producer warps gather the rows of low tiles; the rows of others are
    copied first. Two warps load a row of 128 bytes in 8 cycles: 256 rows take twice as long as their wgmmas."""
    return specialise(config, copies_rows=config.tile[0] > MOST_GATHERED)


def staggered(config: GemmConfig) -> GemmConfig:
    """Return the configuration with a stagger, if several warpgroups share its tiles."""
    warpgroups = config.tile[config.swap_ab] // GROUP_ROWS
    is_shared = warpgroups > 1 and not config.pingpong
    return specialise(config, stagger=most_stagger(config.stages, warpgroups)) if is_shared else config


def in_boxes(traits: Traits, device: int | None, turned: bool = False) -> WarpgroupTraits:
    """Return the traits with TMA stores of the output if there is shared memory to stage it. Swapped tiles are stored
    by TMA only if they are shares of groups and the kernel transposes them (`turned`)."""
    assert isinstance(traits, WarpgroupTraits)
    if traits.tiling.swap_ab and not (turned and traits.shares_rows):
        return traits
    boxes = replace(traits, operands=replace(traits.operands, out_boxes=True))
    return boxes if boxes.fits(target(device)) else traits
