"""Random calls of the public functions against numpy in float64, and what finds them wrong."""

from __future__ import annotations

import time

import numpy as np
import pytest

from ptxdsl import config
from tests.random_calls.call import Call, OnEmulator, OnGpu, Result, Wrong
from tests.random_calls.drawing import LITTLE, SMALL, Draw
from tests.random_calls.many import drawn, tried
from tests.random_calls.views import matrix

SECONDS = {"emulator": 1.5, "gpu": 8.0}  # after which no other call begins


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_calls_on_the_emulator(arch, rng):
    began = time.monotonic()
    while time.monotonic() - began < SECONDS["emulator"]:
        seed = int(rng.integers(1 << 40))
        with config.using(arch=arch, schedule=f"random:{seed}"):
            tried([drawn(seed, arch, LITTLE)], OnEmulator)


@pytest.mark.gpu
def test_calls_on_a_gpu(rng):
    """Those of one kernel, one after another without a wait."""
    began = time.monotonic()
    while time.monotonic() - began < SECONDS["gpu"]:
        seed = int(rng.integers(1 << 40))
        tried([drawn(seed, "sm_90a", SMALL, variant) for variant in range(3)], OnGpu, times=2)


def doubled(source, *, out, behind=0, wrong=0.0):
    """out = 2·source, and maybe what no such function should do."""
    out[...] = 2 * source
    out[0, 0] += wrong
    if behind:
        np.lib.stride_tricks.as_strided(out, (5, 7 + behind), out.strides)[4, 6 + behind] = 1.5
    return out


def call_of(**options):
    draw = Draw(1, "sm_80", LITTLE)
    source, out = matrix(draw, (5, 7), "f32", "row"), matrix(draw, (5, 7), "f32", "row", "noise", kind="dense")
    source.array[...] = draw.numbers((5, 7), "f32", True)
    result = Result(2.0 * source.array, 0.0)
    return Call(doubled, [source], {"out": out, **options}, [result], [out])


def test_what_is_right_passes():
    (outcome,) = tried([call_of()], OnEmulator, times=2)
    assert not outcome.refusal


@pytest.mark.parametrize(
    "options, message",
    [
        ({"wrong": 2.0**-20}, r"1 of 35 elements of output 0 \(f32\) are wrong, from \(0, 0\) to \(0, 0\)"),
        ({"behind": 3}, r"4 bytes beside f32\(5, 7\) .* have changed, the first one 37.0 elements from its first"),
    ],
)
def test_what_is_wrong_is_told(options, message):
    with pytest.raises(Wrong, match=message):
        tried([call_of(**options)], OnEmulator)


def test_an_input_that_is_written_is_told():
    def careless(source, *, out):
        out[...] = 2 * source
        source[0, 0] = 0.5
        return out

    call = call_of()
    call.function = careless
    with pytest.raises(Wrong, match="bytes of f32"):
        tried([call], OnEmulator)


def test_results_that_differ_from_call_to_call_are_told():
    signs = iter((0.0, -0.0, -0.0))

    def fickle(source, *, out):
        out[...] = next(signs)
        return out

    call = call_of()
    call.function, call.results = fickle, [Result(np.zeros((5, 7)), 0.0)]
    with pytest.raises(Wrong, match="output 0 differs from run to run"):
        tried([call], OnEmulator, times=2)


def test_a_seed_is_always_the_same_call():
    first, second = (drawn(7, "sm_90a") for _ in range(2))
    assert str(first) == str(second)
    assert all(
        one.values.tobytes() == other.values.tobytes() for one, other in zip(first.results, second.results, strict=True)
    )
