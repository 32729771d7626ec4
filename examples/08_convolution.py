"""Two layers of a residual network: convolutions as matrix products, with bias, addition and relu in the same kernels.

    python examples/08_convolution.py                  # on the emulator
    python examples/08_convolution.py --device cuda    # on the GPU

A row of the product is an output pixel, a column is a filter, and K runs over the window and the channels. The matrix
of windows is never stored: the copies to shared memory gather from the images (implicit GEMM). The epilogue is a
function of one element, written here. New here: a convolution, and the GEMM that computes it.
"""

import numpy as np
from arrays import check, to_device

from ptxdsl.kernels.call.launching.launches import recorded_launch
from ptxdsl.kernels.conv import conv2d
from ptxdsl.kernels.epilogue import add_relu, per_column, relu
from ptxdsl.schedule import Conv2dProblem


def shortcut(x, bias, image):
    """The end of a residual block, for one element `x` of the convolution and the matching elements of the operands."""
    return relu(x + bias + image)


def block(images, filters, biases):
    """Compute relu(image + conv(relu(conv(image)))) for images (N, H, W, C) and filters (K, R, S, C)."""
    first, second = (per_column(bias) for bias in biases)
    hidden = conv2d(images, filters[0], pad=1, epilogue=add_relu, operands=(first,))
    return conv2d(hidden, filters[1], pad=1, epilogue=shortcut, operands=(second, images))


def plain(images, filters, biases):
    """Compute the block in numpy, in float64; the layer in between is rounded to f16."""

    def layer(x, w):
        padded = np.pad(x.astype(np.float64), ((0, 0), (1, 1), (1, 1), (0, 0)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))
        return np.einsum("npqcrs,krsc->npqk", windows, w.astype(np.float64))

    hidden = np.maximum(layer(images, filters[0]) + biases[0], 0).astype(np.float16)
    return np.maximum(layer(hidden, filters[1]) + biases[1] + images, 0)


def example_conv2d(rng):
    """Return the launch of a call of conv2d(), for `ptxdsl check`."""
    images = rng.standard_normal((1, 7, 5, 16)).astype(np.float16)
    filters = rng.standard_normal((16, 3, 3, 16)).astype(np.float16)
    bias = per_column(rng.standard_normal(16).astype(np.float32))
    return recorded_launch(lambda: conv2d(images, filters, pad=1, epilogue=add_relu, operands=(bias,)))


def main():
    rng = np.random.default_rng(8)
    n, height, width, channels = 2, 11, 13, 32
    images = rng.standard_normal((n, height, width, channels)).astype(np.float16)
    filters = [(rng.standard_normal((channels, 3, 3, channels)) / 17).astype(np.float16) for _ in range(2)]
    biases = [rng.standard_normal(channels).astype(np.float32) for _ in range(2)]
    on_device = to_device(images), [to_device(w) for w in filters], [to_device(bias) for bias in biases]
    check(f"a residual block of {channels} channels", block(*on_device), plain(images, filters, biases), tolerance=1e-2)
    problem = Conv2dProblem(n, height, width, channels, channels, 3, 3, pad=(1, 1))
    m, k, depth = problem.implicit_gemm("fprop")
    print(f"    each layer is a product of {m} x {depth} and {depth} x {k}")


if __name__ == "__main__":
    main()
