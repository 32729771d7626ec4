"""The two tiers of the test suite.

`pytest` runs the quick tier. Of a parametrised test with a limit it runs a few cases, chosen so that every value and every
pair of values occurs as early as possible; the choice rotates with the seed. The limit is that of the marker
`@pytest.mark.cases(n)`, or else of the test's folder. A test marked `exhaustive` has no case in the quick tier.
A file or test that is named on the command line runs whole.

`pytest --exhaustive` runs everything, `pytest --exhaustive --part 3/8` the third of eight parts.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import re
import zlib
from collections import defaultdict
from pathlib import Path

SEED = "PTXDSL_TEST_SEED"
ROOT = Path(__file__).parent
# Cases of a test in the quick tier, by folder
LIMITS = {"kernels": 1, "torch": 1, "jax": 1, "benchmarks": 1, "corpus": 10}


def add_options(parser):
    group = parser.getgroup("tiers")
    group.addoption("--exhaustive", action="store_true", help="run every case of every test")
    group.addoption("--part", type=part, metavar="K/N", help="of the exhaustive tier, run part K of N")


def part(text):
    match = re.fullmatch(r"(\d+)/(\d+)", text)
    k, n = map(int, match.groups()) if match else (0, 0)
    if not 1 <= k <= n:
        raise argparse.ArgumentTypeError(f"--part takes K/N with 1 <= K <= N, for instance 3/8; found {text}")
    return k, n


def select(config, items):
    """Reduce `items` to those of the tier and part that the command line asks for."""
    if config.option.exhaustive:
        wanted = in_part(items, config.option.part)
    else:
        wanted = quick(items, named_on_the_command_line(config))
    if len(wanted) < len(items):
        config.hook.pytest_deselected(items=[item for item in items if item not in wanted])
        items[:] = [item for item in items if item in wanted]


def in_part(items, part):
    k, n = part or (1, 1)
    return {item for item in items if zlib.crc32(item.nodeid.encode()) % n == k - 1}


def named_on_the_command_line(config):
    """Return the files that the command line names, alone or with a test."""
    paths = [Path(config.invocation_params.dir, arg.partition("::")[0]) for arg in config.args]
    return {path.resolve() for path in paths if path.is_file()}


def quick(items, whole):
    """Return the items of the quick tier; those of the files in `whole` are all in it."""
    wanted, groups = set(), defaultdict(list)
    for item in items:
        limit = None if item.path in whole else limit_of(item)
        if limit is None:
            wanted.add(item)
        elif limit:
            on_gpu = item.get_closest_marker("gpu") is not None
            groups[item.parent.nodeid, item.originalname, on_gpu, limit].append(item)
    for (_, name, _, limit), cases in groups.items():
        generator = random.Random(f"{os.environ.get(SEED)} {name}")
        wanted.update(cases[number] for number in covering([values_of(case) for case in cases], limit, generator))
    return wanted


def limit_of(item):
    """Return how many cases of the item's test the quick tier runs, or None for all."""
    if item.get_closest_marker("exhaustive"):
        return 0
    if marker := item.get_closest_marker("cases"):
        return marker.args[0]
    return LIMITS.get(item.path.relative_to(ROOT).parts[0])


def values_of(item):
    """Return the item's parameters and their values, which are compared by identity."""
    return [(name, id(value)) for name, value in item.callspec.params.items()] if hasattr(item, "callspec") else []


def covering(cases, limit, generator):
    """Return the numbers of at most `limit` cases, chosen greedily to cover the values and the pairs of values."""
    features = [{*values, *itertools.combinations(values, 2)} for values in cases]
    numbers = list(range(len(cases)))
    generator.shuffle(numbers)
    chosen, covered = [], set()
    while numbers and len(chosen) < limit:
        best = max(numbers, key=lambda number: len(features[number] - covered))
        numbers.remove(best)
        chosen.append(best)
        covered |= features[best]
    return sorted(chosen)
