"""What a launch of gemm() waits for: its time with stages left out, beside the whole of it, cuBLAS and an empty kernel.

"copies" multiplies nothing, "products" copies nothing and multiplies what lies in shared memory, "neither" passes the
ring alone and stores. What takes as long without a stage did not wait for it. Each way is traced in a process of its
own. Both protocols are by graphs, as `variants.py` has them: a launch behind a flush of the L2 cache, and launches back
to back. Only "whole" computes a product, which is held against cuBLAS.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, nullcontext
from typing import Any
from unittest import mock

import common

import ptxdsl as pd
from ptxdsl import bf16, config, ptr, u32
from ptxdsl.kernels.gemm import gemm
from ptxdsl.kernels.product.product import Work
from ptxdsl.kernels.product.sums import Sums
from ptxdsl.kernels.sm90.copies import PieceCopies, TensorCopies, WorkCopies
from ptxdsl.kernels.sm90.mma import RegisterMma, WarpgroupMma
from ptxdsl.trace.ring import Slot

SHAPES = [  # those that are under cuBLAS, or under what is asked
    *("256x256x256", "512x512x512", "1024x1024x1024", "2048x2048x2048", "5000x5000x5000"),
    *("256x7168x16384", "512x7168x2048", "1152x4096x7168", "1536x3072x3072"),
    *("1x7168x16384", "32x7168x16384", "64x7168x16384", "16x24576x1536", "64x24576x1536", "16384x16x8192"),
    *("80x5120x5120", "240x2048x7168", "256x2112x7168", "512x1024x4096", "1024x1024x4096", "128x7168x2048"),
]


@pd.kernel
def empty(out: ptr[bf16]) -> None:
    """What a launch takes that does nothing."""


def multiplies_nothing(mma: WarpgroupMma, sums: Sums, slot: Slot, accumulate: bool = True, part: int = 0) -> None:
    """For WarpgroupMma.multiply: sums of 0, and an empty group of products."""
    if not accumulate:
        for register in sums.registers:
            register.set(0)
    pd.ptx.wgmma.fence.sync.aligned()
    pd.ptx.wgmma.commit_group.sync.aligned()


def copies_nothing(copies: TensorCopies, work: Work) -> WorkCopies:
    """For TensorCopies.of: stages of no bytes, which are full when the copying warp comes to them."""
    return WorkCopies(work, lambda iteration, slot: None, pd.cast(0, u32))


LEFT_OUT: dict[str, list[tuple[type, str, Callable[..., Any]]]] = {
    "whole": [],
    "copies": [(kind, "multiply", multiplies_nothing) for kind in (WarpgroupMma, RegisterMma)],
    "products": [(kind, "of", copies_nothing) for kind in (TensorCopies, PieceCopies)],
}
LEFT_OUT["neither"] = LEFT_OUT["copies"] + LEFT_OUT["products"]


def leaving_out(way: str) -> ExitStack:
    """Within, kernels are traced without the stages that a way leaves out."""
    stack = ExitStack()
    for kind, name, instead in LEFT_OUT[way]:
        stack.enter_context(mock.patch.object(kind, name, instead))
    return stack


def timed(way: str, shapes: Sequence[str]) -> Iterator[common.Row]:
    """A row for each contender: microseconds at rest and held."""
    import torch
    import variants

    for shape in shapes:
        torch.manual_seed(0)
        m, n, k = map(int, shape.split("x"))
        arrays = variants.product_arrays(m, n, k)
        launches: dict[str, Callable[..., Any]] = {way: lambda a, b, out: gemm(a, b, out=out)}
        if way == "whole":
            launches["cublas"] = lambda a, b, out: torch.mm(a, b, out=out)
            launches["nothing"] = lambda a, b, out: empty[1, 32](out)
            off = variants.error("product", (m, n, k), launches[way], arrays, [torch.mm(*arrays[:2])])
            if off > variants.MOST_ERROR:
                raise SystemExit(f"{shape}: gemm() differs from cuBLAS by {off} of the largest element")
        known = {name: (launch, nullcontext) for name, launch in launches.items()}
        rest, held = variants.rest_and_held(known, arrays)
        for name in known:
            times = {"us, rest": round(rest[name], 2), "us, held": round(held[name], 2)}
            yield {"shape": shape, "contender": name, **times}


def by_process(way: str, shapes: Sequence[str]) -> list[common.Row]:
    """The rows of a way, whose kernels no other process sees, nor the disk."""
    command = [sys.executable, __file__, "--child", way, *(word for shape in shapes for word in ("--shape", shape))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{way} failed:\n{done.stdout}{done.stderr}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--shape", action="append", help="MxNxK, may be repeated (default: what is under a goal)")
    options.add_argument("--json", type=pathlib.Path, help="the result file (default benchmarks/results/stages.json)")
    options.add_argument("--child", choices=LEFT_OUT, help=argparse.SUPPRESS)
    chosen = options.parse_args()
    shapes = chosen.shape or SHAPES
    if chosen.child:
        with config.using(cache_dir="off"), leaving_out(chosen.child):
            for row in timed(chosen.child, shapes):
                print(json.dumps(row), flush=True)
        return
    common.report((row for way in LEFT_OUT for row in by_process(way, shapes)), chosen.json)


if __name__ == "__main__":
    main()
