"""Methods as kernels: a kernel of each object, whose attributes are known while it is traced."""

import pickle
from dataclasses import dataclass

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import f32, ptr, u32


class Scale:
    def __init__(self, factor):
        self.factor, self.shift = factor, [1]

    def __eq__(self, other):
        return self.factor == other.factor

    __hash__ = None

    def applied(self, value):
        return value * self.factor

    @pd.kernel
    def run(self, x: ptr[f32], n: u32, *, twice=False):
        i = pd.tid.x
        with pd.if_(i < n):
            x[i] = self.applied(x[i]) * (2 if twice else 1) + self.shift[0]


@dataclass(frozen=True, slots=True)
class Constant:
    value: float

    @pd.kernel(max_threads=32)
    def fill(self, x: ptr[f32]):
        x[pd.tid.x] = self.value


FOUR = Constant(4.0)


def run(kernel, *arguments, **constants):
    x = np.ones(4, np.float32)
    kernel[1, 4](x, *arguments, **constants)
    return x[0]


def test_each_object_has_its_kernel():
    a, b = Scale(3.0), Scale(5.0)
    assert [run(a.run, 4), run(b.run, 4), run(a.run, 4, twice=True)] == [4, 6, 7]
    assert a.run is a.run is not b.run
    assert [run(Constant(2.0).fill), run(Constant(3.0).fill)] == [2, 3]


def test_a_kernel_is_traced_anew_when_its_object_has_changed():
    scale = Scale(3.0)
    assert run(scale.run, 4) == 4
    scale.factor = 7.0
    assert run(scale.run, 4) == 8
    scale.shift[0] = 100
    assert run(scale.run, 4) == 107


def test_it_is_pickled_with_its_object():
    assert run(pickle.loads(pickle.dumps(FOUR.fill))) == 4


def test_the_kernel_of_a_class_is_refused():
    with pytest.raises(pd.TraceError) as refused:
        Scale.run[1, 1](np.zeros(1, np.float32), 1)
    assert refused.value.message == "kernel `run` is a method, and has no object"
    assert refused.value.help == "take it from an object of its class: `o.run[grid, block](…)`"


def test_a_class_method_is_refused():
    with pytest.raises(pd.TraceError) as refused:

        class _Holder:
            @pd.kernel
            def run(cls, x: ptr[f32]):
                pass

    assert refused.value.message == "parameter `cls` of kernel `run` has no type"
