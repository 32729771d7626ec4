"""Measure candidates of the sm_80 path, fit the rates of this GPU, and write its table of measured winners.

`fit.py measure` writes times of the sm_80 path to results/fit.json; those of the sm_90a path, in
results/warpgroups.json, are of `variants.py`. `--budget SECONDS` stops in time: problems come in random order. `fit.py
rates` fits the rates of both paths to these files, by random steps that reduce the time that chosen candidates lose.
`fit.py winners` adds each shape class to the table whose best measured candidate the estimate misses by 1 %; entries of
other classes stay. Both need no GPU, and write the rates file of the GPU in ptxdsl/kernels/choose/.
"""

from __future__ import annotations

import functools
import json
import math
import pathlib
import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import common
import numpy as np
from warpgroup_cases import FACTS, GROUPS, PINGPONG

from ptxdsl.kernels.candidates.candidate import Candidate
from ptxdsl.kernels.candidates.facts import Facts, ListFacts, ProductFacts, ProductKind, class_name
from ptxdsl.kernels.candidates.sm80 import (
    LEAST_SCATTERED,
    candidate,
    candidates_of_convolutions,
    candidates_of_products,
    of_groups,
)
from ptxdsl.kernels.candidates.sm90 import candidates_of_groups, candidates_of_product
from ptxdsl.kernels.choose.estimate import estimate
from ptxdsl.kernels.choose.rates import FOLDER, PathRates, Rates, known, rates_of, write
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.conv import conv2d
from ptxdsl.kernels.gemm import gemm
from ptxdsl.kernels.grouped import grouped_gemm
from ptxdsl.kernels.product.operands import Operands, outputs
from ptxdsl.schedule import StreamKThreadblockSwizzle
from ptxdsl.types import TYPES, Type

MOST_CANDIDATES = 8  # of a problem, side by side
MOST_US, MOST_ELEMENTS = 2000, 2**28  # of the best candidate, by the estimate; of an array
COUNTS = {"product": 480, "group": 80, "convolution": 80}  # problems
ROUND = 0.75  # the part of the sizes whose bits are zero but for three
TYPES_OF_PRODUCTS = [("f16", 16, 6), ("f16", 2, 1), ("f32", 16, 2), ("f64", 16, 1), ("s8", 16, 2)]  # width, frequency
RESTED = 10  # times what a problem takes is the rest before it
AT_REST = 1.63  # microseconds that a launch takes longer at rest than back to back, by a fit of both
WAIT_CYCLES = 1_000_000  # before groups, whose tables take the host longer than the flush of the L2 cache
LEAST_MEASURED, CLOSE, ERROR_WEIGHT = 3, 1.15, 0.12  # candidates; times the best; of errors next to lost time
WORSE = 1.01  # times the best measured time from which the best is put into the table
HALF_MEASURED, SELDOM = 0.5, 1.02  # candidates in fewer rows of a class count as slower
MULTIPLY_ADDS = "multiply_adds of "
BOUNDS = {  # rates that no GPU of this kind has, but that would explain the rows as well
    "sm80": {
        "multiply_adds of f16": 2.7e6,
        "multiply_adds of s8": 5.4e6,
        "multiply_adds of f32": 1.3e6,
        "multiply_adds of f64": 2.7e5,
    },
    "sm90": {},
}
FRACTIONS = ("overlap_lost", "exposed", "dram_lost")


class Problem(NamedTuple):
    """Sizes of one kind, the facts of the choice, the candidates to time, and the maker of their launches."""

    kind: str
    inputs: str
    sizes: tuple[tuple[int, int, int], ...]
    width: int
    facts: Facts
    candidates: list[Candidate]
    start: Callable[[], Callable[[GemmConfig], Callable[[], object]]]


@dataclass(frozen=True)
class Case:
    """Measured candidates of a problem, with the names of others that were measured."""

    facts: Facts
    form: str
    candidates: list[Candidate]
    us: list[float]
    others: dict[str, float]

    @property
    def best(self) -> float:
        return min([*self.us, *self.others.values()])


def extent(rng: random.Random, least: int, most: int, multiple: int = 8) -> int:
    """Return a size from `least` to `most`, a multiple of `multiple`; small ones are as frequent as large ones."""
    size = 2 ** rng.uniform(math.log2(least), math.log2(most))
    step = max(multiple, 2 ** (int(math.log2(size)) - 2)) if rng.random() < ROUND else multiple
    return max(multiple, round(size / step) * step)


def arrays(type: Type, *shapes: tuple[int, ...]) -> list[Any]:
    """Return random arrays on the GPU."""
    import torch

    dtype = {"f16": torch.float16, "f32": torch.float32, "f64": torch.float64, "s8": torch.int8}[type.name]
    if type.name == "s8":
        return [torch.randint(-8, 8, shape, dtype=dtype, device="cuda") for shape in shapes]
    return [torch.randn(*shape, dtype=dtype, device="cuda") for shape in shapes]


def launcher(function: Callable[..., object], *inputs: object, **options: object) -> Any:
    """Return what makes launches with a configuration, again and again into one output."""

    def launches(config: GemmConfig) -> Callable[[], object]:
        out = function(*inputs, config=config, **options)
        return lambda: function(*inputs, out=out, config=config, **options)

    return launches


def of_product(inputs: Type, m: int, n: int, k: int) -> Any:
    a, b = arrays(inputs, (m, k), (n, k))
    return launcher(gemm, a, b.T)


def of_group(inputs: Type, sizes: Sequence[tuple[int, int, int]]) -> Any:
    a = [x for m, _, k in sizes for x in arrays(inputs, (m, k))]
    b = [x for _, n, k in sizes for x in arrays(inputs, (k, n))]
    return launcher(grouped_gemm, a, b)


def of_convolution(inputs: Type, images: tuple[int, ...], weights: tuple[int, ...]) -> Any:
    x, w = arrays(inputs, images, weights)
    return launcher(conv2d, x, w, pad=weights[1] // 2)


def problem(rng: random.Random, kind: str, rates: Rates, arch: str) -> Problem:
    """Return a random problem of a kind, with some of its candidates."""
    name, width, _ = rng.choices(TYPES_OF_PRODUCTS, [weight for *_, weight in TYPES_OF_PRODUCTS])[0]
    if kind == "group":
        name, width = "f16", 16
    elif kind == "convolution":
        name, width = rng.choice(["f16", "f16", "f32", "s8"]), 16
    inputs = TYPES[name]
    operands = Operands(inputs, outputs(inputs)[0], a_bytes=width, b_bytes=width)
    if kind == "product":
        sizes = ((extent(rng, 8, 8192), extent(rng, 64, 16384), extent(rng, 64, 16384, 16) + (width < 16)),)
        facts = ProductFacts(*sizes[0], 1, operands)
        every = list(candidates_of_products(facts, arch, rates.multiprocessors))
        return Problem(
            kind, name, sizes, width, facts, sample(rng, every), functools.partial(of_product, inputs, *sizes[0])
        )
    if kind == "group":
        n, k, most = extent(rng, 64, 8192, 64), extent(rng, 64, 8192, 64), extent(rng, 8, 2048)
        sizes = tuple((rng.randrange(1, most + 1), n, k) for _ in range(rng.choice([4, 8, 16, 64, 128])))
        every = [candidate(config, inputs, width, persistent=True) for config in of_groups(inputs, width, True)]
        start = functools.partial(of_group, inputs, sizes)
        return Problem(kind, name, sizes, width, list_facts(sizes, operands), every, start)
    side, batch, window = rng.choice([7, 14, 28, 56]), rng.choice([1, 8, 32]), rng.choice([1, 3])
    channels, filters = extent(rng, 32, 1024, 32), extent(rng, 32, 1024, 32)
    images, weights = (batch, side, side, channels), (filters, window, window, channels)
    sizes = ((batch * side * side, filters, window * window * channels),)
    facts = ProductFacts(*sizes[0], 1, operands, kind=ProductKind.CONV)
    every = list(candidates_of_convolutions(facts, rates.multiprocessors, True))
    start = functools.partial(of_convolution, inputs, images, weights)
    return Problem(kind, name, sizes, width, facts, sample(rng, every), start)


def sample(rng: random.Random, every: list[Candidate]) -> list[Candidate]:
    return rng.sample(every, min(MOST_CANDIDATES, len(every)))


def list_facts(sizes: Sequence[tuple[int, int, int]], operands: Operands) -> ListFacts:
    m, n, k = np.array(sizes, np.int64).T
    return ListFacts((m, n, k), operands)


def problems(seed: int, kinds: Sequence[str], rates: Rates, arch: str) -> Iterator[Problem]:
    """Yield problems of these kinds in a random order, but for those that take too long or too much memory."""
    rng = random.Random(seed)
    order = [kind for kind in kinds for _ in range(COUNTS[kind])]
    rng.shuffle(order)
    for kind in order:
        each = problem(rng, kind, rates, arch)
        elements = max(
            max(sum(m for m, _, _ in each.sizes) * max(n, k), len(each.sizes) * n * k) for _, n, k in each.sizes
        )
        if elements <= MOST_ELEMENTS and min(estimate(c, each.facts, rates) for c in each.candidates) <= MOST_US:
            yield each


def measure(seed: int, kinds: Sequence[str], rounds: int, seconds: float | None) -> Iterator[list[Any]]:
    """Yield the rows of as many problems as `seconds` allow: medians at rest, candidates of a problem in turn."""
    from protocols import REST_SECONDS, Budget, Local, TorchGpu, rest, warm

    from ptxdsl import driver

    timer = TorchGpu()
    budget = Budget(timer, seconds, common.START)
    for each in problems(seed, kinds, rates_of(0), driver.device_arch(0)):
        if budget.left() < 0:
            return
        launch, cycles = each.start(), WAIT_CYCLES if each.kind == "group" else 0
        contenders = {str(n): Local(timer, launch(c.config), cycles) for n, c in enumerate(each.candidates)}
        times = rest(timer, contenders, rounds, min(REST_SECONDS, RESTED * warm(timer, contenders)))
        measured = [
            [c.config.tile, c.config.warp, c.config.stages, round(1000 * times[str(n)], 2), c.config.split_k,
             isinstance(c.config.schedule, StreamKThreadblockSwizzle)]
            for n, c in enumerate(each.candidates)
        ]  # fmt: skip
        yield [each.kind, each.inputs, each.sizes, each.width, False, measured]


def cases_by_warps(path: pathlib.Path, rates: Rates) -> list[Case]:
    """Return the cases of the sm_80 path in a file, as they would be back to back. Balanced groups, which share K, are
    left out."""
    cases = []
    for kind, name, sizes, width, is_balanced, measured in json.loads(path.read_text())["problems"]:
        if is_balanced or len(measured) < LEAST_MEASURED:
            continue
        inputs = TYPES[name]
        operands = Operands(inputs, outputs(inputs)[0], a_bytes=width, b_bytes=width)
        facts: Facts = list_facts(sizes, operands) if kind == "group" else ProductFacts(*sizes[0], 1, operands)
        ways = [_way(kind, operands, row, rates.multiprocessors) for row in measured]
        cases.append(Case(facts, "", ways, [row[3] - AT_REST for row in measured], {}))
    return cases


def _way(kind: str, operands: Operands, row: Sequence[Any], multiprocessors: int) -> Candidate:
    """Return the candidate of a row."""
    tile, warp, stages, _, slices, is_streamed = row
    config = GemmConfig(tile=tuple(tile), warp=tuple(warp), stages=stages)
    each = candidate(config, operands.inputs, operands.narrowest, persistent=kind == "group")
    if is_streamed:
        return replace(each, config=replace(config, schedule=StreamKThreadblockSwizzle(multiprocessors)))
    is_scattered = slices > 1 and math.prod(tile[:2]) >= LEAST_SCATTERED and kind == "product"
    reduction = "scatter" if is_scattered else config.reduction
    return replace(each, config=replace(config, split_k=slices, reduction=reduction))


def cases_by_wgmma(path: pathlib.Path, rates: Rates) -> list[Case]:
    """Return the cases of the sm_90a path in a file."""
    cases = []
    for row in json.loads(path.read_text())["rows"]:
        kind, us = row["kind"], {name: time for name, time in row["us"].items() if "/" in name}
        facts = FACTS[kind](*(tuple(each) if isinstance(each, list) else each for each in row["problem"]))
        if kind in GROUPS:
            every = candidates_of_groups(facts, kind in PINGPONG)
        else:
            every = candidates_of_product(facts, rates.multiprocessors)
        labels = {each.config.label: each for each in every}
        ours = [name for name in us if name in labels]
        others = {name: us[name] for name in us if name not in labels and not name.startswith("copied")}
        if len(ours) >= LEAST_MEASURED:
            form = kind if kind in GROUPS and kind != "list" else ""
            cases.append(Case(facts, form, [labels[name] for name in ours], [us[name] for name in ours], others))
    return cases


def loss(cases: Sequence[Case], rates: Rates) -> float:
    """Return the mean time that chosen candidates lose, and a part of the mean error of the estimate near the best."""
    lost, errors = [], []
    for case in cases:
        times = [estimate(each, case.facts, rates) for each in case.candidates]
        lost.append(case.us[times.index(min(times))] / min(case.us) - 1)
        pairs = zip(times, case.us, strict=True)
        errors += [abs(math.log(time / us)) for time, us in pairs if us < CLOSE * min(case.us)]
    return float(np.mean(lost) + ERROR_WEIGHT * np.mean(errors))


def values_of(path: PathRates) -> dict[str, float]:
    """Return all rates that are not 0, by name."""
    values = {name: value for name, value in asdict(path).items() if name != "multiply_adds" and value}
    return values | {MULTIPLY_ADDS + name: rate for name, rate in path.multiply_adds.items()}


def with_values(path: PathRates, values: dict[str, float]) -> PathRates:
    """Return the rates with other values."""
    rates = {name: values.get(MULTIPLY_ADDS + name, rate) for name, rate in path.multiply_adds.items()}
    others = {name: value for name, value in values.items() if not name.startswith(MULTIPLY_ADDS)}
    return replace(path, multiply_adds=rates, **others)


def fit(rates: Rates, name: str, cases: Sequence[Case], steps: int, seed: int) -> Rates:
    """Return rates of the path `name` near those given that lose less: random steps, kept if they gain."""
    rng, bounds = random.Random(seed), BOUNDS[name]
    values = values_of(getattr(rates, name))
    size, least = dict.fromkeys(values, 0.2), loss(cases, rates)
    for _ in range(steps):
        changed, tried = rng.sample(sorted(values), rng.randint(1, 3)), dict(values)
        for each in changed:
            most = 1.0 if each in FRACTIONS else bounds.get(each, math.inf)
            tried[each] = min(most, tried[each] * math.exp(rng.gauss(0, size[each])))
        other = replace(rates, **{name: with_values(getattr(rates, name), tried)})
        lost = loss(cases, other)
        for each in changed:
            size[each] = min(0.5, size[each] * 1.3) if lost < least else max(0.01, size[each] * 0.97)
        if lost < least:
            least, values, rates = lost, tried, other
    return rates


def winners(cases: Sequence[Case], rates: Rates) -> dict[str, str]:
    """Return the label of the best measured candidate of each shape class whose estimate misses it."""
    relative: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    chosen, rows = {}, defaultdict(int)
    for case in cases:
        name = class_name(case.facts, case.form)
        rows[name] += 1
        for each, us in zip(case.candidates, case.us, strict=True):
            relative[name][each.config.label].append(us / case.best)
        chosen[name] = min(case.candidates, key=lambda each: estimate(each, case.facts, rates)).config.label
    table = {}
    for name, times in relative.items():
        scores = {
            each: math.exp(np.mean(np.log(us))) * (SELDOM if len(us) < HALF_MEASURED * rows[name] else 1)
            for each, us in times.items()
        }
        best = min(scores, key=lambda each: scores[each])
        if scores[chosen[name]] > WORSE * scores[best]:
            table[name] = best
    return table


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("step", choices=["measure", "rates", "winners"])
    parser.add_argument("--kinds", nargs="+", choices=COUNTS, default=[*COUNTS], help="of `measure`")
    parser.add_argument("--budget", type=float, metavar="SECONDS", help="of `measure`")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, default=1000, help="random steps of `rates`")
    parser.add_argument("--gpu", choices=known(), default="NVIDIA H200", help="whose rates file is written")
    options = parser.parse_args()
    if options.step == "measure":
        rows = list(measure(options.seed, options.kinds, options.rounds, options.budget))
        data = {"environment": common.environment(), "problems": rows}
        (options.json or common.RESULTS / "fit.json").write_text(json.dumps(data) + "\n")
        return
    rates, file = known()[options.gpu], FOLDER / f"{options.gpu.lower().removeprefix('nvidia ')}.json"
    by_warps = cases_by_warps(common.RESULTS / "fit.json", rates)
    by_wgmma = cases_by_wgmma(common.RESULTS / "warpgroups.json", rates)
    if options.step == "rates":
        rates = fit(rates, "sm80", by_warps, options.steps, options.seed)
        rates = fit(rates, "sm90", by_wgmma, options.steps, options.seed)
    else:
        rates = replace(rates, winners=dict(sorted({**rates.winners, **winners(by_wgmma, rates)}.items())))
    write(file, rates, json.loads(file.read_text())["source"])
    print(f"loss of sm_80 {loss(by_warps, rates):.4f}, of sm_90a {loss(by_wgmma, rates):.4f}")


if __name__ == "__main__":
    main()
