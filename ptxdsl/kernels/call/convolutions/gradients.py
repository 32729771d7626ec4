"""Calls of conv2d_dgrad() and conv2d_wgrad()."""

from __future__ import annotations

from ptxdsl.errors import LaunchError
from ptxdsl.kernels.call.call import CheckedCall, PublicCall
from ptxdsl.kernels.call.convolutions.conv import warpgroup_plan
from ptxdsl.kernels.call.convolutions.problem import Convolution, dgrad_problem, wgrad_problem, window
from ptxdsl.kernels.call.convolutions.windows import check_windows, window_facts, window_plan
from ptxdsl.kernels.call.launching.launches import LaunchPlan
from ptxdsl.kernels.call.paths.path import Request
from ptxdsl.kernels.call.paths.select import PATHS, select
from ptxdsl.kernels.call.products.options import GemmOptions, check_is_config
from ptxdsl.kernels.config import WGMMA, GemmConfig
from ptxdsl.kernels.sm90.tiling import ARCH
from ptxdsl.runtime.dispatch import target

TMA_PATHS = [path for path in PATHS if path.uses_tma]


class GradientCall(CheckedCall):
    """A call of a gradient of a convolution. Its kernels are on the sm_90a path only."""

    problem: Convolution

    def configured(self, config: GemmConfig | None) -> GemmOptions:
        """Return the options with the configuration of the caller, or a chosen one if it is None. Raises LaunchError
        for another GPU, for images that TMA cannot load, and for a configuration of another path or with an
        epilogue."""
        device, _ = self.device_stream
        if target(device) != ARCH:
            raise LaunchError(
                f"{self.name} is for {ARCH}; the kernel is for {target(device)}",
                help=f"on the emulator, set PTXDSL_ARCH={ARCH}",
            )
        check_is_config(config)
        if config is not None and config.atom != WGMMA:
            raise LaunchError(
                f'GemmConfig: atom is "{config.atom}"; {self.name} runs on wgmma only', help='pass atom="wgmma"'
            )
        if config is not None and config.epilogue is not None:
            raise LaunchError(
                f"GemmConfig: it has an epilogue; {self.name} writes the gradient itself",
                help="leave epilogue out, and apply the function to the result",
            )
        check_windows(self.problem)
        return GemmOptions(config or select(Request(self.name, window_facts(self.problem), device), TMA_PATHS)[0])


class DgradCall(GradientCall):
    """A call of conv2d_dgrad()."""

    name = "conv2d_dgrad"

    def __init__(self, call: PublicCall) -> None:
        out, dy, w = call.arrays
        size, pad, dilation = call.verbatim
        self.kernels = call.kernels
        self.problem = dgrad_problem(dy, w, size, out, window(pad, 1, dilation))
        self.out = self.problem.product.out.owner

    def plan(self, config: GemmConfig | None, copied: str = "") -> LaunchPlan | None:
        """Return the launch."""
        return warpgroup_plan(self.kernels, self.problem, (), self.configured(config))


class WgradCall(GradientCall):
    """A call of conv2d_wgrad()."""

    name = "conv2d_wgrad"

    def __init__(self, call: PublicCall) -> None:
        out, dy, x = call.arrays
        shape, *options = call.verbatim
        self.kernel = call.kernels
        self.problem = wgrad_problem(dy, x, shape, out, window(*options))
        self.out = self.problem.product.out.owner

    def plan(self, config: GemmConfig | None, copied: str = "") -> LaunchPlan:
        """Return the launch."""
        return window_plan(self.kernel, self.problem, self.configured(config))
