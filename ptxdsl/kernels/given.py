"""The configuration that a caller gives: it says how to compute, and of the arrays only what is so."""

from __future__ import annotations

from typing import Any

from ptxdsl.errors import LaunchError
from ptxdsl.kernels.config import GemmConfig

USUAL = GemmConfig()


def check_is_config(config: Any) -> None:
    """Raises LaunchError for what is no configuration; None is for one that is chosen."""
    if config is not None and not isinstance(config, GemmConfig):
        raise LaunchError(f"`config` is {config!r}", help="pass a GemmConfig, such as GemmConfig(tile=(64, 64, 32))")


def check_config(config: GemmConfig, from_arrays: dict[str, Any]) -> None:
    """Raises LaunchError for a configuration that says of the arrays what they are not."""
    for field, value in from_arrays.items():
        given = getattr(config, field)
        if given not in (value, getattr(USUAL, field)):
            said, found = (f"{shown!r}" if isinstance(shown, str) else shown for shown in (given, value))
            raise LaunchError(
                f"`config` says that {field} is {said}, and of these arrays it is {found}",
                help=f"leave {field} out of the GemmConfig: it is taken from the arrays"
                + (", as beta from the call" if field == "c" else ""),
            )
