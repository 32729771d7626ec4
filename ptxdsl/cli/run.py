"""The command `ptxdsl run`: run a kernel that ships with ptxdsl and compare the result with numpy."""

from __future__ import annotations

import argparse
from contextlib import nullcontext

from ptxdsl import config, driver
from ptxdsl.cli.options import number, seed
from ptxdsl.cli.process import FAILURE, UsageError
from ptxdsl.cli.targets import override
from ptxdsl.cli.trial import Trial, default_device
from ptxdsl.kernels.candidates.facts import ProductFacts
from ptxdsl.kernels.choose.products import ranked_by_warps
from ptxdsl.kernels.choose.rates import rates_of
from ptxdsl.kernels.config import WGMMA, GemmConfig
from ptxdsl.kernels.product.operands import FP8, INPUTS, Operands, outputs
from ptxdsl.types import TYPES

DESCRIPTION = "Run a kernel that ships with ptxdsl and compare the result with numpy."


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    kernels = parser.add_subparsers(required=True, metavar="KERNEL")
    gemm = kernels.add_parser(
        "gemm",
        help="out = a @ b",
        description="out = a @ b on random matrices, on the GPU or the emulator, compared with numpy in float64.",
    )
    for name, meaning in (("m", "rows of A"), ("n", "columns of B"), ("k", "columns of A, rows of B")):
        gemm.add_argument(f"--{name}", type=number(f"--{name}"), default=256, help=f"{meaning} (default 256)")
    types = tuple(map(str, (*INPUTS, *FP8)))
    gemm.add_argument("--dtype", choices=types, default="f16", help="type of A and B (default f16); e4m3, e5m2: sm_90a")
    gemm.add_argument("--out", help="type of the result (default: the type of A, s32 for integers)")
    gemm.add_argument(
        "--layout",
        choices=("tn", "nn", "nt", "tt"),
        default="tn",
        help="BLAS letters of A and B: t is row-major, n column-major (default tn)",
    )
    gemm.add_argument(
        "--config",
        action="append",
        default=[],
        metavar="FIELD=VALUE",
        help="set a field of GemmConfig: tile=128,128,32, stages=3, …",
    )
    gemm.add_argument("--device", choices=config.DEVICES, help="default PTXDSL_DEVICE, then the GPU if there is one")
    gemm.add_argument("--seed", type=seed, default=0, help="seed of the random matrices (default 0)")


def run(options: argparse.Namespace) -> int:
    device = options.device or default_device()
    if device == "cuda":
        driver.require_gpu()
    chosen = override("--config", _usual(options), options.config) if options.config else None
    known = [str(type) for type in outputs(TYPES[options.dtype])]
    out = options.out or known[0]
    if out not in known:
        raise UsageError(f"--out {out} of --dtype {options.dtype}", help=f"it is one of {', '.join(known)}")
    trial = Trial(options.m, options.n, options.k, options.dtype, out, options.layout, chosen, options.seed)
    needs_sm90a = device != "cuda" and config.current().arch is None and TYPES[options.dtype] in FP8
    with config.using(arch="sm_90a") if needs_sm90a else nullcontext():
        outcome = trial.run(device)
    print(f"gemm {trial.m} x {trial.n} x {trial.k}, {trial.dtype} to {out}, {trial.layout}, on {outcome.where}")
    print(f"{outcome.speed}; {outcome.comparison}")
    print("ok" if outcome.ok else "FAILED")
    return 0 if outcome.ok else FAILURE


def _usual(options: argparse.Namespace) -> GemmConfig:
    """Return the configuration whose fields --config replaces."""
    if TYPES[options.dtype] in FP8:
        return GemmConfig(tile=(128, 128, 128), atom=WGMMA)
    inputs = TYPES[options.dtype]
    facts = ProductFacts(options.m, options.n, options.k, 1, Operands(inputs, outputs(inputs)[0]))
    return ranked_by_warps(facts, "sm_90", rates_of(), scheduled=True)[0][1]
