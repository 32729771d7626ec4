"""Candidates of the sm_90a path: cooperative and ping-pong tiles, tiles with A and B swapped, cluster split-K, and
clusters that multicast.

A tile is a candidate if half of it would not cover the problem, if its ring has enough stages to hide the latency of a
load, and if its accumulators leave enough registers for its reduction.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod
from typing import NamedTuple

from ptxdsl.kernels.candidates.candidate import ALONE, IN_COLUMNS, PERSISTENT, Candidate
from ptxdsl.kernels.candidates.facts import Facts, GroupFacts, ListFacts, ProductFacts, ProductKind, depth_of
from ptxdsl.kernels.config import WGMMA, GemmConfig
from ptxdsl.kernels.product.operands import COrder, CSource, Major, Operands, Side
from ptxdsl.kernels.product.words import WIDEST
from ptxdsl.kernels.sm90.boxes import LINE_BYTES
from ptxdsl.kernels.sm90.stages import LEAST_STAGES, MOST_STAGES, RESIDENT, depths, most_stagger, stages_of
from ptxdsl.kernels.sm90.tiling import COLUMNS, GROUP_ROWS, MOST_SUMS, TURNED, WARPGROUP
from ptxdsl.kernels.tiles.cluster_split import MOST_BLOCKS
from ptxdsl.kernels.tiles.cluster_strips import ClusterStrips
from ptxdsl.kernels.tiles.resolve import Schedule, tile_schedule
from ptxdsl.kernels.tiles.schedule import TileSchedule
from ptxdsl.schedule import StreamKThreadblockSwizzle
from ptxdsl.schedule.arithmetic import ceil_div

LEAST_SWAPPED = {1: 5, 2: 6}  # stages of swapped tiles that share K, by the blocks of a multiprocessor
STAGGERED_COLUMNS = 128  # the narrowest tile whose warpgroups are staggered
SHORT, DEEP = 24, 64  # iterations of a tile: fewer are short against the epilogue, more are long
LEAST_BOX = 32  # columns of the last TMA box of a tile: boxes of 16 take up to twice as long to store
LEAST_SLICE, MOST_SPLIT_COLUMNS, MOST_SPLIT_INTEGERS = 4, 128, 80  # iterations; columns that leave registers to reduce
SCATTERED = 128, 128  # the tile whose slices of K may fill the GPU and are reduced through global memory

COOPERATIVE = {
    64: (16, 32, 64, 80, 96, 112, 128, 192, 256),
    128: (16, 32, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 256),
    192: (160, 176, 192),
}
PINGPONG = (64, 208), (128, 96), (128, 112), (128, 128), (128, 144), (128, 160), (128, 192), (128, 208)
GROUPED = (128, 256), (128, 192), (128, 128), (64, 256), (64, 128)
SPILLED = 64, 256  # the tile for which the kernel of lists has too few registers if TMA stores the output
GROUPED_PINGPONG = (128, 128), (128, 192), (64, 256)
WINDOWS, WINDOWS_PINGPONG = (
    ((128, 256), (128, 224), (128, 128), (64, 256), (64, 128), (128, 64)),
    ((128, 128), (64, 208)),
)
SWAPPED_WINDOWS, SWAPPED_1X1 = ((256, 128), (192, 128), (96, 128), (256, 64)), ((96, 128),)
STREAMED_1X1 = 128, 128  # a ping-pong tile whose clusters have all columns and read A once
SWAPPED_COLUMNS = 64, 128
FEW_ROWS, MOST_ROWS, MOST_PARTS = 128, 448, 3  # rows for which A and B may be swapped: in one tile, in up to 3 tiles
MULTICAST = (128, 192), (128, 208), (128, 224), (128, 256)  # tiles of clusters that multicast unaligned rows
MULTICAST_OF_THREE = (192, 160), (192, 176), (192, 192)
MULTICAST_ITERATIONS, LEAST_OF_FOUR = 16, 80  # iterations; rows of A that a cluster of four shares, and tiles along N
SCALED_COLUMNS = 192  # of a tile of scaled ranges of K, whose threads hold products in addition to accumulators
# Columns of a tile with block scales, by its rows: accumulators, products and scales have to fit in registers
BLOCK_SCALED, BLOCK_SCALED_OF_TWO, BLOCK_SCALED_SWAPPED = {64: 160, 128: 192}, {64: 64}, 32
FROM_REGISTERS = 7.0  # microseconds × columns that are added to an iteration whose A comes from registers
BLOCK_SCALED_WIDEST = 128, 256  # the tile whose warpgroups multiply halves of the columns


class Decomposition(NamedTuple):
    """The decomposition of the K of tiles that a caller asks for: the number of `slices`, or 0 for the best; the
    `reduction`; or the `blocks` of stream-K."""

    slices: int = 0
    reduction: str = ""
    blocks: int = 0

    @property
    def splits_k(self) -> bool:
        return self.slices > 1 or self.blocks > 0


HEURISTIC, DATA_PARALLEL = Decomposition(), Decomposition(slices=1)


def candidates_of_product(
    facts: ProductFacts, multiprocessors: int, decomposition: Decomposition = HEURISTIC
) -> list[Candidate]:
    """Return the candidates of a product, a batch or a convolution. Blocks share K only if all of them are resident."""
    if facts.kind is ProductKind.WGRAD:
        return list(_gradients(facts, multiprocessors))
    candidates: list[Candidate] = []
    for tile, swap_ab in tiles(facts):
        if not decomposition.splits_k:
            candidates += _whole(facts, tile, swap_ab, multiprocessors if decomposition == HEURISTIC else 0)
        if decomposition == HEURISTIC and not facts.operands.is_batched:
            count = facts.tiles(tile)
            most = min(MOST_BLOCKS, _iterations(facts) // LEAST_SLICE, int(multiprocessors * RESIDENT // count))
            for slices in range(2, most + 1):
                candidates += _split(facts, tile, swap_ab, slices, "cluster", multiprocessors)
            slices = int(min(multiprocessors // count, _iterations(facts) // LEAST_SLICE))
            if tile == SCATTERED and slices > 1:
                candidates += _split(facts, tile, swap_ab, slices, "scatter", multiprocessors)
        elif decomposition.blocks:
            candidates += _stream_k(facts, tile, swap_ab, decomposition.blocks, multiprocessors)
        elif decomposition.splits_k:
            candidates += _split(facts, tile, swap_ab, decomposition.slices, decomposition.reduction, 0)
    if not decomposition.splits_k:
        candidates += _pingpong(facts, multiprocessors)
        candidates += _multicast(facts)
    return [candidate for candidate in candidates if _has_registers(candidate, facts)]


def candidates_of_groups(facts: Facts) -> list[Candidate]:
    """Return the candidates of groups of rows and of lists, whose persistent blocks draw their tiles."""
    operands, candidates = facts.operands, []
    shapes = [(tile, False) for tile in GROUPED if not spills(tile, operands)]
    shapes += [(tile, True) for tile in GROUPED_PINGPONG if isinstance(facts, GroupFacts) and operands.inputs in TURNED]
    for tile, pingpong in shapes:
        stages = stages_of((*tile, depth_of(operands)), operands, pingpong=pingpong)
        if stages >= LEAST_STAGES:
            candidates.append(_candidate(facts, tile, False, stages, pingpong=pingpong))
    if isinstance(facts, ListFacts) and operands.scaling is not None:  # ranges of K
        candidates = [each for each in candidates if each.config.tile[1] <= SCALED_COLUMNS]
    return [candidate for candidate in candidates if _has_registers(candidate, facts)]


def spills(tile: tuple[int, ...], operands: Operands) -> bool:
    """Return True for the tile that spills in the kernel of lists."""
    return operands.batches == "none" and tile[:2] == SPILLED


def tiles(facts: ProductFacts) -> Iterator[tuple[tuple[int, int], bool]]:
    """Yield the tiles of cooperative warpgroups, each with True if A and B are swapped."""
    if facts.kind is not ProductKind.GEMM:
        yield from _window_tiles(facts)
        return
    operands, iterations = facts.operands, _iterations(facts)
    if operands.from_registers is Side.NONE:
        yield from ((tile, True) for tile in _swapped_tiles(facts))
    for rows, widths in COOPERATIVE.items():
        if rows >= 2 * max(facts.m, GROUP_ROWS // 2 + 1):
            continue
        for columns in widths:
            is_boxed = columns >= facts.n or not columns % LEAST_BOX or iterations >= SHORT
            least = min(GROUP_ROWS, facts.n) if operands.inputs.bytes == 1 else 0
            is_narrow = columns < 2 * max(facts.n, LEAST_BOX if facts.operands.has_block_scales else widths[0])
            if least <= columns and is_narrow and is_boxed and _reads_rows(operands, columns):
                yield (rows, columns), False


def _swapped_tiles(facts: ProductFacts) -> Iterator[tuple[int, int]]:
    """Yield tiles that cover all rows, or for plain products with more rows, a part of them."""
    if facts.m <= FEW_ROWS:
        least = 8 if facts.operands.a_major is Major.K else COLUMNS
        rows = least if facts.m <= least else COLUMNS * ceil_div(facts.m, COLUMNS)
        yield from ((rows, columns) for columns in SWAPPED_COLUMNS)
    elif facts.m <= MOST_ROWS and _is_plain(facts):
        least = ceil_div(facts.m, 256)
        for parts in (least, least + 1):
            if parts <= MOST_PARTS:
                yield from ((COLUMNS * ceil_div(facts.m, COLUMNS * parts), columns) for columns in SWAPPED_COLUMNS)


def _window_tiles(facts: ProductFacts) -> Iterator[tuple[tuple[int, int], bool]]:
    """Yield the tiles of convolutions."""
    operands = facts.operands
    yield from ((tile, False) for tile in WINDOWS if _reads_rows(operands, tile[1]))
    if facts.in_boxes and operands.from_registers is Side.NONE:
        for tile in SWAPPED_WINDOWS if facts.kind is ProductKind.CONV else SWAPPED_1X1:
            if facts.m > tile[0] and _reads_rows(operands, tile[1]):
                yield tile, True


def _whole(facts: ProductFacts, tile: tuple[int, int], swap_ab: bool, multiprocessors: int) -> Iterator[Candidate]:
    """Yield candidates of whole tiles: persistent blocks, or blocks of one tile if `multiprocessors` is given (a
    schedule of the caller may need the shared memory of their longer ring). A convolution with A from registers needs
    tiles that two warpgroups share, or wide ones."""
    operands = _swapped_operands(facts, tile, swap_ab)
    if facts.kind is not ProductKind.GEMM and operands.from_registers is Side.A and tile < (GROUP_ROWS, 256):
        return
    for stages, resident in depths(tile, swap_ab, operands):
        candidate = _candidate(facts, tile, swap_ab, stages, resident)
        if swap_ab or facts.operands.has_block_scales or facts.kind is not ProductKind.GEMM:
            yield _staggered(candidate, facts)
        else:
            yield _one_tile(candidate, facts, multiprocessors) or _staggered(candidate, facts)
    if facts.kind is ProductKind.GEMM and not facts.operands.is_batched and _is_plain(facts):
        yield from _multicast_few(facts, tile, swap_ab)


def _multicast_few(facts: ProductFacts, tile: tuple[int, int], swap_ab: bool) -> Iterator[Candidate]:
    """Yield clusters for plain products with few rows or columns: pairs of swapped tiles that share rows of B, four
    neighbours that share many rows of A, and two that cover all columns of a tall product."""
    down, across = (ceil_div(size, extent) for size, extent in zip(facts[:2], tile, strict=True))
    clusters = set()
    if not down % 2 and (swap_ab or tile[0] * down == 2 * GROUP_ROWS):
        clusters.add((2, 1))
    if swap_ab and down == 1 and tile[0] >= LEAST_OF_FOUR and across >= LEAST_OF_FOUR:
        clusters.add((1, 4))
    if down > across == 2:
        clusters.add((1, 2))
    stages = stages_of(_extents(facts, tile), facts.operands, swap_ab)
    if stages >= LEAST_STAGES and _iterations(facts) >= MULTICAST_ITERATIONS:
        yield from (
            _candidate(facts, tile, swap_ab, stages, schedule=ClusterStrips(blocks)) for blocks in sorted(clusters)
        )


def _staggered(candidate: Candidate, facts: ProductFacts) -> Candidate:
    """Return the candidate with a stagger if warpgroups share its tiles and have enough iterations to hide an
    epilogue."""
    config = candidate.config
    is_wide = config.tile[1] >= STAGGERED_COLUMNS or facts.kind is not ProductKind.GEMM
    is_shared = config.tile[0] > GROUP_ROWS and is_wide and not config.swap_ab
    if not is_shared or facts.operands.has_block_scales or _iterations(facts) <= config.stages:
        return candidate
    return replace(candidate, config=replace(config, stagger=most_stagger(config.stages, config.tile[0] // GROUP_ROWS)))


def _one_tile(candidate: Candidate, facts: ProductFacts, multiprocessors: int) -> Candidate | None:
    """Return the candidate with one tile a block if there are no more tiles than resident blocks and the ring gets
    longer; None otherwise."""
    config, operands = candidate.config, facts.operands
    tile = config.tile
    in_boxes = _in_boxes(operands)
    if facts.tiles(tile) > multiprocessors * candidate.resident or not (in_boxes or _iterations(facts) >= DEEP):
        return None
    stages, stagger = config.stages, 0
    if tile[0] > GROUP_ROWS:
        stages = stages_of(tile, operands, schedule=tile_schedule(IN_COLUMNS, 1, ""))
        is_longer = stages > config.stages or stages == MOST_STAGES or tile[1] % LEAST_BOX
        if candidate.resident > 1 or not is_longer:
            return None
        stagger = most_stagger(stages, tile[0] // GROUP_ROWS) if in_boxes else 0
    elif operands.c is not CSource.NONE:
        return None
    return replace(candidate, config=replace(config, stages=stages, schedule=IN_COLUMNS, stagger=stagger))


def _split(
    facts: ProductFacts, tile: tuple[int, int], swap_ab: bool, slices: int, reduction: str, multiprocessors: int
) -> Iterator[Candidate]:
    """Yield candidates that split the K of tiles. A block that is alone on a multiprocessor may have a longer ring,
    which also holds the accumulators that a cluster exchanges. With `multiprocessors`, all blocks have to be
    resident."""
    operands = facts.operands
    is_swapped_cluster = swap_ab and reduction == "cluster" and _is_plain(facts)  # measured with any rows
    if tile[0 if swap_ab else 1] > _most_split(operands) and not is_swapped_cluster:
        return
    schedule = tile_schedule(IN_COLUMNS, slices, reduction)
    resident_by_stages = dict(depths(tile, swap_ab, operands, schedule))
    if reduction == "cluster":
        longest = stages_of(_extents(facts, tile), operands, swap_ab, schedule=tile_schedule(IN_COLUMNS, 1, ""))
        resident_by_stages.setdefault(longest, 1)
    for stages, resident in resident_by_stages.items():
        is_long = stages >= (LEAST_SWAPPED[resident] if swap_ab else LEAST_STAGES)
        is_resident = facts.tiles(tile) * slices <= multiprocessors * resident or not multiprocessors
        if is_long and is_resident:
            whole = _candidate(facts, tile, swap_ab, stages, resident, schedule=IN_COLUMNS)
            yield replace(whole, config=replace(whole.config, split_k=slices, reduction=reduction))


def _stream_k(
    facts: ProductFacts, tile: tuple[int, int], swap_ab: bool, blocks: int, multiprocessors: int
) -> Iterator[Candidate]:
    """Yield stream-K candidates whose blocks are all resident."""
    if tile[0 if swap_ab else 1] > _most_split(facts.operands):
        return
    swizzle = StreamKThreadblockSwizzle()
    for stages, resident in depths(tile, swap_ab, facts.operands, tile_schedule(swizzle, 1, "")):
        if blocks <= multiprocessors * resident:
            yield _candidate(facts, tile, swap_ab, stages, resident, schedule=swizzle)


def _pingpong(facts: ProductFacts, multiprocessors: int) -> Iterator[Candidate]:
    """Yield ping-pong candidates for products of several waves. GEMM with epilogue operands has no registers for wide
    ping-pong tiles."""
    operands = facts.operands
    has_operands = facts.kind is ProductKind.GEMM and bool(operands.extras)
    if operands.inputs not in TURNED or not _stores_boxes(facts) or has_operands:
        return
    shapes = [(tile, False) for tile in (PINGPONG if facts.kind is ProductKind.GEMM else WINDOWS_PINGPONG)]
    if operands.from_registers is Side.NONE and (_is_plain(facts) or facts.kind is ProductKind.CONV):
        shapes += [(tile, True) for tile, swap_ab in tiles(facts) if swap_ab]
    if facts.kind is ProductKind.CONV_1X1 and operands.from_registers is Side.NONE:
        shapes += [((192, 128), True)] if facts.m > 192 else []
    for tile, swap_ab in shapes:
        stored = _swapped_operands(facts, tile, swap_ab)
        is_useful = facts.tiles(tile) > multiprocessors and tile[1] < 2 * facts.n and _reads_rows(operands, tile[1])
        if is_useful and prod(tile) <= MOST_SUMS * WARPGROUP:
            stages = stages_of(_extents(facts, tile), stored, swap_ab, pingpong=True)
            if stages >= LEAST_STAGES:
                yield _candidate(facts, tile, swap_ab, stages, pingpong=True)
            if facts.kind is ProductKind.CONV_1X1 and tile == STREAMED_1X1 and tile[1] < facts.n <= 2 * tile[1]:
                streamed = ClusterStrips((1, 2), streamed=True)
                yield _candidate(facts, tile, swap_ab, stages, schedule=streamed, pingpong=True)


def _multicast(facts: ProductFacts) -> Iterator[Candidate]:
    """Yield clusters of two blocks that multicast rows that are not 32-byte aligned, which load at half the rate."""
    operands = facts.operands
    if not any(facts.split_lines) or operands.inputs not in TURNED or not _stores_boxes(facts) or operands.extras:
        return
    pairs: list[TileSchedule] = [ClusterStrips((2, 1))]
    across: list[TileSchedule] = [ClusterStrips((1, 2))]
    for shapes, schedules in ((MULTICAST, pairs), (MULTICAST_OF_THREE, pairs + across)):
        for tile in shapes:
            stages = stages_of(_extents(facts, tile), operands)
            if _reads_rows(operands, tile[1]) and stages >= LEAST_STAGES:
                yield from (_candidate(facts, tile, False, stages, schedule=schedule) for schedule in schedules)


def _gradients(facts: ProductFacts, multiprocessors: int) -> Iterator[Candidate]:
    """Yield candidates of the gradient of filters: whole tiles, or slices of the pixels that fill the GPU."""
    for tile in WINDOWS:
        if tile[0] >= 2 * max(facts.m, GROUP_ROWS):
            continue
        stages = stages_of(_extents(facts, tile), facts.operands)
        yield _candidate(facts, tile, False, stages)
        slices = int(min(multiprocessors // facts.tiles(tile), _iterations(facts) // LEAST_SLICE))
        if tile[1] <= MOST_SPLIT_COLUMNS and slices > 1:
            schedule = tile_schedule(IN_COLUMNS, slices, "scatter")
            whole = _candidate(facts, tile, False, stages_of(_extents(facts, tile), facts.operands, schedule=schedule))
            split = replace(whole.config, schedule=IN_COLUMNS, split_k=slices, reduction="scatter")
            yield replace(whole, config=split)


def _has_registers(candidate: Candidate, facts: Facts) -> bool:
    """Return True if the accumulators leave enough registers for block scales, if there are any."""
    if not facts.operands.has_block_scales:
        return True
    config = candidate.config
    rows, columns, _ = config.tile
    if config.pingpong or config.stagger:
        return False
    if config.swap_ab:
        return rows <= BLOCK_SCALED_SWAPPED // candidate.resident // (
            columns // GROUP_ROWS if candidate.resident > 1 else 1
        )
    most = BLOCK_SCALED if candidate.resident == 1 else BLOCK_SCALED_OF_TWO
    is_widest = (rows, columns) == BLOCK_SCALED_WIDEST and candidate.resident == 1
    return is_widest or (columns <= most.get(rows, 0) and not columns % LEAST_BOX)


def _candidate(
    facts: Facts,
    tile: tuple[int, int],
    swap_ab: bool,
    stages: int,
    resident: int = 1,
    schedule: Schedule = PERSISTENT,
    pingpong: bool = False,
) -> Candidate:
    extents = *tile, depth_of(facts.operands)
    config = GemmConfig(extents, stages=stages, atom=WGMMA, schedule=schedule, swap_ab=swap_ab, pingpong=pingpong)
    rows, columns = schedule.multicast if isinstance(schedule, ClusterStrips) else ALONE
    loaded, width = (tile[0] * LINE_BYTES / columns, tile[1] * LINE_BYTES / rows), tile[not swap_ab]
    slow = facts.split_lines if isinstance(facts, ProductFacts) else (False, False)
    is_delayed = facts.operands.from_registers is not Side.NONE and width >= GROUP_ROWS
    return Candidate(config, resident, loaded, slow=slow, delay=FROM_REGISTERS / width if is_delayed else 0.0)


def _swapped_operands(facts: ProductFacts, tile: tuple[int, int], swap_ab: bool) -> Operands:
    """Return the operands, with TMA stores if swapped tiles are stored by TMA: several tiles along M, 16-bit output."""
    in_boxes = swap_ab and facts.m > tile[0] and facts.operands.output.bits == 16
    return replace(facts.operands, out_boxes=in_boxes) if swap_ab else facts.operands


def _extents(facts: Facts, tile: tuple[int, int]) -> tuple[int, int, int]:
    return *tile, depth_of(facts.operands)


def _iterations(facts: ProductFacts) -> int:
    return ceil_div(facts.k, depth_of(facts.operands))


def _most_split(operands: Operands) -> int:
    return MOST_SPLIT_INTEGERS if operands.sum.is_integer else MOST_SPLIT_COLUMNS


def _reads_rows(operands: Operands, columns: int) -> bool:
    """Return True if B is K-major, or its tiles consist of whole swizzle rows."""
    return operands.b_major is Major.K or columns < LEAST_BOX * 2 or not columns % depth_of(operands)


def _in_boxes(operands: Operands) -> bool:
    """Return True if TMA can store the output: 16 bits, aligned rows, and no matrix operand in the epilogue."""
    has_matrices = any(extra.is_matrix for extra in operands.extras)
    return operands.output.bits == 16 and operands.out_bytes == WIDEST and not has_matrices


def _stores_boxes(facts: ProductFacts) -> bool:
    """Return True if TMA stores whole tiles, and loads C."""
    operands = facts.operands
    return facts.in_boxes and _in_boxes(operands) and (operands.c is CSource.NONE or operands.c_major is COrder.ROW)


def _is_plain(facts: ProductFacts) -> bool:
    """Return True for K-major 16-bit operands without C and epilogue."""
    operands = facts.operands
    is_bare = operands.c is CSource.NONE and not operands.extras and not facts.computes
    return is_bare and _in_boxes(operands) and operands.inputs in TURNED and operands.are_k_major
