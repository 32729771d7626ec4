"""Time the launch of an empty kernel on the host, against the other ways to launch from Python.

Each figure is the median over rounds of the mean of a thousand launches into an empty queue, so no launch waits for the
GPU. Contenders are interleaved, including another checkout with `--against`. `k[grid, block]`, `handle` and `gemm`
check every argument; cuLaunchKernel and cuda.core check none.

Processes differ by up to 30 % for their whole life, whatever code they run. `--processes N` times each checkout in N
pairs of processes and reports the least of the N medians.
"""

from __future__ import annotations

import argparse
import ctypes
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import common
import protocols
import torch
from against import Case, Server, serve
from cuda.bindings import driver as cuda
from cuda.core import Device, LaunchConfig, ObjectCode, launch
from protocols import Gpu, Run, TorchGpu

import ptxdsl
import ptxdsl as pd
from ptxdsl import driver, f32, ptr, u32
from ptxdsl.kernels.gemm import gemm
from ptxdsl.runtime.launch import load

LAUNCHES = 1000


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
    """torch's current stream, with the protocol of cuda.core."""

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, torch.cuda.current_stream().cuda_stream


def addresses(arguments: tuple[Any, ...]) -> list[Any]:
    return [a.data_ptr() if isinstance(a, torch.Tensor) else a for a in arguments]


def through_bindings(image: bytes, name: str, arguments: tuple[Any, ...]) -> Run:
    """cuLaunchKernel with parameters that are packed once."""
    _, module = cuda.cuModuleLoadData(image)
    _, function = cuda.cuModuleGetFunction(module, name.encode())
    slots = [ctypes.c_float(a) if isinstance(a, float) else ctypes.c_uint64(a) for a in addresses(arguments)]
    pointers = (ctypes.c_void_p * len(slots))(*map(ctypes.addressof, slots))
    address, stream = ctypes.addressof(pointers), cuda.CUstream(torch.cuda.current_stream().cuda_stream)

    def run(keep: object = (slots, pointers, module)) -> object:
        return cuda.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, address, 0)

    return run


def through_cuda_core(image: bytes, name: str, arguments: tuple[Any, ...]) -> Run:
    """The launch of cuda.core, given addresses."""
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


def arguments_of(kernel: Any) -> tuple[Any, ...]:
    numbers = {u32: 7, f32: 0.5}
    return tuple(numbers.get(kind) or torch.ones(1024, device="cuda") for kind in KINDS[kernel])


def launches_by_others(kernel: Any) -> dict[str, Run]:
    arguments, cubin = arguments_of(kernel), kernel.cubin(driver.device_arch())
    one, other = torch.ones(1, device="cuda"), torch.ones(1, device="cuda")
    return {
        "torch add_": lambda: one.add_(other),
        "cuLaunchKernel": through_bindings(cubin.image, kernel.__name__, arguments),
        "cuda.core": through_cuda_core(cubin.image, kernel.__name__, arguments),
    }


def launches_by_us(kernel: Any) -> dict[str, Run]:
    arguments, cubin = arguments_of(kernel), kernel.cubin(driver.device_arch())
    parameters = [(f"p{n}", kind) for n, kind in enumerate(KINDS[kernel])]
    handle = load(cubin, kernel.__name__, parameters, {"p0"})
    return {"k[grid, block]": lambda: kernel[1, 32](*arguments), "handle": lambda: handle(1, 32, arguments)}


def products_by_others() -> dict[str, Run]:
    """Return products of matrices that take the GPU less time than the host."""
    a, b, out = matrices()
    return {"torch mm": lambda: torch.mm(a, b, out=out)}


def products_by_us() -> dict[str, Run]:
    a, b, out = matrices()
    return {"gemm": lambda: gemm(a, b, out=out), "gemm with c": lambda: gemm(a, b, out, out=out, beta=0.5)}


def matrices() -> list[torch.Tensor]:
    return [torch.ones(64, 64, dtype=torch.float16, device="cuda") for _ in range(3)]


KERNELS = {kernel.__name__: kernel for kernel in KINDS}
BENCHMARK = common.Benchmark(
    others=lambda case: launches_by_others(KERNELS[case[0]]) if case[0] in KERNELS else products_by_others(),
    ours=lambda case: launches_by_us(KERNELS[case[0]]) if case[0] in KERNELS else products_by_us(),
    label=lambda case: {"kernel": case[0]},
    operations=lambda case: 0.0,
)
CASES = [(name,) for name in (*KERNELS, "64x64x64 product")]


Medians = dict[str, float]  # of contenders, in µs


def runs(gpu: Gpu, options: argparse.Namespace) -> Iterator[dict[Case, Medians]]:
    """Yield the measurements of each process, or pair of processes, by case; each is printed at once."""
    for number in range(options.processes):
        with common.versions(options.against, apart=options.processes > 1) as children:
            run = {
                case: protocols.host(common.gathered(gpu, BENCHMARK, case, children), options.rounds, LAUNCHES)
                for case in CASES
            }
        if options.processes > 1:
            print(f"process {number + 1}: {run}", file=sys.stderr, flush=True)
        yield run


def rows(measured: Sequence[dict[Case, Medians]]) -> Iterator[common.Row]:
    """A row of each case: the least of its runs, and of what another checkout launches too how many times as fast it
    is now."""
    for case in CASES:
        us = protocols.least([run[case] for run in measured])
        ratios = {
            f"{name}, now/before": us[common.BEFORE + name] / us[name] for name in us if common.BEFORE + name in us
        }
        yield {
            **BENCHMARK.label(case),
            **{f"{name} us": value for name, value in us.items()},
            **ratios,
            "processes": len(measured),
        }


def parser() -> argparse.ArgumentParser:
    options = common.against_parser(__doc__ or "")
    options.add_argument(
        "--processes", type=count, default=1, metavar="N", help="of each checkout, one after the other: the least (1)"
    )
    return options


def count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of processes, 1 or more")
    return int(text)


def main() -> None:
    options, gpu = parser().parse_args(), TorchGpu()
    if options.serve is not None:
        serve(Server(gpu, BENCHMARK.ours, ptxdsl.__file__), options.serve)
        return
    common.report(rows(list(runs(gpu, options))), options.json)


if __name__ == "__main__":
    main()
