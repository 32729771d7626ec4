"""Random convolutions and their gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from ptxdsl.kernels.conv import conv2d
from ptxdsl.kernels.conv_gradients import conv2d_dgrad, conv2d_wgrad
from tests.machines import NAMES
from tests.random_calls.call import Call, Result
from tests.random_calls.configs import config, scheduled, wgmma_config
from tests.random_calls.drawing import FLOATS, FP8, OUTPUTS, Draw
from tests.random_calls.products import allowed, fill, fused, is_exact
from tests.random_calls.views import View, view

Pair = tuple[int, int]


def images(
    draw: Draw, shape: tuple[int, ...], type: str, poison: str = "nan", dense: bool = False, even: bool = False
) -> View:
    """Pixels with their channels side by side, maybe some of those of larger images. Where `even`, all pixels are at
    one distance."""
    _, h, w, c = shape
    word = max(1, 16 // NAMES[type].itemsize)
    pixel = c if dense else c + draw.one_of(0, 0, word * draw.to(3), draw.to(5))
    line = pixel * (w + (0 if dense or even else draw.one_of(0, 0, draw.to(3))))
    image = line * (h + (0 if dense or even else draw.one_of(0, 0, draw.to(2))))
    offset = draw.one_of(0, 0, word * draw.to(3), draw.to(9)) if draw.chance(0.6) else 0
    return view(draw, shape, (image, line, pixel, 1), type, offset, poison)


def moves_of(draw: Draw) -> tuple[Pair, tuple[Pair, Pair], Pair, Pair]:
    """The window, what is padded, the stride and the dilation."""
    with draw.varying():
        return _moves(draw)


def _moves(draw: Draw) -> tuple[Pair, tuple[Pair, Pair], Pair, Pair]:
    window = draw.one_of((1, 1), (3, 3), (3, 3), (draw.to(4, 1), draw.to(4, 1)), (1, 7))
    pad = draw.one_of((0, 0), (1, 1), (draw.to(3), draw.to(3)))
    pads = (
        ((pad[0], pad[0]), (pad[1], pad[1]))
        if draw.chance(0.7)
        else ((draw.to(2), draw.to(2)), (draw.to(2), draw.to(2)))
    )
    stride = draw.one_of((1, 1), (1, 1), (2, 2), (draw.to(3, 1), draw.to(3, 1)))
    dilation = draw.one_of((1, 1), (1, 1), (1, 1), (draw.to(3, 1), draw.to(3, 1)))
    return window, pads, stride, dilation


def outputs(extents: Pair, window: Pair, pads: tuple[Pair, Pair], stride: Pair, dilation: Pair) -> Pair:
    across = zip(extents, window, pads, stride, dilation, strict=True)
    rows, columns = ((size + sum(pad) - (taps - 1) * apart - 1) // step + 1 for size, taps, pad, step, apart in across)
    return rows, columns


def moves_within(draw: Draw, extents: Pair) -> tuple[tuple[Pair, tuple[Pair, Pair], Pair, Pair], Pair]:
    """Moves that images of such extents have outputs of, one pixel at a time where those drawn have none; and the
    extents of these."""
    moves = moves_of(draw)
    result = outputs(extents, *moves)
    return (moves, result) if min(result) >= 1 else (((1, 1), ((0, 0), (0, 0)), (1, 1), (1, 1)), extents)


def windows(
    x: np.ndarray, window: Pair, pads: tuple[Pair, Pair], stride: Pair, dilation: Pair, extents: Pair
) -> np.ndarray:
    """(N, P, Q, R, S, C): what each window sees."""
    padded = np.pad(x, ((0, 0), *pads, (0, 0)))
    seen = np.empty((x.shape[0], *extents, *window, x.shape[3]))
    for i, j in np.ndindex(*window):
        part = padded[:, i * dilation[0] :: stride[0], j * dilation[1] :: stride[1]]
        seen[:, :, :, i, j] = part[:, : extents[0], : extents[1]]
    return seen


def _shape(draw: Draw) -> tuple[int, int, int]:
    most = 14 if draw.large else 8
    with draw.varying():
        return draw.to(3, 1), draw.to(most, 1), draw.to(most, 1)


def _channels(draw: Draw, type: str, most: int) -> int:
    word = max(1, 16 // NAMES[type].itemsize)
    return draw.one_of(draw.to(word, 1), word * draw.to(max(1, most // word), 1), word, draw.to(most, 1))


def draw_convolution(draw: Draw) -> Call:
    inputs = draw.input_type()
    output = draw.one_of(
        "f32" if inputs in FP8 else inputs if inputs in FLOATS else OUTPUTS[inputs][0], *OUTPUTS[inputs]
    )
    exact = is_exact(draw, inputs, output)
    (n, h, w), most = _shape(draw), 160 if draw.large else 72
    c, k = _channels(draw, inputs, most), _channels(draw, inputs, most)
    (window, pads, stride, dilation), extents = moves_within(draw, (h, w))
    x = images(draw, (n, h, w, c), inputs)
    filters = images(draw, (k, *window, c), inputs, dense=True)
    seen = windows(fill(draw, x, inputs, exact), window, pads, stride, dilation, extents)
    weights = fill(draw, filters, inputs, exact)
    values = np.tensordot(seen, weights, ((3, 4, 5), (1, 2, 3)))
    scale = 0.0 if exact else np.tensordot(np.abs(seen), np.abs(weights), ((3, 4, 5), (1, 2, 3)))
    out = images(draw, values.shape, output, "noise", even=True)
    function = fused(
        draw, output, values.shape, out, lambda type: images(draw, values.shape, type, even=True), exact, "Mn"
    )
    options: dict[str, Any] = {"pad": pads, "stride": stride, "dilation": dilation, "out": out, **function.options}
    fields = scheduled(draw, False)
    beside = draw.chance(0.4)
    chosen = config(draw, inputs, **({} if beside else fields))
    options |= dict(fields) if beside else {}
    options |= {} if chosen is None else {"config": chosen}
    result = function.result(values, allowed(inputs, exact, seen[0, 0, 0].size, scale))
    return Call(conv2d, (x, filters), options, [result], [out], draw.one_of(None, 1, 3))


def draw_image_gradient(draw: Draw) -> Call:
    inputs, exact = draw.one_of("f16", "bf16"), draw.chance(0.7)
    (n, h, w), c, k = _shape(draw), 8 * draw.to(9, 1), 16 * draw.to(6, 1)
    window, pads, _, dilation = moves_of(draw)
    p, q = outputs((h, w), window, pads, (1, 1), dilation)
    if min(p, q) < 1:
        window, pads, dilation, (p, q) = (1, 1), ((0, 0), (0, 0)), (1, 1), (h, w)
    if draw.chance(0.2):
        p, q = max(1, p - draw.to(1)), max(1, q - draw.to(1))
    dy = images(draw, (n, p, q, k), inputs)
    filters = images(draw, (k, *window, c), inputs, dense=True)
    gradients, weights = fill(draw, dy, inputs, exact), fill(draw, filters, inputs, exact)
    values, scale = (
        _gradient_of_images(first, second, (h, w), pads, dilation)
        for first, second in ((gradients, weights), (np.abs(gradients), np.abs(weights)))
    )
    out = images(draw, (n, h, w, c), inputs, "noise", dense=True)
    options: dict[str, Any] = {"pad": pads, "dilation": dilation, "out": out, **_gradient_config(draw, inputs)}
    result = Result(values, allowed(inputs, exact, weights[..., 0].size, scale))
    return Call(conv2d_dgrad, (dy, filters, (h, w)), options, [result], [out], draw.one_of(None, 1, 3))


def _gradient_of_images(
    dy: np.ndarray, w: np.ndarray, size: Pair, pads: tuple[Pair, Pair], dilation: Pair
) -> np.ndarray:
    (n, p, q, _), (_, r, s, c), ((top, below), (left, right)) = dy.shape, w.shape, pads
    whole = np.zeros((n, size[0] + top + below + p, size[1] + left + right + q, c))
    for i, j in np.ndindex(r, s):
        down, across = i * dilation[0], j * dilation[1]
        whole[:, down : down + p, across : across + q] += np.tensordot(dy, w[:, i, j], 1)
    return whole[:, top : top + size[0], left : left + size[1]]


def _gradient_config(draw: Draw, inputs: str) -> dict[str, Any]:
    fields = scheduled(draw, False)
    chosen = wgmma_config(draw, inputs, **fields) if draw.chance(0.6) else None
    return {} if chosen is None else {"config": chosen}


def draw_filter_gradient(draw: Draw) -> Call:
    inputs, exact = draw.one_of("f16", "bf16"), draw.chance(0.7)
    (n, h, w), c, k = _shape(draw), 64 * draw.to(2, 1), 8 * draw.to(12, 1)
    (window, pads, stride, dilation), extents = moves_within(draw, (h, w))
    x = images(draw, (n, h, w, c), inputs)
    dy = images(draw, (n, *extents, k), inputs, dense=True)
    seen = windows(fill(draw, x, inputs, exact), window, pads, stride, dilation, extents)
    gradients = fill(draw, dy, inputs, exact)
    values = np.tensordot(gradients, seen, ((0, 1, 2), (0, 1, 2)))
    scale = np.tensordot(np.abs(gradients), np.abs(seen), ((0, 1, 2), (0, 1, 2)))
    out = images(draw, (k, *window, c), inputs, "noise", dense=True)
    options: dict[str, Any] = {"pad": pads, "stride": stride, "dilation": dilation, "out": out}
    options |= _gradient_config(draw, inputs)
    result = Result(values, allowed(inputs, exact, gradients[..., 0].size, scale))
    return Call(conv2d_wgrad, (dy, x, window), options, [result], [out], draw.one_of(None, 1, 3))
