"""What a caller gives beside arrays: a configuration, which says of these only what is so, and choices."""

from __future__ import annotations

from typing import Any

import numpy as np

from ptxdsl.errors import LaunchError
from ptxdsl.kernels.config import GemmConfig

USUAL = GemmConfig()


def check_is_config(config: Any) -> None:
    """Raises LaunchError for what is no configuration; None is for one that is chosen."""
    if config is not None and not isinstance(config, GemmConfig):
        raise LaunchError(f"`config` is {config!r}", help="pass a GemmConfig, such as GemmConfig(tile=(64, 64, 32))")


def check_is_bool(name: str, value: Any) -> None:
    """Raises LaunchError for what is neither true nor false."""
    if not isinstance(value, bool | np.bool_):
        raise LaunchError(f"`{name}` is {value!r}", help="pass True or False")


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
