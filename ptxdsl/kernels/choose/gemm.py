"""The configuration of one product, or of a batch of products: tiles, how blocks share them, and their order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from math import ceil, prod
from operator import attrgetter, itemgetter

from ptxdsl.kernels.choose.candidates import LARGE, SQUARE, of_products, of_single_waves
from ptxdsl.kernels.choose.model import Candidate, CostModel, Shape, candidate, model_of, usual_traits
from ptxdsl.kernels.config import ROWS_OF_EIGHT, GemmConfig
from ptxdsl.kernels.sm90.tiling import ARCH
from ptxdsl.kernels.tiles.persistent import Persistent
from ptxdsl.kernels.traits.traits import Traits
from ptxdsl.schedule import IdentityThreadblockSwizzle, PersistentScheduler, StreamKThreadblockSwizzle
from ptxdsl.types import Type, f16

LITTLE = 1.01  # times the best: no difference worth memory
MOST_WAVES = 8  # more lose little in the last one
LEAST_ITERATIONS, MOST_SLICES = 2, 32
LEAST_SCATTERED = 128 * 128  # elements of a tile whose sums blocks share out
LEAST_STREAMED = 8  # bytes of a copy: beside narrower ones stream-K has not registers enough
# A single wave: at least FULL of the multiprocessors have a tile, and none has two. No row of the fit has its tiles,
# which are taken where they should need less than SURE of the time of others.
FULL, SURE = 0.95, 0.97
# Blocks go down one column of tiles after another: where there are few rows of tiles, that is the order of
# ROWS_OF_EIGHT, without its divisions, which take a part of a microsecond. y of the grid counts the columns.
IN_COLUMNS, FEW_ROWS, MOST_COLUMNS = IdentityThreadblockSwizzle(1), ROWS_OF_EIGHT.rows, 65535


def choose(
    m: int,
    n: int,
    k: int,
    inputs: Type = f16,
    arch: str = "sm_90",
    width: int = 16,
    along_k: bool = True,
    scheduled: bool = False,
    multiprocessors: int | None = None,
    model: CostModel | None = None,
) -> GemmConfig:
    """The configuration that should take the least time and fits `arch`: tiles, a split of K or stream-K, and the order
    of the tiles.

    That order is ROWS_OF_EIGHT, or in grids of at most FEW_ROWS rows of tiles IN_COLUMNS: down one column of tiles
    after another. Tiles that are no powers of two are for products of 16 bits that are a single wave of them. With
    `scheduled` only tiles are chosen, as the call says which blocks compute them: they leave room for what persistent
    blocks stage.

    `width` is the narrowest copy of the operands, in bytes; `along_k` says that both are contiguous along k. `model` is
    that of the GPU, an H200 where it is not given, with as many `multiprocessors` as are said.
    """
    model, shape = model or model_of(), (m, n, k)
    model = model.on(multiprocessors) if multiprocessors else model
    fitting = _fitting(inputs, arch, width, along_k)
    if scheduled:
        known = _filled([config for config in fitting if _persistent(config, inputs).fits(arch)], m, n)
        return min(known, key=lambda config: model.product(candidate(config, inputs), shape, width))
    timed = _timed(fitting, shape, inputs, width, along_k, model)
    best = _shortest_ring(timed)
    single = _single_wave(shape, inputs, arch, width, model)
    if single and _least(single) < SURE * _least(timed):
        best = _shortest_ring(single)
    config = shared_config(best, model.multiprocessors)
    return _in_columns(config) if _is_low(best, m, n) else config


def ranked(
    m: int, n: int, k: int, inputs: Type, arch: str, width: int, along_k: bool, scheduled: bool, model: CostModel
) -> list[tuple[float, GemmConfig]]:
    """The configurations that `choose` chooses from, with the microseconds that each should take."""
    shape, fitting = (m, n, k), _fitting(inputs, arch, width, along_k)
    if scheduled:
        known = _filled([config for config in fitting if _persistent(config, inputs).fits(arch)], m, n)
        return [(model.product(candidate(config, inputs), shape, width), config) for config in known]
    timed = _timed(fitting, shape, inputs, width, along_k, model) + _single_wave(shape, inputs, arch, width, model)
    return [(time, shared_config(option, model.multiprocessors)) for time, option in timed]


def _timed(
    fitting: tuple[GemmConfig, ...], shape: Shape, inputs: Type, width: int, along_k: bool, model: CostModel
) -> list[tuple[float, Candidate]]:
    """All ways to share the tiles of some configurations, with the microseconds that each should take."""
    wholes = [candidate(config, inputs) for config in _filled(fitting, *shape[:2])]
    options = [option for whole in wholes for option in shared(whole, shape, width, along_k, model.multiprocessors)]
    return [(model.product(option, shape, width), option) for option in options]


def _single_wave(shape: Shape, inputs: Type, arch: str, width: int, model: CostModel) -> list[tuple[float, Candidate]]:
    """The same of tiles that are no powers of two, where they are a single wave. With wgmma such products take less."""
    most = model.multiprocessors
    known = [candidate(config, inputs) for config in _fitting_single_wave(inputs, arch, width)]
    single = [option for option in known if FULL * most <= option.tiles(*shape[:2]) <= most]
    return [(model.product(option, shape, width), option) for option in single]


def _shortest_ring(timed: list[tuple[float, Candidate]]) -> Candidate:
    """The best; of rings that differ by little the shortest: the rest of the memory is the L1 cache of the epilogue."""
    least, best = min(timed, key=itemgetter(0))
    alike = (option for time, option in timed if time < LITTLE * least and option.but_stages == best.but_stages)
    return min(alike, key=attrgetter("stages"))


def _least(timed: list[tuple[float, Candidate]]) -> float:
    return min(time for time, _ in timed)


def _is_low(best: Candidate, m: int, n: int) -> bool:
    """Whether its grid has so few rows of tiles that blocks may go down the columns."""
    rows, columns = best.config.tiling.tiles(m, n)
    return rows <= FEW_ROWS and columns <= MOST_COLUMNS and not best.is_streamed


@lru_cache(maxsize=256)
def _fitting(inputs: Type, arch: str, width: int, along_k: bool) -> tuple[GemmConfig, ...]:
    return tuple(config for config in of_products(inputs, width, along_k) if usual_traits(config, inputs).fits(arch))


def _filled(known: tuple[GemmConfig, ...] | list[GemmConfig], m: int, n: int) -> list[GemmConfig]:
    """Without tiles that half as many rows or columns would do for, beside the smallest tile."""
    least = min((config.tile for config in known), key=lambda tile: prod(tile[:2]))
    rows, columns = 2 * max(m, least[0]), 2 * max(n, least[1])
    return [config for config in known if config.tile[0] < rows and config.tile[1] < columns]


@lru_cache(maxsize=256)
def _fitting_single_wave(inputs: Type, arch: str, width: int) -> tuple[GemmConfig, ...]:
    known = () if arch == ARCH else of_single_waves(inputs, width)
    return tuple(config for config in known if usual_traits(config, inputs).fits(arch))


def shared_config(option: Candidate, multiprocessors: int) -> GemmConfig:
    """The configuration of a way to share tiles."""
    return _streamed(option.config, multiprocessors) if option.is_streamed else _split(option.config, option.split_k)


@lru_cache(maxsize=4096)
def _split(config: GemmConfig, slices: int) -> GemmConfig:
    """All blocks of a large tile add up a share of it. Of a small one the last block has added up everything before
    the others would hear that they can begin."""
    is_large = slices > 1 and prod(config.tile[:2]) >= LEAST_SCATTERED
    return replace(config, split_k=slices, reduction="scatter" if is_large else config.reduction)


@lru_cache(maxsize=256)
def _streamed(config: GemmConfig, multiprocessors: int) -> GemmConfig:
    return replace(config, schedule=StreamKThreadblockSwizzle(multiprocessors))


@lru_cache(maxsize=256)
def _persistent(config: GemmConfig, inputs: Type) -> Traits:
    """For persistent blocks, which stage a tile beside the ring, of sums as they are."""
    traits = usual_traits(config, inputs)
    return replace(traits, operands=replace(traits.operands, c="separate"), schedule=Persistent(PersistentScheduler()))


@lru_cache(maxsize=4096)
def _in_columns(config: GemmConfig) -> GemmConfig:
    return replace(config, schedule=IN_COLUMNS)


def shared(
    whole: Candidate, shape: Shape, width: int = 16, along_k: bool = True, multiprocessors: int = 132
) -> Iterator[Candidate]:
    """The ways in which blocks may share the tiles of a configuration: whole tiles for each; slices of K, so many that
    all blocks are resident at once; stream-K, where whole tiles would leave the last wave short."""
    config, tiles, iterations = whole.config, max(1, whole.tiles(*shape[:2])), ceil(shape[2] / whole.tile[2])
    most = min(MOST_SLICES, iterations // LEAST_ITERATIONS)
    for slices in {1, *(blocks * multiprocessors // tiles for blocks in range(1, whole.resident + 1))}:
        if slices == 1 or 1 < slices <= most:
            yield whole.split(slices)
    is_known = config == LARGE or (config == SQUARE and along_k)
    least, waves = prod(SQUARE.tile[:2]) / prod(whole.tile[:2]), tiles / multiprocessors
    if is_known and width >= LEAST_STREAMED and tiles % multiprocessors and least < waves < MOST_WAVES:
        yield whole.streamed()
