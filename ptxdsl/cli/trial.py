"""One GEMM on random matrices, held against numpy in float64: `ptxdsl run gemm` and the demo."""

from __future__ import annotations

import importlib
import importlib.util
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from ptxdsl import config, driver
from ptxdsl.cli.process import UsageError
from ptxdsl.driver import call
from ptxdsl.errors import Error
from ptxdsl.kernels.call.products.configure import Choice
from ptxdsl.kernels.call.products.plan import traits_of
from ptxdsl.kernels.call.products.problem import problem_of
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.gemm import gemm
from ptxdsl.kernels.traits.traits import Traits
from ptxdsl.types import TYPES

SIGNIFICANT_BITS = {"f16": 11, "bf16": 8, "f32": 24, "f64": 53, "e4m3": 4, "e5m2": 3}
# Of normal numbers; below, steps stay the same
LEAST_EXPONENT = {"f16": -14, "bf16": -126, "f32": -126, "f64": -1022, "e4m3": -6, "e5m2": -14}
READ_BITS = {"f32": 10}  # of operands that are right: mma.sync rounds to 11 bits, wgmma cuts off behind them
MMA_K = {"f64": 1}  # products that are added up before their sum is rounded
USUAL_MMA_K = 16
SUM_BITS = {"f64": 53, "e4m3": 14, "e5m2": 14}  # those of 8-bit floats keep 13 fraction bits on a GPU
ML_DTYPES = {"bf16": "bfloat16", "e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2"}
WHOLE = ("s8", "u8")
LARGE = 8192  # rows and columns of a large product
ROUNDS, LAUNCHES = 5, 10  # of a timing


@dataclass(frozen=True, slots=True)
class Trial:
    """Sizes, types and orders. `layout` has the BLAS letters of A and B: t is row-major A or B, n is column-major.

    Sums of integers are taken to fit 32 bits, as those of 30000 products do.
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
        """A and B with N(0,1) elements or all integers, and an output of NaN or of an integer that does not come up."""
        rng = np.random.default_rng(self.seed)
        held, shapes = numpy_dtype(self.dtype), ((self.m, self.k), (self.k, self.n))
        numbers = [self._numbers(rng, shape, held) for shape in shapes]
        a, b = (_in_order(x, letter).astype(held) for x, letter in zip(numbers, self.layout, strict=True))
        unwritten = np.iinfo(np.int32).min if self.out == "s32" else np.nan
        return a, b, np.full((self.m, self.n), unwritten, numpy_dtype(self.out))

    def _numbers(self, rng: np.random.Generator, shape: tuple[int, int], held: Any) -> np.ndarray:
        if self.dtype not in WHOLE:
            return rng.standard_normal(shape)
        least, most = _range(held) if self.out != "f16" else (-8 * (self.dtype == "s8"), 7)  # f16 ends at 65504
        return rng.integers(least, most, shape, endpoint=True)

    def traits(self) -> Traits:
        """Those of the kernel that computes it."""
        a, b, out = self.matrices()
        return traits_of(problem_of(a, b, None, out, 0.0).row_major, Choice(self.config))

    @property
    def compared_bytes(self) -> int:
        """Memory that making and comparing it takes: arrays in float64, and more of them for the result."""
        return 8 * (2 * (self.m * self.k + self.k * self.n) + 5 * self.m * self.n)

    def run(self, device: str) -> TrialResult:
        """Computes the product on "emulator" or "cuda", compares it, and on a GPU times it.

        Raises UsageError where the comparison needs more memory than the machine has.
        """
        if self.compared_bytes > memory_bytes():
            sizes = f"{self.m} x {self.n} x {self.k}"
            needed, there = (f"{size / 2**30:.4g} GiB" for size in (self.compared_bytes, memory_bytes()))
            raise UsageError(f"to make and compare {sizes} takes {needed} of memory; this machine has {there}")
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
        """The largest error, and what rounding may add up to there; that of the element which comes closest to it."""
        wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
        exact, magnitude = wide_a @ wide_b, abs(wide_a) @ abs(wide_b)
        error = np.nan_to_num(abs(out.astype(np.float64) - exact), nan=np.inf)
        allowed = self._allowed(exact, magnitude)
        if not error.size:
            return 0.0, 0.0
        worst = np.unravel_index(np.argmax(error / np.maximum(allowed, np.finfo(np.float64).tiny)), error.shape)
        return float(error[worst]), float(allowed[worst])

    def _allowed(self, exact: np.ndarray, magnitude: np.ndarray) -> np.ndarray:
        """Tensor cores cut each sum of some products, one after another; then the sum is rounded to `out`."""
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
        """The median time of a call with arrays on the GPU, by the GPU's own clock."""
        with driver.on(0), on_gpu(*arrays) as (a, b, out):
            return gpu_seconds(lambda: gemm(a, b, out=out, config=self.config))


def large_traits() -> Traits:
    """Return the traits of the kernel that `gemm` runs on sm_90a for an f16 product of 8192 x 8192 x 8192."""
    a, b, out = (np.empty((LARGE, LARGE), np.float16) for _ in range(3))  # never touched
    return traits_of(problem_of(a, b, None, out, 0.0).row_major, Choice(), takes_warpgroups=True)


def memory_bytes() -> int:
    """The memory of this machine."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else sys.maxsize


@dataclass(frozen=True, slots=True)
class TrialResult:
    """How a trial went; `error` is within `allowed` where all is well."""

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
        """The time, and on a GPU TFLOP/s."""
        if self.device == "emulator":
            return f"{self.seconds:.2f} s"
        rate = self.operations / self.seconds * 1e-12
        return f"{self.seconds * 1e6:.1f} us, {rate:.1f} TFLOP/s"

    @property
    def comparison(self) -> str:
        return f"error {self.error:.2g} against numpy in float64, where rounding explains {self.allowed:.2g}"


def _range(dtype: Any) -> tuple[int, int]:
    """The least and the greatest integer."""
    return int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)


def _in_order(matrix: np.ndarray, letter: str) -> np.ndarray:
    """Row-major for t, column-major for n."""
    return np.ascontiguousarray(matrix) if letter == "t" else np.asfortranarray(matrix)


def numpy_dtype(name: str) -> Any:
    """The numpy type of a PTX type. Raises Error where it needs ml_dtypes and that is not installed."""
    if name not in ML_DTYPES:
        return TYPES[name].dtype
    if importlib.util.find_spec("ml_dtypes") is None:
        raise Error(f"numpy has no {name} arrays of its own", help="pip install 'ptxdsl[dtypes]' (ml_dtypes)")
    return np.dtype(getattr(importlib.import_module("ml_dtypes"), ML_DTYPES[name]))


def default_device() -> str:
    """PTXDSL_DEVICE, else the GPU where there is one."""
    return config.current().device or ("emulator" if driver.why_no_gpu() else "cuda")


class GpuArray:
    """A copy of a numpy array on the GPU, for gemm() to take."""

    def __init__(self, source: np.ndarray, address: int) -> None:
        self.__cuda_array_interface__ = {
            "version": 3, "data": (address, False), "shape": source.shape, "strides": source.strides,
            "typestr": str(source.dtype),
        }  # fmt: skip


@contextmanager
def on_gpu(*arrays: np.ndarray) -> Iterator[list[GpuArray]]:
    """Copies of arrays in the memory of the current GPU, for the body of a `with`."""
    addresses: list[int] = []
    try:
        for array in arrays:
            addresses.append(int(call("allocating memory", driver.cuda.cuMemAlloc, max(array.nbytes, 1))))
            call("copying to the GPU", driver.cuda.cuMemcpyHtoD, addresses[-1], array.ctypes.data, array.nbytes)
        yield [GpuArray(array, address) for array, address in zip(arrays, addresses, strict=True)]
    finally:
        for address in addresses:
            call("freeing memory", driver.cuda.cuMemFree, address)


def gpu_seconds(run: Callable[[], object]) -> float:
    """The median time that a launch takes on the current GPU, of several launches one behind the other."""
    events = [call("timing", driver.cuda.cuEventCreate, 0) for _ in range(2)]
    run()
    try:
        return statistics.median(_round(run, *events) for _ in range(ROUNDS)) / LAUNCHES
    finally:
        for event in events:
            call("timing", driver.cuda.cuEventDestroy, event)


def _round(run: Callable[[], object], start: Any, end: Any) -> float:
    """Seconds of one round of launches."""
    call("timing", driver.cuda.cuEventRecord, start, 0)
    for _ in range(LAUNCHES):
        run()
    call("timing", driver.cuda.cuEventRecord, end, 0)
    call("timing", driver.cuda.cuEventSynchronize, end)
    return float(call("timing", driver.cuda.cuEventElapsedTime, start, end)) * 1e-3
