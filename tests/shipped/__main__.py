"""`python -m tests.shipped SEED COUNT [--seconds S] [--jobs N] [--list]`

Draws so many calls by seeds from SEED on, of all functions that multiply on the sm_90a path, of any types and of sizes
up to those of large products; assembles each kernel that one of them would launch, once; and prints a line for each
that spills registers, or whose products the assembler does not let overlap (C7510 and its like). With `--list`, how
many kernels there are, and none is assembled. The exit code is 1 if one is printed. It needs ptxas, and no GPU.
"""

from __future__ import annotations

import argparse
import os
import time
from collections import Counter
from multiprocessing import get_context

from tests.shipped.kernels import Chosen, chosen

FORK = get_context("fork")


def judged(numbered: tuple[int, Chosen]) -> tuple[int, str, str, str]:
    """The seed, the name of the kernel, what it is made for, and what is held against it."""
    seed, kernel = numbered
    return seed, kernel.kernel.name, str(kernel), kernel.fault()


def kernels_of(seeds: range) -> dict[Chosen, int]:
    """The kernels of calls, each with the first seed that draws it."""
    known: dict[Chosen, int] = {}
    for seed in seeds:
        for kernel in chosen(seed):
            known.setdefault(kernel, seed)
    return known


def main() -> int:
    parser = argparse.ArgumentParser("python -m tests.shipped", description="what the assembler says of all kernels")
    parser.add_argument("seed", type=int)
    parser.add_argument("count", type=int)
    parser.add_argument("--seconds", type=float, default=1e9, help="after which no kernel is begun")
    parser.add_argument("--jobs", metavar="N", type=int, default=os.cpu_count() or 1, help="processes (default: cores)")
    parser.add_argument("--list", action="store_true", help="count the kernels, and assemble none")
    options = parser.parse_args()
    began = time.monotonic()
    known = kernels_of(range(options.seed, options.seed + options.count))
    counts = Counter(kernel.kernel.name for kernel in known)
    print(
        f"{options.count} calls, {len(known)} kernels: {', '.join(f'{n} {name}' for name, n in counts.most_common())}"
    )
    if options.list:
        return 0
    assembled, faulty = 0, 0
    with FORK.Pool(options.jobs, maxtasksperchild=50) as pool:  # traced kernels are kept, in each process
        for seed, _, kernel, fault in pool.imap_unordered(judged, [(seed, each) for each, seed in known.items()]):
            assembled += 1
            if fault:
                faulty += 1
                print(f"{seed} {kernel}\n    {fault}", flush=True)
            if time.monotonic() - began > options.seconds:
                break
    print(f"{assembled} assembled, {faulty} faulty, {time.monotonic() - began:.0f} s")
    return faulty > 0


if __name__ == "__main__":
    raise SystemExit(main())
