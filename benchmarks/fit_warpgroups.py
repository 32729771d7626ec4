"""The rates of the sm_90a path in the data of a GPU, from what variants.py measured.

A random search: numbers are changed a little, and kept where the configurations that they choose take less time, and
what they say of all others is nearer. `python benchmarks/fit_warpgroups.py RESULT.json … --write` changes the file.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import re
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

from ptxdsl.kernels.choose import rates as data
from ptxdsl.kernels.choose.rates import WarpgroupRates
from ptxdsl.kernels.choose.warpgroup_products import Option, depths, estimate
from ptxdsl.kernels.choose.warpgroups import ProductFacts
from ptxdsl.kernels.product.operands import Operands
from ptxdsl.types import bf16

NAME = re.compile(r"(swap )?(\d+)x(\d+)/(\d+)(?: (cluster|scatter) (\d+)| persistent)?$")
ERRORS = 0.15  # what errors count beside the time that a choice loses
SEED = 0
OPERANDS = Operands(bf16, bf16)
Case = tuple[ProductFacts, list[tuple[Option, float]]]


def cases(paths: Sequence[Path]) -> list[Case]:
    """What was measured, a product after another."""
    known = []
    for path in paths:
        for row in json.loads(path.read_text())["rows"]:
            m, n, k = row["shape"]
            timed = [(option, us) for name, us in row["us"].items() if (option := option_of(name))]
            if timed:
                known.append((ProductFacts(m, n, k, 1, OPERANDS), timed))
    return known


def option_of(name: str) -> Option | None:
    """The option that variants.py calls so; None for others."""
    read = NAME.match(name)
    if not read:
        return None
    swap, rows, columns, stages, way, slices = read.groups()
    shape = (int(rows), int(columns)), bool(swap)
    share = int(slices or 1), way or ""
    resident = dict(depths(*shape, OPERANDS, share[1], share[0])).get(int(stages), 1)
    return Option(*shape, int(stages), resident, *share)


def loss(rates: WarpgroupRates, known: Sequence[Case], multiprocessors: int) -> float:
    """Of the choices and of the estimates, in logarithms."""
    lost = errors = count = 0.0
    for facts, timed in known:
        guesses = [estimate(option, facts, rates, multiprocessors) for option, _ in timed]
        best = min(us for _, us in timed)
        chosen = timed[guesses.index(min(guesses))][1]
        lost += math.log(chosen / best)
        for guess, (_, us) in zip(guesses, timed, strict=True):
            weight = (best / us) ** 3  # nobody chooses what is slow
            errors += weight * min(0.1, math.log(guess / us) ** 2)
            count += weight
    return lost / len(known) + ERRORS * math.sqrt(errors / count)


def fitted(rates: WarpgroupRates, known: Sequence[Case], multiprocessors: int, steps: int) -> WarpgroupRates:
    """The best that so many steps reach."""
    numbers = [name for name, value in asdict(rates).items() if isinstance(value, float)]
    least, random_numbers = loss(rates, known, multiprocessors), random.Random(SEED)
    for step in range(steps):
        width = 0.5 * (1 - step / steps) + 0.02
        changed = random_numbers.sample(numbers, random_numbers.choice((1, 1, 2, 3)))
        factors = {name: math.exp(random_numbers.gauss(0, width)) for name in changed}
        tried = replace(rates, **{name: getattr(rates, name) * factor for name, factor in factors.items()})
        if (now := loss(tried, known, multiprocessors)) < least:
            rates, least = tried, now
    return rates


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("results", type=Path, nargs="+")
    options.add_argument("--steps", type=int, default=3000)
    options.add_argument("--write", action="store_true", help="change the data of the GPU")
    chosen = options.parse_args()
    known, rates = cases(chosen.results), data.known()[data.DEFAULT]
    multiprocessors = rates.gpu.multiprocessors
    print(f"before: {loss(rates.warpgroups, known, multiprocessors):.4f}")
    best = fitted(rates.warpgroups, known, multiprocessors, chosen.steps)
    best = replace(best, **{n: float(f"{v:.4g}") for n, v in asdict(best).items() if isinstance(v, float)})
    print(f"after: {loss(best, known, multiprocessors):.4f}", json.dumps(asdict(best), indent=1))
    for facts, timed in known:
        guesses = [estimate(option, facts, best, multiprocessors) for option, _ in timed]
        option, us = timed[guesses.index(min(guesses))]
        fastest, least = min(timed, key=lambda each: each[1])
        print(f"{facts.m}x{facts.n}x{facts.k}: {us:.1f} by {tuple(option)}, estimated {min(guesses):.1f}; "
              f"best {least:.1f} by {tuple(fastest)}")  # fmt: skip
    if chosen.write:
        path = data.FOLDER / "h200.json"
        content = json.loads(path.read_text())
        path.write_text(json.dumps({**content, "warpgroups": asdict(best)}, indent=1) + "\n")


if __name__ == "__main__":
    main()
