"""Time calls from torch and JAX on the host, and convolutions with their gradients against cuDNN.

    python benchmarks/frameworks.py torch    # host µs of eager calls, with and without a gradient
    python benchmarks/frameworks.py jax      # µs of jitted calls, including the device
    python benchmarks/frameworks.py conv     # µs of forward, input gradient and filter gradient; bfloat16

Host times are the least of several means of many calls. Times of convolutions are medians of interleaved single
launches with a cold L2 cache after a rest.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from typing import Any

import common

import ptxdsl as pd
from ptxdsl import driver, f32, ptr, u32
from ptxdsl.runtime.timing import GpuClock, Run, at_rest

LAYERS = ((56, 64, 64, 3, 1), (28, 128, 128, 3, 1), (14, 256, 256, 3, 1), (7, 512, 512, 3, 1), (28, 256, 512, 1, 2))
IMAGES = 32


@pd.kernel
def scaled(x: ptr[f32], y: ptr[f32], a: f32, n: u32) -> None:
    """Compute y = a·x."""
    i = pd.ctaid.x * 128 + pd.tid.x
    with pd.if_(i < n):
        y[i] = a * x[i]


def host_us(run: Run, wait: Run, calls: int = 400, means: int = 7, is_waited_for: bool = False) -> float:
    """The least mean of the microseconds until a call returns, of calls one after the other; or until the last of them
    is done, shared among all."""
    times = []
    for _ in range(means):
        wait()
        start = time.perf_counter()
        for _ in range(calls):
            run()
        if is_waited_for:
            wait()
        times.append(1e6 * (time.perf_counter() - start) / calls)
    wait()
    return min(times)


def torch_calls() -> list[common.Row]:
    torch, pt = importlib.import_module("torch"), importlib.import_module("ptxdsl.torch")
    products = importlib.import_module("ptxdsl.kernels.gemm")
    a, b = (torch.randn(128, 128, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    x = torch.randn(1 << 14, device="cuda")
    wanted, bias = a.clone().requires_grad_(), torch.randn(128, device="cuda", dtype=torch.bfloat16)
    twice = pt.op(
        "bench::scaled", scaled, grid=lambda x, a, n: -(-n // 128), block=128,
        out={"y": lambda x, a, n: torch.empty_like(x)}, backward=lambda ctx, dy: (dy * ctx.options[0], None, None),
    )  # fmt: skip
    rows = {
        "torch.mm": lambda: torch.mm(a, b),
        "kernels.gemm": lambda: products.gemm(a, b),
        "torch.gemm": lambda: pt.gemm(a, b),
        "torch.gemm.dispatched": lambda: pt.gemm.dispatched(a, b),
        "torch.mm, gradient wanted": lambda: torch.mm(wanted, b),
        "torch.gemm, gradient wanted": lambda: pt.gemm(wanted, b),
        "torch.gemm.dispatched, gradient wanted": lambda: pt.gemm.dispatched(wanted, b),
        "torch.nn.functional.linear, bias": lambda: torch.nn.functional.linear(a, b, bias),
        "torch.linear, bias": lambda: pt.linear(a, b, bias),
        "torch.nn.functional.linear, gradient wanted": lambda: torch.nn.functional.linear(wanted, b, bias),
        "torch.linear, gradient wanted": lambda: pt.linear(wanted, b, bias),
        "torch.mul(x, 2.0)": lambda: torch.mul(x, 2.0),
        "an operator of a kernel": lambda: twice(x, 2.0, 1 << 14),
        "dispatched": lambda: twice.dispatched(x, 2.0, 1 << 14),
    }
    return [{"call": name, "us": host_us(run, torch.cuda.synchronize)} for name, run in rows.items()]


def jax_calls() -> list[common.Row]:
    jax, pj = importlib.import_module("jax"), importlib.import_module("ptxdsl.jax")
    jnp = jax.numpy
    a, b = (jax.random.normal(jax.random.key(n), (128, 128)).astype(jnp.bfloat16) for n in range(2))
    x = jnp.ones(1 << 14)
    like = jax.ShapeDtypeStruct(x.shape, x.dtype)
    nothing = pj.call(lambda x, y: None, out=like)
    of_kernel = pj.call(scaled, grid=lambda x, a, n: -(-n // 128), block=128, out={"y": like})

    def twice(x: Any) -> Any:
        return of_kernel(x, 2.0, 1 << 14)

    last: list[object] = [None]
    rows = {
        "jnp.matmul": (jax.jit(jnp.matmul), a, b),
        "jax.gemm": (jax.jit(pj.gemm), a, b),
        "x * 2": (jax.jit(lambda x: x * 2), x),
        "a kernel": (jax.jit(twice), x),
        "a call that does nothing": (jax.jit(nothing), x),
        "four kernels": (jax.jit(lambda x: twice(twice(twice(twice(x))))), x),
    }

    def timed(function: Callable[..., object], *arguments: object) -> float:
        def run() -> None:
            last[0] = function(*arguments)

        run()
        return host_us(run, lambda: jax.block_until_ready(last[0]), is_waited_for=True)

    return [{"call": name, "us": timed(*call)} for name, call in rows.items()]


def convolutions() -> list[common.Row]:
    torch = importlib.import_module("torch")
    torch.backends.cudnn.benchmark = True
    return [row for layer in LAYERS for row in passes(torch, *layer)]


def passes(torch: Any, side: int, channels: int, filters: int, window: int, stride: int) -> list[common.Row]:
    """Yield a row for the forward pass, and for the gradients of images and of filters."""
    pt = importlib.import_module("ptxdsl.torch.convolution")
    pad, strides = window // 2, [stride] * 2
    x = torch.randn(IMAGES, side, side, channels, device="cuda", dtype=torch.bfloat16)
    w = torch.randn(filters, window, window, channels, device="cuda", dtype=torch.bfloat16) / window
    dy, moves = torch.randn_like(pt.conv2d(x, w, pad=pad, stride=stride)), ([pad] * 4, strides, [1, 1])
    dy_nchw, x_nchw, w_nchw = (each.permute(0, 3, 1, 2) for each in (dy, x, w))

    def by_torch(number: int) -> Any:
        """Return the gradient of images, or of filters."""
        matrices, mask = (dy_nchw, x_nchw, w_nchw), [number == 0, number == 1, False]
        return torch.ops.aten.convolution_backward(*matrices, None, strides, [pad] * 2, [1, 1], False, [0, 0], 1, mask)[
            number
        ]

    pairs = {
        "forward": (
            lambda: torch.nn.functional.conv2d(x_nchw, w_nchw, padding=pad, stride=stride),
            lambda: pt.conv2d(x, w, pad=pad, stride=stride),
        ),
        "of images": (lambda: by_torch(0), lambda: pt.conv2d_dx(dy, w, [side] * 2, *moves)),
        "of filters": (lambda: by_torch(1), lambda: pt.conv2d_dw(dy, x, [window] * 2, *moves)),
    }
    rows: list[common.Row] = []
    for name, runs in pairs.items():
        expected, result = (run() for run in runs)
        expected = expected.permute(0, 2, 3, 1)
        torch.testing.assert_close(result, expected, rtol=2e-2, atol=2e-2 * expected.abs().max().item())
        with driver.on(0), GpuClock(torch.cuda.current_stream().cuda_stream) as clock:
            cudnn, ours = at_rest(clock, runs)
        layer = f"{side}² {channels}→{filters} {window}x{window}/{stride}"
        rows.append({"layer": layer, "what": name, "cuDNN, us": cudnn, "ptxdsl, us": ours, "ratio": cudnn / ours})
    return rows


WHAT = {"torch": torch_calls, "jax": jax_calls, "conv": convolutions}

if __name__ == "__main__":
    parser = common.parser(__doc__)
    parser.add_argument("what", choices=WHAT)
    options = parser.parse_args()
    common.report(WHAT[options.what](), options.json)
