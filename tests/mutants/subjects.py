"""The kernels that are mutated, each on a small problem of small whole numbers: sums are exact in every order."""

import importlib.util
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from unittest.mock import patch

import ml_dtypes
import numpy as np

from ptxdsl import config
from ptxdsl.kernel import Kernel
from ptxdsl.kernels.attention import attention as attention_by_tiles
from ptxdsl.kernels.attention_backward import attention_backward
from ptxdsl.kernels.attention_mla import attention_decode_mla
from ptxdsl.kernels.call.launching import residency
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.conv import conv2d
from ptxdsl.kernels.flash import decode
from ptxdsl.kernels.flash.traits import AttentionConfig
from ptxdsl.kernels.gemm import gemm
from ptxdsl.kernels.grouped import grouped_gemm, grouped_gemm_masked, grouped_gemm_ragged, grouped_gemm_ragged_k
from ptxdsl.kernels.scaled import scaled_gemm, scaled_gemm_ragged
from ptxdsl.kernels.tiles.cluster_strips import ClusterStrips
from ptxdsl.kernels.tiles.persistent import Strips
from ptxdsl.schedule import (
    IdentityThreadblockSwizzle,
    PersistentScheduler,
    StreamKThreadblockSwizzle,
)

E4M3, BF16 = np.dtype(ml_dtypes.float8_e4m3fn), np.dtype(ml_dtypes.bfloat16)
EXAMPLES = Path(__file__).parents[2] / "examples"
CONFIG = GemmConfig(tile=(32, 32, 32), warp=(16, 32), stages=3)
WARPGROUPS = GemmConfig(tile=(64, 16, 64), stages=4, atom="wgmma")
TALL, BYTES = GemmConfig(tile=(128, 16, 64), stages=4, atom="wgmma"), GemmConfig((64, 16, 128), stages=4, atom="wgmma")
IN_TURN = replace(WARPGROUPS, stages=3, schedule=Strips())
PINGPONG, SHARED = replace(IN_TURN, tile=(128, 16, 64), pingpong=True), replace(IN_TURN, schedule=ClusterStrips())
STAGGERED = replace(IN_TURN, tile=(128, 16, 64), stagger=2)
THREE = replace(IN_TURN, tile=(192, 16, 64), stagger=1)
HELD = replace(STAGGERED, tile=(128, 256, 64))  # half of the C of a tile goes to registers
HELD_OF_GROUPS = replace(HELD, schedule=GemmConfig.schedule)
SHARES = GemmConfig((64, 64, 64), stages=3, atom="wgmma", swap_ab=True)
STAGGERED_SHARES = replace(SHARES, tile=(64, 128, 64), stagger=1)
TURNS = replace(TALL, stages=3, pingpong=True)
FEW_ROWS = GemmConfig((8, 64, 64), stages=3, atom="wgmma", swap_ab=True, split_k=2, reduction="cluster")
EXCHANGED = GemmConfig((64, 256, 64), stages=4, atom="wgmma", split_k=2, reduction="cluster")  # in the ring
EXCHANGED_ROWS = replace(EXCHANGED, tile=(160, 64, 64), stages=8, swap_ab=True)
SCALED_ROWS = replace(FEW_ROWS, tile=(8, 64, 128))
SHARED_ROWS = GemmConfig((16, 128, 64), stages=3, atom="wgmma", swap_ab=True, schedule=ClusterStrips())
SWAPPED_TURNS = GemmConfig((16, 64, 64), stages=3, atom="wgmma", swap_ab=True, pingpong=True, schedule=Strips())
ALL_ADD = replace(IN_TURN, schedule=IdentityThreadblockSwizzle(1), split_k=2)
ALONE = replace(IN_TURN, tile=(128, 16, 64), schedule=IdentityThreadblockSwizzle(1))
SIZES = ((40, 40, 200), (33, 24, 72), (24, 40, 160))  # as many iterations along K as leave the ring at each stage
SMALL = ((20, 24, 40), (9, 33, 1))
ROWS, FEW, MASKED = (0, 100, 0, 128, 10), (10, 0, 20, 7), (0, 128, 64, 5, 100)  # of groups
LISTS = ((8, 56, 136), *((8, 8, 8 * (1 + n % 3)) for n in range(14)))  # more of one tile than blocks keep maps of
SHARED_FOURS = replace(SHARED_ROWS, tile=(16, 64, 64), schedule=ClusterStrips((1, 4)))
SHARED_LISTS = ((40, 136, 136), (8, 40, 64), (8, 72, 264), (100, 136, 64))
WHOLE_LISTS = ((64, 136, 64), (64, 40, 136))
BOX = (64,)  # a block ends with a whole box: its copies are the last that it does
LENGTH = 322  # the first of the rows that a thread stores may be the first behind the end
GROUP = ((40, 40, 64), (7, 40, 8), (33, 24, 304))


def whole(*shape: int, seed: int = 0, dtype: type = np.float16) -> np.ndarray:
    """Whole numbers from -2 to 2."""
    return np.random.default_rng(seed).integers(-2, 3, shape).astype(dtype)


def example(name: str) -> ModuleType:
    """The program `examples/NAME.py` as a module."""
    sys.path.insert(0, str(EXAMPLES))
    try:
        spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
        return module
    finally:
        sys.path.remove(str(EXAMPLES))


@contextmanager
def multiprocessors(count: int) -> Iterator[None]:
    """On a GPU of so few, the blocks of a grid take several tiles each."""
    residency._resident_blocks.cache_clear()
    with patch.object(residency, "EMULATED", count):
        yield
    residency._resident_blocks.cache_clear()


def product(sizes: Sequence[tuple[int, int, int]] = SIZES, **options: object) -> None:
    with multiprocessors(1):
        for m, n, k in sizes:
            gemm(whole(m, k), whole(k, n, seed=1), config=CONFIG, **options)


def stream_k() -> None:
    """Blocks with a tile of their own, with parts of one, and with parts of several."""
    product([*SIZES, (104, 40, 96)], schedule=StreamKThreadblockSwizzle(3))
    product([(96, 32, 384), (160, 32, 400)], schedule=StreamKThreadblockSwizzle(2))


def group(**options: object) -> None:
    for deeper in (0, 32, 64):
        sizes = [(m, n, k + deeper) for m, n, k in GROUP]
        lists = [[whole(m, k, seed=i), whole(k, n, seed=i + 9)] for i, (m, n, k) in enumerate(sizes)]
        with multiprocessors(1):
            grouped_gemm([a for a, _ in lists], [b for _, b in lists], config=CONFIG, **options)


def ragged() -> None:
    offsets = np.array([20, 20, 90], np.int32)
    with multiprocessors(1):
        for k in (64, 96, 160):
            grouped_gemm_ragged(whole(90, k), whole(3, k, 40, seed=1), offsets, config=CONFIG)


@contextmanager
def hopper(blocks: int = 2) -> Iterator[None]:
    """As of sm_90a, on so many multiprocessors: there are more tiles than blocks."""
    with config.using(arch="sm_90a"), multiprocessors(blocks):
        yield


def ragged_warpgroups() -> None:
    """Groups of no rows, of some and of more than a tile; gathered and scattered. Deep ones, and many tiles of one
    iteration: their numbers are told as far ahead as they are held."""
    for m, n, k in ((100, 24, 264), (230, 72, 64), (230, 24, 200), (230, 56, 64), (230, 8, 136)):
        b, ends = whole(5, n, k, seed=1).swapaxes(1, 2), np.array([0, m - 30, m - 30, m - 10, m], np.int32)
        with hopper():
            grouped_gemm_ragged(whole(m, k), b, ends, config=TALL)
            gathered(m, b, ends)


def shares(config: GemmConfig, *sizes: tuple[int, int], blocks: int = 2, rows: Sequence[int] = ROWS) -> None:
    """Groups of so many rows, by so many blocks."""
    ends = np.cumsum(rows, dtype=np.int32)
    for n, k in sizes:
        b = whole(len(rows), n, k, seed=1).swapaxes(1, 2)
        with hopper(blocks):
            grouped_gemm_ragged(whole(int(ends[-1]) + 2, k), b, ends, config=config)


def in_turns() -> None:
    """Tiles of warpgroups in turns, with rows of one piece, of two, and of parts of them."""
    shares(TURNS, (24, 264), (72, 64), (40, 136), rows=(0, 70, 0, 20, 138))
    shares(TURNS, (24, 64), blocks=1, rows=(90,))


def even() -> None:
    """Tiles of even shares of the rows of their groups."""
    shares(SHARES, (40, 264), (136, 136), (136, 64))
    shares(SHARES, (40, 64), blocks=1, rows=BOX)


def staggered() -> None:
    """The same of two warpgroups that end their tiles one after the other."""
    shares(STAGGERED_SHARES, (40, 264), (264, 64))
    shares(STAGGERED_SHARES, (40, 136), blocks=1, rows=FEW)
    shares(STAGGERED_SHARES, (40, 64), blocks=1, rows=BOX)


def masked(config: GemmConfig, *sizes: tuple[int, int, int], rows: Sequence[int] = MASKED) -> None:
    """Groups that begin at matrices of their own: by so many blocks, of so many columns, so deep."""
    counts = np.array(rows, np.int32)
    for blocks, n, k in sizes:
        with hopper(blocks):
            b = whole(len(rows), n, k, seed=1).swapaxes(1, 2)
            grouped_gemm_masked(whole(len(rows), 130, k), b, counts, config=config)


def masked_shares() -> None:
    """The same by even shares of the rows of each group."""
    masked(SHARES, (2, 40, 264), (2, 136, 64))
    masked(SHARES, (1, 40, 64), rows=BOX)


def gathered(m: int, b: np.ndarray, ends: np.ndarray) -> None:
    """`m` rows of A from anywhere, written to rows of the output in another order."""
    order, out = np.arange(m, dtype=np.int32)[::-1].copy(), np.zeros((m, b.shape[2]), np.float16)
    rows = np.random.default_rng(5).integers(0, 60, m).astype(np.int32)
    grouped_gemm_ragged(whole(60, b.shape[1]), b, ends, rows=rows, out_rows=order, out=out, config=WARPGROUPS)


def shared_lists() -> None:
    """Shares of any rows, and of whole boxes, with which a block ends."""
    lists(SHARES, SHARED_LISTS)
    lists(SHARES, WHOLE_LISTS, blocks=1)


def along_k() -> None:
    """Groups of no rows, of one, and of more than a stage has."""
    ends = np.array([0, 1, 70, 70, 150], np.int32)
    with hopper():
        grouped_gemm_ragged_k(whole(150, 8), whole(150, 72, seed=1), ends, config=WARPGROUPS)


def added_along_k() -> None:
    """The same, with C: of half a tile it waits in registers."""
    a, b, ends = whole(100, 136), whole(100, 200, seed=1), np.array([0, 70, 100], np.int32)
    with hopper():
        grouped_gemm_ragged_k(a, b, ends, whole(3, 136, 200, seed=2), beta=1, config=HELD_OF_GROUPS)


def lists(config: GemmConfig, sizes: Sequence[tuple[int, int, int]], blocks: int = 2) -> None:
    """Problems of rows, columns and depths, by so many blocks."""
    with hopper(blocks):
        a = [whole(m, k, seed=n) for n, (m, _, k) in enumerate(sizes)]
        b = [whole(n, k, seed=i + 9).T for i, (_, n, k) in enumerate(sizes)]
        grouped_gemm(a, b, config=config)


def scaled(scaling: str) -> Callable[[], None]:
    """A product, and groups of rows; scales are powers of 2. Groups are deep, or have many tiles of one iteration."""

    def run() -> None:
        for n, k in ((40, 528), (72, 128)):
            a, b, depths = whole(70, k, seed=70).astype(E4M3), whole(n, k, seed=n).astype(E4M3), -(-k // 128)
            shapes = ((70, 1), (1, n)) if scaling == "rows" else ((70, depths), (depths, -(-n // 128)))
            scales = [np.exp2(whole(*shape, dtype=np.float32)) for shape in shapes]
            groups, apart = np.broadcast_to(b, (2, n, k)).copy().swapaxes(1, 2), np.stack([scales[1]] * 2)
            with hopper():
                scaled_gemm(a, b.T, *scales, config=BYTES)
                scaled_gemm_ragged(a, groups, np.array([3, 70], np.int32), scales[0], apart, config=BYTES)

    return run


def scaled_few_rows(scaling: str) -> Callable[[], None]:
    """Products whose K blocks of a cluster share, of swapped tiles; one of them has an empty part."""

    def run() -> None:
        for m, n, k in ((5, 72, 1040), (3, 40, 128)):
            a, b, depths = whole(m, k, seed=m).astype(E4M3), whole(n, k, seed=n).astype(E4M3), -(-k // 128)
            shapes = ((m, 1), (1, n)) if scaling == "rows" else ((m, depths), (depths, -(-n // 128)))
            with hopper():
                scaled_gemm(a, b.T, *(np.exp2(whole(*shape, dtype=np.float32)) for shape in shapes), config=SCALED_ROWS)

    return run


def convolution() -> None:
    for channels in (8, 16, 24):
        conv2d(whole(1, 6, 6, channels), whole(24, 3, 3, channels, seed=1), pad=1, config=CONFIG)


def tensor_product(
    config: GemmConfig,
    sizes: Sequence[tuple[int, int, int]],
    blocks: int = 1,
    beta: int = 0,
    dtype: type = np.float16,
) -> None:
    """Products on sm_90a, of so many blocks if these are persistent; with C where beta is not 0."""
    with hopper(blocks):
        for m, n, k in sizes:
            c = whole(m, n, seed=2) if beta else None
            gemm(whole(m, k, dtype=dtype), whole(n, k, seed=1, dtype=dtype).T, c, beta=beta, config=config)


def from_registers(config: GemmConfig) -> None:
    """Of float32, A along M; or, swapped, B along N."""
    with hopper(1):
        for m, n, k in ((100, 40, 72), (120, 24, 132), (100, 40, 24)):
            a, b = (whole(*shape, seed=seed, dtype=np.float32) for shape, seed in (((m, k), 0), ((k, n), 1)))
            a, b = (a, b) if config.swap_ab else (np.asfortranarray(a), np.asfortranarray(b))
            gemm(a, b, config=config)


def stream_k_warpgroups() -> None:
    """Blocks with parts of several tiles, and whole ones beside them; and others that add the parts up."""
    parts, apart = (replace(IN_TURN, schedule=StreamKThreadblockSwizzle(*of)) for of in ((2,), (12, 2, 3)))
    tensor_product(parts, ((40, 72, 744),), blocks=2)
    tensor_product(replace(apart, split_k=3), ((40, 16, 184),), blocks=3)


def windows(config: GemmConfig, channels: int, size: int = 9) -> None:
    """Images on sm_90a: columns of pixels by im2col tensor maps, of few channels from lines that are packed first. By
    windows of one pixel they are a product, with the kernel of `gemm`."""
    with hopper(1):
        conv2d(whole(1, size, size, channels), whole(24, 3, 3, channels, seed=1), pad=1, config=config)


def reduction() -> None:
    module = example("02_reduce")
    module.total[module.BLOCKS, module.THREADS](whole(1300, dtype=np.float32), np.zeros(1, np.float32), 1300)


def transposition() -> None:
    module = example("03_transpose")
    target = np.zeros((45, 70), np.float32)
    module.transpose[(2, 3), (module.TILE, module.ROWS)](whole(70, 45, dtype=np.float32), target, 70, 45)


def steps(name: str) -> Callable[[], None]:
    def run() -> None:
        module = example("05_gemm_steps")
        for m, n, k in SMALL if name == "naive" else SIZES:
            arrays = whole(m, k), whole(n, k, seed=1), np.zeros((m, n), np.float32)
            module.launch(module.STEPS[name], arrays, (m, n, k))

    return run


def warpgroup() -> None:
    module = example("11_one_wgmma")
    d = np.zeros((50, 57), np.float32)
    module.one_wgmma[1, module.WARPGROUP](whole(50, 39), whole(57, 39, seed=1), d, 50, 57, 39)


def boxes() -> None:
    module = example("09_tma_copy")
    x = whole(40, 72)
    module.double[(2, 2), module.COLUMNS](x, np.zeros_like(x))


def warp_specialised() -> None:
    module = example("12_warp_specialised_gemm")
    kernel = next(value for value in vars(module).values() if isinstance(value, Kernel))
    kernel[1, 384](*module.operands(128, 264, 256), 1, 2, 4)


def ring() -> None:
    module = example("10_mbarrier_ring")
    kernel = next(value for value in vars(module).values() if isinstance(value, Kernel))
    kernel[1, 160](whole(96, 128, dtype=np.float32), np.zeros(128, np.float32), 128, 6)


def cluster() -> None:
    module = example("13_cluster")
    x = np.random.default_rng(3).integers(0, module.BINS, 1500).astype(np.uint32)
    module.histogram[4, module.THREADS](x, np.zeros(module.BINS, np.uint32), len(x))


def attention() -> None:
    """Two blocks of queries; of the second the keys go round the ring."""
    module = example("15_flash_attention")
    q, k, v = (whole(1, LENGTH, module.HEAD, seed=seed, dtype=BF16) for seed in range(3))
    module.attention[(1, -(-LENGTH // module.QUERIES)), 512](q, k, v, np.zeros_like(v), LENGTH)


def shipped_attention() -> None:
    """A causal tile that sees three tiles of keys, and a window whose tiles are masked at both ends."""
    config = AttentionConfig(128, 64, 2)
    q, k, v = (whole(1, 1, LENGTH, 64, seed=seed, dtype=BF16) for seed in range(3))
    attention_by_tiles(q, k, v, causal=True, config=config)
    attention_by_tiles(q, k, v, window=(70, 10), config=config)


def gradients_of_attention() -> None:
    """Packed sequences of two tiles and of one row: a tile of queries visits three tiles of keys, one of keys three."""
    offsets = np.array([0, 150, 151], np.int32)
    q, k, v, dout = (whole(151, 1, 64, seed=seed, dtype=BF16) for seed in range(4))
    out, lse = whole(151, 1, 64, seed=4, dtype=BF16), np.full((1, 151), 9, np.float32)
    attention_backward(dout, q, k, v, out, lse, q_offsets=offsets, k_offsets=offsets, causal=True)


def latent_attention() -> None:
    """A block that visits five tiles of keys, the first masked, in pages of half a tile: each ring is filled twice."""
    rng = np.random.default_rng(5)
    q, pages = (whole(*shape, seed=seed, dtype=BF16) for seed, shape in enumerate(((1, 16, 576), (10, 32, 1, 576))))
    table = rng.permutation(10)[None].astype(np.int32)
    with patch.object(decode, "PROCESSORS", 1):
        attention_decode_mla(q, pages, table, np.array([300], np.int32))


LONGEST = (
    "gemm, stream-K, sm_90a",
    "grouped, ragged, sm_90a",
    "grouped, ragged, shares, staggered",
    "grouped, masked, shares",
    "grouped, ragged, shares",
    "grouped, masked, sm_90a",
    "scaled, rows and columns",
    "scaled, blocks",
    "grouped, ragged, ping-pong",
    "gemm, staggered, with C, sm_90a",
    "grouped, lists, shares",
    "grouped, lists, sm_90a",
    "grouped, ragged along K, with C, sm_90a",
    "grouped, ragged along K, sm_90a",
    "conv2d, im2col, ping-pong",
    "attention, MLA decoding",
    "attention, gradients",
    "attention",
    "15_flash_attention",
    "gemm, stream-K",
)
"""Those that take longest begin first, so that all cores have something to do until the end."""

SUBJECTS: dict[str, Callable[[], None]] = {
    "gemm": product,
    "gemm, odd sizes": lambda: product([(35, 37, 71), (33, 5, 97), (24, 33, 151)]),
    "gemm, split K in turn": lambda: product(split_k=2),
    "gemm, split K, last block adds": lambda: product(split_k=2, reduction="parallel"),
    "gemm, split K, shares": lambda: product(split_k=2, reduction="scatter"),
    "gemm, stream-K": stream_k,
    "gemm, persistent": lambda: product([(72, 40, 104), (72, 40, 72), (40, 72, 160)], schedule=PersistentScheduler()),
    "grouped, device": lambda: group(schedule="device"),
    "grouped, table, balanced": lambda: group(schedule="host", balance="k"),
    "grouped, ragged": ragged,
    "grouped, ragged, sm_90a": ragged_warpgroups,
    "grouped, ragged, ping-pong": in_turns,
    "grouped, ragged, shares": even,
    "grouped, ragged, shares, staggered": staggered,
    "grouped, masked, sm_90a": lambda: masked(TALL, (4, 24, 264), (2, 72, 64), (2, 8, 136)),
    "grouped, masked, shares": masked_shares,
    "grouped, ragged along K, sm_90a": along_k,
    "grouped, ragged along K, with C, sm_90a": added_along_k,
    "grouped, lists, sm_90a": lambda: lists(WARPGROUPS, LISTS),
    "grouped, lists, shares": shared_lists,
    "scaled, rows and columns": scaled("rows"),
    "scaled, blocks": scaled("blocks"),
    "scaled, rows and columns, K in a cluster": scaled_few_rows("rows"),
    "scaled, blocks, K in a cluster": scaled_few_rows("blocks"),
    "gemm, sm_90a": lambda: tensor_product(IN_TURN, ((100, 40, 136), (70, 24, 264))),
    "gemm, with C, sm_90a": lambda: tensor_product(IN_TURN, ((100, 40, 136), (70, 24, 264)), beta=1),
    "gemm, staggered, sm_90a": lambda: tensor_product(STAGGERED, ((150, 24, 264), (70, 72, 64))),
    "gemm, three warpgroups, sm_90a": lambda: tensor_product(THREE, ((250, 24, 264), (70, 72, 64))),
    "gemm, staggered, with C, sm_90a": lambda: tensor_product(HELD, ((150, 256, 264), (70, 264, 64)), beta=1),
    "gemm, ping-pong": lambda: tensor_product(PINGPONG, ((150, 24, 264), (70, 72, 64))),
    "gemm, clusters that share copies": lambda: tensor_product(SHARED, ((136, 40, 136), (70, 24, 264)), blocks=2),
    "gemm, few rows, K in a cluster": lambda: tensor_product(FEW_ROWS, ((5, 72, 264), (8, 72, 520))),
    "gemm, K in a cluster, sums in the ring": lambda: tensor_product(EXCHANGED, ((20, 136, 136), (20, 72, 648))),
    "gemm, swapped, K in a cluster, sums in the ring": lambda: tensor_product(EXCHANGED_ROWS, ((150, 72, 1288),)),
    "gemm, swapped, clusters that share copies": lambda: tensor_product(
        SHARED_ROWS, ((40, 264, 264), (20, 72, 136)), blocks=2
    ),
    "gemm, swapped, four that share copies of A": lambda: tensor_product(
        SHARED_FOURS, ((40, 264, 264), (20, 72, 136)), blocks=4
    ),
    "gemm, swapped, ping-pong": lambda: tensor_product(SWAPPED_TURNS, ((70, 72, 264), (40, 136, 64))),
    "gemm, stream-K, sm_90a": stream_k_warpgroups,
    "gemm, split K, last block adds, sm_90a": lambda: tensor_product(ALL_ADD, ((70, 24, 584), (40, 16, 72))),
    "gemm, split K, shares, sm_90a": lambda: tensor_product(
        replace(ALL_ADD, reduction="scatter"), ((70, 24, 584), (40, 16, 72))
    ),
    "gemm, one tile a block, sm_90a": lambda: tensor_product(ALONE, ((150, 24, 200), (70, 16, 72))),
    "gemm, tf32, sm_90a": lambda: tensor_product(
        replace(IN_TURN, tile=(64, 16, 32)), ((100, 40, 72), (120, 24, 132)), dtype=np.float32
    ),
    "gemm, from registers, sm_90a": lambda: from_registers(replace(IN_TURN, tile=(64, 16, 32))),
    "gemm, from registers, swapped, sm_90a": lambda: from_registers(replace(SWAPPED_TURNS, tile=(16, 64, 32))),
    "gemm, int8, sm_90a": lambda: tensor_product(
        replace(IN_TURN, tile=(64, 16, 128)), ((100, 40, 272), (120, 24, 528)), dtype=np.int8
    ),
    "conv2d": convolution,
    "conv2d, im2col": lambda: windows(replace(IN_TURN, stages=5), 16),
    "conv2d, im2col, ping-pong": lambda: windows(replace(PINGPONG, stages=5), 16, 12),
    "conv2d, packed": lambda: windows(replace(IN_TURN, stages=5), 3),
    "02_reduce": reduction,
    "03_transpose": transposition,
    "05_gemm_steps, naive": steps("naive"),
    "05_gemm_steps, cp.async": steps("cp.async"),
    "05_gemm_steps, swizzled": steps("swizzled"),
    "05_gemm_steps, pipelined": steps("pipelined"),
    "09_tma_copy": boxes,
    "10_mbarrier_ring": ring,
    "11_one_wgmma": warpgroup,
    "12_warp_specialised_gemm": warp_specialised,
    "13_cluster": cluster,
    "15_flash_attention": attention,
    "attention": shipped_attention,
    "attention, MLA decoding": latent_attention,
    "attention, gradients": gradients_of_attention,
}
