"""Variables of PTX modules: read and written from the host, shared by the kernels of the module."""

from __future__ import annotations

import pickle

import ml_dtypes
import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import config
from tests.fake_driver import FakeCuda, installed
from tests.machines import MACHINES, machine

TEXT = """
.version 7.0
.target sm_80
.address_size 64
.visible .const .align 4 .f32 weights[3] = {1.0, 2.0, 3.0};
.visible .global .align 4 .u32 calls;
.visible .global .align 2 .b8 raw[4];
.visible .global .align 2 .b16 half;
.visible .global .align 8 .u64 where = generic(calls);
.visible .entry scale(.param .u64 y)
{
    .reg .u64 %y, %a, %w;
    .reg .u32 %i, %n;
    .reg .f32 %v;
    ld.param.u64 %y, [y];
    cvta.to.global.u64 %y, %y;
    mov.u32 %i, %tid.x;
    mad.wide.u32 %a, %i, 4, %y;
    mov.u64 %w, weights;
    mad.wide.u32 %w, %i, 4, %w;
    ld.const.f32 %v, [%w];
    st.global.f32 [%a], %v;
    atom.global.add.u32 %n, [calls], 1;
    ret;
}
.visible .entry count(.param .u64 y)
{
    .reg .u64 %y;
    .reg .u32 %n;
    ld.param.u64 %y, [y];
    cvta.to.global.u64 %y, %y;
    ld.global.u32 %n, [calls];
    st.global.u32 [%y], %n;
    ret;
}
"""


def refusal(function):
    with pytest.raises(pd.Error) as error:
        function()
    return error.value.message, error.value.help


@pytest.mark.parametrize("name", MACHINES)
def test_variables_are_read_and_written_and_live_between_launches(name):
    on, module = machine(name), pd.parse(TEXT)
    device = None if name == "emulator" else 0
    y, n = on.array(np.zeros(3, np.float32)), on.array(np.zeros(1, np.int32))
    assert module["weights"].read(device).tolist() == [1, 2, 3]
    for weights in ([1, 2, 3], [4, 5.5, -0.0]):
        module["weights"].write(weights)
        module["scale"][1, 3](y)
        assert on.values(y).tolist() == weights
    module["count"][1, 1](n)
    assert on.values(n)[0] == module["calls"].read(device) == 6
    module["calls"].write(np.uint32(40), device)
    module["scale"][1, 3](y)
    assert module["calls"].read(device) == 43


def test_what_a_variable_is():
    module = pd.parse(TEXT)
    assert module.variables == ("weights", "calls", "raw", "half", "where")
    assert list(module) == ["scale", "count"]
    weights = module["weights"]
    assert (weights.name, weights.type, weights.shape) == ("weights", pd.f32, (3,))
    assert repr(weights) == "<variable weights: f32[3] in .const>"
    assert weights is module["weights"]
    assert weights.read().dtype == np.float32 and module["calls"].read().shape == ()
    first = weights.read()
    first[:] = 0
    assert weights.read().tolist() == [1, 2, 3]


def test_elements_that_numpy_lacks_are_bits():
    module = pd.parse(TEXT)
    module["raw"].write(np.frombuffer(b"abcd", np.uint8))
    assert module["raw"].read().tobytes() == b"abcd"
    module["half"].write(ml_dtypes.bfloat16(1.5))
    assert module["half"].read() == 0x3FC0


def test_addresses_are_known_after_a_launch():
    module = pd.parse(TEXT)
    assert refusal(module["where"].read) == (
        "`where` is initialised with addresses, which the emulator assigns at the first launch",
        "launch a kernel of the module first",
    )


def test_what_a_kernel_that_goes_wrong_wrote_is_dropped():
    module = pd.parse(TEXT)
    with pytest.raises(pd.EmulationError):
        module["scale"][1, 4](np.zeros(3, np.float32))
    assert module["calls"].read() == 0
    assert pd.emulate(module["scale"], 1, 2, np.zeros(3, np.float32)).findings == []
    assert module["calls"].read() == 2


def test_each_module_has_variables_of_its_own():
    one, other = pd.parse(TEXT), pd.parse(TEXT)
    one["calls"].write(7)
    assert (one["calls"].read(), other["calls"].read()) == (7, 0)
    assert pickle.loads(pickle.dumps(one["scale"])).name == "scale"


WRONG = {
    "another shape": (
        lambda m: m["weights"].write([1, 2]), "`weights` is f32[3] in .const, but a list has the shape (2,)", None,
    ),
    "another type": (
        lambda m: m["weights"].write(np.zeros(3)),
        "`weights` is f32[3] in .const, got a numpy array of f64 with shape (3,)", "convert it to float32",
    ),
    "too large": (lambda m: m["calls"].write(1 << 32), "`calls` is u32 in .global, which cannot hold 4294967296", None),
    "negative": (lambda m: m["calls"].write(-1), "`calls` is u32 in .global, which cannot hold -1", None),
    "not exact": (lambda m: m["weights"].write([16777217, 0, 0]), "`weights` is f32[3] in .const, which cannot hold 16777217", None),
    "no integer": (lambda m: m["calls"].write(1.5), "`calls` is u32 in .global, which cannot hold 1.5", None),
    "infinite": (lambda m: m["weights"].write([1e39, 0, 0]), "`weights` is f32[3] in .const, which cannot hold 1e+39", None),
    "text": (lambda m: m["calls"].write("a"), "`calls` is u32 in .global, which cannot hold 'a'", None),
    "no such name": (
        lambda m: m["weight"], "the module has no kernel or variable `weight`",
        "it has scale, count; its variables: weights, calls, raw, half, where",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_what_does_not_fit_is_refused(case):
    function, message, help = WRONG[case]
    module = pd.parse(TEXT)
    assert refusal(lambda: function(module)) == (message, help)


@pytest.fixture
def gpus():
    with installed(FakeCuda(widths=(8,), gpus=2)) as fake:
        fake.variables = {"weights": 12, "calls": 4}
        yield fake


def test_kernels_of_a_module_share_its_variables_on_each_gpu(gpus):
    module = pd.parse(TEXT)
    for device in (0, 1):
        for name in ("scale", "count"):
            module[name].compiled("sm_90a").on(device)
    assert [device for device, _ in gpus.loaded] == [0, 1]


def test_what_is_written_without_a_gpu_is_written_on_all(gpus):
    module = pd.parse(TEXT)
    module["calls"].write(5)
    assert [int(module["calls"].read(device)) for device in (0, 1)] == [5, 5]
    module["calls"].write(6)
    module["calls"].write(7, device=1)
    assert [int(module["calls"].read(device)) for device in (None, 0, 1)] == [6, 6, 7]
    with config.using(device="cuda"):
        assert module["calls"].read() == 6


def test_a_variable_that_the_driver_does_not_find(gpus):
    message, _ = refusal(lambda: pd.parse(TEXT)["raw"].read(0))
    assert message == "looking for `raw`: CUDA_ERROR_NOT_FOUND: explanation of 500"
