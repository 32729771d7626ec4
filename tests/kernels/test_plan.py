"""Planned launches of gemm(), on a stand-in for the driver: they are those that the careful way would make."""

import struct
import sys

import pytest

from ptxdsl.errors import LaunchError
from ptxdsl.kernels.call import gemm as module
from ptxdsl.kernels.call.launching import workspace
from ptxdsl.kernels.call.launching.memory import CALLS
from ptxdsl.kernels.candidates.sm80 import SMALL
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.gemm import gemm, gemm_kernel, warpgroup_gemm_kernel
from tests.fake_driver import FakeCuda, installed
from tests.kernels import tensors
from tests.kernels.tensors import Tensor

WIDTHS = (8, 8, 8, 8, 4, 4, 4, 8, 8, 8, 8, 4, 4)


@pytest.fixture
def gpu(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", tensors.torch())
    CALLS.clear()
    for kernel in (gemm_kernel, warpgroup_gemm_kernel):
        for remembered in ("handles", "_variants", "_asked"):
            monkeypatch.setattr(kernel, remembered, {})
    monkeypatch.setattr(workspace, "_KEPT", {})
    monkeypatch.setenv("PTXDSL_ARCH", "sm_90")  # where warps multiply, by a kernel with these parameters
    with installed(FakeCuda(widths=WIDTHS, gpus=2)) as fake:
        yield fake


def planned(monkeypatch, call):
    """The call must not be worked out again."""

    def refused(*arguments):
        raise AssertionError("the careful way was taken")

    with monkeypatch.context() as patch:
        patch.setattr(module, "problem_of", refused)
        return call()


CASES = {
    "row-major": lambda: {"a": Tensor(64, 32), "b": Tensor(32, 96), "out": Tensor(64, 96)},
    "column-major": lambda: {
        "a": Tensor(64, 32, strides=(1, 64)), "b": Tensor(32, 96, strides=(1, 40)), "out": Tensor(64, 96, strides=(1, 64)),
    },
    "with c": lambda: {
        "a": Tensor(64, 32), "b": Tensor(32, 96), "c": Tensor(64, 96), "out": Tensor(64, 96), "beta": 0.5,
    },
    "second GPU": lambda: {
        "a": Tensor(64, 32, device=1), "b": Tensor(32, 96, device=1), "out": Tensor(64, 96, device=1), "alpha": 3.0,
    },
    "configured": lambda: {"a": Tensor(64, 32), "b": Tensor(32, 96), "out": Tensor(64, 96), "config": SMALL},
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_planned_launch_is_that_of_the_careful_way(gpu, monkeypatch, case):
    first, second = CASES[case](), CASES[case]()
    gemm(**first)
    assert planned(monkeypatch, lambda: gemm(**second)) is second["out"]
    CALLS.clear()
    gemm(**second)
    _, plan, careful = gpu.launches
    assert plan == careful
    assert careful["stream"] == 70 + careful["device"]


def test_tensor_maps_are_those_of_the_arrays_of_each_call(gpu, monkeypatch):
    monkeypatch.setenv("PTXDSL_ARCH", "sm_90a")
    gpu.widths, config = (8, 8), GemmConfig(tile=(64, 64, 64), stages=3, atom="wgmma")
    first, second = CASES["column-major"](), CASES["column-major"]()
    gemm(**first, config=config)
    planned(monkeypatch, lambda: gemm(**second, config=config))
    for launch, arrays in zip(gpu.launches, (first, second), strict=True):
        maps = [gpu.maps[int.from_bytes(parameter, "little") - 1] for parameter in launch["parameters"][:2]]
        assert [(address, dims) for _, address, dims, *_ in maps] == [
            (arrays["b"].address, [32, 96]), (arrays["a"].address, [64, 32]),
        ]  # fmt: skip


def test_c_in_the_memory_of_out_has_a_plan_of_its_own(gpu, monkeypatch):
    a, b, c, out = Tensor(64, 32), Tensor(32, 96), Tensor(64, 96), Tensor(64, 96)
    gemm(a, b, c, out=out, beta=1.0)
    gemm(a, b, out, out=out, beta=1.0)
    planned(monkeypatch, lambda: gemm(a, b, c, out=c, beta=1.0))
    planned(monkeypatch, lambda: gemm(a, b, out, out=c, beta=1.0))
    pointers = [[int.from_bytes(p, "little") for p in launch["parameters"][4:7:2]] for launch in gpu.launches]
    assert pointers == [[c.address, out.address], [0, out.address], [0, c.address], [out.address, c.address]]


def test_one_matrix_given_twice_is_planned_for_that_alone(gpu):
    a, b = Tensor(64, 64), Tensor(64, 64)
    for left, right in ((a, a), (a, b), (b, b), (b, a)):
        gemm(left, right, out=Tensor(64, 64))
        found = [int.from_bytes(p, "little") for p in gpu.launches[-1]["parameters"][0:3:2]]
        assert found == [left.address, right.address]


def test_alpha_is_new_at_each_launch(gpu):
    a, b, out = Tensor(64, 32), Tensor(32, 96), Tensor(64, 96)
    for alpha in (1.0, 2.0, 3):
        gemm(a, b, out=out, alpha=alpha)
        assert gpu.launches[-1]["parameters"][11] == struct.pack("<f", alpha)
    with pytest.raises(LaunchError, match="`alpha` is 1e\\+39; the output is computed in float32"):
        gemm(a, b, out=out, alpha=1e39)


OTHERS = {
    "alignment": (lambda: Tensor(64, 32, address=(1 << 29) + 2), None),
    "leading dimension": (lambda: Tensor(64, 32, strides=(40, 1)), None),
    "order": (lambda: Tensor(64, 32, strides=(1, 64)), None),
    "shape": (lambda: Tensor(64, 31), "31 columns meet 32 rows"),
    "type": (lambda: Tensor(64, 32, dtype="torch.bfloat16"), "`a` is bfloat16 and `b` is float16"),
    "GPU": (lambda: Tensor(64, 32, device=1), "on cuda:"),
}


@pytest.mark.parametrize("other", OTHERS)
def test_arrays_that_lie_otherwise_are_worked_out_anew(gpu, monkeypatch, other):
    make, refused = OTHERS[other]
    a, b, out = Tensor(64, 32), Tensor(32, 96), Tensor(64, 96)
    gemm(a, b, out=out)
    with pytest.raises(AssertionError, match="careful"):
        planned(monkeypatch, lambda: gemm(make(), b, out=out))
    if refused:
        with pytest.raises(LaunchError, match=refused):
            gemm(make(), b, out=out)


def test_memory_that_out_shares_is_refused_also_with_a_plan(gpu):
    a, b, out = Tensor(64, 32), Tensor(32, 96), Tensor(64, 96)
    gemm(a, b, out=out)
    for address in (b.address - 64 * 96 * 2 + 16, b.address + 32 * 96 * 2 - 16):
        with pytest.raises(LaunchError, match="`out` is written and shares memory with `b`"):
            gemm(a, b, out=Tensor(64, 96, address=address))
    assert len(gpu.launches) == 1


def test_beta_without_c_is_refused_also_with_a_plan(gpu):
    a, b, out = Tensor(64, 32), Tensor(32, 96), Tensor(64, 96)
    gemm(a, b, out=out)
    with pytest.raises(LaunchError, match=r"beta is 1, and `c` is not given"):
        gemm(a, b, out=out, beta=1.0)


def test_an_output_that_is_not_given_is_made_without_working_out_anew(gpu, monkeypatch):
    a, b = Tensor(64, 32), Tensor(32, 96)
    first = gemm(a, b)
    second = planned(monkeypatch, lambda: gemm(a, b))
    assert (second.shape, second.dtype, second.ordinal) == ((64, 96), "torch.float16", 0)
    assert second.address != first.address
    given = gemm(a, b, out=Tensor(64, 96, address=second.address))
    _, made, careful = gpu.launches
    assert made == careful and given.address == second.address


def test_an_output_at_another_alignment_is_worked_out_anew(gpu, monkeypatch):
    a, b = Tensor(64, 32), Tensor(32, 96)
    gemm(a, b)
    monkeypatch.setattr(
        Tensor, "new_empty", lambda self, shape, dtype: Tensor(*shape, dtype=dtype, address=(1 << 29) + 2)
    )
    with pytest.raises(AssertionError, match="careful"):
        planned(monkeypatch, lambda: gemm(a, b))


def test_each_stream_has_a_launch_of_its_own_where_a_workspace_belongs_to_one(gpu, monkeypatch):
    a, b, out = Tensor(64, 512), Tensor(512, 96), Tensor(64, 96)
    run = lambda: gemm(a, b, out=out, config=SMALL, split_k=2)  # noqa: E731
    for stream in (70, 80):
        monkeypatch.setattr(sys.modules["torch"]._C, "stream", stream)
        run()
    assert len(CALLS) == 2
    for stream in (70, 80):
        monkeypatch.setattr(sys.modules["torch"]._C, "stream", stream)
        planned(monkeypatch, run)
    assert [launch["stream"] for launch in gpu.launches] == [70, 80, 70, 80]
