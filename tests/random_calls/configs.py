"""Random configurations, schedules and functions of the output."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ptxdsl.errors import LaunchError, ScheduleError
from ptxdsl.kernels import epilogue
from ptxdsl.kernels.candidates import sm80
from ptxdsl.kernels.candidates.candidate import labelled
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.tiles.cluster_strips import ClusterStrips
from ptxdsl.kernels.tiles.persistent import Strips
from ptxdsl.schedule import (
    BatchedIdentityThreadblockSwizzle,
    GroupedRowsThreadblockSwizzle,
    HilbertThreadblockSwizzle,
    HorizontalThreadblockSwizzle,
    IdentityNoPaddingThreadblockSwizzle,
    IdentityThreadblockSwizzle,
    PersistentScheduler,
    StreamKThreadblockSwizzle,
)
from ptxdsl.types import TYPES
from tests.machines import NAMES
from tests.random_calls.drawing import Draw

# Tiles of the sm_80 path: more than are candidates, and some that are no powers of two
HALVES = labelled("""
    128x256x64/64x64/3 128x256x64/64x64/4 128x128x64/64x64/3 128x128x32/64x64/4 64x64x32/32x32/4 128x128x64/64x64x32/6
    128x64x128/64x32x64/4 64x128x64/32x64/4 64x128x64/32x64/8 64x64x64/32x32/5 64x64x128/64x32x64/6
    64x32x128/32x32x64/4 32x64x128/32x32x64/8 32x64x64/32x32x32/6 32x32x256/32x32x64/6 16x64x256/16x64x64/4
    16x64x128/16x32x32/5 16x32x256/16x32x64/8 32x16x256/32x16x64/6
""")
UNEVEN = labelled("48x96x32/48x32/3 96x32x32/32x32/2 112x80x32/112x16/3 48x64x64/48x32x32/3")


def wgmma_config(draw: Draw, inputs: str, *, groups: bool = False, **fields: Any) -> GemmConfig | None:
    """For the path of sm_90a, or None where what was drawn cannot be."""
    depth = 128 // NAMES[inputs].itemsize
    swap = draw.chance(0.25)
    pingpong = not groups and draw.chance(0.3)
    most = 256 if draw.large else 96
    across = 16 * draw.to(most // 16, 1)
    if swap and draw.chance(0.3):
        across = 8
    rows = draw.one_of(64, 128)
    stages = draw.one_of(2, 3, 4, 5)
    stagger = draw.to(stages - 1) if rows == 128 and not pingpong and draw.chance(0.35) else 0
    tile = (across, rows, depth) if swap else (rows, across, depth)
    fields.update(tile=tile, stages=stages, atom="wgmma", swap_ab=swap, pingpong=pingpong, stagger=stagger)
    return config_of(fields)


def warp_config(draw: Draw, inputs: str, **fields: Any) -> GemmConfig | None:
    """For the path of all GPUs."""
    if inputs in ("f16", "bf16"):
        known = draw.one_of(HALVES, sm80.OF_ODD_HALVES, sm80.GROUPED, UNEVEN)
    elif inputs in ("f32", "f64"):
        known = sm80.OF_WORDS[TYPES[inputs]]
    else:
        known = sm80.OF_BYTES
    if not draw.large:
        known = [config for config in known if config.tile[0] * config.tile[1] <= 4096] or known
    chosen = draw.one_of(*known)
    fields.update(tile=chosen.tile, warp=chosen.warp, stages=draw.one_of(chosen.stages, 2, 3))
    return config_of(fields)


def config_of(fields: dict[str, Any]) -> GemmConfig | None:
    try:
        return GemmConfig(**fields)
    except (LaunchError, ScheduleError):
        return None


def config(draw: Draw, inputs: str, *, groups: bool = False, **fields: Any) -> GemmConfig | None:
    """None leaves the choice to the call."""
    if draw.chance(0.35):
        return None
    if draw.arch == "sm_90a" and (inputs in ("e4m3", "e5m2") or draw.chance(0.75)):
        return wgmma_config(draw, inputs, groups=groups, **fields)
    return None if inputs in ("e4m3", "e5m2") else warp_config(draw, inputs, **fields)


def scheduled(draw: Draw, batched: bool) -> dict[str, Any]:
    """Which block computes what: fields of a GemmConfig, or arguments."""
    hopper = draw.arch == "sm_90a"
    swizzles = [
        IdentityThreadblockSwizzle(draw.one_of(1, 2, 4)),
        IdentityNoPaddingThreadblockSwizzle(2),
        HorizontalThreadblockSwizzle(),
        GroupedRowsThreadblockSwizzle(draw.one_of(2, 8)),
        HilbertThreadblockSwizzle(draw.to(3, 1)),
    ]
    if batched:
        swizzles.append(BatchedIdentityThreadblockSwizzle())
    persistent = [
        Strips(), Strips(draw.to(3, 1)), Strips(4), Strips(5),
        PersistentScheduler(max_swizzle=draw.one_of(1, 2, 4), raster=draw.one_of("m", "n", "heuristic")),
        PersistentScheduler((2, 1)),
    ]  # fmt: skip
    clusters = [ClusterStrips(draw.one_of((2, 1), (1, 2), (2, 2), (4, 1))), ClusterStrips((2, 1))] if hopper else []
    kind = draw.weighted({"none": 3, "swizzle": 2, "split": 4, "persistent": 4, "clusters": 2 * hopper, "stream": 3})
    if kind == "swizzle":
        return {"schedule": draw.one_of(*swizzles)}
    if kind == "split":
        reduction = draw.one_of("serial", "parallel", "scatter", *(["cluster"] * (2 * hopper)))
        return {"schedule": draw.one_of(*swizzles), "split_k": draw.to(5, 2), "reduction": reduction}
    if kind == "persistent":
        return {"schedule": draw.one_of(*persistent)}
    if kind == "clusters":
        return {"schedule": draw.one_of(*clusters)}
    if kind == "stream":
        blocks = draw.to(7, 1)
        return {"schedule": StreamKThreadblockSwizzle(blocks, draw.one_of(1, 1, 2)), "split_k": draw.one_of(1, 1, 1, 2)}
    return {}


def blend(x: Any, matrix: Any, row: Any, column: Any) -> Any:
    """A function of a caller, of operands of each kind."""
    return x * 0.5 + matrix - row + column * 2.0


def np_gelu(x: np.ndarray) -> np.ndarray:
    return x * 0.5 * (1 + np.frompyfunc(lambda each: math.erf(each / math.sqrt(2)), 1, 1)(x).astype(np.float64))


def np_gelu_tanh(x: np.ndarray) -> np.ndarray:
    return x * 0.5 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def np_silu(x: np.ndarray) -> np.ndarray:
    return x / (1 + np.exp(-np.clip(x, -700, 700)))


def np_relu(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0)


# A function, its operands ("?" is any one), the same of numpy, and whether it is computed in f32 alone
FUNCTIONS: dict[str, tuple[Callable[..., Any], str, Callable[..., np.ndarray], bool]] = {
    "relu": (epilogue.relu, "", np_relu, False),
    "gelu": (epilogue.gelu, "", np_gelu, True),
    "gelu_tanh": (epilogue.gelu_tanh, "", np_gelu_tanh, True),
    "silu": (epilogue.silu, "", np_silu, True),
    "add": (epilogue.add, "?", lambda x, y: x + y, False),
    "add_relu": (epilogue.add_relu, "?", lambda x, y: np_relu(x + y), False),
    "add_gelu": (epilogue.add_gelu, "?", lambda x, y: np_gelu(x + y), True),
    "add_gelu_tanh": (epilogue.add_gelu_tanh, "?", lambda x, y: np_gelu_tanh(x + y), True),
    "scale": (epilogue.scale, "?", lambda x, y: x * y, False),
    "scale both": (epilogue.scale_rows_and_columns, "mn", lambda x, y, z: x * y * z, False),
    "blend": (blend, "Mmn", lambda x, y, z, w: x * 0.5 + y - z + w * 2.0, True),
}
