"""Convolution as a torch operator, with its gradients, which are convolutions too."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, TypeAlias

import torch
from torch import Tensor

from ptxdsl.arrays import type_of
from ptxdsl.errors import LaunchError, called_elsewhere, public
from ptxdsl.kernels import conv
from ptxdsl.kernels.call.convolutions.problem import window as window_of
from ptxdsl.kernels.conv_gradients import conv2d_dgrad, conv2d_wgrad
from ptxdsl.kernels.epilogue import add, per_column
from ptxdsl.kernels.reorder.dilated import dilate_grid, dilate_kernel
from ptxdsl.kernels.reorder.rows import THREADS, WORD_BYTES
from ptxdsl.kernels.sm90.tiling import ARCH
from ptxdsl.runtime.dispatch import target
from ptxdsl.torch.operator import op
from ptxdsl.torch.products import output_dtype

# pad is (before, after) along the height, then along the width; stride and dilation are (height, width).
Numbers: TypeAlias = Sequence[int]
WIDE = 8  # channels: 16-byte copies of 16-bit elements


def _conv2d(x: Tensor, w: Tensor, bias: Tensor | None, pad: Numbers, stride: Numbers, dilation: Numbers) -> Tensor:
    """Return x ∗ w + bias: images (N, H, W, C), filters (K, R, S, C), bias (K,), output (N, P, Q, K)."""
    beside: dict[str, Any] = {} if bias is None else {"epilogue": add, "operands": (per_column(bias),)}
    return conv.conv2d(x, w, pad=_pairs(pad), stride=tuple(stride), dilation=tuple(dilation), **beside)


def _pairs(pad: Numbers) -> tuple[tuple[int, int], tuple[int, int]]:
    return (pad[0], pad[1]), (pad[2], pad[3])


def _conv2d_fake(x: Tensor, w: Tensor, bias: Tensor | None, pad: Numbers, stride: Numbers, dilation: Numbers) -> Tensor:
    moved = [
        (x.shape[1 + n] + pad[2 * n] + pad[2 * n + 1] - dilation[n] * (w.shape[1 + n] - 1) - 1) // stride[n] + 1
        for n in (0, 1)
    ]
    return x.new_empty((x.shape[0], *moved, w.shape[0]), dtype=output_dtype(x))


def _backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
    (x, w, _), moves, gradient = ctx.saved_tensors, ctx.options, gradient.contiguous()
    of_x, of_w, of_bias, *_ = ctx.needs_input_grad
    return (
        conv2d_dx(gradient, w, list(x.shape[1:3]), *moves) if of_x else None,
        conv2d_dw(gradient, x, list(w.shape[1:3]), *moves) if of_w else None,
        gradient.sum((0, 1, 2)) if of_bias else None,
        None, None, None,
    )  # fmt: skip


conv2d_nhwc = op("ptxdsl::conv2d", _conv2d, fake=_conv2d_fake, backward=_backward)


@public
@called_elsewhere(
    padding="use `pad=`: one number, or one for height and one for width",
    groups="grouped convolution is not supported; call conv2d once per group",
)
def conv2d(
    x: Tensor, w: Tensor, bias: Tensor | None = None, *, pad: Any = 0, stride: Any = 1, dilation: Any = 1
) -> Tensor:
    """Return x ∗ w + bias: images (N, H, W, C), filters (K, R, S, C), bias (K,), output (N, P, Q, K).

    `pad`, `stride` and `dilation` are one number, or one for height and one for width; either of `pad` may be a pair
    (before, after). Raises LaunchError for any other value.
    """
    moves = window_of(pad, stride, dilation)
    return conv2d_nhwc(x, w, bias, [*moves.pad[0], *moves.pad[1]], list(moves.stride), list(moves.dilation))


def _dx(gradient: Tensor, w: Tensor, size: Numbers, pad: Numbers, stride: Numbers, dilation: Numbers) -> Tensor:
    """Return the gradient of images of `size`: a convolution of the output gradient with the flipped filters.

    For a stride above 1, zeros are inserted between the pixels of the output gradient, or between those of the result
    for 1 x 1 filters; pixels that the stride skipped at the end are padded. If conv2d_dgrad supports the shape, it
    reads the filters without flipping them.
    """
    if tuple(w.shape[1:3]) == (1, 1) and max(stride) > 1 and not any(pad):
        return _dilated(_dx(gradient, w, gradient.shape[1:3], pad, (1, 1), dilation), stride, size)
    reach = [dilation[n] * (w.shape[1 + n] - 1) for n in (0, 1)]
    spread = gradient
    if max(stride) > 1:
        spread = _dilated(gradient, stride, [(gradient.shape[1 + n] - 1) * stride[n] + 1 for n in (0, 1)])
    if _may_have_kernel(spread, w):
        with suppress(LaunchError):  # for shapes that the kernel does not take
            return conv2d_dgrad(spread, w, (size[0], size[1]), pad=_pairs(pad), dilation=tuple(dilation))
    pads = []
    for n in (0, 1):
        before = reach[n] - pad[2 * n]
        pads += [before, size[n] + reach[n] - spread.shape[1 + n] - before]
    if min(pads) < 0:
        cut = [min(0, side) for side in pads]
        spread = torch.nn.functional.pad(spread, (0, 0, *cut[2:], *cut[:2])).contiguous()
    turned = w.flip(1, 2).permute(3, 1, 2, 0).contiguous()
    return _conv2d(spread, turned, None, [max(0, side) for side in pads], (1, 1), dilation)


def _dilated(pixels: Tensor, stride: Numbers, size: Numbers) -> Tensor:
    """Return images of `size`, with pixels at multiples of `stride` and zeros elsewhere."""
    n, p, q, channels = pixels.shape
    words, rest = divmod(channels * pixels.element_size(), WORD_BYTES)
    if rest or not pixels.numel() or not pixels.is_contiguous() or pixels.data_ptr() % WORD_BYTES:
        dilated = pixels.new_zeros((n, *size, channels))
        dilated[:, :: stride[0], :: stride[1]] = pixels
        return dilated
    dilated = pixels.new_empty((n, *size, channels))
    how: dict[str, Any] = {"type": type_of(pixels.dtype), "down": stride[0], "right": stride[1]}
    dilate_kernel[dilate_grid(n * size[0], size[1], words), THREADS](pixels, dilated, p, q, *size, words, **how)
    return dilated


def _dx_fake(gradient: Tensor, w: Tensor, size: Numbers, pad: Numbers, stride: Numbers, dilation: Numbers) -> Tensor:
    return gradient.new_empty((gradient.shape[0], *size, w.shape[3]))


def _dw(gradient: Tensor, x: Tensor, size: Numbers, pad: Numbers, stride: Numbers, dilation: Numbers) -> Tensor:
    """Return the gradient of filters of `size`, by conv2d_wgrad if it supports the shape.

    Otherwise it is a convolution of the images with the output gradient, in which channels and images trade places, and
    so do stride and dilation.
    """
    if _may_have_kernel(gradient, x):
        with suppress(LaunchError):  # for shapes that the kernel does not take
            extents, moves = (size[0], size[1]), tuple(stride)
            return conv2d_wgrad(gradient, x, extents, pad=_pairs(pad), stride=moves, dilation=tuple(dilation))
    images, filters = (_images_last(each) for each in (x, gradient))
    out = _conv2d(images, filters, None, pad, dilation, stride)
    return out[:, : size[0], : size[1]].permute(3, 1, 2, 0).contiguous()


def _may_have_kernel(*tensors: Tensor) -> bool:
    """Return True if gradients have kernels for the GPU and the layout of the tensors, though not for all shapes."""
    device = tensors[0].get_device() if tensors[0].is_cuda else None
    return target(device) == ARCH and all(tensor.is_contiguous() for tensor in tensors)


def _images_last(x: Tensor) -> Tensor:
    """Permute (N, H, W, C) to (C, H, W, N), and pad with zero images to a multiple of WIDE."""
    missing = -x.shape[0] % WIDE
    return torch.nn.functional.pad(x.permute(3, 1, 2, 0), (0, missing)).contiguous()


def _dw_fake(gradient: Tensor, x: Tensor, size: Numbers, pad: Numbers, stride: Numbers, dilation: Numbers) -> Tensor:
    return x.new_empty((gradient.shape[3], *size, x.shape[3]))


conv2d_dx = op("ptxdsl::conv2d_dx", _dx, fake=_dx_fake)
conv2d_dw = op("ptxdsl::conv2d_dw", _dw, fake=_dw_fake)
