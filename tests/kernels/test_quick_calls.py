"""Calls that one function launches, written for arrays like those of a call before; on a stand-in for the driver."""

import ctypes
import gc
import struct
import sys
import weakref
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import pytest

from ptxdsl import config as settings
from ptxdsl.errors import Error, LaunchError
from ptxdsl.kernels.attention import attention, attention_kernel, attention_varlen
from ptxdsl.kernels.attention_backward import KERNELS as BACKWARD_KERNELS
from ptxdsl.kernels.attention_backward import attention_backward
from ptxdsl.kernels.attention_decode import attention_decode, combine_kernel, decode_kernel
from ptxdsl.kernels.attention_fp8 import attention_fp8, transpose_kernel
from ptxdsl.kernels.attention_mla import attention_decode_mla, mla_kernel
from ptxdsl.kernels.call.call import PublicCall
from ptxdsl.kernels.call.launching import workspace
from ptxdsl.kernels.call.launching.memory import CALLS
from ptxdsl.kernels.call.matrix import allocator, list_allocator
from ptxdsl.kernels.candidates.sm80 import SMALL
from ptxdsl.kernels.config import GemmConfig, specialise
from ptxdsl.kernels.conv import conv2d, warpgroup_conv2d_kernel
from ptxdsl.kernels.conv_gradients import conv2d_dgrad, conv2d_wgrad, wgrad_kernel
from ptxdsl.kernels.epilogue import add, add_relu, per_column, per_row, relu, scale_rows_and_columns
from ptxdsl.kernels.gemm import gemm, gemm_kernel, warpgroup_gemm_kernel
from ptxdsl.kernels.grouped import grouped_gemm, grouped_gemm_masked, grouped_gemm_ragged, grouped_gemm_ragged_k
from ptxdsl.kernels.ragged_k import ragged_k_kernel, warpgroup_ragged_k_kernel
from ptxdsl.kernels.scaled import scaled_gemm, scaled_gemm_masked, scaled_gemm_ragged
from ptxdsl.schedule import GroupedRowsThreadblockSwizzle, IdentityThreadblockSwizzle
from tests.fake_driver import FakeCuda, installed
from tests.kernels import tensors
from tests.kernels.tensors import Tensor
from tests.kernels.test_memory import CASES as MEMORY_CASES
from tests.kernels.test_memory import KERNELS, int32
from tests.kernels.test_plan import WIDTHS

CASES = {name: MEMORY_CASES[name] for name in ("gemm", "batched", "ragged", "masked", "conv")} | {
    "along k": lambda: (grouped_gemm_ragged_k, [Tensor(90, 64), Tensor(90, 32), int32(3)], Tensor(3, 64, 32)),
}
OTHER_KERNELS = ragged_k_kernel, warpgroup_ragged_k_kernel, warpgroup_conv2d_kernel, wgrad_kernel
ATTENTION_KERNELS = attention_kernel, decode_kernel, combine_kernel, mla_kernel, transpose_kernel, *BACKWARD_KERNELS


@pytest.fixture
def gpu(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", tensors.torch())
    CALLS.clear()
    for kernel in (*KERNELS, *OTHER_KERNELS, *ATTENTION_KERNELS):
        for remembered in ("handles", "_variants", "_asked"):
            monkeypatch.setattr(kernel, remembered, {})
    monkeypatch.setattr(workspace, "_KEPT", {})  # the memory of one stand-in is none of the next one's
    monkeypatch.setattr(workspace, "_PASSING", OrderedDict())
    with installed(FakeCuda()) as fake:
        yield fake
    CALLS.clear()


@pytest.fixture
def of_warps(gpu, monkeypatch):
    """The driver for the kernel of the sm_80 path, whose parameters it records."""
    monkeypatch.setenv("PTXDSL_ARCH", "sm_90")
    gpu.widths = WIDTHS
    return gpu


def quickly(monkeypatch, call):
    """The call must not check its arguments again."""

    def refused(*arguments):
        raise AssertionError("the full check was made")

    with monkeypatch.context() as patch:
        patch.setattr(PublicCall, "launch", refused)
        return call()


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("has_out", [True, False])
def test_the_second_call_is_one_function(gpu, monkeypatch, case, has_out):
    function, inputs, out = CASES[case]()
    function(*inputs, **({"out": out} if has_out else {}))
    _, others, other_out = CASES[case]()
    result = quickly(monkeypatch, lambda: function(*others, **({"out": other_out} if has_out else {})))
    assert len(gpu.launches) == 2
    assert (result is other_out) if has_out else (result.shape == out.shape and result.address != out.address)


def test_arrays_of_which_some_want_gradients_have_a_function_too(gpu, monkeypatch):
    a, b, out = (Tensor(64, 64) for _ in range(3))
    gemm(a, b, out=out)
    b.requires_grad = True
    gemm(a, b, out=out)
    for wanted in (True, False):
        b.requires_grad = wanted
        quickly(monkeypatch, lambda: gemm(a, b, out=out))
    assert len(gpu.launches) == 4


def test_no_array_of_a_remembered_call_is_kept_alive(gpu):
    a, b = (Tensor(64, 64) for _ in range(2))
    alive = [weakref.ref(array) for array in (a, b, gemm(a, b), gemm(a, a))]
    assert len(CALLS) == 2
    del a, b
    gpu.launches.clear()
    gc.collect()
    assert [array() for array in alive] == [None] * 4


def test_other_numbers_are_packed_by_the_same_function(of_warps, monkeypatch):
    """Only ints that float32 may round, and numbers that are 0 where others are not, are checked again."""
    a, b, out = (Tensor(64, 64) for _ in range(3))
    gemm(a, b, out=out, alpha=2.0)
    for alpha in (3, -1.5, float("inf"), 2.0, 1 << 24):
        quickly(monkeypatch, lambda alpha=alpha: gemm(a, b, out=out, alpha=alpha))
        assert of_warps.launches[-1]["parameters"][11] == struct.pack("<f", alpha)
    for alpha in (0, 1e39, (1 << 24) + 2):
        with pytest.raises(AssertionError, match="full check"):
            quickly(monkeypatch, lambda alpha=alpha: gemm(a, b, out=out, alpha=alpha))
    gemm(a, b, out, out=out, beta=0.5)
    with pytest.raises(AssertionError, match="full check"):
        quickly(monkeypatch, lambda: gemm(a, b, out, out=out))


def test_arrays_that_lie_where_they_did_are_launched_as_they_are_now(of_warps):
    """Nothing is packed again then; with other arrays or numbers everything is."""
    a, b, c, out, other = (Tensor(64, 64) for _ in range(5))
    calls = [(a, b, out, 1.0), (a, b, out, 1.0), (c, b, other, 1.0), (a, b, out, 1.0), (c, b, out, 1.0)]
    calls += [(a, b, out, alpha) for alpha in (0.0, -0.0, 0.0, 0.0, -0.0, -0.0, 2.0, 2.0, 1.0)]
    for left, right, written, alpha in calls:
        gemm(left, right, out=written, alpha=alpha)
    quick, of_warps.launches = of_warps.launches, []
    for left, right, written, alpha in calls:
        CALLS.clear()
        gemm(left, right, out=written, alpha=alpha)
    assert quick == of_warps.launches


def test_factors_that_are_as_before_are_not_packed_again(of_warps):
    """They are other objects at each call, and of zeros the sign counts."""
    a, b, out, log = *(Tensor(64, 64) for _ in range(3)), []
    for _ in range(2):
        gemm(a, b, out, out=out, alpha=3.0, beta=0.5)
        gemm(a, b, out=out, alpha=3.0)
    for call in CALLS._known.values():
        names = call[0].launch.__globals__
        pack_into = names["pack_into0"]
        names["pack_into0"] = lambda *arguments, pack_into=pack_into: (log.append(arguments), pack_into(*arguments))
    for factors in ((3.0, 0.5), (6.0 / 2, 1.0 / 2)):
        gemm(a, b, out, out=out, alpha=factors[0], beta=factors[1])
        gemm(a, b, out=out, alpha=factors[0])
    assert log == []
    for beta in (-0.0, 0.0):
        gemm(a, b, out=out, alpha=3.0, beta=beta)
    assert len(log) == 2


def test_each_thread_packs_its_own(of_warps):
    a, b, c, out = (Tensor(64, 64) for _ in range(4))
    for _ in range(2):
        gemm(a, b, out=out)
    with ThreadPoolExecutor(1) as other:
        for first in (a, c, a, c):
            other.submit(gemm, first, b, out=out).result()
            gemm(a, b, out=out)
    here, there = of_warps.launches[1], of_warps.launches[4]
    assert of_warps.launches == [here] * 4 + [there, here] + [here] * 2 + [there, here] and here != there


def test_what_interrupts_a_call_to_launch_others_leaves_both_right(of_warps, monkeypatch):
    """As the handler of a signal may, when the arrays of the call have just been packed."""
    a, b, c, out = (Tensor(64, 64) for _ in range(4))
    for _ in range(2):
        gemm(a, b, out=out)
    ((quick,),) = CALLS._known.values()
    names, waiting = quick.launch.__globals__, [lambda: gemm(c, b, out=out)]
    pack_into = names["pack_into0"]

    def packed(*arguments):
        pack_into(*arguments)
        while waiting:
            waiting.pop()()

    names["pack_into0"] = packed
    products = (b, a), (b, a), (c, b), (a, b)
    of_warps.launches.clear()
    for left, right in products:
        gemm(left, right, out=out)
    assert not waiting
    interrupted, of_warps.launches = of_warps.launches, []
    for left, right in ((c, b), *products):
        CALLS.clear()
        gemm(left, right, out=out)
    assert interrupted == of_warps.launches


VARIANTS = {
    "other arrays": lambda a, b, c, out: ((Tensor(64, 64), Tensor(64, 64)), {"out": Tensor(64, 64)}),
    "out is made": lambda a, b, c, out: ((a, b), {}),
    "a column-major": lambda a, b, c, out: ((Tensor(64, 64, strides=(1, 64)), b), {"out": out}),
    "a off its alignment": lambda a, b, c, out: ((Tensor(64, 64, address=(1 << 28) + 2), b), {"out": out}),
    "alpha": lambda a, b, c, out: ((a, b), {"out": out, "alpha": 2.0}),
    "a negative zero": lambda a, b, c, out: ((a, b), {"out": out, "alpha": -0.0}),
    "one matrix twice": lambda a, b, c, out: ((a, a), {"out": out}),
    "c": lambda a, b, c, out: ((a, b, c), {"out": out, "beta": 0.5}),
    "c that is out": lambda a, b, c, out: ((a, b, out), {"out": out, "beta": 0.5}),
    "c where out begins": lambda a, b, c, out: (
        (a, b, Tensor(64, 64, address=out.address)), {"out": out, "beta": 0.5}
    ),
    "an output of float32": lambda a, b, c, out: ((a, b), {"out": Tensor(64, 64, dtype="torch.float32")}),
    "split_k": lambda a, b, c, out: ((a, b), {"out": out, "config": SMALL, "split_k": 1}),
    "config": lambda a, b, c, out: ((a, b), {"out": out, "config": SMALL}),
    "reduction": lambda a, b, c, out: ((a, b), {"out": out, "config": SMALL, "split_k": 2, "reduction": "serial"}),
    "schedule": lambda a, b, c, out: (
        (a, b), {"out": out, "config": SMALL, "schedule": GroupedRowsThreadblockSwizzle(4)}
    ),
    "epilogue": lambda a, b, c, out: ((a, b), {"out": out, "epilogue": relu}),
    "a function of the caller": lambda a, b, c, out: ((a, b), {"out": out, "epilogue": lambda x: x + 1.0}),
    "epilogue of the configuration": lambda a, b, c, out: (
        (a, b), {"out": out, "config": specialise(SMALL, epilogue=relu)}
    ),
    "operands": lambda a, b, c, out: (
        (a, b), {"out": out, "epilogue": scale_rows_and_columns, "operands": (per_row(ROW), per_column(ROW))}
    ),
    "columns before rows": lambda a, b, c, out: (
        (a, b), {"out": out, "epilogue": scale_rows_and_columns, "operands": (per_column(ROW), per_row(ROW))}
    ),
    "a matrix as operand": lambda a, b, c, out: ((a, b), {"out": out, "epilogue": add, "operands": [c]}),
    "out as operand": lambda a, b, c, out: ((a, b), {"out": out, "epilogue": add, "operands": (out,)}),
}  # fmt: skip
ROW = Tensor(64)


@pytest.mark.exhaustive
def test_each_call_is_launched_as_the_careful_way_would(of_warps):
    """Whatever was launched before, with and without `out`, `c` and a configuration."""
    a, b, c, out = (Tensor(64, 64) for _ in range(4))
    calls = {name: make(a, b, c, out) for name, make in VARIANTS.items()}
    for arguments, options in [*calls.values()] * 2:
        gemm(*arguments, **options)
    quick, careful = {}, {}
    for name, (arguments, options) in calls.items():
        options["out"] = gemm(*arguments, **options)
        quick[name] = of_warps.launches[-1]
    for name, (arguments, options) in calls.items():
        CALLS.clear()
        gemm(*arguments, **options)
        careful[name] = of_warps.launches[-1]
    assert quick == careful


@pytest.mark.parametrize(
    "variant",
    [
        "c that is out", "one matrix twice", "reduction", "schedule", "epilogue", "a function of the caller",
        "epilogue of the configuration", "operands", "a matrix as operand", "out as operand",
    ],
)  # fmt: skip
def test_what_else_a_call_says_is_quick_too(of_warps, monkeypatch, variant):
    a, b, c, out = (Tensor(64, 64) for _ in range(4))
    arguments, options = VARIANTS[variant](a, b, c, out)
    gemm(*arguments, **options)
    quickly(monkeypatch, lambda: gemm(*arguments, **options))
    assert of_warps.launches[0] == of_warps.launches[1]


def test_what_equals_a_number_of_slices_and_is_none_is_refused_after_it_too(of_warps):
    a, b, out = (Tensor(64, 64) for _ in range(3))
    gemm(a, b, out=out, config=SMALL, split_k=1)
    with pytest.raises(LaunchError, match="split_k is True"):
        gemm(a, b, out=out, config=SMALL, split_k=True)


def test_a_convolution_with_an_epilogue_is_one_function(gpu, monkeypatch):
    x, w, out, bias = Tensor(2, 8, 8, 32), Tensor(64, 3, 3, 32), Tensor(2, 6, 6, 64), Tensor(64)
    options = {"out": out, "epilogue": add_relu, "operands": (per_column(bias),)}
    conv2d(x, w, **options)
    quickly(monkeypatch, lambda: conv2d(x, w, **options))
    with pytest.raises(AssertionError, match="full check"):  # an operand that lies otherwise
        quickly(monkeypatch, lambda: conv2d(x, w, **options | {"operands": (per_column(Tensor(64, strides=(2,))),)}))
    assert gpu.launches[0] == gpu.launches[1] and len(gpu.launches) == 2


def of_type(dtype, *shapes):
    return [Tensor(*shape, dtype=f"torch.{dtype}") for shape in shapes]


HEADS, KV_HEADS, PACKED_Q, PACKED_KV = (1, 4, 64, 64), (1, 2, 128, 64), (64, 4, 64), (128, 2, 64)
ATTENTION = {  # the function, arrays like those of a call, its options, the shapes of its results, and its launches
    "forward": (
        partial(attention, return_lse=True),
        lambda: of_type("float16", HEADS, KV_HEADS, KV_HEADS),
        [HEADS, (1, 4, 64)],
        1,
    ),
    "packed": (
        partial(attention_varlen, causal=True, return_lse=True),
        lambda: of_type("float16", PACKED_Q, PACKED_KV, PACKED_KV) + of_type("int32", (3,), (3,)),
        [PACKED_Q, (4, 64)],
        1,
    ),
    "gradients": (
        partial(attention_backward, window=(16, None)),
        lambda: of_type("float16", HEADS, HEADS, KV_HEADS, KV_HEADS, HEADS) + of_type("float32", (1, 4, 64)),
        [HEADS, KV_HEADS, KV_HEADS],
        3,
    ),
    "gradients by additions": (
        partial(attention_backward, deterministic=False),
        lambda: of_type("bfloat16", *[(1, 1, 64, 128)] * 5) + of_type("float32", (1, 1, 64)),
        [(1, 1, 64, 128)] * 3,
        3,
    ),
    "decoding": (
        partial(attention_decode, return_lse=True),
        lambda: of_type("float16", (2, 4, 64), (8, 32, 2, 64), (8, 32, 2, 64)) + of_type("int32", (2, 4), (2,)),
        [(2, 4, 64), (2, 4)],
        2,
    ),
    "latent": (
        partial(attention_decode_mla, return_lse=True),
        lambda: of_type("float16", (2, 16, 576), (4, 64, 1, 576)) + of_type("int32", (2, 32), (2,)),
        [(2, 16, 512), (2, 16)],
        2,
    ),
    "8 bits": (
        partial(attention_fp8, return_lse=True),
        lambda: of_type("float8_e4m3fn", *[(1, 2, 64, 128)] * 3) + of_type("float32", *[(1, 2)] * 3),
        [(1, 2, 64, 128), (1, 2, 64)],
        2,
    ),
}


@pytest.mark.parametrize("case", ATTENTION)
def test_the_second_call_of_attention_is_one_function(gpu, monkeypatch, case):
    function, operands, shapes, launches = ATTENTION[case]
    first = function(*operands())
    assert len(gpu.launches) == launches
    second = quickly(monkeypatch, lambda: function(*operands()))
    assert len(gpu.launches) == 2 * launches
    assert [result.shape for result in second] == shapes
    assert len({result.address for result in (*first, *second)}) == 2 * len(shapes)


def test_other_calls_of_attention_are_checked(gpu, monkeypatch):
    def operands(heads=4):
        return of_type("float16", (1, heads, 64, 64), KV_HEADS, KV_HEADS)

    q, k, v = operands()
    attention(q, k, v, scale=1)
    for changed, options in ((operands(2), {"scale": 1}), ((q, k, v), {"scale": True}), ((q, k, v), {"out": v})):
        with pytest.raises(AssertionError, match="full check"):
            quickly(monkeypatch, lambda changed=changed, options=options: attention(*changed, **options))
    out = Tensor(*HEADS)
    attention(q, k, v, out=out)
    assert quickly(monkeypatch, lambda: attention(q, k, v, out=out)) is out
    with pytest.raises(AssertionError, match="full check"):
        quickly(monkeypatch, lambda: attention(q, k, v, out=Tensor(*HEADS, address=v.address + 64)))


def test_memory_that_out_shares_is_refused(of_warps):
    a, b, out = (Tensor(64, 64) for _ in range(3))
    for _ in range(2):
        gemm(a, b, out=out)
    with pytest.raises(LaunchError) as refused:
        gemm(a, b, out=Tensor(64, 64, address=b.address + 64))
    assert refused.value.message == "`out` is written and shares memory with `b`"
    assert len(of_warps.launches) == 2


def test_a_configuration_is_known_by_what_it_says(of_warps, monkeypatch):
    a, b, out = (Tensor(64, 64) for _ in range(3))
    for stages in (2, 3, 2, 3):
        gemm(a, b, out=out, config=replace(SMALL, stages=stages))
    assert [launch["shared_bytes"] for launch in of_warps.launches[:2]] == [
        launch["shared_bytes"] for launch in of_warps.launches[2:]
    ]
    quickly(monkeypatch, lambda: gemm(a, b, out=out, config=replace(SMALL, stages=2)))


def test_what_an_epilogue_reads_is_asked_at_each_call(of_warps):
    scale = [1.0]
    config = specialise(SMALL, epilogue=lambda x: x * scale[0])
    a, b, out = (Tensor(64, 64) for _ in range(3))
    for scale[0] in (1.0, 2.0, 1.0):
        gemm(a, b, out=out, config=config)
    assert len(gemm_kernel._variants) == 2


def test_numbers_that_say_where_windows_are_stay_apart_from_others_that_are_equal(gpu):
    x, w = Tensor(2, 8, 8, 32), Tensor(64, 3, 3, 32)
    conv2d(x, w, pad=1)
    with pytest.raises(LaunchError, match=r"pad is 1\.0"):
        conv2d(x, w, pad=1.0)


@pytest.mark.parametrize("function", [grouped_gemm_ragged, grouped_gemm_masked])
def test_validate_stays_what_it_must_be(gpu, function):
    _, inputs, out = CASES["ragged" if function is grouped_gemm_ragged else "masked"]()
    function(*inputs, out=out)
    with pytest.raises(LaunchError, match="`validate` is 'no'"):
        function(*inputs, out=out, validate="no")


def test_values_of_the_rows_of_groups_may_lie_otherwise_at_the_next_call(of_warps):
    of_warps.widths = (
        *(8,) * 10,
        *(4,) * 4,
        8,
        8,
    )  # three matrices and the counts; numbers; values, and their distance
    _, inputs, out = CASES["masked"]()
    values = [Tensor(3, 64, strides=(apart, 1), dtype="torch.float32") for apart in (64, 64, 80, 80, 0, 64)]
    for each in values:
        grouped_gemm_masked(*inputs, out=out, epilogue=add, operands=[per_row(each)])
    told = [[int.from_bytes(each, "little") for each in launch["parameters"][-2:]] for launch in of_warps.launches]
    assert told == [[each.address, each.strides[0]] for each in values]


@pytest.mark.parametrize("variant", ["other arrays", "out is made", "c", "c that is out", "one matrix twice"])
def test_without_guards_of_the_library_calls_are_remembered_all_the_same(of_warps, monkeypatch, variant):
    monkeypatch.delattr(sys.modules["torch"]._C, "_dynamo")
    a, b, c, out = (Tensor(64, 64) for _ in range(4))
    arguments, options = VARIANTS[variant](a, b, c, out)
    options["out"] = gemm(*arguments, **options) if variant == "out is made" else options["out"]
    gemm(*arguments, **options)
    quickly(monkeypatch, lambda: gemm(*arguments, **options))
    assert of_warps.launches[-2] == of_warps.launches[-1]
    transposed = Tensor(64, 64, strides=(1, 64))
    with pytest.raises(AssertionError, match="full check"):
        quickly(monkeypatch, lambda: gemm(transposed, *arguments[1:], **options))


def test_a_launch_that_another_context_refuses_is_made_in_its_own(of_warps, monkeypatch):
    """The driver is asked anew with the context of the GPU; other failures are told."""
    a, b, out = (Tensor(64, 64) for _ in range(3))
    gemm(a, b, out=out)
    quickly(monkeypatch, lambda: gemm(a, b, out=out))
    assert len(of_warps.launches) == 2 and of_warps.current is None
    of_warps.failing["cuLaunchKernelEx"] = of_warps.CUresult.CUDA_ERROR_LAUNCH_FAILED
    with pytest.raises(LaunchError, match="launching gemm_kernel on cuda:0"):
        gemm(a, b, out=out)


class TestNewOutputs:
    """Made by the function of torch's compiled graphs, on the GPU that is current."""

    @pytest.fixture
    def fast(self, monkeypatch):
        module = tensors.torch()
        made = []

        def empty_strided(shape, strides, dtype):
            made.append((shape, strides, dtype))
            return Tensor(*shape, strides=strides, dtype=dtype)

        module._C._dynamo.guards._empty_strided_cuda = empty_strided
        module._C._cuda_getDevice = lambda: 0
        module.Tensor, module.nn = Tensor, SimpleNamespace(Parameter=type("Parameter", (Tensor,), {}))
        monkeypatch.setitem(sys.modules, "torch", module)
        return made

    def test_on_the_current_gpu(self, fast):
        out = allocator("torch", [4, 6], "torch.float16")(Tensor(2, 2))
        assert fast == [((4, 6), (6, 1), "torch.float16")] and out.shape == (4, 6)

    def test_several_on_the_current_gpu(self, fast):
        outs = list_allocator("torch", [[4, 6], [2, 3]], "torch.float16")(Tensor(2, 2))
        assert fast == [((4, 6), (6, 1), "torch.float16"), ((2, 3), (3, 1), "torch.float16")]
        assert [out.shape for out in outs] == [(4, 6), (2, 3)]

    def test_by_the_tensor_itself_on_another_one(self, fast):
        out = allocator("torch", (4, 6), "torch.float16")(Tensor(2, 2, device=1))
        assert not fast and (out.shape, out.ordinal) == ((4, 6), 1)
        outs = list_allocator("torch", [(4, 6), (2, 3)], "torch.float16")(Tensor(2, 2, device=1))
        assert not fast and [(out.shape, out.ordinal) for out in outs] == [((4, 6), 1), ((2, 3), 1)]

    def test_by_the_tensor_itself_where_it_is_of_a_class_of_its_own(self, fast):
        class Special(Tensor):
            pass

        assert allocator("torch", (4, 6), "torch.float16")(Special(2, 2)).shape == (4, 6)
        assert not fast


class TestLists:
    def test_factors_and_addresses_are_those_of_each_call(self, gpu):
        gpu.widths = (8, 8, 4, 4, 4, 4)  # tables, numbers of problems and tiles, alpha, beta

        def launched(alpha):
            a, b, out = ([Tensor(64, 64) for _ in range(3)] for _ in range(3))
            grouped_gemm(a, b, out=out, alpha=alpha, config=SMALL)
            launch = gpu.launches[-1]
            table = ctypes.string_at(int.from_bytes(launch["parameters"][0], "little"), 3 * 96)
            words = {int.from_bytes(table[n : n + 8], "little") for n in range(0, len(table), 8)}
            assert {x.address for x in (*a, *b, *out)} <= words
            return launch["parameters"][4]

        for alpha in (1.0, 2.0, -0.0, 0.0, 1.0, -0.0):
            assert launched(alpha) == struct.pack("<f", alpha)
        with pytest.raises(LaunchError, match="`alpha` is 1e\\+39"):
            launched(1e39)

    def test_the_second_call_fills_no_parameters(self, gpu, monkeypatch):
        """But for streams whose workspace may be freed."""
        a, b, out = ([Tensor(64, 32) for _ in range(3)], [Tensor(32, 96) for _ in range(3)],
                     [Tensor(64, 96) for _ in range(3)])  # fmt: skip
        gemm(a, b, out=out)
        monkeypatch.setattr("ptxdsl.kernels.call.groups.batched.gemm_values", None)
        gemm(a, b, out=out)
        assert len(gpu.launches) == 2
        monkeypatch.setattr(workspace, "MOST_STREAMS", 0)
        monkeypatch.setattr(sys.modules["torch"]._C, "stream", 90)
        with pytest.raises(TypeError):
            gemm(a, b, out=out)


def listed(*shape):
    return [Tensor(*shape)]


def bytes_(*shape):
    """8-bit floats whose last two extents are (K, N), as of the transpose of a matrix (N, K), or rows of K elements."""
    return Tensor(*shape, dtype="torch.float8_e4m3fn")


def columns(*shape):
    *batches, k, n = shape
    return Tensor(*shape, strides=(*(k * n for _ in batches), 1, k), dtype="torch.float8_e4m3fn")


def float32(*shape):
    return Tensor(*shape, dtype="torch.float32")


EARLY = [("PROGRAMMATIC_STREAM_SERIALIZATION", 1)]
TILES = {"config": GemmConfig(tile=(64, 64, 64), stages=2, atom="wgmma")}
IN_CLUSTERS = TILES | {"schedule": IdentityThreadblockSwizzle(1), "split_k": 2, "reduction": "cluster"}
SCALED = {"config": GemmConfig(tile=(64, 64, 128), stages=2, atom="wgmma")}
BY_WARPGROUPS = {
    "gemm": lambda: (gemm, [Tensor(64, 64), Tensor(64, 96)], Tensor(64, 96), TILES),
    "K in a cluster": lambda: (gemm, [Tensor(128, 256), Tensor(256, 64)], Tensor(128, 64), IN_CLUSTERS),
    "of its choice": lambda: (gemm, [Tensor(64, 64), Tensor(64, 96)], Tensor(64, 96), {}),
    "batched": lambda: (gemm, [Tensor(4, 64, 64), Tensor(4, 64, 96)], Tensor(4, 64, 96), TILES),
    "lists": lambda: (grouped_gemm, [listed(64, 64), listed(64, 96)], listed(64, 96), TILES),
    "ragged": lambda: (grouped_gemm_ragged, [Tensor(90, 64), Tensor(3, 64, 96), int32(3)], Tensor(90, 96), TILES),
    "masked": lambda: (grouped_gemm_masked, [Tensor(3, 64, 64), Tensor(3, 64, 96), int32(3)], Tensor(3, 64, 96), TILES),
    "along k": lambda: (grouped_gemm_ragged_k, [Tensor(90, 64), Tensor(90, 64), int32(3)], Tensor(3, 64, 64), TILES),
    "scaled": lambda: (
        scaled_gemm, [bytes_(64, 128), columns(128, 96), float32(1), float32(1)], Tensor(64, 96), SCALED
    ),
    "scaled groups": lambda: (
        scaled_gemm_ragged, [bytes_(90, 128), columns(3, 128, 96), int32(3), float32(1), float32(1)], Tensor(90, 96),
        SCALED,
    ),
    "scaled masked": lambda: (
        scaled_gemm_masked, [bytes_(3, 64, 128), columns(3, 128, 96), int32(3), float32(1), float32(1)],
        Tensor(3, 64, 96), SCALED,
    ),
    "conv": lambda: (conv2d, [Tensor(2, 8, 8, 64), Tensor(64, 3, 3, 64)], Tensor(2, 6, 6, 64), TILES),
    "images": lambda: (conv2d_dgrad, [Tensor(2, 6, 6, 64), Tensor(64, 3, 3, 64), (8, 8)], Tensor(2, 8, 8, 64), {}),
    "filters": lambda: (conv2d_wgrad, [Tensor(2, 6, 6, 64), Tensor(2, 8, 8, 64), (3, 3)], Tensor(64, 3, 3, 64), {}),
}  # fmt: skip


class TestDependentLaunches:
    """What kernels of warpgroups are, unless the setting says no."""

    @pytest.mark.parametrize("case", BY_WARPGROUPS)
    def test_the_setting_holds_for_each_call(self, gpu, case):
        function, inputs, out, options = BY_WARPGROUPS[case]()
        for allowed in (True, True, False, False, True, False):
            with settings.using(dependent_launch=allowed):
                function(*inputs, out=out, **options)
        launched = [launch.pop("attributes") for launch in gpu.launches]
        assert launched == [EARLY, EARLY, [], [], EARLY, []]
        assert all(launch == gpu.launches[0] for launch in gpu.launches)

    def test_so_does_the_variable_and_each_launch_is_remembered_beside_the_other(self, gpu, monkeypatch):
        function, inputs, out, options = BY_WARPGROUPS["gemm"]()
        for text in ("", "off"):
            monkeypatch.setenv("PTXDSL_DEPENDENT_LAUNCH", text)
            function(*inputs, out=out, **options)
        for text, attributes in (("", EARLY), ("off", []), ("", EARLY)):
            monkeypatch.setenv("PTXDSL_DEPENDENT_LAUNCH", text)
            quickly(monkeypatch, lambda: function(*inputs, out=out, **options))
            assert gpu.launches[-1]["attributes"] == attributes
        assert len(warpgroup_gemm_kernel._variants) == 1  # the kernel is the same

    def test_a_setting_that_is_neither_on_nor_off_is_refused_after_a_launch_too(self, gpu, monkeypatch):
        function, inputs, out, options = BY_WARPGROUPS["gemm"]()
        function(*inputs, out=out, **options)
        monkeypatch.setenv("PTXDSL_DEPENDENT_LAUNCH", "never")
        with pytest.raises(Error) as refused:
            function(*inputs, out=out, **options)
        assert refused.value.message == "PTXDSL_DEPENDENT_LAUNCH is `never`; it must be on or off"
        assert len(gpu.launches) == 1

    def test_kernels_of_warps_begin_behind_each_other_in_any_case(self, of_warps):
        a, b, out = (Tensor(64, 64) for _ in range(3))
        for allowed in (True, False):
            with settings.using(dependent_launch=allowed):
                gemm(a, b, out=out)
        assert [launch["attributes"] for launch in of_warps.launches] == [[], []]
