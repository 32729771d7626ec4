"""Time tiles of large sm_90a products (cooperative, staggered or ping-pong) against cuBLAS, all in one run."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import common
import gemm as products
import torch
from protocols import Run

from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.epilogue import gelu
from ptxdsl.kernels.gemm import gemm
from ptxdsl.kernels.sm90.stages import STAGGER
from ptxdsl.kernels.tiles.persistent import Strips
from ptxdsl.kernels.tiles.schedule import TileSchedule

SHAPES = ["4096x4096x4096", "8192x8192x8192", "5120x5120x5120", "6144x4096x4096", "16384x4096x7168", "4096x14336x4096"]
SHARED, TURNS = [(256, 4), (224, 4), (192, 4), (160, 5)], [(128, 6), (160, 5), (192, 5), (208, 5)]  # columns, stages
ORDERS: dict[str, TileSchedule] = {"": Strips(), " strips of 8": Strips(8)}
EPILOGUES = ["none", "gelu", "residual"]


class Case(NamedTuple):
    product: products.Case
    epilogue: str


def configs(epilogue: str) -> dict[str, GemmConfig]:
    """Return the configurations by name; boxes of C take memory of the ring."""
    known = {}
    for pingpong, stagger, tiles in ((False, 0, SHARED), (False, STAGGER, SHARED), (True, 0, TURNS)):
        for columns, stages in tiles:
            for order, schedule in ORDERS.items():
                fewer = int(pingpong and epilogue == "residual" and columns != 160)
                kind = "turns" if pingpong else "staggered" if stagger else "shared"
                name = f"{kind} 128x{columns}{order}"
                how = {"pingpong": pingpong, "stagger": stagger}
                known[name] = GemmConfig((128, columns, 64), (64, 64), stages - fewer, schedule, atom="wgmma", **how)
    return known


def others(case: Case) -> dict[str, Run]:
    return products.others(case.product)


def ptxdsl(case: tuple[Any, ...]) -> dict[str, Run]:
    product, epilogue = products.Case(*case[0]), case[1]
    a, b, out = products.matrices(product)
    more: dict[str, Any] = {}
    if epilogue == "residual":
        more = {"c": torch.randn_like(out), "beta": 1.0}
    elif epilogue == "gelu":
        more = {"epilogue": gelu}
    run: Callable[..., Any] = partial(gemm, a, b, out=out, **more)
    return {name: partial(run, config=config) for name, config in configs(epilogue).items()}


def label(case: Case) -> common.Row:
    return {**products.label(case.product), "epilogue": case.epilogue}


def main() -> None:
    options = common.gpu_parser(__doc__ or "")
    options.add_argument("--shape", action="append", default=[], help="MxNxK, may be repeated")
    options.add_argument("--epilogue", choices=EPILOGUES, action="append", help="may be repeated (default none)")
    chosen = options.parse_args()
    shapes = [tuple(map(int, shape.split("x"))) for shape in chosen.shape or SHAPES]
    epilogues = chosen.epilogue or ["none"]
    cases = [Case(products.Case(*shape, "bf16", "tn"), epilogue) for shape in shapes for epilogue in epilogues]
    operations = lambda case: products.operations(case.product)  # noqa: E731
    common.main(common.Benchmark(others, ptxdsl, label, operations), cases, chosen)


if __name__ == "__main__":
    main()
