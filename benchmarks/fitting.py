"""Rows of measured candidates, and the fit of rates to them.

The fit minimises squared logarithms (Levenberg-Marquardt), then takes random steps that reduce the time lost by the
chosen candidates, which is the purpose of the rates.
"""

from __future__ import annotations

import json
import pathlib
import random
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from itertools import groupby
from math import log
from operator import attrgetter
from statistics import fmean, median, quantiles
from typing import Any, TypeAlias

import numpy as np
from shapes import ALIGNED, GROUPED

from ptxdsl.kernels.choose.candidates import label
from ptxdsl.kernels.choose.model import Candidate, CostModel, candidate
from ptxdsl.kernels.choose.rates import OF_WARPGROUPS, Rates
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.types import TYPES, Type

KINDS = ("product", "group", "convolution")
# What fits leave: fit_warpgroups.py has rates of the sm_90a path, beside which alone some counts
FIXED = ("gpu", "short_row", "uncounted", *OF_WARPGROUPS)
# What only rows of one kind tell; all else is of products
OF_KIND = {
    "group": ("grouped", "half_rate", "most_rate", "between_tiles"),
    "convolution": ("convolution", "alone", "write", "meet"),
}
OF_OTHERS = ("half_rate", "most_rate")  # of groups whose tiles are in no table: they follow from those that are
OUTLIER = 0.25  # of a logarithm: rows further off count less
SHARED = 0.3  # what counts of an error that all candidates of a case have: the choice between them does not see it
STEPS, LEAST_GAIN = 60, 1e-7
DAMPING, MOST_DAMPING = 1e-2, 1e8
TRIES, MOST_CHANGED = 2500, 3  # random steps, and how many rates each changes
REACH = 0.01, 0.03, 0.1, 0.3  # of a step, as a deviation of logarithms
OF_TABLES = 0.8  # what the shapes of published tables count beside others
OF_ERRORS = 0.05  # what the median error of times counts beside what choices lose
LITTLE = 1e-4  # lost, on average: no step gains more than chance
FARTHEST = 3.0  # random starts are up to so many powers of ten from 1
TABLES, WIDE = frozenset([*((shape,) for shape in ALIGNED), *map(tuple, GROUPED.values())]), 16
Values: TypeAlias = dict[str, float]  # of rates by name; those of a table are `table.entry`


@dataclass(frozen=True)
class Row:
    """The time of one launch. `sizes` are (M, N, K), one or many; `slices`, `is_streamed` and, for groups,
    `is_balanced` say how tiles are shared.
    """

    kind: str
    inputs: str
    sizes: tuple[tuple[int, int, int], ...]
    tile: tuple[int, int, int]
    warp: tuple[int, ...]
    stages: int
    us: float
    width: int = 16
    slices: int = 1
    is_streamed: bool = False
    is_balanced: bool = False

    @staticmethod
    def of(data: Mapping[str, object]) -> Row:
        """Make a row from JSON, where tuples are lists."""
        return Row(**{name: _tuples(value) for name, value in data.items()})  # type: ignore[arg-type]

    @property
    def config(self) -> GemmConfig:
        return GemmConfig(tile=self.tile, warp=self.warp, stages=self.stages)

    @property
    def case(self) -> tuple[object, ...]:
        """The problem whose candidates were measured together."""
        return self.kind, self.inputs, self.sizes, self.width, self.is_balanced


def _tuples(value: object) -> object:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


PROBLEM = ("kind", "inputs", "sizes", "width", "is_balanced")
TIMED = ("tile", "warp", "stages", "us", "slices", "is_streamed")


def read(path: pathlib.Path) -> tuple[dict[str, Any], list[Row]]:
    """Read a file of rows; return its header (the environment and the GPU) and the rows."""
    data = json.loads(path.read_text())
    rows = [
        Row.of(dict(zip(PROBLEM, problem, strict=True)) | dict(zip(TIMED, timed, strict=True)))
        for *problem, all_timed in data.pop("problems")
        for timed in all_timed
    ]
    return data, rows


def write(path: pathlib.Path, header: Mapping[str, object], rows: Sequence[Row]) -> None:
    """Write rows in order, those of one problem on one line: the columns PROBLEM, then a list of the columns TIMED."""
    lines = []
    for problem, timed in groupby(rows, attrgetter(*PROBLEM)):
        columns = [[round(row.us, 2) if name == "us" else getattr(row, name) for name in TIMED] for row in timed]
        lines.append(json.dumps([*problem, columns], separators=(",", ":")))
    head = "".join(f'"{name}": {json.dumps(value)},\n' for name, value in header.items())
    path.write_text("{" + head + '"problems": [\n' + ",\n".join(lines) + "\n]}\n")
    print(f"{len(rows)} rows written to {path}")


def predicted(model: CostModel, row: Row) -> float:
    """Microseconds by the model."""
    inputs: Type = TYPES[row.inputs]
    if row.kind == "group":
        m, n, k = (np.array(extents) for extents in zip(*row.sizes, strict=True))
        return model.rates.launch + model.group(row.config, inputs, (m, n, k), row.is_balanced)
    if row.kind == "convolution":
        return model.rates.launch + model.convolution(row.config, inputs, row.sizes[0], row.slices)
    return model.product(option_of(row), row.sizes[0], row.width)


@cache
def option_of(row: Row) -> Candidate:
    """Return the measured configuration of a product."""
    whole = candidate(row.config, TYPES[row.inputs])
    return whole.streamed() if row.is_streamed else whole.split(row.slices)


def values_of(rates: Rates) -> Values:
    """All numbers that may be fitted, by name."""
    values: Values = {}
    for field in fields(Rates):
        value = getattr(rates, field.name)
        if field.name in FIXED:
            continue
        if isinstance(value, Mapping):
            values |= {f"{field.name}.{entry}": number for entry, number in value.items()}
        else:
            values[field.name] = value
    return values


def with_values(rates: Rates, values: Values) -> Rates:
    """Rates with other numbers."""
    changes: dict[str, object] = {}
    for name, number in values.items():
        field, _, entry = name.partition(".")
        if entry:
            table = changes.setdefault(field, dict(getattr(rates, field)))
            assert isinstance(table, dict)
            table[entry] = number
        else:
            changes[field] = number
    return replace(rates, **changes)  # type: ignore[arg-type]


def names_of(rows: Sequence[Row], rates: Rates) -> list[str]:
    """The rates that rows of these kinds, types and tiles tell something about."""
    kinds = {row.kind for row in rows}
    tables = {
        "multiply_adds": {row.inputs for row in rows},
        "grouped": {label(row.config) for row in rows if row.kind == "group"},
        "convolution": {f"{TYPES[row.inputs].bits} {label(row.config)}" for row in rows if row.kind == "convolution"},
    }
    kind_of = {field: kind for kind, known in OF_KIND.items() for field in known}
    return [
        name
        for name in values_of(rates)
        if name not in OF_OTHERS
        and kind_of.get(name.partition(".")[0], "product") in kinds
        and ("." not in name or name.partition(".")[2] in tables[name.partition(".")[0]])
    ]


def fit(rates: Rates, rows: Sequence[Row]) -> Rates:
    """The rates that explain the rows and choose best among them, beginning at others, which stay where none chooses
    better. Products come first: what a launch takes is theirs."""
    for kind in KINDS:
        known = [row for row in rows if row.kind == kind]
        if known:
            rates = min([*_fits(rates, known), rates], key=lambda each: sum(regrets(CostModel(each), known)))
            rates = by_choices(rates, known)
            rates = with_rates_of_others(rates) if kind == "group" else rates
    return rates


def with_rates_of_others(rates: Rates) -> Rates:
    """With the rates of groups whose tiles are in no table, nearest to those that are: most · e / (e + half) of a tile
    of e elements, where 1 / rate is a straight line of 1 / e."""
    tiles = [name.split("/")[0].split("x") for name in rates.grouped]
    elements = np.array([int(m) * int(n) for m, n, _ in tiles])
    slope, least = np.polyfit(1 / elements, 1 / np.array(list(rates.grouped.values())), 1)
    return replace(rates, most_rate=float(1 / least), half_rate=float(slope / least))


def starts_of(rates: Rates, rows: Sequence[Row], count: int) -> dict[str, Rates]:
    """Return starting points of fits: the present rates, ones, and random numbers."""
    names, known = names_of(rows, rates), {"present": rates}
    if count:
        known["ones"] = with_values(rates, dict.fromkeys(names, 1.0))
    for seed in range(1, count):
        numbers = random.Random(seed)
        known[f"random {seed}"] = with_values(rates, {n: 10 ** numbers.uniform(-FARTHEST, FARTHEST) for n in names})
    return known


def by_choices(rates: Rates, rows: Sequence[Row], allowed: Callable[[Rates], bool] = lambda rates: True) -> Rates:
    """Rates near these that choose better: random steps, of which those are made that lose no more and are allowed."""
    rng, names, cases = random.Random(1), names_of(rows, rates), cases_of(rows)
    best, least = rates, lost(rates, cases)
    for _ in range(TRIES):
        if least < LITTLE:
            break
        values, reach = values_of(best), rng.choice(REACH)
        changed = rng.sample(names, rng.randint(1, MOST_CHANGED))
        tried = with_values(best, {name: values[name] * float(np.exp(rng.gauss(0, reach))) for name in changed})
        loses = lost(tried, cases, least)
        if loses <= least and allowed(tried):
            best, least = tried, loses
    return best


def cases_of(rows: Sequence[Row]) -> list[list[Row]]:
    """The rows of each case, those of tables first."""
    cases = [[rows[number] for number in numbers] for numbers in _cases(rows)]
    return sorted(cases, key=lambda case: not is_of_table(case[0]))


def is_of_table(row: Row) -> bool:
    return row.kind in ("product", "group") and row.width == WIDE and row.sizes in TABLES


def lost(rates: Rates, cases: Sequence[Sequence[Row]], most: float = float("inf")) -> float:
    """Return the mean loss of the choices, weighted towards the shapes of tables, plus a small term for errors.

    All input types count the same. If the tables, which come first, lose more than `most`, nothing else is evaluated.
    """
    model, errors = CostModel(rates), []
    kinds = [(is_of_table(case[0]), case[0].inputs) for case in cases]
    shares = {kind: OF_TABLES if kind[0] else 1 - OF_TABLES for kind in kinds}
    losses: dict[tuple[bool, str], list[float]] = {kind: [] for kind in shares}

    def so_far() -> float:
        return sum(share * fmean(losses[kind] or [0]) for kind, share in shares.items()) / sum(shares.values())

    for number, (kind, case) in enumerate(zip(kinds, cases, strict=True)):
        if number and kinds[number - 1][0] and not kind[0] and so_far() > most:
            break
        times = [predicted(model, row) for row in case]
        errors += [abs(log(time / row.us)) for time, row in zip(times, case, strict=True)]
        losses[kind].append(case[times.index(min(times))].us / min(row.us for row in case) - 1)
    return so_far() + OF_ERRORS * median(errors)


def _fits(rates: Rates, rows: Sequence[Row]) -> list[Rates]:
    """Minimise the errors; the part that all candidates of a case share counts less. Starts at the rates."""
    names, cases = names_of(rows, rates), _cases(rows)

    def rates_at(point: np.ndarray) -> Rates:
        return with_values(rates, dict(zip(names, np.exp(point).tolist(), strict=True)))

    def errors(point: np.ndarray) -> np.ndarray:
        model = CostModel(rates_at(point))
        return np.log([predicted(model, row) / row.us for row in rows])

    def within_cases(point: np.ndarray) -> np.ndarray:
        off = errors(point)
        for numbers in cases:
            off[numbers] -= (1 - SHARED) * median(off[numbers])
        return off

    start = np.log([values_of(rates)[name] for name in names])
    plain = least_squares(errors, start)
    return [
        rates_at(point) for point in (least_squares(within_cases, plain), least_squares(within_cases, start), plain)
    ]


def _cases(rows: Sequence[Row]) -> list[list[int]]:
    """The numbers of the rows of each case."""
    cases: defaultdict[tuple[object, ...], list[int]] = defaultdict(list)
    for number, row in enumerate(rows):
        cases[row.case].append(number)
    return list(cases.values())


def least_squares(residuals: Callable[[np.ndarray], np.ndarray], start: np.ndarray) -> np.ndarray:
    """Minimise the residuals; those past OUTLIER count less and less."""
    point, damping, now = start, DAMPING, residuals(start)
    for _ in range(STEPS):
        weights = 1 / np.sqrt(1 + (now / OUTLIER) ** 2)
        jacobian = _jacobian(residuals, point, now) * weights[:, None]
        curvature, gradient = jacobian.T @ jacobian, jacobian.T @ (now * weights)
        before = _cost(now)
        while damping < MOST_DAMPING:
            step = np.linalg.lstsq(curvature + damping * np.diag(np.diag(curvature) + 1e-9), -gradient, rcond=None)[0]
            tried = residuals(point + np.clip(step, -1, 1))
            if _cost(tried) < before:
                break
            damping *= 4
        else:
            return point
        point, now, damping = point + np.clip(step, -1, 1), tried, damping / 4
        if before - _cost(now) < LEAST_GAIN * before:
            return point
    return point


def _cost(residuals: np.ndarray) -> float:
    return float(np.sqrt(1 + (residuals / OUTLIER) ** 2).sum() - len(residuals))


def _jacobian(
    residuals: Callable[[np.ndarray], np.ndarray], point: np.ndarray, now: np.ndarray, step: float = 1e-5
) -> np.ndarray:
    return np.column_stack([(residuals(point + step * unit) - now) / step for unit in np.eye(len(point))])


def quality(rates: Rates, rows: Sequence[Row]) -> list[dict[str, object]]:
    """By kind: how far off the model is, and how much slower its choice is than the best candidate of each case."""
    model, table = CostModel(rates), []
    for kind in KINDS:
        known = [row for row in rows if row.kind == kind]
        if len(known) < 2:
            continue
        off = [abs(predicted(model, row) / row.us - 1) for row in known]
        lost = regrets(model, known)
        table.append(
            {"kind": kind, "rows": len(known), "off, median": median(off), "off, 90 %": quantiles(off, n=10)[-1],
             "choice/best, mean": float(np.mean(lost)), "choice/best, worst": max(lost)}
        )  # fmt: skip
    return table


def regrets(model: CostModel, rows: Sequence[Row]) -> list[float]:
    """Return the time of the preferred candidate divided by the best time, case by case."""
    cases = [[rows[number] for number in numbers] for numbers in _cases(rows)]
    return [min(case, key=lambda row: predicted(model, row)).us / min(row.us for row in case) for case in cases]
