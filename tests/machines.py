"""Where a test's kernels run: the emulator on numpy arrays, or a GPU on torch tensors. The same test body serves both."""

from __future__ import annotations

import importlib

import ml_dtypes
import numpy as np
import pytest

BF16 = np.dtype(ml_dtypes.bfloat16)
NAMES = {
    **{"f16": np.dtype(np.float16), "bf16": BF16, "f32": np.dtype(np.float32), "f64": np.dtype(np.float64)},
    **{"e4m3": np.dtype(ml_dtypes.float8_e4m3fn), "e5m2": np.dtype(ml_dtypes.float8_e5m2)},
    **{"s8": np.dtype(np.int8), "u8": np.dtype(np.uint8), "s32": np.dtype(np.int32)},
}
OF_TORCH = [NAMES[name] for name in ("bf16", "e4m3", "e5m2")]  # that torch takes from numpy as bits alone


class Emulator:
    """numpy arrays."""

    name = "emulator"

    def array(self, values: np.ndarray) -> np.ndarray:
        """An array with these values and strides."""
        return values

    def values(self, array: np.ndarray) -> np.ndarray:
        """Its values in float64."""
        return np.asarray(array).astype(np.float64)


class Gpu:
    """torch tensors on the first CUDA device."""

    name = "gpu"

    def __init__(self) -> None:
        self.torch = importlib.import_module("torch")

    def array(self, values: np.ndarray) -> object:
        base = values.base if values.base is not None and not values.flags.owndata else values
        whole = self._whole(np.asarray(base))
        offset = (values.ctypes.data - base.ctypes.data) // values.itemsize
        return whole.as_strided(values.shape, [s // values.itemsize for s in values.strides], offset)

    def _whole(self, base: np.ndarray) -> object:
        if base.dtype in OF_TORCH:
            bits = base.view(f"i{base.itemsize}").copy(order="K")
            return self.torch.from_numpy(bits).cuda().view(getattr(self.torch, base.dtype.name))
        return self.torch.from_numpy(base.copy(order="K")).cuda()

    def values(self, array: object) -> np.ndarray:
        return array.double().cpu().numpy()


MACHINES = [pytest.param("emulator", id="emulator"), pytest.param("gpu", id="gpu", marks=pytest.mark.gpu)]


def machine(name: str) -> Emulator | Gpu:
    return Emulator() if name == "emulator" else Gpu()
