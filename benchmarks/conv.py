"""TFLOP/s of conv2d() against cuDNN through torch, in one run, each through its public call, on layers of ResNet-50.

Images have their channels last; float32 is multiplied as tf32 by both. cuDNN may try all its kernels first
(`torch.backends.cudnn.benchmark`). With --fused a bias and relu follow: by kernels of their own in torch, within the
convolution in cuDNN and ptxdsl.
"""

from __future__ import annotations

from typing import NamedTuple

import common
import torch
from torch.nn.functional import conv2d as torch_conv2d
from torch.nn.functional import relu

from ptxdsl.kernels.conv import conv2d
from ptxdsl.kernels.epilogue import add_relu, per_column


class Layer(NamedTuple):
    """Pixels along a side of the images, channels, filters, pixels along a side of the window, stride."""

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


def measure(layer: Layer, batch: int, dtype: str, is_fused: bool, rounds: int) -> dict[str, object]:
    made = {"device": "cuda", "dtype": DTYPES[dtype]}
    x = torch.randn(batch, layer.side, layer.side, layer.channels, **made)
    w = torch.randn(layer.filters, layer.window, layer.window, layer.channels, **made)
    w /= (layer.channels * layer.window**2) ** 0.5
    bias = torch.randn(layer.filters, **made) if is_fused else None
    images, filters = x.permute(0, 3, 1, 2), w.permute(0, 3, 1, 2)
    pads, strides = (layer.pad, layer.pad), (layer.stride, layer.stride)

    def by_torch() -> torch.Tensor:
        found = torch_conv2d(images, filters, bias, strides, pads)
        return relu(found) if is_fused else found

    def by_cudnn() -> torch.Tensor:
        return torch.cudnn_convolution_relu(images, filters, bias, strides, pads, (1, 1), 1)

    out = torch.empty_like(by_torch().permute(0, 2, 3, 1))
    epilogue = {"epilogue": add_relu, "operands": (per_column(bias),)} if is_fused else {}
    contenders = {
        **({"torch": by_torch, "cudnn": by_cudnn} if is_fused else {"cudnn": by_torch}),
        "ptxdsl": lambda: conv2d(x, w, pad=layer.pad, stride=layer.stride, out=out, **epilogue),
    }
    times = common.gpu_medians(contenders, rounds)
    torch.testing.assert_close(out.permute(0, 3, 1, 2), by_torch(), rtol=2e-2, atol=2e-2)
    products = out.numel() * w[0].numel()
    return {
        "layer": f"{layer}{' + bias, relu' if is_fused else ''}",
        "batch": batch,
        "dtype": dtype,
        **{f"{name} us": 1000 * ms for name, ms in times.items()},
        **{f"{name} TFLOP/s": 2e-9 * products / ms for name, ms in times.items()},
        "ratio": times["cudnn"] / times["ptxdsl"],
    }


def main() -> None:
    options = common.parser(__doc__ or "")
    options.add_argument("--batch", type=int, action="append", help="images, may be repeated (default: 32 and 128)")
    options.add_argument("--dtype", choices=DTYPES, default="f16")
    options.add_argument("--fused", action="store_true", help="with bias and relu, in torch by kernels of their own")
    chosen = options.parse_args()
    torch.backends.cudnn.benchmark = torch.backends.cudnn.allow_tf32 = True
    rows = [
        measure(layer, batch, chosen.dtype, chosen.fused, chosen.rounds)
        for batch in chosen.batch or (32, 128)
        for layer in LAYERS
    ]
    common.report(rows, chosen.json)


if __name__ == "__main__":
    main()
