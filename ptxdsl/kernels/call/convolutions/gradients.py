"""Checks that conv2d_dgrad() and conv2d_wgrad() share."""

from __future__ import annotations

from ptxdsl.errors import LaunchError
from ptxdsl.kernels.call.matrix import ArrayArgument, array_argument
from ptxdsl.kernels.call.products.configure import check_is_config
from ptxdsl.kernels.config import WGMMA, GemmConfig
from ptxdsl.kernels.sm90.tiling import ARCH
from ptxdsl.runtime.dispatch import target
from ptxdsl.schedule.arithmetic import is_int


def gradient_of_output(dy: object) -> ArrayArgument:
    """Check the gradient of an output. Raises LaunchError for anything but an array of four dimensions."""
    return array_argument("dy", dy, 4, "a gradient has the dimensions of the output, (N, P, Q, K)", "reshape it")


def check_extents(name: str, extents: object, letters: str) -> None:
    """Raise LaunchError for anything but a height and a width."""
    if not isinstance(extents, tuple | list) or len(extents) != 2 or not all(is_int(n) and n > 0 for n in extents):
        raise LaunchError(f"{name} is {extents!r}", help=f"it takes {letters}, two ints of 1 or more")


def check_target(name: str, device: int | None) -> None:
    """Raise LaunchError for a function that needs another GPU."""
    if target(device) != ARCH:
        raise LaunchError(
            f"{name} is for {ARCH}; the kernel is for {target(device)}",
            help=f"on the emulator, PTXDSL_ARCH={ARCH} says that it is such a GPU",
        )


def check_by_wgmma(name: str, config: GemmConfig | None) -> None:
    """Raise LaunchError for a configuration of another path, or with an epilogue."""
    check_is_config(config)
    if config is not None and config.atom != WGMMA:
        raise LaunchError(
            f'GemmConfig: atom is "{config.atom}"; {name} multiplies by wgmma alone', help='pass atom="wgmma"'
        )
    if config is not None and config.epilogue is not None:
        raise LaunchError(
            f"GemmConfig: it has an epilogue; {name} writes the gradient as it is",
            help="leave epilogue out, and apply the function to what is returned",
        )
