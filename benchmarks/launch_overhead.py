"""Host microseconds of one kernel launch, for empty kernels, against the other ways to launch from Python.

Each figure is the median over rounds of the mean of a thousand launches, with the queue of the GPU emptied in between,
so that no launch waits for the GPU. `k[grid, block]`, `handle` and `gemm` check every argument; cuLaunchKernel and
cuda.core look at none.
"""

from __future__ import annotations

import ctypes
import statistics
import time
from collections.abc import Callable
from typing import Any

import common
import torch
from cuda.bindings import driver as cuda
from cuda.core import Device, LaunchConfig, ObjectCode, launch

import ptxdsl as pd
from ptxdsl import driver, f32, ptr, u32
from ptxdsl.kernels.gemm import gemm
from ptxdsl.runtime.launch import load

LAUNCHES = 1000
Run = Callable[[], object]


@pd.kernel
def three_arrays(a: ptr[f32], b: ptr[f32], c: ptr[f32]):
    pass


@pd.kernel
def four_arrays_four_numbers(a: ptr[f32], b: ptr[f32], c: ptr[f32], d: ptr[f32], m: u32, n: u32, k: u32, scale: f32):
    pass


@pd.kernel
def eight_arrays(
    a: ptr[f32], b: ptr[f32], c: ptr[f32], d: ptr[f32], e: ptr[f32], f: ptr[f32], g: ptr[f32], h: ptr[f32]
):
    pass


KINDS: dict[Any, list[Any]] = {
    three_arrays: [ptr[f32]] * 3,
    four_arrays_four_numbers: [ptr[f32]] * 4 + [u32] * 3 + [f32],
    eight_arrays: [ptr[f32]] * 8,
}


class TorchStream:
    """torch's current stream, by the protocol that cuda.core asks for."""

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, torch.cuda.current_stream().cuda_stream


def addresses(arguments: tuple[Any, ...]) -> list[Any]:
    return [a.data_ptr() if isinstance(a, torch.Tensor) else a for a in arguments]


def through_bindings(image: bytes, name: str, arguments: tuple[Any, ...]) -> Run:
    """cuLaunchKernel with parameters packed once."""
    _, module = cuda.cuModuleLoadData(image)
    _, function = cuda.cuModuleGetFunction(module, name.encode())
    slots = [ctypes.c_float(a) if isinstance(a, float) else ctypes.c_uint64(a) for a in addresses(arguments)]
    pointers = (ctypes.c_void_p * len(slots))(*map(ctypes.addressof, slots))
    address, stream = ctypes.addressof(pointers), cuda.CUstream(torch.cuda.current_stream().cuda_stream)

    def run(keep: object = (slots, pointers, module)) -> object:
        return cuda.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, address, 0)

    return run


def through_cuda_core(image: bytes, name: str, arguments: tuple[Any, ...]) -> Run:
    """cuda.core's launch, given addresses."""
    device = Device(0)
    device.set_current()
    kernel = ObjectCode.from_cubin(image).get_kernel(name)
    stream, config = device.create_stream(TorchStream()), LaunchConfig(grid=1, block=32)
    numbers = {int: ctypes.c_uint32, float: ctypes.c_float}
    values = [
        numbers[type(a)](a) if type(a) in numbers else address
        for a, address in zip(arguments, addresses(arguments), strict=True)
    ]
    return lambda: launch(stream, config, kernel, *values)


def contenders(kernel: Any) -> dict[str, Run]:
    kinds, name = KINDS[kernel], kernel.__name__
    numbers = {u32: 7, f32: 0.5}
    arguments = tuple(numbers.get(kind) or torch.ones(1024, device="cuda") for kind in kinds)
    cubin = kernel.cubin(driver.device_arch())
    handle = load(cubin, name, [(f"p{n}", kind) for n, kind in enumerate(kinds)], {"p0"})
    one, other = torch.ones(1, device="cuda"), torch.ones(1, device="cuda")
    return {
        "k[grid, block]": lambda: kernel[1, 32](*arguments),
        "handle": lambda: handle(1, 32, arguments),
        "cuLaunchKernel": through_bindings(cubin.image, name, arguments),
        "cuda.core": through_cuda_core(cubin.image, name, arguments),
        "torch add_": lambda: one.add_(other),
    }


def products() -> dict[str, Run]:
    """A whole call of gemm(), and of torch's, on matrices that take the GPU less time than the host."""
    a, b, out = (torch.ones(64, 64, dtype=torch.float16, device="cuda") for _ in range(3))
    return {
        "gemm": lambda: gemm(a, b, out=out),
        "gemm with c": lambda: gemm(a, b, out, out=out, beta=0.5),
        "torch mm": lambda: torch.mm(a, b, out=out),
    }


def medians(runs: dict[str, Run], rounds: int) -> dict[str, float]:
    for run in runs.values():
        microseconds(run)
    times = [{name: microseconds(run) for name, run in runs.items()} for _ in range(rounds)]
    return {f"{name} us": statistics.median(each[name] for each in times) for name in runs}


def microseconds(run: Run) -> float:
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(LAUNCHES):
        run()
    passed = time.perf_counter() - start
    torch.cuda.synchronize()
    return 1e6 * passed / LAUNCHES


def main() -> None:
    options = common.parser(__doc__ or "").parse_args()
    rows = [{"kernel": kernel.__name__, **medians(contenders(kernel), options.rounds)} for kernel in KINDS]
    rows.append({"kernel": "64x64x64 product", **medians(products(), options.rounds)})
    common.report(rows, options.json)


if __name__ == "__main__":
    main()
