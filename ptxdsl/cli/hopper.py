"""The kernels that launchers run on sm_90a, for `ptxdsl dump`: those of a typical call, which is not run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from ptxdsl import config
from ptxdsl.kernel import AnyKernel
from ptxdsl.kernels.call.launching.launches import recorded_plan
from ptxdsl.kernels.conv import conv2d
from ptxdsl.kernels.gemm import gemm

ARCH = "sm_90a"


def _gemm() -> None:
    """Multiply f16 matrices of 8192 x 8192."""
    a, b, out = (np.empty((8192, 8192), np.float16) for _ in range(3))  # never touched
    gemm(a, b, out=out)


def _conv2d() -> None:
    """Compute a 3x3 layer of ResNet-50 in f16, batch 32."""
    conv2d(np.empty((32, 56, 56, 64), np.float16), np.empty((64, 3, 3, 64), np.float16), pad=1)


CALLS: Mapping[str, Callable[[], None]] = MappingProxyType(
    {"ptxdsl.kernels.gemm:gemm": _gemm, "ptxdsl.kernels.conv:conv2d": _conv2d}
)


def kernel_of(launcher: str) -> tuple[AnyKernel, dict[str, Any]]:
    """Return the kernel of a typical call of a launcher, and its constants."""
    with config.using(arch=ARCH, device="emulator"):
        plan = recorded_plan(CALLS[launcher])
    return plan.kernel, dict(plan.constants)
