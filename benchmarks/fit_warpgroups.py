"""Fit the rates of the sm_90a path to the rows that variants.py measured.

Least squares of logarithms bring the rates close from any start; random steps then reduce the time that the chosen
configurations lose. `--starts 4` fits from the present rates, from ones and from random numbers, and prints what each
result loses; `--write` stores the best in the rates file of the GPU.
"""

from __future__ import annotations

import argparse
import json
import math
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, fields, replace
from functools import partial
from itertools import chain
from pathlib import Path
from statistics import fmean, geometric_mean, median
from typing import Any, NamedTuple

import common
import numpy as np
from fitting import least_squares
from warpgroup_cases import (
    CLUSTERS,
    FACTS,
    NAME,
    ONE_TILE,
    PROTOCOLS,
    Problem,
    config_of,
    convolution,
    large_facts,
    name_of,
)

from ptxdsl.kernels.choose import (
    conv_wgrad,
    conv_windows,
    large_products,
    product_options,
    warpgroup_products,
    warpgroups,
)
from ptxdsl.kernels.choose import rates as data
from ptxdsl.kernels.choose.conv_wgrad import GradientOption
from ptxdsl.kernels.choose.conv_windows import WindowOption, WindowTile
from ptxdsl.kernels.choose.grouped import streams_weights, time_of_tiles
from ptxdsl.kernels.choose.large_products import LargeTile
from ptxdsl.kernels.choose.model import CostModel
from ptxdsl.kernels.choose.product_options import TURNS, Option, depths
from ptxdsl.kernels.choose.warpgroup_products import one_tile_each
from ptxdsl.kernels.choose.warpgroup_rates import PathRates
from ptxdsl.kernels.choose.warpgroups import CLEARLY, GroupFacts, ProductFacts, RaggedTile
from ptxdsl.kernels.product.operands import Operands
from ptxdsl.kernels.sm90.boxes import LINE_BYTES
from ptxdsl.kernels.sm90.tiling import GROUP_ROWS
from ptxdsl.types import bf16, f16

KINDS = {
    "warpgroups": ("product", *PROTOCOLS),
    "large": ("large", "large by protocols"),
    "groups": ("list", "ragged", "masked", "along k", "bytes"),
    "windows": ("conv", "conv at rest", "dgrad"),
    "wgrad": ("wgrad",),
}
"""The kinds of problems whose rows tell the rates of each part of the file."""
CONSTANTS = {
    "warpgroups": {"in_clusters": "cuOccupancyMaxActiveClusters, by benchmarks/variants.py"},
    "large": {},
    "groups": {"low": "16x64x128 on groups of 32 and 64 rows, measured 2026-11-23, over the rates of lists"},
    "windows": {
        "cache": "the L2 cache, as the driver says",
        "slow_line": "the first layer of ResNet-50 by lines of 56 and 64 channels, benchmarks/conv.py",
        "unboxed": "layers whose outputs are no boxes, benchmarks/conv.py --tiles",
        "beside": "layers with a bias and relu, benchmarks/conv.py --fused --tiles",
        "packing": "the first layer of ResNet-50, benchmarks/conv.py",
    },
    "wgrad": {},
}
"""What is measured as it is, and where: no choice among these rows depends on it."""
DIVISORS = ("copies", "cache_bandwidth", "dram_bandwidth", "lines", "split_lines", "copy_bandwidth", "sum_bandwidth")
MOST = {
    **dict.fromkeys(("hidden", "waited", "felt", "felt_c", "again"), 1.0),  # parts of a whole
    **dict.fromkeys(("dram_bandwidth", "copy_bandwidth"), data.known()[data.DEFAULT].gpu.bandwidth),
}
"""What no rate is more than, also where rows do not tell it."""
RELATIVE = ("conv at rest", "large")
"""Kinds of which only ratios of times tell something: each took a launch longer, or was at the power limit."""
MUCH = 1e6  # times a number: an estimate that knows it is another one then
LITTLE = 2e-5  # of a loss: a number that gains no more is none
OTHER_CONSTANTS = {
    "windows, swap turns 256x64": "layers of few filters at rest, benchmarks/conv.py --tiles: no kept row has it",
    "windows, bursts 128x64 and tile swap 256x128": "56² 64→256 and 256→512 /2 at 128 images, a step behind the fit",
    "large, with gelu or c": "kept rows are older than staggered tiles that hide most of both",
    "uncounted": "what chosen products of 10 GFLOP and more take beyond the other rates, median of fit.json: s8 26 % "
    "and f32 23 % before, 5 and 3 % with it",
    "short_row": "a threshold, not fitted: two lines of the L2 cache",
    "half_rate, most_rate": "a straight line through the rates of `grouped`, by fit.py",
}
OF_LISTS = Operands(bf16, bf16)  # of problems and groups that were measured
COLUMNS = ["lost, mean %", "lost, worst %", "estimates off, median %", "problems"]
ERRORS = 0.15  # what errors count beside the time that a choice loses
STEPS = 4000
FARTHEST = 3.0  # random starts are up to so many powers of ten from 1
Estimate = Callable[[Any], float]


class Timed(NamedTuple):
    """A configuration: its name, its estimate by rates, and what it took, in microseconds."""

    name: str
    estimate: Estimate
    us: float


class Case(NamedTuple):
    """The measurements of a problem."""

    kind: str
    problem: Problem
    timed: list[Timed]


def cases(rows: Sequence[Mapping[str, Any]], section: str, model: CostModel) -> list[Case]:
    """Return the measurements of the kinds that determine the rates of a section."""
    known = []
    for (kind, problem), us_of in merged(row for row in rows if row["kind"] in KINDS[section]).items():
        estimate_of = ESTIMATES[section](kind, problem, model)
        in_order = sorted(us_of.items(), key=_order) if section == "warpgroups" else us_of.items()
        named = ((name, estimate_of(name), us) for name, us in in_order)
        timed = [Timed(name, estimate, us) for name, estimate, us in named if estimate]
        known += [Case(kind, problem, timed)] if len(timed) > 1 else []
    return known


def merged(rows: Iterable[Mapping[str, Any]]) -> dict[tuple[str, Problem], dict[str, float]]:
    """Times by problem, of all runs: several runs tell of more configurations than one."""
    runs: dict[tuple[str, Problem], dict[str, list[float]]] = {}
    for row in rows:
        times = runs.setdefault((row["kind"], _tuples(row["problem"])), {})
        for name, us in row["us"].items():
            times.setdefault(name, []).append(us)
    return {key: {name: geometric_mean(each) for name, each in times.items()} for key, times in runs.items()}


def _order(timed: tuple[str, float]) -> tuple[object, ...]:
    """As `choose_product` has options that should take as long."""
    option = option_of(timed[0])
    return (-option.resident, option) if option else (0,)


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


EstimateOf = Callable[[str], Estimate | None]
"""The estimate of the configuration that has a name; None of what is none of those that are chosen from."""


def of_products(kind: str, problem: Problem, model: CostModel) -> EstimateOf:
    """Return the measurements of products, by configuration; those not timed by protocols are of persistent blocks.
    Some belong to large products, which this fit leaves out.
    """
    facts = FACTS[kind](*problem)
    known, others = options_by_name(facts, model), {}
    options = {*known.values()}
    if kind in PROTOCOLS:
        ranked = {name_of(config): time for time, config in warpgroup_products.ranked_products(facts, model)}
        others = {name: time for name, time in ranked.items() if name not in known}
        is_ranked = {option for name, option in known.items() if name in ranked}
        known = {name: option for name, option in known.items() if option in is_ranked}

    def estimate_of(name: str) -> Estimate | None:
        option = known.get(name) if kind in PROTOCOLS else option_of(name)
        if name in others:
            return lambda rates: others[name]
        if option not in options:
            return None
        return partial(_swapped, warpgroup_products.estimate, option, facts, model.multiprocessors)

    return estimate_of


def _swapped(
    estimate: Callable[..., float], option: object, facts: object, multiprocessors: int, rates: object
) -> float:
    return estimate(option, facts, rates, multiprocessors)


def options_by_name(facts: ProductFacts, model: CostModel) -> dict[str, Option]:
    """Return the options of a problem by configuration. Tiles of 64 rows were timed by persistent blocks where one tile
    per block is chosen now, which takes some 2 % less.
    """
    rates, multiprocessors = model.rates.warpgroups, model.multiprocessors
    depth, known = LINE_BYTES // facts.operands.inputs.bytes, {}
    for option in chain(
        product_options.options(facts, rates, multiprocessors),
        product_options.options_of_batches(facts, multiprocessors),
    ):
        config = option.config(depth)
        known[name_of(one_tile_each(config, facts, multiprocessors))] = option
        if option.tile[0] == GROUP_ROWS:
            known[name_of(config)] = option
    return known


def option_of(name: str) -> Option | None:
    """The option of a product that has such a name; None for others."""
    read = NAME.match(name)
    if not read or (read["turns"] and not read["swap"]) or read["how"] == ONE_TILE:
        return None
    operands, tile, swap_ab = Operands(bf16, bf16), (int(read["m"]), int(read["n"])), bool(read["swap"])
    stages, way, slices = int(read["stages"]), read["how"] or "", int(read["count"] or 1)
    if way in CLUSTERS:
        return Option(tile, swap_ab, stages, cluster=config_of(name).tile_schedule.multicast)
    if read["turns"]:
        return Option(tile, swap_ab, stages, way=TURNS)
    residents = dict(depths(tile, swap_ab, operands, way, slices))
    in_ring = way == "cluster" and stages > max(residents, default=0)
    return Option(tile, swap_ab, stages, residents.get(stages, 1), slices, way, in_ring=in_ring)


def of_large(kind: str, problem: Problem, model: CostModel) -> EstimateOf:
    """Also of products of copies to better lines."""

    def estimate_of(name: str) -> Estimate | None:
        letters, rest = name.removeprefix("copied-").split(" ", 1) if name.startswith("copied-") else ("", name)
        read = NAME.match(rest)
        if not read:
            return None
        copies, how = ("a" in letters, "b" in letters), read["how"] or ""
        blocks = int(read["count"]) if how in CLUSTERS else 1
        shared = {"interleaved": how == "interleaved", "rows": int(read["m"]), "across": how == "across"}
        tile = LargeTile(int(read["n"]), bool(read["turns"]), blocks, **shared)
        if tile not in large_products.TILES:
            return None
        facts = large_facts(*problem, copies=copies)
        moved = sum(
            4.0 * extent * problem[2] for extent, is_copied in zip(problem[:2], copies, strict=True) if is_copied
        )

        def estimate(rates: Any) -> float:
            each = model.rates.launch + model.rates.dram_latency
            copying = sum(copies) * each + moved / rates.copy_bandwidth
            return copying + large_products.estimate(tile, facts, rates, model.multiprocessors)

        return estimate

    return estimate_of


def of_groups(kind: str, problem: Problem, model: CostModel) -> EstimateOf:
    facts = FACTS[kind](*problem)

    def estimate_of(name: str) -> Estimate | None:
        read = NAME.match(name)
        if read:
            tile = RaggedTile(int(read["m"]), int(read["n"]), bool(read["turns"]))
            return partial(_swapped, warpgroups.estimate, tile, facts, model.multiprocessors)
        if name in ("chosen", "torch"):
            return None
        is_average = isinstance(facts, GroupFacts)
        sizes = (
            (np.full(facts.groups, facts.rows), facts.n, np.full(facts.groups, facts.k)) if is_average else facts.sizes
        )
        streams = kind == "ragged" and streams_weights(facts, OF_LISTS, model.multiprocessors)
        computing = time_of_tiles(config_of(name), sizes, OF_LISTS, model, average=is_average, streams=streams)
        return lambda rates: CLEARLY * (rates.beginning + max(computing, facts.moved / rates.dram_bandwidth))

    return estimate_of


def of_windows(kind: str, problem: Problem, model: CostModel) -> EstimateOf:
    facts = FACTS[kind](*problem)

    def estimate_of(name: str) -> Estimate | None:
        read = NAME.match(name)
        if read:
            option = WindowOption(window_tile(name), int(read["count"] or 1) if read["how"] == "cluster" else 1)
            return partial(_swapped, conv_windows.estimate, option, facts, model.multiprocessors)
        if name == "chosen":
            return None
        config, shape = config_of(name), convolution(*problem).sizes.implicit_gemm("fprop")
        computing = model.convolution(config, f16, shape, config.split_k)
        return lambda rates: rates.by_warps + max(computing, rates.reading * facts.moved / rates.dram_bandwidth)

    return estimate_of


def window_tile(name: str) -> WindowTile:
    """The tile of a name; of 128×64 the ring says how many blocks a multiprocessor holds."""
    read = NAME.match(name)
    assert read
    m, n = int(read["m"]), int(read["n"])
    resident = 2 if (m, n) == (128, 64) and int(read["stages"]) <= LEAST_RING else 1
    return WindowTile(m, n, bool(read["swap"]), bool(read["turns"]), resident, read["how"] == "streamed")


LEAST_RING = 4  # stages: no ring of a block alone is so short where tiles are small


def of_wgrad(kind: str, problem: Problem, model: CostModel) -> EstimateOf:
    facts = FACTS[kind](*problem)

    def estimate_of(name: str) -> Estimate | None:
        read = NAME.match(name)
        if not read:
            return None
        option = GradientOption(int(read["m"]), int(read["n"]), int(read["count"] or 1))
        return partial(_swapped, conv_wgrad.estimate, option, facts, model.multiprocessors)

    return estimate_of


ESTIMATES: dict[str, Callable[[str, Problem, CostModel], EstimateOf]] = {
    "warpgroups": of_products,
    "large": of_large,
    "groups": of_groups,
    "windows": of_windows,
    "wgrad": of_wgrad,
}


def chosen(case: Case, rates: PathRates) -> Timed:
    """Return the choice of the rates."""
    return min(case.timed, key=lambda timed: timed.estimate(rates))


def losses(known: Sequence[Case], rates: PathRates) -> list[float]:
    """Return the time of each choice over the best time, minus one."""
    return [chosen(case, rates).us / min(timed.us for timed in case.timed) - 1 for case in known]


def loss(rates: PathRates, known: Sequence[Case]) -> float:
    """Return the loss of choices and estimates, in logarithms; slow candidates count little, because they are not
    chosen.
    """
    lost = errors = count = 0.0
    for case in known:
        guesses, best = estimates(case, rates), min(timed.us for timed in case.timed)
        lost += math.log(case.timed[guesses.index(min(guesses))].us / best)
        for error, timed in zip(errors_of(case, guesses), case.timed, strict=True):
            weight = (best / timed.us) ** 3
            errors += weight * min(0.1, error**2)
            count += weight
    return lost / len(known) + ERRORS * math.sqrt(errors / count)


def errors_of(case: Case, guesses: Sequence[float]) -> list[float]:
    """Return the errors of estimates, in logarithms."""
    errors = [math.log(guess / timed.us) for guess, timed in zip(guesses, case.timed, strict=True)]
    common = fmean(errors) if case.kind in RELATIVE else 0.0
    return [error - common for error in errors]


def numbers_of(rates: PathRates, section: str) -> dict[str, float]:
    """The rates that are fitted, by name; those of a table are `table.entry`. Those that are 0 say that nothing is
    known of them."""
    numbers: dict[str, float] = {}
    for field in fields(rates):
        value = getattr(rates, field.name)
        if field.name in CONSTANTS[section]:
            continue
        if isinstance(value, Mapping):
            numbers |= {f"{field.name}.{entry}": number for entry, number in value.items()}
        else:
            numbers[field.name] = value
    return numbers


def told_by(known: Sequence[Case], rates: PathRates, section: str) -> dict[str, float]:
    """Return the rates that the measurements determine; rates of tiles without rows stay unchanged."""
    usual = [timed.estimate(rates) for case in known for timed in case.timed]
    numbers = numbers_of(rates, section)

    def is_told(name: str) -> bool:
        other = with_numbers(rates, {name: MUCH * numbers[name]})
        return "." not in name or [timed.estimate(other) for case in known for timed in case.timed] != usual

    return {name: number for name, number in numbers.items() if is_told(name)}


def with_numbers(rates: PathRates, numbers: Mapping[str, float]) -> PathRates:
    """Rates with other numbers."""
    changes: dict[str, Any] = {}
    for name, number in numbers.items():
        number = min(number, MOST.get(name, number))
        field, _, entry = name.partition(".")
        if entry:
            changes.setdefault(field, dict(getattr(rates, field)))[entry] = number
        else:
            changes[field] = number
    return replace(rates, **changes)


def fitted(rates: PathRates, section: str, known: Sequence[Case], steps: int, seed: int = 0) -> PathRates:
    """The best of least squares and so many random steps from there, with four digits, without what says nothing."""
    near = by_least_squares(rates, section, known)
    start = min((rates, near), key=lambda each: loss(each, known))
    return without_idle(rounded(by_steps(start, section, known, steps, seed), section), section, known)


def without_idle(rates: PathRates, section: str, known: Sequence[Case]) -> PathRates:
    """With 0 for times and parts without which choices and estimates are as good."""
    for name, number in numbers_of(rates, section).items():
        if name not in DIVISORS and "." not in name and number:
            without = with_numbers(rates, {name: 0.0})
            rates = without if loss(without, known) < loss(rates, known) + LITTLE else rates
    return rates


def by_least_squares(rates: PathRates, section: str, known: Sequence[Case]) -> PathRates:
    """Minimise the errors of the logarithms; slow candidates count little."""
    numbers = {name: number for name, number in told_by(known, rates, section).items() if number}
    weights = np.array([min(t.us for t in case.timed) / timed.us for case in known for timed in case.timed])

    def rates_at(point: np.ndarray) -> PathRates:
        return with_numbers(rates, dict(zip(numbers, np.exp(np.clip(point, -40, 40)).tolist(), strict=True)))

    def errors(point: np.ndarray) -> np.ndarray:
        tried = rates_at(point)
        return weights * [error for case in known for error in errors_of(case, estimates(case, tried))]

    return rates_at(least_squares(errors, np.log(list(numbers.values()))))


def by_steps(rates: PathRates, section: str, known: Sequence[Case], steps: int, seed: int) -> PathRates:
    """Numbers are changed a little, at first more, and kept where the loss is less."""
    names = [name for name, number in told_by(known, rates, section).items() if number]
    least, random_numbers = loss(rates, known), random.Random(seed)
    for step in range(steps):
        width, numbers = 0.5 * (1 - step / steps) + 0.02, numbers_of(rates, section)
        changed = random_numbers.sample(names, random_numbers.choice((1, 1, 2, 3)))
        tried = with_numbers(rates, {n: numbers[n] * math.exp(random_numbers.gauss(0, width)) for n in changed})
        if (now := loss(tried, known)) < least:
            rates, least = tried, now
    return rates


def starts(rates: PathRates, section: str, known: Sequence[Case], count: int) -> dict[str, PathRates]:
    """Yield starting points of fits: the present rates, ones, and random numbers."""
    names = told_by(known, rates, section)
    begins = {"present": rates, "ones": with_numbers(rates, dict.fromkeys(names, 1.0))}
    for seed in range(1, count + 1):
        numbers = random.Random(seed)
        begins[f"random {seed}"] = with_numbers(rates, {n: 10 ** numbers.uniform(-FARTHEST, FARTHEST) for n in names})
    return begins


def rounded(rates: PathRates, section: str) -> PathRates:
    """With four digits."""
    return with_numbers(rates, {name: float(f"{number:.4g}") for name, number in numbers_of(rates, section).items()})


def estimates(case: Case, rates: PathRates) -> list[float]:
    return [timed.estimate(rates) for timed in case.timed]


def quality(known: Sequence[Case], rates: PathRates) -> dict[str, list[float]]:
    """By kind: percent that choices lose on average and at worst, median error of estimates, how many problems."""
    table = {}
    for kind in dict.fromkeys(case.kind for case in known):
        of_kind = [case for case in known if case.kind == kind]
        lost = losses(of_kind, rates)
        off = median(abs(error) for case in of_kind for error in errors_of(case, estimates(case, rates)))
        table[kind] = [round(100 * fmean(lost), 2), round(100 * max(lost), 1), round(100 * off, 1), len(of_kind)]
    return table


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rows", type=Path, default=common.RESULTS / "warpgroups.json")
    options.add_argument("--sections", nargs="+", choices=KINDS, default=[*KINDS], help="to fit (default: all)")
    options.add_argument("--starts", type=int, default=0, help="random ones, beside the present rates and ones")
    options.add_argument("--steps", type=int, default=STEPS)
    options.add_argument("--each", action="store_true", help="print each choice")
    options.add_argument("--held-out", action="store_true", help="also fit to every second problem, for the others")
    options.add_argument("--write", action="store_true", help="change the data of the GPU")
    wanted = options.parse_args()
    measured, rates = json.loads(wanted.rows.read_text()), data.known()[data.DEFAULT]
    model, best_of = CostModel(rates), {}
    for section in wanted.sections:
        present = getattr(rates, section)
        known = cases(measured["rows"], section, model)
        print(f"{section}, present: {quality(known, present)}", flush=True)
        tried = []
        for name, start in starts(present, section, known, wanted.starts).items():
            each = fitted(start, section, known, wanted.steps)
            tried.append(each)
            print(f"  from {name}: {quality(known, each)} loss {loss(each, known):.4f}", flush=True)
        best = best_of[section] = min(tried, key=partial(loss, known=known))
        print("  best:", json.dumps(asdict(best)))
        for case in known if wanted.each else []:
            print("   ", told(case, best))
        if wanted.held_out:
            print("  held out:", held_out(present, section, known, wanted.steps), flush=True)
    if wanted.write:
        write(data.FOLDER / "h200.json", best_of, measured["rows"])


def held_out(rates: PathRates, section: str, known: Sequence[Case], steps: int) -> dict[str, list[float]]:
    """By kind: percent that choices lose at problems to which rates from ones were not fitted, on average and at worst:
    each half of the problems is one time those that are fitted to, and one time the others."""
    lost: dict[str, list[float]] = {}
    begin = starts(rates, section, known, 0)["ones"]
    for half in (0, 1):
        each = fitted(begin, section, known[half::2], steps)
        others = known[1 - half :: 2]
        for case, part in zip(others, losses(others, each), strict=True):
            lost.setdefault(case.kind, []).append(100 * part)
    return {kind: [round(fmean(parts), 2), round(max(parts), 1)] for kind, parts in lost.items()}


def told(case: Case, rates: PathRates) -> str:
    """Describe the choice for a problem, and the best configuration."""
    choice, least = chosen(case, rates), min(case.timed, key=lambda timed: timed.us)
    names = (f"{each.name} {each.us:.1f}, estimated {each.estimate(rates):.1f}" for each in (choice, least))
    return f"{case.kind} {str(case.problem)[:70]}: {'; best '.join(names)}"


def write(path: Path, fits: Mapping[str, PathRates], rows: Sequence[Mapping[str, Any]]) -> None:
    """Changes the file of a GPU, which says what choices lose, and what is measured otherwise."""
    content = json.loads(path.read_text()) | {name: asdict(each) for name, each in fits.items()}
    path.write_text(json.dumps(content, indent=1) + "\n")
    rates = data.read(path)
    lost = {}
    for section in KINDS:
        lost |= quality(cases(rows, section, CostModel(rates)), getattr(rates, section))
    content["source"]["choices on sm_90a"] = {"columns": COLUMNS, **lost}
    constants = {f"{section}.{name}": told for section, of in CONSTANTS.items() for name, told in of.items()}
    content["source"]["constants"] = OTHER_CONSTANTS | constants
    path.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
