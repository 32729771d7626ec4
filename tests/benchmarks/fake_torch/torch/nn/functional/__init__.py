"""Functions of torch.nn.functional, on numpy."""

import numpy as np

import torch
from torch import relu

__all__ = ["conv2d", "gelu", "relu"]


def gelu(x, approximate):
    assert approximate == "tanh"
    wide = x.astype(np.float64)
    return (0.5 * wide * (1 + np.tanh(np.sqrt(2 / np.pi) * (wide + 0.044715 * wide**3)))).astype(x.dtype)


def conv2d(x, w, bias, stride, pad):
    """Images (N, C, H, W) and filters (K, C, R, S)."""
    padded = np.pad(np.asarray(x, np.float64), [(0, 0), (0, 0), (pad[0], pad[0]), (pad[1], pad[1])])
    windows = np.lib.stride_tricks.sliding_window_view(padded, w.shape[2:], (2, 3))[:, :, :: stride[0], :: stride[1]]
    out = np.einsum("nchwrs,kcrs->nkhw", windows, np.asarray(w, np.float64))
    if bias is not None:
        out += np.asarray(bias, np.float64)[:, None, None]
    return out.astype(x.dtype).view(torch.Tensor)
