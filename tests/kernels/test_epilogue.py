"""Functions and operands of gemm()'s epilogue against numpy, from the same body on the emulator and on a GPU."""

from __future__ import annotations

from functools import partial, wraps
from itertools import product
from math import erfc, pi, sqrt
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.conv import conv2d
from ptxdsl.kernels.epilogue import (
    add,
    add_gelu,
    add_gelu_tanh,
    add_relu,
    gelu,
    gelu_tanh,
    per_column,
    per_row,
    relu,
    scale,
    scale_rows_and_columns,
    sigmoid,
    silu,
)
from ptxdsl.kernels.gemm import gemm, gemm_kernel
from ptxdsl.kernels.grouped import grouped_gemm, grouped_gemm_ragged
from ptxdsl.kernels.store import function
from ptxdsl.kernels.store.function import MOST_FUNCTIONS, canonical
from tests.kernels.test_types import OUTPUTS, WRITTEN, matrix, numbers
from tests.machines import MACHINES, NAMES, machine

ORDERS = ["row", "column"]
KINDS = ["f16", "bf16", "f32", "f64", "s32"]  # of operands
SIZES = 35, 22, 16

every_machine = pytest.mark.parametrize("name", MACHINES)


def mix(x, row, column, other):
    return x * row + column - other


def factors(rng, inputs, k=SIZES[2]):
    """A row-major A and a column-major B."""
    return matrix(rng, (SIZES[0], k), "row", inputs), matrix(rng, (k, SIZES[1]), "column", inputs)


def wide(*arrays):
    return [array.astype(np.float64) for array in arrays]


def assert_close(where, found, expected, output, scale=100.0):
    """Within f32 arithmetic on numbers up to `scale`, rounded to the output."""
    error = np.abs(where.values(found) - expected)
    allowed = scale * 2.0**-18 + WRITTEN[output] * np.abs(expected)
    assert np.all(error <= allowed), np.max(error - allowed)


@every_machine
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("order, other", list(product(ORDERS, ORDERS)), ids="-".join)
@pytest.mark.parametrize("output", ["f32", "bf16"])
def test_vectors_and_matrices_of_every_type_and_order(name, kind, order, other, output, rng):
    where = machine(name)
    m, n, _ = SIZES
    a, b = factors(rng, "f16")
    row, column, beside = numbers(rng, m, kind), numbers(rng, n, kind), matrix(rng, (m, n), other, kind, 3)
    if kind == "s32":
        row, column, beside = (v % 7 for v in (row, column, beside))
    out = matrix(rng, (m, n), order, output)
    x, y, r, c, o = wide(a, b, row, column, beside)
    operands = per_row(where.array(row)), per_column(where.array(column)), where.array(beside)
    found = gemm(where.array(a), where.array(b), out=where.array(out), epilogue=mix, operands=operands)
    assert_close(where, found, (x @ y) * r[:, None] + c - o, output)


@every_machine
@pytest.mark.parametrize("skipped", [1, 2, 3])
@pytest.mark.parametrize("columns", [22, 21])
def test_vectors_may_begin_at_any_element(name, skipped, columns, rng):
    where = machine(name)
    a, b = factors(rng, "f16")
    b = b[:, :columns]
    whole = rng.standard_normal(40).astype(np.float32)
    given = where.array(whole)
    operands = per_row(given[skipped:][: SIZES[0]]), per_column(given[skipped:][:columns])
    out = where.array(np.zeros((SIZES[0], columns), np.float32))
    found = gemm(where.array(a), where.array(b), out=out, epilogue=scale_rows_and_columns, operands=operands)
    x, y, v = wide(a, b, whole[skipped:])
    assert_close(where, found, (x @ y) * v[: SIZES[0], None] * v[:columns], "f32")


@every_machine
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("beta", [0, -0.5])
def test_a_residual_may_be_the_output_itself(name, order, beta, rng):
    where = machine(name)
    a, b = factors(rng, "bf16")
    residual, c = (matrix(rng, (SIZES[0], SIZES[1]), order, "bf16", 1) for _ in range(2))
    x, y, r, z = wide(a, b, residual, c)
    out = where.array(residual)
    given = where.array(a), where.array(b), where.array(c)
    assert gemm(*given, out=out, beta=beta, epilogue=add_relu, operands=(out,)) is out
    assert_close(where, out, np.maximum(x @ y + beta * z + r, 0), "bf16")


@every_machine
def test_c_and_the_residual_may_both_be_the_output(name, rng):
    where = machine(name)
    a, b = factors(rng, "f16")
    c = matrix(rng, (SIZES[0], SIZES[1]), "row", "f16")
    x, y, z = wide(a, b, c)
    out = where.array(c)
    gemm(where.array(a), where.array(b), out, out=out, alpha=0.5, beta=2.0, epilogue=add, operands=(out,))
    assert_close(where, out, 0.5 * (x @ y) + 3 * z, "f16")


@every_machine
@pytest.mark.parametrize("kind", ["own", "own, column-major", "for all", "out"])
def test_batches_have_a_residual_each_or_one(name, kind, rng):
    where = machine(name)
    a, b, old = (numbers(rng, shape, "f16") for shape in [(3, 20, 16), (3, 16, 24), (3, 20, 24)])
    own = numbers(rng, (3, 20, 24), "f32")
    crossed = numbers(rng, (3, 24, 20), "f32")
    residual = {"own": own, "own, column-major": crossed.transpose(0, 2, 1), "for all": own[0], "out": old}[kind]
    x, y, r = wide(a, b, residual)
    out = where.array(old)
    given = out if kind == "out" else where.array(residual)
    found = gemm(where.array(a), where.array(b), out=out, epilogue=add, operands=(given,))
    assert_close(where, found, x @ y + r, "f16")


@pytest.mark.exhaustive
@every_machine
@pytest.mark.parametrize("reduction", ["serial", "parallel", "scatter"])
def test_split_k_applies_the_function_once(name, reduction, rng):
    where = machine(name)
    a, b = factors(rng, "f16", k=300)
    bias, c = numbers(rng, SIZES[1], "f32"), matrix(rng, SIZES[:2], "row", "f32")
    x, y, v, z = wide(a, b, bias, c)
    found = gemm(
        where.array(a), where.array(b), where.array(c), out=where.array(np.zeros(SIZES[:2], np.float32)), beta=1.5,
        epilogue=add_relu, operands=(per_column(where.array(bias)),), split_k=3, reduction=reduction,
    )  # fmt: skip
    assert_close(where, found, np.maximum(x @ y + 1.5 * z + v, 0), "f32", scale=1000.0)


@every_machine
@pytest.mark.parametrize("inputs, output", [(i, o) for i, outputs in OUTPUTS.items() for o in outputs])
def test_bias_and_relu_of_every_type(name, inputs, output, rng):
    where = machine(name)
    kind = {"s32": "s32", "f64": "f64"}.get(output, "f32")
    a, b = factors(rng, inputs, k=8)
    bias = numbers(rng, SIZES[1], kind)
    x, y, v = wide(a, b, bias)
    out = where.array(np.zeros(SIZES[:2], NAMES[output]))
    operands = (per_column(where.array(bias)),)
    alpha = 1 if output == "s32" else 2.0**-6
    found = gemm(where.array(a), where.array(b), out=out, alpha=alpha, epilogue=add_relu, operands=operands)
    expected = np.maximum(alpha * (x @ y) + v, 0)
    if output == "s32":
        assert (where.values(found) == expected).all()
    else:
        assert_close(where, found, expected, output, scale=2e4 if inputs in ("s8", "u8") else 500.0)


@every_machine
def test_quantised_matrices_are_scaled_by_row_and_column(name, rng):
    where = machine(name)
    a, b = factors(rng, "s8")
    rows, columns = (np.exp2(rng.uniform(-12, -8, n)).astype(np.float32) for n in SIZES[:2])
    x, y, r, c = wide(a, b, rows, columns)
    operands = per_row(where.array(rows)), per_column(where.array(columns))
    out = where.array(np.zeros(SIZES[:2], np.float16))
    found = gemm(where.array(a), where.array(b), out=out, epilogue=scale_rows_and_columns, operands=operands)
    assert_close(where, found, (x @ y) * r[:, None] * c, "f16", scale=1.0)


POINTS = np.concatenate([np.linspace(-90, 90, 1441), np.linspace(-1, 1, 257), [0.0, -0.0, 6e4, -6e4]])


def at_points(where, applied):
    """A function at points that f16 holds, as f32."""
    points = POINTS.astype(np.float16)[:, None]
    out = where.array(np.zeros(points.shape, np.float32))
    one = where.array(np.ones((1, 1), np.float16))
    return points[:, 0].astype(np.float64), where.values(gemm(where.array(points), one, out=out, epilogue=applied))[
        :, 0
    ]


def logistic(x):
    with np.errstate(over="ignore"):
        return 1 / (1 + np.exp(-x))


@every_machine
def test_sigmoid_is_as_exact_as_it_says(name):
    x, found = at_points(machine(name), sigmoid)
    allowed = (8 + np.abs(x)) * 2.0**-23 * logistic(x) + 2.0**-126
    assert np.all(np.abs(found - logistic(x)) <= allowed)


@every_machine
def test_silu_is_its_formula(name):
    x, silus = at_points(machine(name), silu)
    expected = x * logistic(x)
    assert np.all(np.abs(silus - expected) <= (16 + 4 * np.abs(x)) * 2.0**-23 * np.abs(expected) + 2.0**-110)


def gelus(x):
    """x·Φ(x)"""
    return x * np.array([0.5 * erfc(-point / sqrt(2)) for point in x.flat]).reshape(x.shape)


@every_machine
def test_gelu_is_as_exact_as_it_says(name):
    x, values = at_points(machine(name), gelu)
    assert np.all(np.abs(values - gelus(x)) <= 1e-6 + np.abs(x) * 2.0**-22)
    assert np.all(np.abs(values[x < -6]) < 1e-7) and np.all(values[x > 6] == x[x > 6])


def tanh_gelus(x):
    return 0.5 * x * (1 + np.tanh(sqrt(2 / pi) * (x + 0.044715 * x**3)))


@every_machine
def test_the_tanh_form_of_gelu_is_its_formula(name):
    x, values = at_points(machine(name), gelu_tanh)
    assert np.all(np.abs(values - tanh_gelus(x)) <= np.abs(x) * 2.0**-17)
    assert np.all(np.abs(values - gelus(x)) <= 4.8e-4 + np.abs(x) * 2.0**-17)


@every_machine
@pytest.mark.parametrize("applied", [relu, gelu, gelu_tanh])
def test_nan_and_infinity_stay(name, applied):
    where = machine(name)
    x = np.array([[np.nan], [np.inf], [-np.inf], [-20.0], [3e4]], np.float16)
    values = where.values(gemm(where.array(x), where.array(np.ones((1, 1), np.float16)), epilogue=applied))[:, 0]
    assert np.array_equal(values, [np.nan, np.inf, 0, 0, np.float16(3e4)], equal_nan=True)


@every_machine
@pytest.mark.parametrize(("applied", "expected"), [(add_gelu, gelus), (add_gelu_tanh, tanh_gelus)])
def test_bias_and_gelu_in_one(name, applied, expected, rng):
    where = machine(name)
    a, b = factors(rng, "f16")
    bias = numbers(rng, SIZES[1], "f16")
    x, y, v = wide(a, b, bias)
    z = x @ y + v
    found = gemm(where.array(a), where.array(b), epilogue=applied, operands=(per_column(where.array(bias)),))
    assert_close(where, found, expected(z), "f16")


def test_lambdas_with_the_same_text_and_closure_share_a_kernel(rng):
    a, b = factors(rng, "f16")
    before = len(gemm_kernel._variants)
    for _ in range(3):
        gemm(a, b, epilogue=lambda x: x * 3.0)
    assert len(gemm_kernel._variants) == before + 1


@pytest.mark.exhaustive
def test_lambdas_with_other_closures_are_others(rng):
    a, b = factors(rng, "f16")
    x, y = wide(a, b)
    for factor in (2.0, 3.0, -1.0):
        found = gemm(a, b, epilogue=made(factor))
        assert_close(machine("emulator"), found, factor * (x @ y), "f16")


def made(value, default=0):
    return lambda x, y=default: x * value + y


ALIKE = [(2, 2), (2.5, 2.5), ("a", "a"), (None, None)]
APART = [(1, 1.0), (1, True), (0.0, -0.0), ("1", 1), ([1], [2]), ((1,), [1]), (object(), object()), (relu, gelu)]


@pytest.mark.parametrize("one, other", ALIKE)
def test_functions_are_known_by_what_they_hold(one, other):
    assert canonical(made(one)) is canonical(made(other))
    assert canonical(made(0, one)) is canonical(made(0, other))


@pytest.mark.parametrize("one, other", APART, ids=[str(n) for n in range(len(APART))])
def test_and_told_apart_by_it(one, other):
    assert canonical(made(one)) is not canonical(made(other))
    assert canonical(made(0, one)) is not canonical(made(0, other))


def test_a_function_is_another_when_what_it_reads_has_changed(rng):
    a, b = factors(rng, "f16")
    x, y = wide(a, b)
    module = {"__name__": "user"}
    exec("def helper(x):\n    return x * factor\ndef scaled(x):\n    return helper(x)", module)
    for module["factor"] in (2.0, 3.0, 2.0):
        found = gemm(a, b, epilogue=module["scaled"])
        assert_close(machine("emulator"), found, module["factor"] * (x @ y), "f16")


def test_so_it_is_with_a_variable_around_it():
    factor = 1

    def scaled(x):
        return x * factor

    first = canonical(scaled)
    factor = 2
    assert canonical(scaled) is not first
    factor = 1
    assert canonical(scaled) is first


def test_functions_that_call_each_other_are_known_too():
    def even(x):
        return odd(x)

    def odd(x):
        return even(x)

    assert canonical(even) is canonical(even)
    assert canonical(even) is not canonical(odd)


def test_so_many_functions_are_remembered():
    first = canonical(made(-1))
    for value in range(MOST_FUNCTIONS):
        canonical(made(value))
    assert len(function._known) == MOST_FUNCTIONS
    assert canonical(made(-1)) is not first


def test_functions_of_one_code_that_read_the_same_objects_need_no_key(monkeypatch):
    """What else they may differ by is asked: their variables, what is attached to them, their code."""
    scope = {"pd": pd, "scale": 2.0}
    exec("def around(s):\n return lambda x: pd.max(x * s, scale)\ndef other(s):\n return lambda x: x + s", scope)
    made, offset = scope["around"], 1.5
    first = canonical(made(offset))
    with monkeypatch.context() as patch:
        patch.setattr("ptxdsl.kernels.store.function.captures", None)
        assert canonical(made(offset)) is first
        latest = made(offset)
        canonical(latest)
        assert first.__wrapped__ is latest
    known = {id(first)}
    for change in (
        lambda function: setattr(function, "__defaults__", (3,)),
        lambda function: setattr(function, "__kwdefaults__", {"y": 3}),
        lambda function: setattr(function, "__code__", scope["other"](offset).__code__),
        lambda function: scope.update(scale=3.0),
        lambda function: scope.update(max=max, scale=2.0, pd=None),
    ):
        function = made(offset)
        change(function)
        known.add(id(canonical(function)))
        assert canonical(function) is canonical(function)
    scope.update(pd=pd)
    assert len(known) == 6 and canonical(made(offset)) is first and canonical(made(2)) is not canonical(made(2.0))


def test_a_function_with_a_variable_that_is_set_later_is_known_by_it():
    def around():
        function = lambda x: x * later  # noqa: E731
        first = canonical(function)
        later = 2.0
        return first, canonical(function), canonical(function)

    first, second, third = around()
    assert first is not second and second is third


class Held:
    factor = 0.0

    def __init__(self):
        self.inner = SimpleNamespace(factor=0.0)
        self.listed = {"factor": [0.0]}
        self.array = np.zeros(1)
        self.module = ModuleType("settings")

    def __call__(self, x):
        return x * self.inner.factor

    def apply(self, x):
        return x * self.inner.factor


def reads(held):
    """Functions that read a factor wherever it may be kept, and how it is set there."""
    listed, array, module = held.listed, held.array, held.module
    module.factor = 0.0

    @wraps(relu)
    def own(x):
        return x * own.factor

    own.factor = 0.0
    return {
        "an attribute": (lambda x: x * held.inner.factor, partial(setattr, held.inner, "factor")),
        "a dict": (lambda x: x * listed["factor"][0], lambda f: listed.update(factor=[f])),
        "a list": (lambda x: x * listed["factor"][0], partial(listed["factor"].__setitem__, 0)),
        "an element": (lambda x: x * float(array[0]), partial(array.__setitem__, 0)),
        "a module": (lambda x: x * module.factor, partial(setattr, module, "factor")),
        "a class": (lambda x: x * Held.factor, partial(setattr, Held, "factor")),
        "a method": (held.apply, partial(setattr, held.inner, "factor")),
        "an object that is called": (held, partial(setattr, held.inner, "factor")),
        "a function's own": (own, partial(setattr, own, "factor")),
        "a partial": (partial(lambda y, x: x * y.factor, held.inner), partial(setattr, held.inner, "factor")),
        "a default": (lambda x, y=held.inner: x * y.factor, partial(setattr, held.inner, "factor")),
        "by name": (lambda x: x * getattr(module, "factor"), partial(setattr, module, "factor")),  # noqa: B009
        "by import": (lambda x: x * __import__(__name__, fromlist=["Held"]).Held.factor, partial(setattr, Held, "factor")),
    }  # fmt: skip


@pytest.mark.parametrize("where", reads(Held()))
def test_no_old_value_is_kept_wherever_it_is_read(where):
    a, b = np.ones((4, 6), np.float16), np.ones((6, 8), np.float16)
    applied, set_to = reads(Held())[where]
    for factor in (2.0, 5.0, 2.0):
        set_to(factor)
        assert (gemm(a, b, epilogue=applied) == 6 * factor).all()
    kernels = len(gemm_kernel._variants)
    gemm(a, b, epilogue=applied)
    assert len(gemm_kernel._variants) == kernels


def test_a_variable_that_changed_is_not_read_for_another_function():
    def holding(factor):
        def change(value):
            nonlocal factor
            factor = value

        return (lambda x: x * factor), change

    a, b = np.ones((4, 6), np.float16), np.ones((6, 8), np.float16)
    first, change = holding(3.0)
    assert (gemm(a, b, epilogue=first) == 18).all()
    change(4.0)
    second, _ = holding(3.0)
    config = GemmConfig(tile=(32, 32, 64), warp=(16, 16), stages=2)  # a kernel that is traced for the second
    assert (gemm(a, b, epilogue=second, config=config) == 18).all()


def test_a_configuration_may_hold_the_function():
    a, b = np.ones((4, 6), np.float16), np.ones((6, 8), np.float16)
    assert (gemm(a, b, alpha=-1, config=GemmConfig(epilogue=relu)) == 0).all()
    assert (gemm(a, b, alpha=-1, config=GemmConfig(epilogue=relu), epilogue=lambda x: x - 1) == -7).all()


@pytest.mark.exhaustive
@pytest.mark.parametrize("form", ["lists", "grouped", "ragged", "conv2d"])
def test_nor_does_a_configuration_keep_an_old_value(form):
    held = SimpleNamespace(factor=0.0)
    config = GemmConfig(tile=(32, 32, 64), warp=(16, 16), stages=2, epilogue=lambda x: x * held.factor)
    a, b = np.ones((4, 6), np.float16), np.ones((6, 8), np.float16)
    call = {
        "lists": lambda: gemm([a], [b], config=config)[0],
        "grouped": lambda: grouped_gemm([a], [b], config=config)[0],
        "ragged": lambda: grouped_gemm_ragged(a, b[None], np.array([4], np.int32), config=config),
        "conv2d": lambda: conv2d(a[None, None], np.ones((8, 1, 1, 6), np.float16), config=config),
    }[form]
    for held.factor in (2.0, 5.0):
        assert (call() == 6 * held.factor).all()


@pytest.mark.parametrize("number", [3, 2.5, np.float32(1.5), np.int64(-2)])
def test_a_function_may_return_a_number(number):
    a, b = np.ones((4, 6), np.float16), np.ones((6, 8), np.float16)
    assert (gemm(a, b, epilogue=lambda x: number) == number).all()


class Scaled:
    def __init__(self, factor):
        self.factor = factor

    def apply(self, x):
        return x * self.factor


@pytest.mark.exhaustive
def test_methods_of_two_objects_are_two_functions(rng):
    a, b = factors(rng, "f16")
    x, y = wide(a, b)
    for scaled in (Scaled(2.0), Scaled(3.0)):
        found = gemm(a, b, epilogue=scaled.apply)
        assert_close(machine("emulator"), found, scaled.factor * (x @ y), "f16")


@pytest.mark.parametrize("applied", [relu, max, None, scale], ids=["relu", "max", "None", "scale"])
def test_what_ships_is_itself(applied):
    assert canonical(applied) is applied


def test_functions_may_use_any_instruction(rng):
    a, b = factors(rng, "f16")
    x, y = wide(a, b)
    found = gemm(a, b, out=np.zeros(SIZES[:2], np.float32), epilogue=lambda v: pd.ptx.abs.f32(v))
    assert_close(machine("emulator"), found, np.abs(x @ y), "f32")


@pytest.mark.parametrize("kind", ["f16", "f64", "s32"])
def test_a_function_may_return_another_type(kind, rng):
    a, b = factors(rng, "f16")
    x, y = wide(a, b)
    found = gemm(a, b, out=np.zeros(SIZES[:2], np.float32), epilogue=lambda v: (8.0 * v).to(getattr(pd, kind)))
    rounded = np.trunc if kind == "s32" else lambda v: v
    error = np.abs(found - rounded(8 * (x @ y)))
    assert np.all(error <= (1 if kind == "s32" else 2.0**-10 * np.abs(8 * (x @ y)) + 1e-3))


def test_a_factor_of_minus_zero_is_minus_zero():
    a, b = np.ones((4, 6), np.float32), np.ones((6, 8), np.float32)
    for alpha in (0.0, -0.0, 0.0, np.float32(-0.0)):
        assert (np.signbit(gemm(a, b, alpha=alpha)) == np.signbit(alpha)).all()
