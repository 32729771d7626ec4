"""What kernels and their helpers read of Python: keys, and kernels that are traced anew where it changes."""

from __future__ import annotations

import ctypes
import datetime
import decimal
import functools
import io
import itertools
import logging
import mmap
import operator
import os
import queue
import random
import re
import struct
import sys
import threading
import weakref
from array import array
from collections import ChainMap, Counter, UserDict, deque
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from decimal import Decimal
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import f32, ptr
from ptxdsl.kernels.gemm import gemm_kernel
from ptxdsl.trace.captured import captures
from ptxdsl.trace.contents import constant_key

SCALE = 2
TYPE = f32
SIZES = [1, 2]
TABLE = np.arange(4)
BY_NAME = {"one": 1}
OPTIONS = SimpleNamespace(tile=SimpleNamespace(m=1), names=["a"])


class Settings:
    WIDTH = 1

    def __init__(self):
        self.depth = 1

    def total(self):
        return self.depth + SCALE


SETTINGS = Settings()
NUMBERS, VIEW = array("i", [1]), memoryview(bytearray(b"\1"))
COUNTS, CHAIN, LONG = Counter(a=1), ChainMap({"a": 1}), np.zeros(300_000, np.float32)
conf = ModuleType("conf")
conf.SCALE = 3


def helper(x):
    return x * SCALE


def indirect(x):
    return helper(x) + 1


class Vector(pd.Parameters):
    x: ptr[f32]

    def scaled(self):
        return self.x[0] * SCALE


def result(kernel, **constants):
    """What a kernel writes."""
    out = np.zeros(1, np.float32)
    kernel[1, 1](out, **constants)
    return float(out[0])


def kernel_of(body, **constants):
    """A kernel that writes what a function returns while it is traced."""

    @pd.kernel
    def k(out: ptr[f32]):
        out[0] = pd.cast(body(), f32)

    return k


CHANGES = {
    "a global": (lambda: SCALE, ("SCALE", 5), 2, 5),
    "a global of a helper": (lambda: helper(3), ("SCALE", 5), 6, 15),
    "a global of a helper of a helper": (lambda: indirect(3), ("SCALE", 5), 7, 16),
    "a global of a method": (lambda: Settings().total(), ("SCALE", 5), 3, 6),
    "a helper": (lambda: helper(3), ("helper", lambda x: x + 100), 6, 103),
    "a list": (lambda: sum(SIZES), ("SIZES", [1, 2, 3]), 3, 6),
    "a dict": (lambda: BY_NAME["one"], ("BY_NAME", {"one": 7}), 1, 7),
    "a function in a comprehension": (lambda: sum([helper(i) for i in range(3)]), ("SCALE", 5), 6, 15),
    "a name that was Python's": (lambda: max(1, 2), ("max", min), 2, 1),
}


@pytest.mark.parametrize("case", CHANGES)
def test_what_has_changed_is_traced_anew_and_what_is_as_before_is_not(case, monkeypatch):
    body, (name, value), before, after = CHANGES[case]
    kernel = kernel_of(body)
    assert [result(kernel), result(kernel)] == [before, before]
    with monkeypatch.context() as patch:
        patch.setitem(globals(), name, value)
        assert [result(kernel), result(kernel)] == [after, after]
    assert result(kernel) == before
    assert len(kernel._variants) == 2


def test_kernels_may_assert_in_files_of_tests():
    """Where pytest puts names of its own into them, which are no identifiers."""

    def k(x: ptr[f32], *, factor: int):
        assert factor > 0
        x[0] = factor

    kernel = pd.kernel(k)
    for _ in range(2):
        x = np.zeros(1, np.float32)
        kernel[1, 1](x, factor=3)
        assert x[0] == 3
    assert "@pytest_ar" in k.__code__.co_names


def test_what_changes_in_place_is_traced_anew(monkeypatch):
    kernel = kernel_of(lambda: SIZES[0] + int(TABLE[1]) + OPTIONS.tile.m + SETTINGS.depth + Settings.WIDTH)
    monkeypatch.setitem(globals(), "SIZES", [1, 2])
    monkeypatch.setitem(globals(), "TABLE", np.arange(4))
    assert result(kernel) == 5
    SIZES[0] = 10
    assert result(kernel) == 14
    TABLE[1] = 100
    assert result(kernel) == 113
    monkeypatch.setattr(OPTIONS.tile, "m", 1000)
    assert result(kernel) == 1112
    monkeypatch.setattr(SETTINGS, "depth", 10000)
    assert result(kernel) == 11111
    monkeypatch.setattr(Settings, "WIDTH", 100000)
    assert result(kernel) == 111110


def read_by_an_import():
    from os import environ

    return int(environ["PTXDSL_TEST_SCALE"])


ENVIRONMENT = {
    "by its name": lambda: int(os.environ["PTXDSL_TEST_SCALE"]),
    "with a default": lambda: int(os.environ.get("PTXDSL_TEST_SCALE", 0)),
    "by a function": lambda: int(os.getenv("PTXDSL_TEST_SCALE") or 0),
    "by an import": read_by_an_import,
}


@pytest.mark.parametrize("case", ENVIRONMENT)
def test_a_variable_of_the_environment_that_changes(case, monkeypatch):
    kernel = kernel_of(ENVIRONMENT[case])
    for value in (3, 3, 9, 3):
        monkeypatch.setenv("PTXDSL_TEST_SCALE", str(value))
        assert result(kernel) == value
    assert len(kernel._variants) == 2


def by_default(x, width=2, *, depth=SIZES):
    return x + width + depth[0]


def handed_on(options):
    return options.tile.m


def bound_first():
    options, module = OPTIONS, conf
    return options.tile.m + module.SCALE


INDIRECT = {  # what is read, where it lies, the results before and after it has become 9
    "an attribute of a module": (lambda: conf.SCALE, (conf, "SCALE"), 3, 9),
    "of a module that has another name": (bound_first, (conf, "SCALE"), 4, 10),
    "of an object that is handed on": (lambda: handed_on(OPTIONS), (OPTIONS.tile, "m"), 1, 9),
    "by getattr": (lambda: getattr(SETTINGS, "depth"), (SETTINGS, "depth"), 1, 9),  # noqa: B009
    "by vars": (lambda: vars(OPTIONS.tile)["m"], (OPTIONS.tile, "m"), 1, 9),
    "by globals": (lambda: globals()["SCALE"], (globals(), "SCALE"), 2, 9),
    "what is in a default": (lambda: by_default(1), (SIZES, 0), 4, 12),
    "an array of Python": (lambda: NUMBERS[0], (NUMBERS, 0), 1, 9),
    "a memoryview": (lambda: VIEW[0], (VIEW, 0), 1, 9),
    "a dict of a class of its own": (lambda: COUNTS["a"], (COUNTS, "a"), 1, 9),
    "a chain of dicts": (lambda: CHAIN["a"], (CHAIN.maps[0], "a"), 1, 9),
    "an element of a long array": (lambda: float(LONG[5]), (LONG, 5), 0, 9),
}


def write(holder, name, value):
    """Writes an element or an attribute; what it was before."""
    if hasattr(holder, "__setitem__"):
        before, holder[name] = holder[name], value
    else:
        before = getattr(holder, name)
        setattr(holder, name, value)
    return before


@pytest.mark.parametrize("case", INDIRECT)
def test_what_is_read_by_other_ways_and_changes_is_traced_anew(case):
    body, (holder, name), before, after = INDIRECT[case]
    kernel = kernel_of(body)
    assert [result(kernel), result(kernel)] == [before, before]
    assert len(kernel._variants) == 1
    was = write(holder, name, 9)
    assert [result(kernel), result(kernel)] == [after, after]
    write(holder, name, was)
    assert result(kernel) == before
    assert len(kernel._variants) == 2


def test_defaults_of_a_helper_that_are_replaced(monkeypatch):
    kernel = kernel_of(lambda: by_default(1))
    assert result(kernel) == 4
    monkeypatch.setattr(by_default, "__defaults__", (9,))
    assert [result(kernel), result(kernel)] == [11, 11]
    assert len(kernel._variants) == 2


def test_a_variable_around_the_kernel_that_changes():
    count, sizes = 1, [1]

    @pd.kernel
    def k(out: ptr[f32]):
        out[0] = pd.cast(count + len(sizes), f32)

    assert result(k) == 2
    count = 5
    assert result(k) == 6
    sizes.append(0)
    assert result(k) == 7
    assert k.ptx() is k.ptx()


def test_a_deque_and_bytes_that_change():
    turns, flags = deque([1, 2]), bytearray([1])

    @pd.kernel
    def k(out: ptr[f32]):
        out[0] = pd.cast(10 * turns[0] + flags[0], f32)

    assert result(k) == 11
    turns.rotate()
    assert result(k) == 21
    flags[0] = 7
    assert result(k) == 27
    assert k.ptx() is k.ptx()


def test_a_type_in_an_annotation_that_changes(monkeypatch):
    @pd.kernel
    def k(out: ptr[TYPE]):
        out[0] = 1.5

    assert result(k) == 1.5
    monkeypatch.setitem(globals(), "TYPE", pd.f64)
    out = np.zeros(1)
    k[1, 1](out)
    assert out[0] == 1.5


def test_a_method_of_a_group_that_reads_a_global(monkeypatch):
    @pd.kernel
    def k(p: Vector, out: ptr[f32]):
        out[0] = p.scaled()

    group, out = Vector(x=np.full(1, 3, np.float32)), np.zeros(1, np.float32)
    k[1, 1](group, out)
    monkeypatch.setitem(globals(), "SCALE", 5)
    k[1, 1](group, out)
    assert out[0] == 15


def test_a_constant_that_is_a_function_which_reads_a_global(monkeypatch):
    @pd.kernel
    def k(out: ptr[f32], *, function):
        out[0] = pd.cast(function(3), f32)

    assert result(k, function=helper) == 6
    monkeypatch.setitem(globals(), "SCALE", 5)
    assert result(k, function=helper) == 15
    assert result(k, function=functools.partial(helper)) == 15


@dataclass(frozen=True)
class Tile:
    m: object
    n: object = 1
    hidden: object = field(default=0, compare=False)


DIFFERENT = [
    (2, 2.0), (0.0, -0.0), (1, True), ((1,), (True,)), ((0.0, (1,)), (-0.0, (1,))), (Tile(1), Tile(1.0)),
    (Tile((0.0,)), Tile((-0.0,))), (Tile(1, hidden=1), Tile(1, hidden=2)), (frozenset([1]), frozenset([True])),
    (Tile(1, hidden=[1]), Tile(1, hidden=[2])), (Tile(1, hidden=SimpleNamespace()), Tile(1, hidden=SimpleNamespace())),
    (functools.partial(helper, [1]), functools.partial(helper, [1])), (np.float32(1), np.float64(1)), (np.float32(0.0), np.float32(-0.0)), (f32, pd.f64), (2**70, float(2**70)),
    (1 + 0j, complex(1, -0.0)), (range(0, 3, 2), range(0, 4, 2)), (Decimal("0"), Decimal("-0")), (Decimal("1"), Decimal("1.0")),
]  # fmt: skip


@pytest.mark.parametrize("one, other", DIFFERENT, ids=range(len(DIFFERENT)))
def test_constants_that_are_equal_and_not_the_same_are_other_kernels(one, other):
    assert constant_key(one) != constant_key(other)

    @pd.kernel
    def k(out: ptr[f32], *, value):
        out[0] = 1.0

    assert k.ir(value=one) is not k.ir(value=other)
    assert k.ir(value=one) is k.ir(value=one)


def test_constants_that_are_the_same_are_one_kernel():
    for one, other in [(Tile((1, 2.5)), Tile((1, 2.5))), ((1, "a"), (1, "a")), (float("nan"), float("nan"))]:
        assert constant_key(one) == constant_key(other)


def test_minus_zero_arrives():
    @pd.kernel
    def k(out: ptr[f32], *, value):
        out[0] = value

    out = np.ones(1, np.float32)
    for value in (0.0, -0.0, 0.0):
        k[1, 1](out, value=value)
        assert np.signbit(out[0]) == np.signbit(value)


def test_the_guard_says_at_once_what_has_changed(monkeypatch):
    def body():
        return SCALE + SIZES[0] + OPTIONS.tile.m + TABLE[0] + BY_NAME["one"] + len(OPTIONS.names)

    guard = captures([body]).guard
    changes = [
        lambda patch: patch.setitem(globals(), "SCALE", 2.0),
        lambda patch: patch.setitem(globals(), "SIZES", [1, 2]),
        lambda patch: patch.setitem(globals(), "OPTIONS", SimpleNamespace()),
        lambda patch: patch.setattr(OPTIONS.tile, "m", 2),
        lambda patch: patch.setitem(BY_NAME, "two", 2),
        lambda patch: patch.setitem(BY_NAME, "one", 1.0),
        lambda patch: patch.setattr(OPTIONS, "names", ["b"]),
        lambda patch: patch.delitem(globals(), "SCALE"),
    ]
    for change in changes:
        assert guard()
        with monkeypatch.context() as patch:
            change(patch)
            try:
                assert not guard()
            except (NameError, AttributeError, LookupError):
                continue
    for container, item in ((SIZES, 3), (OPTIONS.names, "b")):
        container.append(item)
        assert not guard()
        container.pop()
    TABLE[3] += 1
    assert not guard()
    TABLE[3] -= 1
    assert guard()


def test_long_lists_are_compared_part_by_part():
    numbers = list(range(5_000))
    table = dict.fromkeys(numbers, 1.5)
    guard = captures([lambda: numbers[3] + table[4]]).guard
    assert guard()
    for container in (numbers, table):
        for value in (7, 3.0, True):
            before, container[3] = container[3], value
            assert not guard()
            container[3] = before
            assert guard()


def test_helpers_that_call_each_other_and_themselves_are_followed_once():
    def even(n):
        return n == 0 or odd(n - 1)

    def odd(n):
        return n != 0 and even(n - 1)

    assert captures([even]).key == captures([even]).key
    assert captures([even]).guard()


def test_functions_of_the_library_have_nothing_to_watch():
    read = captures([gemm_kernel.__wrapped__, pd.fma])
    assert read.key == () and read.guard is None


class Plan:
    """An object whose methods and properties read what it holds, and what lies beside it."""

    width = 1

    def __init__(self):
        self.value, self.items, self.other = 1, [1], 1

    def total(self):
        return self.value + SCALE

    def first(self):
        return self.items[0]

    def by_name(self):
        return getattr(self, "value")  # noqa: B009

    def through(self):
        return self.total() + self.doubled

    @property
    def doubled(self):
        return self.value * 2

    @functools.cached_property
    def once(self):
        return self.value

    @classmethod
    def of_class(cls):
        return cls.width

    def __getattr__(self, name):
        if name == "elsewhere":
            return self.value
        raise AttributeError(name)

    def __call__(self):
        return self.value


class Slotted:
    __slots__ = ("value",)

    def __init__(self):
        self.value = 1

    @property
    def doubled(self):
        return self.value * 2


class Wider(Plan):
    """What it reads of itself lies in the class that it derives from."""


def value_of(plan):
    return functools.partial(setattr, plan, "value")


def cached():
    held = [1]

    @functools.lru_cache
    def read():
        return held[0]

    def change(value):
        held[0] = value
        read.cache_clear()

    return lambda: read(), change


def variable_of_the_context():
    variable = ContextVar("variable", default=1)
    return lambda: variable.get(), variable.set


def replaced_code():
    def read():
        return 1

    return lambda: read(), lambda value: setattr(read, "__code__", (lambda: 9).__code__)


def reference():
    plan = Plan()
    read = weakref.ref(plan)
    return lambda: read().value, lambda value: setattr(plan, "value", value)


def replaced_method():
    class Read(Plan):
        def total(self):
            return 1

    plan = Read()
    return lambda: plan.total(), lambda value: setattr(Read, "total", lambda self: value)


def filled(container, at):
    return lambda: container[at], functools.partial(operator.setitem, container, at)


def in_container(container, at, plan):
    return lambda: container[at].total(), value_of(plan)


def in_lists():
    plans = [[Plan()]]
    return lambda: plans[0][0].total(), value_of(plans[0][0])


def partial_call():
    call = functools.partial(lambda x: x, x=1)
    return lambda: call(), functools.partial(operator.setitem, call.keywords, "x")


def bound(plan):
    read = plan.total
    return lambda: read(), value_of(plan)


def of_metaclass(body):
    """A class whose metaclass has these members."""
    return type("Kind", (type,), body)("Configuration", (), {"table": {"block": 1}})


def metaclass():
    kind = of_metaclass({"BLOCK": 1})
    return lambda: kind.BLOCK, functools.partial(setattr, type(kind), "BLOCK")


def method_of_metaclass():
    kind = of_metaclass({"BLOCK": 1, "block": lambda cls: cls.BLOCK})
    return lambda: kind.block(), functools.partial(setattr, type(kind), "BLOCK")


def of_table(body):
    """What finds things in a table that it shares with the one who changes it."""
    table = {"block": 1}
    kind = type("Finder", (), body(table))
    return kind, functools.partial(operator.setitem, table, "block")


def found_by_metaclass():
    table = {"block": 1}
    kind = of_metaclass({"__getattr__": lambda cls, name: table[name]})
    return lambda: kind.block, functools.partial(operator.setitem, table, "block")


def found_by_class():
    kind, change = of_table(lambda table: {"__class_getitem__": lambda cls, name: table[name]})
    return lambda: kind["block"], change


def found_by(method):
    kind, change = of_table(lambda table: {method: lambda self, name: table[name]})
    instance = kind()
    if method == "__getitem__":
        return lambda: instance["block"], change
    return lambda: instance.block, change


class Constant:
    """A descriptor with a value of its own."""

    def __init__(self):
        self.value = 1

    def __get__(self, instance, kind):
        return self.value


def descriptor():
    constant = Constant()
    instance = type("Holder", (), {"block": constant})()
    return lambda: instance.block, functools.partial(setattr, constant, "value")


def called_by(body):
    """A helper that gets an object and calls a method of it, which reads a variable around it."""
    held = [1]
    instance = type("Reader", (), body(held))()
    return instance, functools.partial(operator.setitem, held, 0)


def handed_method():
    def helper(reader):
        return reader.total()

    reader, change = called_by(lambda held: {"total": lambda self: held[0]})
    return lambda: helper(reader), change


def handed_property():
    def helper(reader):
        return reader.total

    reader, change = called_by(lambda held: {"total": property(lambda self: held[0])})
    return lambda: helper(reader), change


def default_object():
    plan = Plan()

    def helper(p=plan):
        return p.value

    return lambda: helper(), value_of(plan)


def imported():
    sys.modules["of_test_captured"] = module = ModuleType("of_test_captured")
    exec("value = 1\ndef total(): return value", vars(module))

    def read():
        import of_test_captured

        return of_test_captured.total()

    return read, functools.partial(setattr, module, "value")


def imported_from():
    _, change = imported()

    def read():
        from of_test_captured import value

        return value

    return read, change


def view():
    table = {"a": 1}
    values = table.values()
    return lambda: sum(values), functools.partial(operator.setitem, table, "b")


def bound_to_dict():
    table = {"a": 1}
    get = table.get
    return lambda: get("a"), functools.partial(operator.setitem, table, "a")


def missing():
    table = {"block": 1}
    kind = type("Table", (dict,), {"__missing__": lambda self, name: table[name]})
    held = kind()
    return lambda: held["block"], functools.partial(operator.setitem, table, "block")


def of_long_list():
    plans = [Plan() for _ in range(40)]
    return lambda: plans[30].value, value_of(plans[30])


def of_key():
    plans = {("f16", 128): Plan()}
    return lambda: plans["f16", 128].value, value_of(plans["f16", 128])


def of_deque():
    plans = deque([Plan()])
    return lambda: plans[0].value, value_of(plans[0])


def of_set():
    plan = Plan()
    plans = {plan}
    return lambda: next(iter(plans)).value, value_of(plan)


# What makes a function that reads something, and one that writes it.
OF_PLANS = {
    "a method": lambda plan: (lambda: plan.total(), value_of(plan)),
    "a list behind a method": lambda plan: (lambda: plan.first(), functools.partial(operator.setitem, plan.items, 0)),
    "a method that hands itself on": lambda plan: (lambda: plan.by_name(), value_of(plan)),
    "a method behind a method": lambda plan: (lambda: plan.through(), value_of(plan)),
    "a property": lambda plan: (lambda: plan.doubled, value_of(plan)),
    "what __getattr__ finds": lambda plan: (lambda: plan.elsewhere, value_of(plan)),
    "an object that is called": lambda plan: (lambda: plan(), value_of(plan)),
    "a bound method": bound,
    "of a list": lambda plan: in_container([plan], 0, plan),
    "of a tuple": lambda plan: in_container((plan,), 0, plan),
    "of a dict": lambda plan: in_container({"a": plan}, "a", plan),
}
HELD = {name: functools.partial(case, Plan()) for name, case in OF_PLANS.items()} | {
    "a property of slots": lambda: (lambda plan: (lambda: plan.doubled, value_of(plan)))(Slotted()),
    "a class behind a method": lambda: (lambda: Wider.of_class(), functools.partial(setattr, Plan, "width")),
    "of a list of lists": in_lists,
    "a cached function": cached,
    "a partial call": partial_call,
    "a variable of the context": variable_of_the_context,
    "code that is replaced": replaced_code,
    "a weak reference": reference,
    "a method that is replaced": replaced_method,
    "a dict of the library": lambda: filled(UserDict(a=1), "a"),
    "a list of a class of its own": lambda: filled(type("Numbers", (list,), {})([1]), 0),
    "an attribute of a metaclass": metaclass,
    "a method of a metaclass": method_of_metaclass,
    "what __getattr__ of a metaclass finds": found_by_metaclass,
    "what __class_getitem__ finds": found_by_class,
    "what __getattr__ finds elsewhere": lambda: found_by("__getattr__"),
    "what __getitem__ finds": lambda: found_by("__getitem__"),
    "a descriptor": descriptor,
    "a method of an object that is handed on": handed_method,
    "a property of an object that is handed on": handed_property,
    "an object that is a default": default_object,
    "a module that is imported by the kernel": imported,
    "a name that is imported by the kernel": imported_from,
    "a view of a dict": view,
    "a bound method of a dict": bound_to_dict,
    "a dict that finds what it has not": missing,
    "of a long list": of_long_list,
    "of a set": of_set,
    "of a deque": of_deque,
    "of a dict by tuples": of_key,
}


@pytest.mark.parametrize("case", HELD)
def test_what_objects_hold_is_traced_anew_where_it_changes(case):
    """However a kernel comes to it: an old value is never used, and what is as before is not traced again."""
    read, change = HELD[case]()
    kernel = kernel_of(read)
    before = read()
    assert [result(kernel), result(kernel)] == [before, before]
    assert len(kernel._variants) == 1
    change(9)
    after = read()
    assert after != before
    assert [result(kernel), result(kernel)] == [after, after]
    Plan.width = 1


def test_what_a_method_does_not_read_may_change():
    plan = Plan()
    read = captures([lambda: plan.total()])
    plan.other = 5
    assert read.hold()
    plan.value = 5
    assert not read.hold()


def of_module_later():
    module = ModuleType("later")

    def read():
        try:
            return module.width
        except AttributeError:
            return 1

    return read, functools.partial(setattr, module, "width")


def of_module_asked():
    module = ModuleType("later")
    return lambda: getattr(module, "width", 1), functools.partial(setattr, module, "width")


def of_function_later():
    def helper():
        try:
            return helper.width
        except AttributeError:
            return 1

    return lambda: helper(), functools.partial(setattr, helper, "width")


def of_function_asked():
    def helper():
        return helper.width if hasattr(helper, "width") else 1

    return lambda: helper(), functools.partial(setattr, helper, "width")


def of_instance_later():
    plan = Wider()
    return lambda: plan.width, functools.partial(setattr, plan, "width")


def of_class_later():
    kind = type("Later", (Wider,), {})
    return lambda: kind.width, functools.partial(setattr, kind, "width")


def of_slot_later():
    slotted = Slotted.__new__(Slotted)

    def read():
        try:
            return slotted.value
        except AttributeError:
            return 1

    return read, functools.partial(setattr, slotted, "value")


def of_method_later():
    plan = Plan()
    return lambda: plan.total(), lambda value: setattr(plan, "total", lambda: value)


def of_queue():
    waiting = queue.Queue()
    return lambda: waiting.qsize(), waiting.put


def of_cell():
    value = 1

    def change(new):
        nonlocal value
        value = new

    cell = change.__closure__[0]
    return lambda: cell.cell_contents, change


def of_order():
    table = {"a": 1, "b": 2}

    def change(value):
        table["a"] = table.pop("a")

    return lambda: next(iter(table.values())), change


def of_view():
    table = np.zeros(4)
    view = table[1:3]
    return lambda: float(view[0]), functools.partial(operator.setitem, table, 1)


LATER = {
    "an attribute that a module got": of_module_later,
    "an attribute of a module by getattr": of_module_asked,
    "an attribute that a function got": of_function_later,
    "an attribute of a function by hasattr": of_function_asked,
    "an attribute that hides that of the class": of_instance_later,
    "an attribute of a class that hides that of its base": of_class_later,
    "a slot that is set": of_slot_later,
    "an attribute that hides a method": of_method_later,
    "a queue": of_queue,
    "a cell": of_cell,
    "the order of a dict": of_order,
    "a key with braces": lambda: filled({"{a}": 1}, "{a}"),
    "a view of an array": of_view,
}


@pytest.mark.parametrize("case", LATER)
def test_state_that_appears_later_is_traced_anew(case):
    read, change = LATER[case]()
    kernel = kernel_of(read)
    before = read()
    assert [result(kernel), result(kernel)] == [before, before]
    assert len(kernel._variants) == 1
    change(9)
    after = read()
    assert after != before
    assert [result(kernel), result(kernel)] == [after, after]
    assert len(kernel._variants) == 2


@pytest.mark.parametrize("draws", [random.Random(1), np.random.default_rng(1), np.random.RandomState(1)], ids=type)
def test_random_numbers_are_drawn_anew(draws):
    kernel = kernel_of(lambda: float(draws.uniform(0, 1)))
    assert result(kernel) != result(kernel)
    assert len(kernel._variants) == 2


class Pair(ctypes.Structure):
    _fields_ = (("a", ctypes.c_int),)


class Tensor(io.BytesIO):
    """An array of another library: attributes in Python, data in a base class written in C."""

    def __init__(self, data):
        super().__init__(data)
        self.requires_grad = False


OPAQUE = {
    "threading.local": (threading.local(), "a _thread._local"),
    "queue.SimpleQueue": (queue.SimpleQueue(), "a _queue.SimpleQueue"),
    "a number of ctypes": (ctypes.c_int(1), "a ctypes.c_int"),
    "a structure of ctypes": (Pair(1), "a tests.test_captured.Pair"),
    "bytes of io": (io.BytesIO(b"1"), "a _io.BytesIO"),
    "text of io": (io.StringIO("1"), "a _io.StringIO"),
    "an array of another library": (Tensor(b"1"), "a tests.test_captured.Tensor"),
    "mapped memory": (mmap.mmap(-1, 8), "a mmap.mmap"),
    "an iterator of numpy": (np.zeros(4).flat, "a numpy.flatiter"),
    "a context of decimal": (decimal.Context(), "a decimal.Context"),
    "an iterator of a list": (iter([1]), "a list_iterator"),
    "an iterator of a dict": (iter({1: 2}), "a dict_keyiterator"),
    "a counter": (itertools.count(), "an itertools.count"),
    "a generator": ((n for n in [1]), "a generator"),
    "a zip": (zip([1], [2], strict=True), "a zip"),
    "a file": (sys.__stdin__, "a _io.TextIOWrapper"),
    "a lock": (threading.Lock(), "a _thread.lock"),
}
UNCOMPARED = ", whose contents cannot be compared: the kernel would not be traced again when they change"
BY_CONSTANT = (
    "read it before the launch, and pass the result as a keyword-only constant; or keep the state in numbers, strings, "
    "lists, dicts, arrays or attributes"
)


def refused(kernel, **constants):
    """The message, the line of source and the help of a refusal."""
    with pytest.raises(pd.TraceError) as error:
        kernel.ptx(**constants)
    return error.value.message, error.value.at.text.strip(), error.value.help


@pytest.mark.parametrize("case", OPAQUE)
def test_what_hides_its_contents_is_refused_where_it_is_read(case):
    hidden, name = OPAQUE[case]
    kernel = kernel_of(lambda: id(hidden) % 7)
    line = "kernel = kernel_of(lambda: id(hidden) % 7)"
    assert refused(kernel) == (f"`hidden` is {name}{UNCOMPARED}", line, BY_CONSTANT)


def test_an_import_by_a_call_is_refused():
    kernel = kernel_of(lambda: __import__(__name__).value)
    line = "kernel = kernel_of(lambda: __import__(__name__).value)"
    message = f"`__import__` is a builtin_function_or_method{UNCOMPARED}"
    assert refused(kernel) == (message, line, BY_CONSTANT)


def holder_of(hidden):
    plan = Plan()
    plan.hidden = hidden
    return plan


# What reads an iterator, and the path that the message names.
REACHED = {
    "of a list": (lambda turn: (lambda held: lambda: next(held[0]))([turn]), "held[0]"),
    "of a dict": (lambda turn: (lambda held: lambda: next(held["a"]))({"a": turn}), "held['a']"),
    "of an object": (lambda turn: (lambda held: lambda: next(held.hidden))(holder_of(turn)), "held.hidden"),
    "of a default": (
        lambda turn: (lambda held: lambda: held())(lambda turn=turn: next(turn)), "held.__defaults__[0]",
    ),
    "of a method": (lambda turn: (lambda held: lambda: held())(turn.__next__), "held.__self__"),
    "of a partial call": (lambda turn: (lambda held: lambda: held())(functools.partial(next, turn)), "held.args[0]"),
}  # fmt: skip


@pytest.mark.parametrize("case", REACHED)
def test_what_hides_its_contents_is_named_by_the_way_to_it(case):
    make, path = REACHED[case]
    message, _, help = refused(kernel_of(make(iter([1]))))
    assert (message, help) == (f"`{path}` is a list_iterator{UNCOMPARED}", BY_CONSTANT)


def test_what_hides_its_contents_is_refused_in_a_helper():
    turn = iter([1])

    def helper():
        return next(turn)

    message, line, _ = refused(kernel_of(lambda: helper()))
    assert (message, line) == (f"`turn` is a list_iterator{UNCOMPARED}", "return next(turn)")


def test_a_constant_that_hides_its_contents_is_refused():
    @pd.kernel
    def k(out: ptr[f32], *, turn):
        out[0] = next(turn)

    message, line, help = refused(k, turn=iter([1]))
    assert (message, line, help) == (f"`turn` is a list_iterator{UNCOMPARED}", "@pd.kernel", BY_CONSTANT)


def test_what_hides_its_contents_and_is_not_read_may_be_there():
    plan = holder_of(iter([1]))
    plan.lock = threading.Lock()
    assert result(kernel_of(lambda: plan.total())) == 3
    assert result(kernel_of(lambda: getattr(plan, "value"))) == 1  # noqa: B009


IMMUTABLE = (
    Decimal("1.5"),
    np.dtype(np.float32),
    pd.f32,
    os.path,
    Tile(1),
    "text",
    (1, (2.0, b"3")),
    frozenset([1]),
    np.float32,
    sys.version_info,
    operator.itemgetter(0),
    logging.getLogger("test_captured"),
    re.compile("a"),
    datetime.date(2026, 1, 1),
    slice(1),
    struct.Struct("i"),
)


@pytest.mark.parametrize("value", IMMUTABLE, ids=range(len(IMMUTABLE)))
def test_what_cannot_change_is_not_refused(value):
    kernel = kernel_of(lambda: 1 if value is None else 2)
    assert [result(kernel), result(kernel)] == [2, 2]
    assert len(kernel._variants) == 1


def test_an_object_that_is_a_constant_and_changes_is_traced_anew():
    plan = Plan()

    @pd.kernel
    def k(out: ptr[f32], *, plan):
        out[0] = pd.cast(plan.value, f32)

    assert result(k, plan=plan) == 1
    plan.value = 9
    assert [result(k, plan=plan), result(k, plan=plan)] == [9, 9]
    assert len(k._variants) == 2


def test_a_list_in_a_constant_that_changes_is_traced_anew():
    tile = Tile(1, hidden=[1])

    @pd.kernel
    def k(out: ptr[f32], *, tile):
        out[0] = tile.hidden[0]

    assert result(k, tile=tile) == 1
    tile.hidden[0] = 9
    assert [result(k, tile=tile), result(k, tile=tile)] == [9, 9]
    assert len(k._variants) == 2


def test_a_helper_that_a_function_of_the_library_wraps_is_followed():
    held = [1]

    @contextmanager
    def opened():
        yield held[0]

    def read():
        with opened() as value:
            return value

    kernel = kernel_of(read)
    assert result(kernel) == 1
    held[0] = 9
    assert [result(kernel), result(kernel)] == [9, 9]
    assert len(kernel._variants) == 2
