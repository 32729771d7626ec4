"""One GEMM on random matrices, compared with numpy in float64: `ptxdsl run gemm` and the demo."""

from __future__ import annotations

import importlib
import importlib.util
import os
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ptxdsl import config, driver
from ptxdsl.arrays import describe
from ptxdsl.cli.process import UsageError
from ptxdsl.driver import call
from ptxdsl.errors import Error
from ptxdsl.kernels.call.products.options import GemmOptions
from ptxdsl.kernels.call.products.planner import GemmPlanner
from ptxdsl.kernels.call.products.problem import problem_of
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.gemm import gemm
from ptxdsl.kernels.traits.traits import Traits
from ptxdsl.runtime.copies import copied
from ptxdsl.types import TYPES

SIGNIFICANT_BITS = {"f16": 11, "bf16": 8, "f32": 24, "f64": 53, "e4m3": 4, "e5m2": 3}
# of normal numbers; the spacing is constant below
LEAST_EXPONENT = {"f16": -14, "bf16": -126, "f32": -126, "f64": -1022, "e4m3": -6, "e5m2": -14}
READ_BITS = {"f32": 10}  # mantissa bits of operands that are used: mma.sync rounds to 11 bits, wgmma truncates
MMA_K = {"f64": 1}  # products that are added before the sum is rounded
USUAL_MMA_K = 16
SUM_BITS = {"f64": 53, "e4m3": 14, "e5m2": 14}  # the accumulators of 8-bit floats keep 13 fraction bits on a GPU
ML_DTYPES = {"bf16": "bfloat16", "e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2"}
WHOLE = ("s8", "u8")
ORDERS: Any = {"t": "C", "n": "F"}  # row-major and column-major, by BLAS letter
ROUNDS, LAUNCHES = 5, 10  # repetitions of a timing, and launches of each


@dataclass(frozen=True, slots=True)
class Trial:
    """Sizes, types and orders. `layout` has the BLAS letters of A and B: t is row-major, n is column-major.

    Integer results are assumed to fit 32 bits, as sums of 30000 products do.
    """

    m: int
    n: int
    k: int
    dtype: str = "f16"
    out: str = "f16"
    layout: str = "tn"
    config: GemmConfig | None = None
    seed: int = 0

    def matrices(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return A and B with N(0,1) elements or random integers, and an output of NaN or of an integer that does not
        occur.
        """
        rng = np.random.default_rng(self.seed)
        held, shapes = numpy_dtype(self.dtype), ((self.m, self.k), (self.k, self.n))
        numbers = [self._numbers(rng, shape, held) for shape in shapes]
        a, b = (x.astype(held, order=ORDERS[letter]) for x, letter in zip(numbers, self.layout, strict=True))
        unwritten = np.iinfo(np.int32).min if self.out == "s32" else np.nan
        return a, b, np.full((self.m, self.n), unwritten, numpy_dtype(self.out))

    def _numbers(self, rng: np.random.Generator, shape: tuple[int, int], held: Any) -> np.ndarray:
        if self.dtype not in WHOLE:
            return rng.standard_normal(shape)
        least, most = -8 * (self.dtype == "s8"), 7  # the largest f16 is 65504
        if self.out != "f16":
            least, most = int(np.iinfo(held).min), int(np.iinfo(held).max)
        return rng.integers(least, most, shape, endpoint=True)

    def traits(self) -> Traits:
        """Return the traits of the kernel that computes the product."""
        a, b, out = self.matrices()
        return GemmPlanner(problem_of(a, b, None, out, 0.0).row_major, GemmOptions(self.config)).traits()

    @property
    def compared_bytes(self) -> int:
        """The memory that preparing and comparing takes: the arrays in float64, and temporaries of the result."""
        return 8 * (2 * (self.m * self.k + self.k * self.n) + 5 * self.m * self.n)

    def run(self, device: str) -> TrialResult:
        """Compute the product on "emulator" or "cuda", compare it, and on a GPU time it.

        Raises UsageError if the comparison needs more memory than the machine has.
        """
        if self.compared_bytes > memory_bytes():
            sizes = f"{self.m} x {self.n} x {self.k}"
            needed, there = (f"{size / 2**30:.4g} GiB" for size in (self.compared_bytes, memory_bytes()))
            raise UsageError(f"comparing {sizes} takes {needed} of memory; this machine has {there}")
        a, b, out = self.matrices()
        with config.using(device=device):
            start = time.perf_counter()
            gemm(a, b, out=out, config=self.config)
            seconds = time.perf_counter() - start
        error, allowed = self._errors(a, b, out)
        if device == "cuda":
            seconds = self._gpu_seconds(a, b, out)
        return TrialResult(device, seconds, 2 * self.m * self.n * self.k, error, allowed)

    def _errors(self, a: np.ndarray, b: np.ndarray, out: np.ndarray) -> tuple[float, float]:
        """Return the error and the rounding bound of the element that comes closest to its bound."""
        wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
        exact, magnitude = wide_a @ wide_b, abs(wide_a) @ abs(wide_b)
        error = np.nan_to_num(abs(out.astype(np.float64) - exact), nan=np.inf)
        allowed = self._allowed(exact, magnitude)
        if not error.size:
            return 0.0, 0.0
        worst = np.unravel_index(np.argmax(error / np.maximum(allowed, np.finfo(np.float64).tiny)), error.shape)
        return float(error[worst]), float(allowed[worst])

    def _allowed(self, exact: np.ndarray, magnitude: np.ndarray) -> np.ndarray:
        """Bound the error: tensor cores truncate each partial sum, and the result is rounded to `out`."""
        if self.out == "s32":
            return np.zeros_like(exact)
        sum_bits = SUM_BITS.get(self.dtype, SIGNIFICANT_BITS["f32"])
        read = 2.0 ** (1 - READ_BITS[self.dtype]) if self.dtype in READ_BITS else 0.0
        cut = -(-self.k // MMA_K.get(self.dtype, USUAL_MMA_K)) * 2.0 ** (1 - sum_bits)
        summed = (read + (0.0 if self.dtype in WHOLE else cut)) * magnitude
        smallest = 2.0 ** LEAST_EXPONENT[self.out]
        rounded = 2.0 ** -SIGNIFICANT_BITS[self.out] * np.maximum(abs(exact) + summed, smallest)
        twice = 2.0 ** -SIGNIFICANT_BITS["f32"] * abs(exact) * (self.dtype in WHOLE)  # int32 to f32, then to out
        return summed + rounded + twice

    def _gpu_seconds(self, *arrays: np.ndarray) -> float:
        """Return the median time of a call with arrays on the GPU, measured with CUDA events."""
        described = [described for array in arrays if (described := describe(array)) is not None]
        with driver.on(0), copied(described) as addresses:
            a, b, out = map(GpuArray, arrays, addresses)
            return gpu_seconds(lambda: gemm(a, b, out=out, config=self.config))


def memory_bytes() -> int:
    """Return the memory of this machine in bytes."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else sys.maxsize


@dataclass(frozen=True, slots=True)
class TrialResult:
    """The result of a trial. It is correct if `error` is at most `allowed`."""

    device: str
    seconds: float
    operations: int
    error: float
    allowed: float

    @property
    def ok(self) -> bool:
        return self.error <= self.allowed

    @property
    def where(self) -> str:
        return str(driver.device(0)) if self.device == "cuda" else "emulator"

    @property
    def speed(self) -> str:
        """The time, and on a GPU the TFLOP/s."""
        if self.device == "emulator":
            return f"{self.seconds:.2f} s"
        rate = self.operations / self.seconds * 1e-12
        return f"{self.seconds * 1e6:.1f} us, {rate:.1f} TFLOP/s"

    @property
    def comparison(self) -> str:
        return f"error {self.error:.2g} against numpy in float64; rounding allows {self.allowed:.2g}"


def numpy_dtype(name: str) -> Any:
    """Return the numpy type of a PTX type. Raises Error if it needs ml_dtypes and that is not installed."""
    if name not in ML_DTYPES:
        return TYPES[name].dtype
    if importlib.util.find_spec("ml_dtypes") is None:
        raise Error(f"numpy has no {name} arrays without ml_dtypes", help="pip install 'ptxdsl[dtypes]'")
    return np.dtype(getattr(importlib.import_module("ml_dtypes"), ML_DTYPES[name]))


def default_device() -> str:
    """Return PTXDSL_DEVICE, else `cuda` if there is a GPU, else `emulator`."""
    return config.current().device or ("emulator" if driver.why_no_gpu() else "cuda")


class GpuArray:
    """A copy of a numpy array on the GPU, as an argument of gemm(); an empty one has no address."""

    def __init__(self, source: np.ndarray, address: int | None) -> None:
        self.__cuda_array_interface__ = {
            "version": 3, "data": (address or 0, False), "shape": source.shape, "strides": source.strides,
            "typestr": str(source.dtype),
        }  # fmt: skip


def gpu_seconds(run: Callable[[], object]) -> float:
    """Return the median time of a launch on the current GPU, of back-to-back launches."""
    events = [call("timing", driver.cuda.cuEventCreate, 0) for _ in range(2)]
    run()
    try:
        return statistics.median(_round(run, *events) for _ in range(ROUNDS)) / LAUNCHES
    finally:
        for event in events:
            call("timing", driver.cuda.cuEventDestroy, event)


def _round(run: Callable[[], object], start: Any, end: Any) -> float:
    """Return the seconds of one series of launches."""
    call("timing", driver.cuda.cuEventRecord, start, 0)
    for _ in range(LAUNCHES):
        run()
    call("timing", driver.cuda.cuEventRecord, end, 0)
    call("timing", driver.cuda.cuEventSynchronize, end)
    return float(call("timing", driver.cuda.cuEventElapsedTime, start, end)) * 1e-3
