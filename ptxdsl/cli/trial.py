"""One GEMM on random matrices, held against numpy in float64: `ptxdsl run gemm` and the demo."""

from __future__ import annotations

import importlib
import importlib.util
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from ptxdsl import config, driver
from ptxdsl.driver import call
from ptxdsl.errors import Error
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.gemm import configure, gemm
from ptxdsl.kernels.problem import problem_of
from ptxdsl.types import TYPES

SIGNIFICANT_BITS = {"f16": 11, "bf16": 8, "f32": 24}
LEAST_EXPONENT = {"f16": -14, "bf16": -126, "f32": -126}  # of normal numbers; below it, steps stay as they are
MMA_K = 16  # products that one mma.sync adds up before it rounds
ROUNDS, LAUNCHES = 5, 10  # of a timing


@dataclass(frozen=True, slots=True)
class Trial:
    """Sizes, types and orders. `layout` has the BLAS letters of A and B: t is row-major A or B, n is column-major."""

    m: int
    n: int
    k: int
    dtype: str = "f16"
    out: str = "f16"
    layout: str = "tn"
    config: GemmConfig | None = None
    seed: int = 0

    def matrices(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """A and B with N(0,1) elements, and an output of NaN."""
        rng = np.random.default_rng(self.seed)
        a, b = rng.standard_normal((self.m, self.k)), rng.standard_normal((self.k, self.n))
        held = numpy_dtype(self.dtype)
        a, b = (_in_order(x, letter).astype(held) for x, letter in zip((a, b), self.layout, strict=True))
        return a, b, np.full((self.m, self.n), np.nan, numpy_dtype(self.out))

    def specialised(self) -> GemmConfig:
        """The configuration of the kernel that computes it."""
        a, b, out = self.matrices()
        return configure(problem_of(a, b, None, out, 0.0).row_major, self.config)

    def run(self, device: str) -> Outcome:
        """Computes the product on "emulator" or "cuda", compares it, and on a GPU times it."""
        a, b, out = self.matrices()
        with config.using(device=device):
            start = time.perf_counter()
            gemm(a, b, out=out, config=self.config)
            seconds = time.perf_counter() - start
        error, allowed = self._errors(a, b, out)
        if device == "cuda":
            seconds = self._gpu_seconds(a, b, out)
        return Outcome(device, seconds, 2 * self.m * self.n * self.k, error, allowed)

    def _errors(self, a: np.ndarray, b: np.ndarray, out: np.ndarray) -> tuple[float, float]:
        """The largest error, and what rounding may add up to there; that of the element which comes closest to it."""
        wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
        exact, magnitude = wide_a @ wide_b, abs(wide_a) @ abs(wide_b)
        error = np.nan_to_num(abs(out.astype(np.float64) - exact), nan=np.inf)
        allowed = self._allowed(exact, magnitude)
        if not error.size:
            return 0.0, 0.0
        worst = np.unravel_index(np.argmax(error / allowed), error.shape)
        return float(error[worst]), float(allowed[worst])

    def _allowed(self, exact: np.ndarray, magnitude: np.ndarray) -> np.ndarray:
        """Tensor cores cut each sum of 16 products to f32, one after another; then the sum is rounded to `out`."""
        summed = -(-self.k // MMA_K) * 2.0 ** (1 - SIGNIFICANT_BITS["f32"]) * magnitude
        smallest = 2.0 ** LEAST_EXPONENT[self.out]
        rounded = 2.0 ** -SIGNIFICANT_BITS[self.out] * np.maximum(abs(exact) + summed, smallest)
        return summed + rounded

    def _gpu_seconds(self, *arrays: np.ndarray) -> float:
        """The median time of a call with arrays on the GPU, by the GPU's own clock."""
        with driver.on(0), on_gpu(*arrays) as (a, b, out):
            return gpu_seconds(lambda: gemm(a, b, out=out, config=self.config))


@dataclass(frozen=True, slots=True)
class Outcome:
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


def _in_order(matrix: np.ndarray, letter: str) -> np.ndarray:
    """Row-major for t, column-major for n."""
    return np.ascontiguousarray(matrix) if letter == "t" else np.asfortranarray(matrix)


def numpy_dtype(name: str) -> Any:
    """The numpy type of f16, bf16 or f32. Raises Error where bf16 needs ml_dtypes and it is not installed."""
    if name != "bf16":
        return TYPES[name].dtype
    if importlib.util.find_spec("ml_dtypes") is None:
        raise Error("numpy has no bf16 arrays of its own", help="pip install 'ptxdsl[dtypes]' (ml_dtypes)")
    return np.dtype(importlib.import_module("ml_dtypes").bfloat16)


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
