"""Measure candidates of the sm_80 path on this GPU, and fit the rates of the cost model to them.

`fit.py measure` writes the times to benchmarks/results/fit.json. `--budget SECONDS` stops in time; problems come in
random order, so a short run covers every kind. `--tables` adds the shapes of published tables (`shapes.py`), with the
candidates that rates close to the present ones would choose. `fit.py fit` fits the rates file of this GPU in
ptxdsl/kernels/choose/ and prints the remaining error. Without a step, both run.
"""

from __future__ import annotations

import functools
import json
import math
import multiprocessing
import pathlib
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from typing import NamedTuple

import common
from fitting import (
    KINDS,
    Row,
    by_choices,
    cases_of,
    fit,
    lost,
    predicted,
    quality,
    read,
    starts_of,
    values_of,
    with_values,
    write,
)
from protocols import REST_SECONDS, Budget, Gpu, Local, TorchGpu, rest, warm
from shapes import ALIGNED, GROUPED

from ptxdsl import driver
from ptxdsl.kernels.choose import rates as choose_rates
from ptxdsl.kernels.choose.candidates import of_convolutions, of_groups, of_products
from ptxdsl.kernels.choose.gemm import choose, shared, shared_config
from ptxdsl.kernels.choose.model import CostModel, Shape, candidate, model_of, usual_traits
from ptxdsl.kernels.choose.rates import DEFAULT, known
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.conv import conv2d
from ptxdsl.kernels.gemm import gemm
from ptxdsl.kernels.grouped import grouped_gemm
from ptxdsl.types import TYPES, Type

MOST_OPTIONS = 8  # candidates of one problem, side by side
MOST_US = 2000  # of the fastest of them, by the model as it is: longer ones heat the GPU, and tell no more
MOST_ELEMENTS = 2**28  # of an array
PRODUCTS, GROUPS, LAYERS = 480, 80, 80  # problems
BALANCED = {"schedule": "host", "balance": "k"}
WAIT_CYCLES = 1_000_000  # of the GPU, before groups, whose tables take the host longer than the flush of the L2 cache
ROUND, KNOWN = 0.75, 0.3  # parts of the sizes, and of the products that have the N and K of WEIGHTS
WEIGHTS = [(4096, 4096), (2112, 7168), (4096, 7168), (7168, 16384), (24576, 1536), (1024, 1024), (2048, 2048)]
RESTED = 10  # times what a problem takes is the rest before it
PROCESSES = 8  # that assemble
# Types, the width of copies, and how often they come
TYPES_OF_PRODUCTS = [("f16", 16, 6), ("f16", 2, 1), ("f32", 16, 2), ("f64", 16, 1), ("s8", 16, 2)]
NEIGHBOURS, DISTANCE = 24, 0.25  # rates near those of now, and how far off these are: a deviation of logarithms
CHOSEN_BY_EACH, MOST_CHOSEN = 3, 12  # candidates


class Trial(NamedTuple):
    """A row to be measured, and the configuration that describes it."""

    row: Row
    config: GemmConfig

    @property
    def kernel(self) -> tuple[object, ...]:
        """The key of trials that run the same machine code."""
        row = self.row
        return row.kind, row.inputs, row.width, row.tile, row.warp, row.stages, row.slices > 1, row.is_streamed


Launch = Callable[[Trial], Callable[[], object]]
Sizes = tuple[tuple[int, int, int], ...]


@dataclass(frozen=True)
class Problem:
    """Ways to compute one problem. `start` makes its arrays, and gives what makes the launches of a trial of them."""

    trials: list[Trial]
    start: Callable[[], Launch]


def extent(rng: random.Random, least: int, most: int, multiple: int = 8) -> int:
    """Any size from `least` to `most`, small ones as often as large ones; most of them are round, with three bits that
    are not zero, and all are multiples of `multiple`."""
    size = 2 ** rng.uniform(math.log2(least), math.log2(most))
    step = max(multiple, 2 ** (int(math.log2(size)) - 2)) if rng.random() < ROUND else multiple
    return max(multiple, round(size / step) * step)


def arrays(type: Type, *shapes: tuple[int, ...]) -> list[object]:
    """Random arrays on the GPU."""
    import torch

    dtype = {"f16": torch.float16, "f32": torch.float32, "f64": torch.float64, "s8": torch.int8}[type.name]
    if type.name == "s8":
        return [torch.randint(-8, 8, shape, dtype=dtype, device="cuda") for shape in shapes]
    return [torch.randn(*shape, dtype=dtype, device="cuda") for shape in shapes]


def launcher(function: Callable[..., object], *inputs: object, **options: object) -> Launch:
    """Launches of a trial, again and again into one output."""

    def launches(trial: Trial) -> Callable[[], object]:
        out = function(*inputs, config=trial.config, **options)
        return lambda: function(*inputs, out=out, config=trial.config, **options)

    return launches


def sampled(rng: random.Random, options: Sequence[Trial]) -> list[Trial]:
    return rng.sample(list(options), min(MOST_OPTIONS, len(options)))


def products(rng: random.Random, model: CostModel, arch: str) -> Iterator[Problem]:
    """Products, each with some of the ways to compute it."""
    weights = [weight for *_, weight in TYPES_OF_PRODUCTS]
    for _ in range(PRODUCTS):
        name, width, _ = rng.choices(TYPES_OF_PRODUCTS, weights)[0]
        inputs, odd = TYPES[name], int(width < 16)
        n, k = rng.choice(WEIGHTS) if rng.random() < KNOWN else (extent(rng, 64, 16384), extent(rng, 64, 16384, 16))
        k += odd
        m = extent(rng, 8, 8192)
        trials = trials_of(inputs, (m, n, k), width, model, arch)
        yield Problem(sampled(rng, trials), functools.partial(of_product, inputs, m, n, k))


def trials_of(inputs: Type, shape: Shape, width: int, model: CostModel, arch: str) -> list[Trial]:
    """All ways to compute a product."""
    configs = [config for config in of_products(inputs, width, True) if usual_traits(config, inputs).fits(arch)]
    options = [
        option
        for config in configs
        for option in shared(candidate(config, inputs), shape, width, True, model.multiprocessors)
    ]
    return [
        Trial(
            Row(
                "product", inputs.name, (shape,), o.tile, o.config.warp, o.stages, 0.0, width, o.split_k, o.is_streamed
            ),
            shared_config(o, model.multiprocessors),
        )
        for o in options
    ]


def tables(rng: random.Random, model: CostModel, arch: str) -> Iterator[Problem]:
    """The products and lists of published tables in each type, with the ways that rates near those of `model` choose
    most often."""
    models = [model, *(neighbour(rng, model) for _ in range(NEIGHBOURS))]
    for name in sorted({name for name, *_ in TYPES_OF_PRODUCTS}):
        for shape in ALIGNED:
            trials = trials_of(TYPES[name], shape, 16, model, arch)
            chosen: Counter[Row] = Counter()
            for each in models:
                times = {trial.row: predicted(each, trial.row) for trial in trials}
                chosen.update(sorted(times, key=lambda row: times[row])[:CHOSEN_BY_EACH])
            best = {row for row, _ in chosen.most_common(MOST_CHOSEN)}
            known = [trial for trial in trials if trial.row in best]
            yield Problem(known, functools.partial(of_product, TYPES[name], *shape))
    for sizes in GROUPED.values():
        yield from (group(TYPES["f16"], tuple(sizes), is_balanced) for is_balanced in (False, True))


def neighbour(rng: random.Random, model: CostModel) -> CostModel:
    """A model whose rates are off by some 25 %."""
    values = {name: number * math.exp(rng.gauss(0, DISTANCE)) for name, number in values_of(model.rates).items()}
    return CostModel(with_values(model.rates, values))


def of_product(inputs: Type, m: int, n: int, k: int) -> Launch:
    a, b = arrays(inputs, (m, k), (n, k))
    return launcher(gemm, a, b.T)  # type: ignore[attr-defined]


def groups(rng: random.Random, model: CostModel, arch: str) -> Iterator[Problem]:
    """Groups of products of one N and K, as mixtures of experts have them."""
    inputs = TYPES["f16"]
    for _ in range(GROUPS):
        n, k, most = extent(rng, 64, 8192, 64), extent(rng, 64, 8192, 64), extent(rng, 8, 2048)
        sizes = tuple((rng.randrange(1, most + 1), n, k) for _ in range(rng.choice([4, 8, 16, 64, 128])))
        yield group(inputs, sizes)


def group(inputs: Type, sizes: Sizes, is_balanced: bool = False) -> Problem:
    """A group with all the ways to compute it."""
    known = of_groups(inputs, 16, True)
    trials = [
        Trial(Row("group", inputs.name, sizes, c.tile, c.warp, c.stages, 0.0, is_balanced=is_balanced), c)
        for c in known
    ]
    return Problem(trials, functools.partial(of_group, inputs, sizes, BALANCED if is_balanced else {}))


def of_group(inputs: Type, sizes: Sizes, options: Mapping[str, str]) -> Launch:
    a = [x for m, _, k in sizes for x in arrays(inputs, (m, k))]
    b = [x for _, n, k in sizes for x in arrays(inputs, (k, n))]
    return launcher(grouped_gemm, a, b, **options)


def convolutions(rng: random.Random, model: CostModel, arch: str) -> Iterator[Problem]:
    """Convolutions with windows of 1 and 3 pixels, whose sums one block or several compute."""
    for _ in range(LAYERS):
        name = rng.choice(["f16", "f16", "f32", "s8"])
        inputs, side, batch = TYPES[name], rng.choice([7, 14, 28, 56]), rng.choice([1, 8, 32])
        channels, filters, window = extent(rng, 32, 1024, 32), extent(rng, 32, 1024, 32), rng.choice([1, 3])
        images, weights = (batch, side, side, channels), (filters, window, window, channels)
        shape = batch * side * side, filters, window * window * channels
        trials = [
            Trial(
                Row("convolution", name, (shape,), c.tile, c.warp, c.stages, 0.0, slices=slices),
                replace(c, split_k=slices),
            )
            for c in of_convolutions(inputs, True)
            for slices in (1, 2, 4)
        ]
        yield Problem(sampled(rng, trials), functools.partial(of_convolution, inputs, images, weights))


def of_convolution(inputs: Type, images: tuple[int, ...], weights: tuple[int, ...]) -> Launch:
    x, w = arrays(inputs, images, weights)
    return launcher(conv2d, x, w, pad=weights[1] // 2)


def problems(seed: int, kinds: Sequence[str], model: CostModel, arch: str) -> list[Problem]:
    """All of these kinds in a random order, but for those that take too long or too much memory."""
    rng = random.Random(seed)
    every = [problem for kind in kinds for problem in PROBLEMS[kind](rng, model, arch)]
    rng.shuffle(every)
    return [problem for problem in every if is_short(model, problem)]


PROBLEMS = {"product": products, "group": groups, "convolution": convolutions, "table": tables}


def is_short(model: CostModel, problem: Problem) -> bool:
    sizes = problem.trials[0].row.sizes
    elements = max(max(sum(m for m, _, _ in sizes) * max(n, k), len(sizes) * n * k) for _, n, k in sizes)
    return elements <= MOST_ELEMENTS and min(predicted(model, trial.row) for trial in problem.trials) <= MOST_US


def measure(seed: int, kinds: Sequence[str], rounds: int, seconds: float | None) -> Iterator[Row]:
    """The rows of as many problems as `seconds` allow: medians at rest, candidates of a problem in turn."""
    with ProcessPoolExecutor(PROCESSES, multiprocessing.get_context("spawn")) as pool:
        assembled = pool.map(assemble, [seed] * PROCESSES, [kinds] * PROCESSES, range(PROCESSES))
        print(f"{sum(assembled)} kernels assembled", flush=True)
    timer = TorchGpu()
    budget = Budget(timer, seconds, common.START)
    for problem in problems(seed, kinds, model_of(0), driver.device_arch(0)):
        if budget.left() < 0:
            return
        yield from rows_of(timer, problem, rounds)


def rows_of(timer: Gpu, problem: Problem, rounds: int) -> Iterator[Row]:
    """One problem."""
    launch = problem.start()
    cycles = WAIT_CYCLES if problem.trials[0].row.kind == "group" else 0
    contenders = {str(n): Local(timer, launch(trial), cycles) for n, trial in enumerate(problem.trials)}
    seconds = warm(timer, contenders)
    times = rest(timer, contenders, rounds, min(REST_SECONDS, RESTED * seconds))
    return (replace(trial.row, us=1000 * times[str(n)]) for n, trial in enumerate(problem.trials))


def assemble(seed: int, kinds: Sequence[str], process: int) -> int:
    """Runs a share of all kernels once, in a process of its own, which leaves their machine code in the cache."""
    kernels: dict[tuple[object, ...], tuple[Problem, Trial]] = {}
    for problem in problems(seed, kinds, model_of(0), driver.device_arch(0)):
        for trial in problem.trials:
            kernels.setdefault(trial.kernel, (problem, trial))
    share = list(kernels.values())[process::PROCESSES]
    for problem, trial in share:
        problem.start()(trial)()
    driver.synchronize()
    return len(share)


def gpu_facts() -> choose_rates.Gpu:
    device = driver.device(0)
    return choose_rates.Gpu(device.name, device.multiprocessors, driver.clock_khz(0), driver.memory_bandwidth(0))


def save(path: pathlib.Path, rows: Iterable[Row], kinds: Sequence[str] = KINDS) -> None:
    """Write rows of these kinds, one a line, after the rows of other kinds in the file, with the environment.

    Rows measured before an error are kept. Rows of tables are added to all others.
    """
    earlier, kept = read(path) if path.exists() and {*kinds} != {*KINDS} else ({}, [])
    others = [row for row in kept if row.kind not in kinds]
    known: list[Row] = []
    try:
        known.extend(rows)
    finally:
        environment, gpu = common.environment(), gpu_facts()
        if others:
            environment["command"] = f"{earlier['environment']['command']}; {environment['command']}"
        write(path, {"environment": environment, "gpu": asdict(gpu)}, [*others, *known])


def improved(rates: choose_rates.Rates, rows: Sequence[Row], starts: int = 0) -> choose_rates.Rates:
    """Rates near these that choose better; with `starts` the best of fits from these, ones and random numbers."""
    settled = Settled(rates, rows)
    for kind in KINDS:
        of_kind = [row for row in rows if row.kind == kind]
        if of_kind and not starts:
            rates = by_choices(rates, of_kind, settled.are_kept)
        elif of_kind:
            tried = []
            for name, start in starts_of(rates, of_kind, starts).items():
                tried.append(fit(start, of_kind))
                print(f"from {name}: {quality(tried[-1], of_kind)}", flush=True)
            rates = min(tried, key=lambda each: lost(each, cases_of(of_kind)))
    return rates


class Settled:
    """The choices at shapes of tables of which there are no rows: rates that choose otherwise there would not be known
    to choose better."""

    def __init__(self, rates: choose_rates.Rates, rows: Sequence[Row]) -> None:
        types, known = {row.inputs for row in rows if row.kind == "product"}, {row.case for row in rows}
        self.products = [
            (shape, TYPES[name])
            for name in sorted(types)
            for shape in ALIGNED
            if ("product", name, (shape,), 16) not in known
        ]
        self.chosen = [*self.choices(rates)]

    def choices(self, rates: choose_rates.Rates) -> Iterator[GemmConfig]:
        model = CostModel(rates)
        return (choose(*shape, inputs, model=model) for shape, inputs in self.products)

    def are_kept(self, rates: choose_rates.Rates) -> bool:
        return all(now == before for now, before in zip(self.choices(rates), self.chosen, strict=True))


def lost_of(rates: choose_rates.Rates, rows: Sequence[Row]) -> dict[str, object]:
    """By kind: percent that choices lose on average and at worst."""
    columns = ["lost, mean %", "lost, worst %", "estimates off, median %", "rows"]
    known = {"columns": columns}
    for line in quality(rates, rows):
        mean, worst = (round(100 * (float(str(line[f"choice/best, {of}"])) - 1), 2) for of in ("mean", "worst"))
        known[str(line["kind"])] = [mean, worst, round(100 * float(str(line["off, median"])), 1), line["rows"]]
    return known


def fit_file(
    path: pathlib.Path, out: pathlib.Path | None, kinds: Sequence[str] = KINDS, starts: int = 0
) -> pathlib.Path:
    """Fits the rates of a GPU to the rows of a file that are of these kinds, writes them, and says how good they are
    for all. Those of a GPU that is known begin as they are, and change by steps that choose better. Returns where they
    are.

    What rows tell nothing about is left as it was for this GPU, or as it follows from the rates of the default one.
    """
    data, rows = read(path)
    gpu = choose_rates.Gpu(**data["gpu"])
    start = known()[gpu.name] if gpu.name in known() else known()[DEFAULT].on(gpu)
    start = replace(start, gpu=gpu)
    fitted = [row for row in rows if row.kind in kinds]
    rates = improved(start, fitted, starts) if gpu.name in known() else fit(start, fitted)
    for name, each in (("before", start), ("fitted", rates)):
        for line in quality(each, rows):
            print(f"{name}: {line}")
    out = out or choose_rates.FOLDER / f"{gpu.name.lower().removeprefix('nvidia ').replace(' ', '-')}.json"
    earlier = json.loads(out.read_text())["source"] if out.exists() else {}
    rows_told = f"{len(fitted)} of {len(rows)} in {path.name}: {', '.join(kinds)}"
    source = earlier | data["environment"] | {"rows": rows_told, "choices": lost_of(rates, rows)}
    choose_rates.write(out, rates, source)
    print(f"written to {out}")
    return out


def main() -> None:
    parser = common.parser(__doc__ or "")
    parser.add_argument("step", nargs="?", choices=["measure", "fit"], help="default: both")
    parser.add_argument("--out", type=pathlib.Path, help="the file of rates (default: that of the GPU of the rows)")
    parser.add_argument("--seed", type=int, default=1, help="of the random problems")
    kinds = "to measure and to fit; rows and rates of the others stay as they are (default: all)"
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS, help=kinds)
    parser.add_argument("--budget", type=float, metavar="SECONDS", help="for all that is measured; fewer problems")
    parser.add_argument("--tables", action="store_true", help="measure shapes of published tables, add their rows")
    parser.add_argument("--starts", type=int, default=0, help="fits also begin at ones, and so often but one at random")
    options = parser.parse_args()
    rows, measured = options.json or common.RESULTS / "fit.json", ["table"] if options.tables else options.kinds
    if options.step != "fit":
        save(rows, measure(options.seed, measured, options.rounds, options.budget), measured)
    if options.step != "measure":
        fit_file(rows, options.out, options.kinds, options.starts)


if __name__ == "__main__":
    main()
