"""The quick tier covers what it promises, and the parts of the exhaustive tier are together all of it."""

import argparse
import itertools
import random
from types import SimpleNamespace

import pytest

from tests import tiers


class Item:
    """A collected test, as far as the tiers look at it."""

    def __init__(self, name, folder="emulate", marks=(), **params):
        self.path = tiers.ROOT / folder / "test_it.py"
        self.parent = SimpleNamespace(nodeid=str(self.path))
        self.originalname, self.nodeid = name, f"{self.path}::{name}[{params}]"
        self.marks = {mark: SimpleNamespace(args=args) for mark, *args in marks}
        if params:
            self.callspec = SimpleNamespace(params=params)

    def get_closest_marker(self, name):
        return self.marks.get(name)


def choose(limit, *domains, seed=0):
    """Return the chosen cases of the product of some domains, each a list of (axis, value)."""
    cases = [list(enumerate(values)) for values in itertools.product(*domains)]
    return [cases[number] for number in tiers.covering(cases, limit, random.Random(seed))]


@pytest.mark.parametrize("seed", range(5))
def test_every_value_occurs_in_the_fewest_cases_that_can_have_them(seed):
    values = {value for case in choose(4, range(4), "abcd", "xy", seed=seed) for value in case}
    assert len(values) == 4 + 4 + 2


@pytest.mark.parametrize("seed", range(5))
def test_every_pair_occurs_in_few_more_cases_than_the_fewest(seed):
    chosen = choose(16, range(3), range(3), range(3), range(3), seed=seed)
    pairs = {pair for case in chosen for pair in itertools.combinations(case, 2)}
    assert len(pairs) == 6 * 9  # six pairs of axes; nine cases could have them all


def test_the_choice_rotates_with_the_seed():
    assert len({str(choose(2, range(8), seed=seed)) for seed in range(20)}) > 5


def test_markers_and_folders_limit_the_cases():
    limited = [Item("test_limited", marks=[("cases", 2)], a=a) for a in range(5)]
    long = [Item("test_long", marks=[("exhaustive",)], a=a) for a in range(5)]
    whole = [Item("test_whole", a=a) for a in range(5)]
    kernels = [Item("test_kernel", "kernels", a=a) for a in range(5)]
    on_gpu = [Item("test_kernel", "kernels", [("gpu",)], a=a) for a in range(5)]
    chosen = tiers.quick([*limited, *long, *whole, *kernels, *on_gpu], whole=set())
    counts = [len(chosen & {*cases}) for cases in (limited, long, whole, kernels, on_gpu)]
    assert counts == [2, 0, 5, tiers.LIMITS["kernels"], tiers.LIMITS["kernels"]]


def test_a_file_on_the_command_line_is_run_whole():
    items = [Item("test_long", marks=[("exhaustive",)], a=a) for a in range(5)]
    assert tiers.quick(items, whole={items[0].path}) == {*items}


def test_each_test_is_in_one_part():
    items = [Item("test", a=a) for a in range(100)]
    parts = [tiers.in_part(items, (k, 8)) for k in range(1, 9)]
    assert sum(map(len, parts)) == 100 and set.union(*parts) == {*items}
    assert tiers.in_part(items, None) == {*items}


@pytest.mark.parametrize("text", ["0/8", "9/8", "3", "a/b", "3/0", "1/8/2"])
def test_a_part_that_does_not_exist_is_refused(text):
    with pytest.raises(argparse.ArgumentTypeError, match="--part takes K/N with 1 <= K <= N, for instance 3/8; found"):
        tiers.part(text)
