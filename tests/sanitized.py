"""Small products of the sm_90a path on a GPU, under compute-sanitizer.

    python -m tests.sanitized            # all of them under memcheck, synccheck and racecheck: how many errors each has
    python -m tests.sanitized NAME …     # these alone, without: to be run under some tool

Blocks are so few that they take several tiles each. Numbers are small and whole: results are exact.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from unittest.mock import patch

import numpy as np

from ptxdsl.kernels.call.launching import residency
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.conv import conv2d
from ptxdsl.kernels.gemm import gemm
from ptxdsl.kernels.grouped import grouped_gemm, grouped_gemm_masked, grouped_gemm_ragged, grouped_gemm_ragged_k
from ptxdsl.kernels.scaled import scaled_gemm, scaled_gemm_ragged
from ptxdsl.kernels.tiles.cluster_strips import ClusterStrips
from ptxdsl.kernels.tiles.persistent import Strips
from ptxdsl.schedule import IdentityThreadblockSwizzle, StreamKThreadblockSwizzle

from .machines import NAMES, Emulator, Gpu, machine

Machine = Emulator | Gpu
BLOCKS = 4  # that persistent kernels have: several tiles for each
TILE = GemmConfig(tile=(64, 64, 64), stages=3, atom="wgmma")
SHARED = replace(TILE, split_k=3, reduction="cluster")
PERSISTENT, IN_COLUMNS = replace(TILE, schedule=Strips()), IdentityThreadblockSwizzle(1)
PINGPONG, SHARES = replace(PERSISTENT, pingpong=True), replace(TILE, swap_ab=True)
PINGPONG_GROUPS = replace(TILE, tile=(128, 80, 64), pingpong=True)
SWAPPED = replace(PERSISTENT, tile=(32, 128, 64), swap_ab=True)
IN_RING = GemmConfig(
    (160, 64, 64), stages=8, atom="wgmma", swap_ab=True, schedule=IN_COLUMNS, split_k=2, reduction="cluster"
)
BYTES = replace(TILE, tile=(64, 48, 128))
Sizes = tuple[int, int, int]
USUAL: Sizes = (72, 136, 400)  # M, N and K, no multiples of a tile


def whole(rng: np.random.Generator, *shape: int, name: str = "bf16") -> np.ndarray:
    return rng.integers(-4, 5, shape).astype(NAMES[name])


def exact(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The product in float64."""
    return a.astype(np.float64) @ b.astype(np.float64)


def off(actual: np.ndarray, expected: np.ndarray, name: str) -> float:
    """The largest error of an output of that type."""
    return float(np.abs(actual - expected.astype(NAMES[name]).astype(np.float64)).max())


def turned(where: Machine, b: np.ndarray) -> object:
    """Matrices, each as its transpose, on a machine."""
    return where.array(b).swapaxes(1, 2)


def product(config: GemmConfig, sizes: Sizes = USUAL) -> Callable[[Machine], float]:
    def run(where: Machine) -> float:
        rng, (m, n, k) = np.random.default_rng(5), sizes
        a, b = whole(rng, m, k), whole(rng, n, k).T
        return off(where.values(gemm(where.array(a), where.array(b), config=config)), exact(a, b), "bf16")

    return run


def ragged(config: GemmConfig) -> Callable[[Machine], float]:
    """Groups of 1, 0 and 66 rows."""

    def run(where: Machine) -> float:
        rng, ends = np.random.default_rng(6), np.array([1, 1, 67], np.int32)
        a, b = whole(rng, 67, 136, name="f16"), whole(rng, 3, 72, 136, name="f16")
        out = grouped_gemm_ragged(where.array(a), turned(where, b), where.array(ends), config=config)
        return off(where.values(out), np.concatenate((exact(a[:1], b[0].T), exact(a[1:], b[2].T))), "f16")

    return run


def gathered(config: GemmConfig) -> Callable[[Machine], float]:
    """Groups of 1, 0 and 66 rows of 20, of which an index names some again and again, and some that are none."""

    def run(where: Machine) -> float:
        rng, ends = np.random.default_rng(12), np.array([1, 1, 67], np.int32)
        a, b = whole(rng, 20, 136, name="f16"), whole(rng, 3, 136, 136, name="f16")
        index = rng.integers(-1, 21, 67).astype(np.int32)
        rows = a[index.clip(0, 19)] * ((index >= 0) & (index < 20))[:, np.newaxis]
        sides = where.array(a), turned(where, b), where.array(ends)
        out = where.values(grouped_gemm_ragged(*sides, rows=where.array(index), config=config))
        return off(out, np.concatenate((exact(rows[:1], b[0].T), exact(rows[1:], b[2].T))), "f16")

    return run


def masked(config: GemmConfig) -> Callable[[Machine], float]:
    """Groups of 0, 66 and 5 rows, which begin at matrices of their own."""

    def run(where: Machine) -> float:
        rng, counts = np.random.default_rng(7), np.array([0, 66, 5], np.int32)
        a, b = whole(rng, 3, 70, 136, name="f16"), whole(rng, 3, 72, 136, name="f16")
        out = where.array(np.zeros((3, 70, 72), np.float16))
        grouped_gemm_masked(where.array(a), turned(where, b), where.array(counts), out=out, config=config)
        expected = exact(a, b.swapaxes(1, 2)) * (np.arange(70)[:, np.newaxis] < counts[:, np.newaxis, np.newaxis])
        return off(where.values(out), expected, "f16")

    return run


def along_k(where: Machine) -> float:
    """Groups of 1, 0 and 140 rows of K."""
    rng, ends = np.random.default_rng(8), np.array([1, 1, 141], np.int32)
    a, b = whole(rng, 141, 72), whole(rng, 141, 136)
    out = grouped_gemm_ragged_k(where.array(a), where.array(b), where.array(ends), config=TILE)
    expected = np.stack([exact(a[:1].T, b[:1]), np.zeros((72, 136)), exact(a[1:].T, b[1:])])
    return off(where.values(out), expected, "bf16")


def lists(config: GemmConfig) -> Callable[[Machine], float]:
    def run(where: Machine) -> float:
        rng, sizes = np.random.default_rng(9), ((40, 136, 136), (8, 40, 64), (72, 72, 264), (9, 8, 8))
        pairs = [(whole(rng, m, k), whole(rng, n, k).T) for m, n, k in sizes]
        outs = grouped_gemm([where.array(a) for a, _ in pairs], [where.array(b) for _, b in pairs], config=config)
        return max(off(where.values(out), exact(*pair), "bf16") for out, pair in zip(outs, pairs, strict=True))

    return run


def scaled(where: Machine) -> float:
    """By blocks of 128, of scales that are powers of 2: a product, and groups of 3, 0 and 69 rows."""
    rng, (m, n, k), ends = np.random.default_rng(10), (72, 40, 272), np.array([3, 3, 72], np.int32)
    a, b = whole(rng, m, k, name="e4m3"), whole(rng, 3, n, k, name="e4m3")
    of_a, of_b = (np.exp2(rng.integers(-2, 3, shape)).astype(np.float32) for shape in ((m, 3), (3, 3, 1)))
    rows, right = a.astype(np.float64) * of_a.repeat(128, 1)[:, :k], b.astype(np.float64)
    right = (right * of_b.repeat(128, 1)[:, :k].swapaxes(1, 2)).swapaxes(1, 2)
    single = scaled_gemm(where.array(a), where.array(b[0]).T, where.array(of_a), where.array(of_b[0]), config=BYTES)
    sides = where.array(a), turned(where, b), where.array(ends)
    groups = scaled_gemm_ragged(*sides, where.array(of_a), where.array(of_b), config=BYTES)
    expected = np.concatenate((rows[:3] @ right[0], rows[3:] @ right[2]))
    return max(off(where.values(single), rows @ right[0], "f32"), off(where.values(groups), expected, "f32"))


def windows(config: GemmConfig) -> Callable[[Machine], float]:
    """Images by im2col tensor maps."""

    def run(where: Machine) -> float:
        rng, size = np.random.default_rng(11), 9
        x, w = whole(rng, 2, size, size, 72, name="f16"), whole(rng, 40, 3, 3, 72, name="f16")
        out = where.values(conv2d(where.array(x), where.array(w), pad=1, config=config))
        padded = np.pad(x.astype(np.float64), ((0, 0), (1, 1), (1, 1), (0, 0)))
        moved = (
            padded[:, r : r + size, s : s + size] @ w[:, r, s].astype(np.float64).T for r in range(3) for s in range(3)
        )
        return off(out, sum(moved, np.zeros(out.shape)), "f16")

    return run


def from_registers(swap_ab: bool, config: GemmConfig | None = None) -> Callable[[Machine], float]:
    """Of float32: A along M or, swapped, B along N; without a configuration the other one is copied, and rounded."""

    def run(where: Machine) -> float:
        rng, (m, n, k) = np.random.default_rng(12), (200, 264, 264)
        a, b = (whole(rng, *shape, name="f32") for shape in ((m, k), (k, n)))
        a, b = (a, b) if swap_ab else (np.asfortranarray(a), np.asfortranarray(b))
        return off(where.values(gemm(where.array(a), where.array(b), config=config)), exact(a, b), "f32")

    return run


PRODUCTS: Mapping[str, Callable[[Machine], float]] = {
    "gemm": product(TILE),
    "cluster": product(SHARED),
    "ragged": ragged(TILE),
    "ping-pong": product(PINGPONG, (200, 136, 264)),
    "staggered": product(replace(PERSISTENT, tile=(128, 256, 64), stagger=2), (300, 520, 264)),
    "three warpgroups": product(replace(PERSISTENT, tile=(192, 64, 64), stagger=1), (300, 264, 264)),
    "three warpgroups, pairs": product(
        replace(TILE, tile=(192, 64, 64), schedule=ClusterStrips((1, 2))), (300, 264, 264)
    ),
    "swapped": product(SWAPPED, (20, 776, 264)),
    "swapped, in turns": product(replace(SWAPPED, tile=(16, 64, 64), pingpong=True), (40, 264, 264)),
    "swapped, pairs": product(replace(SWAPPED, tile=(16, 128, 64), schedule=ClusterStrips((2, 1))), (40, 520, 264)),
    "swapped, K in a cluster": product(IN_RING, (150, 136, 1288)),
    "clusters": product(replace(TILE, schedule=ClusterStrips((2, 1))), (200, 200, 264)),
    "one tile a block": product(replace(TILE, tile=(128, 64, 64), schedule=IN_COLUMNS), (200, 136, 264)),
    "from registers": from_registers(False, replace(PERSISTENT, tile=(128, 64, 32), stagger=1)),
    "from registers, swapped": from_registers(True, replace(SWAPPED, tile=(64, 128, 32))),
    "from registers, rounded": from_registers(False),
    "from registers, rounded and swapped": from_registers(True),
    "last tile of few rows": product(replace(PERSISTENT, tile=(128, 64, 64)), (136, 264, 264)),
    "stream-K": product(replace(TILE, schedule=StreamKThreadblockSwizzle(BLOCKS)), (40, 328, 1000)),
    "ragged, shares": ragged(SHARES),
    "gathered": gathered(TILE),
    "gathered, in turns": gathered(PINGPONG_GROUPS),
    "gathered, shares": gathered(replace(SHARES, tile=(64, 128, 64), stagger=1)),
    "gathered by copies": gathered(replace(SHARES, tile=(64, 128, 64), stagger=1, copies_rows=True)),
    "masked": masked(TILE),
    "masked, shares": masked(SHARES),
    "ragged along K": along_k,
    "lists": lists(TILE),
    "lists, shares": lists(SHARES),
    "scaled by blocks": scaled,
    "conv2d": windows(TILE),
    "conv2d, in turns": windows(PINGPONG),
}

TOOLS: Mapping[str, Sequence[str]] = {
    "memcheck": ("--report-api-errors", "no"),  # bindings ask the driver for functions that it may not have
    "synccheck": (),
    "racecheck": (),
}
PROCESSES = 8  # side by side, since each waits most of the time for the tool
ENDED, PLAIN = "ended: ", "COMPUTE-SANITIZER|[A-Z]+ SUMMARY"
ERROR = re.compile(rf"========= (?!{PLAIN})\S")  # details of an error are indented


def error_of(name: str, where: Machine) -> float:
    """By how much an element is off."""
    with patch.object(residency, "_resident_blocks", lambda *_, **__: BLOCKS):
        return PRODUCTS[name](where)


def run(names: Sequence[str]) -> int:
    """Runs products on a GPU, and says when each has ended. Returns how many are off."""
    wrong, where = 0, machine("gpu")
    for name in names:
        error = error_of(name, where)
        print(f"{ENDED}{name}", flush=True)
        if error:
            wrong += 1
            print(f"{name}: an element is off by {error}", file=sys.stderr, flush=True)
    return wrong


def counted(output: str) -> tuple[dict[str, int], int]:
    """How many errors a tool reports of each product that ended, and behind the last of them: it reports those of a
    kernel when that has ended."""
    counts, errors = {}, 0
    for line in output.splitlines():
        errors += ERROR.match(line) is not None
        if line.startswith(ENDED):
            counts[line.removeprefix(ENDED)], errors = errors, 0
    return counts, errors


def under(tool: str, names: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Runs products in a process under a tool."""
    command = ["compute-sanitizer", "--tool", tool, *TOOLS[tool], sys.executable, "-m", "tests.sanitized", *names]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)


def sweep(names: Sequence[str]) -> int:
    """Runs products under all tools, and prints the errors of each. Returns how many products of a tool had errors, were
    off, or did not end."""
    parts = [names[number::PROCESSES] for number in range(min(PROCESSES, len(names)))]
    faulty = 0
    with ThreadPoolExecutor(PROCESSES) as pool:
        for tool in TOOLS:
            for told, count in pool.map(partial(swept, tool), parts):
                print(told, end="", flush=True)
                faulty += count
    return faulty


def swept(tool: str, names: Sequence[str]) -> tuple[str, int]:
    """What is to be said of products under a tool, one after another, and how many are faulty. Behind one that ends its
    process another process goes on."""
    lines, faulty, left = [], 0, list(names)
    while left:
        done = under(tool, left)
        counts, behind = counted(done.stdout)
        died = left[len(counts)] if len(counts) < len(left) else ""
        for name, errors in counts.items():
            is_off = f"{name}: an element is off" in done.stdout
            faulty += bool(errors or is_off)
            lines.append(f"{tool} {name}: {errors} errors{', wrong results' if is_off else ''}")
        if died or behind or any(counts.values()):
            lines.append(done.stdout)
        if died:
            lines.append(f"{tool} {died}: {behind} errors, and its process ended (exit code {done.returncode})")
        faulty += bool(died or behind)
        left = left[len(counts) + 1 :]
    return "".join(f"{line}\n" for line in lines), faulty


if __name__ == "__main__":
    sys.exit(min(run(sys.argv[1:]) if sys.argv[1:] else sweep(list(PRODUCTS)), 1))
