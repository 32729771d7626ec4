"""Time conv2d() against cuDNN (through torch) on layers of ResNet-50.

Images are channels-last; both libraries compute float32 as tf32. cuDNN may try all its kernels first
(`torch.backends.cudnn.benchmark`). `--fused` adds a bias and relu: separate kernels in torch, fused in cuDNN and
ptxdsl. `--tiles` times the candidates of the sm_90a path one by one, for `fit.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import NamedTuple

import common
import numpy as np
import torch
from protocols import Run
from torch.nn.functional import conv2d as torch_conv2d
from torch.nn.functional import relu

from ptxdsl.kernels.call.convolutions.problem import convolution_problem, window
from ptxdsl.kernels.call.convolutions.windows import window_facts
from ptxdsl.kernels.candidates import candidate
from ptxdsl.kernels.choose.products import ranked_products
from ptxdsl.kernels.choose.rates import rates_of
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.conv import conv2d
from ptxdsl.kernels.epilogue import add_relu, per_column


class Layer(NamedTuple):
    """A layer: image side in pixels, channels, filters, window side in pixels, stride."""

    side: int
    channels: int
    filters: int
    window: int
    stride: int = 1

    @property
    def pad(self) -> int:
        return self.window // 2

    def __str__(self) -> str:
        stride = f" /{self.stride}" if self.stride > 1 else ""
        return f"{self.side}² {self.channels}→{self.filters} {self.window}x{self.window}{stride}"


WAIT_CYCLES = 200_000  # 0.1 ms for the host to launch: a cuDNN call takes it longer than a flush takes the GPU
DTYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}
LAYERS = [
    Layer(224, 3, 64, 7, 2),
    Layer(224, 4, 64, 7, 2),
    Layer(224, 8, 64, 7, 2),
    Layer(56, 64, 64, 3),
    Layer(56, 64, 256, 1),
    Layer(56, 256, 64, 1),
    Layer(56, 256, 512, 1, 2),
    Layer(28, 128, 128, 3),
    Layer(28, 512, 128, 1),
    Layer(14, 256, 256, 3),
    Layer(14, 1024, 256, 1),
    Layer(7, 512, 512, 3),
    Layer(7, 512, 2048, 1),
]


class Case(NamedTuple):
    layer: Layer
    batch: int
    dtype: str
    is_fused: bool
    with_tiles: bool = False


class Arrays(NamedTuple):
    x: torch.Tensor  # (N, H, W, C)
    w: torch.Tensor  # (K, R, S, C)
    bias: torch.Tensor | None


@functools.lru_cache(maxsize=1)
def arrays(case: Case) -> Arrays:
    options = {"device": "cuda", "dtype": DTYPES[case.dtype]}
    layer = case.layer
    x = torch.randn(case.batch, layer.side, layer.side, layer.channels, **options)
    w = torch.randn(layer.filters, layer.window, layer.window, layer.channels, **options)
    w /= (layer.channels * layer.window**2) ** 0.5
    return Arrays(x, w, torch.randn(layer.filters, **options) if case.is_fused else None)


def by_torch(case: Case) -> dict[str, Run]:
    torch.backends.cudnn.benchmark = torch.backends.cudnn.allow_tf32 = True
    layer, (x, w, bias) = case.layer, arrays(case)
    images, filters = x.permute(0, 3, 1, 2), w.permute(0, 3, 1, 2)
    pads, strides = (layer.pad, layer.pad), (layer.stride, layer.stride)
    if not case.is_fused:
        return {"cudnn": lambda: torch_conv2d(images, filters, bias, strides, pads)}
    return {
        "cudnn": lambda: torch.cudnn_convolution_relu(images, filters, bias, strides, pads, (1, 1), 1),
        "torch": lambda: relu(torch_conv2d(images, filters, bias, strides, pads)),
    }


def by_us(case: tuple[tuple[int, ...], int, str, bool, bool]) -> dict[str, Run]:
    """Return the contenders of ptxdsl, compared with the result of cuDNN."""
    case = Case(Layer(*case[0]), *case[1:])
    layer, (x, w, bias) = case.layer, arrays(case)
    expected = by_torch(case)["cudnn"]().permute(0, 2, 3, 1)
    out = torch.empty(expected.shape, device="cuda", dtype=x.dtype)
    epilogue = {"epilogue": add_relu, "operands": (per_column(bias),)} if case.is_fused else {}
    run = functools.partial(conv2d, x, w, pad=layer.pad, stride=layer.stride, out=out, **epilogue)
    runs = {"ptxdsl": run}
    if case.with_tiles:
        runs |= {name: functools.partial(run, config=config) for name, config in tiles(x, w, layer)}
    for each in runs.values():
        out.fill_(float("nan"))
        each()
        torch.testing.assert_close(out, expected, rtol=2e-2, atol=2e-2)
    return runs


def tiles(x: torch.Tensor, w: torch.Tensor, layer: Layer) -> Iterator[tuple[str, GemmConfig]]:
    """Yield the candidates of the sm_90a path for a layer, by label."""
    dtype = np.float32 if x.element_size() == 4 else np.float16
    images, filters = (np.empty(tuple(array.shape), dtype) for array in (x, w))
    problem = convolution_problem(images, filters, None, window(layer.pad, layer.stride, 1))
    for _, config in ranked_products(window_facts(problem), rates_of(0)):
        yield candidate.label(config), config


def label(case: Case) -> common.Row:
    fused = " + bias, relu" if case.is_fused else ""
    return {"layer": f"{case.layer}{fused}", "batch": case.batch, "dtype": case.dtype}


def operations(case: Case) -> float:
    layer = case.layer
    side = (layer.side + 2 * layer.pad - layer.window) // layer.stride + 1
    return 2.0 * case.batch * side**2 * layer.filters * layer.window**2 * layer.channels


def main() -> None:
    options = common.gpu_parser(__doc__ or "")
    options.add_argument("--batch", type=int, action="append", help="images, may be repeated (default: 32 and 128)")
    options.add_argument("--dtype", choices=DTYPES, default="f16")
    options.add_argument("--fused", action="store_true", help="with bias and relu, in torch by kernels of their own")
    options.add_argument("--tiles", action="store_true", help="each tile of the sm_90a path takes part")
    chosen = options.parse_args()
    case = functools.partial(Case, dtype=chosen.dtype, is_fused=chosen.fused, with_tiles=chosen.tiles)
    cases = [case(layer, batch) for batch in chosen.batch or (32, 128) for layer in LAYERS]
    common.main(common.Benchmark(by_torch, by_us, label, operations, WAIT_CYCLES), cases, chosen)


if __name__ == "__main__":
    main()
