"""What the caller of gemm() reads when a call is refused: the full text of each error, which names the caller's line.

A case in `tests/refusals/gemm.txt` is a title, a program, and behind `---` what is printed. `a` is (4, 6) and `b`
(6, 8) of f16, `out` (4, 8).
"""

from __future__ import annotations

import linecache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import schedule as schedules
from ptxdsl.kernels import epilogue
from ptxdsl.kernels.call.products.problem import problem_of
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.conv import conv2d
from ptxdsl.kernels.gemm import gemm
from ptxdsl.kernels.grouped import grouped_gemm
from ptxdsl.kernels.product.operands import Operands

TABLE = Path(__file__).parent.parent / "refusals" / "gemm.txt"
FILE = "call.py"


def cases():
    for case in TABLE.read_text().split("=== ")[1:]:
        title, _, rest = case.partition("\n")
        body, _, text = rest.partition("\n---\n")
        yield pytest.param(body, text.strip("\n"), id=title)


def refusal(body):
    """The text of the error that a program meets, or "" if it is fine."""
    text = body + "\n"
    linecache.cache[FILE] = (len(text), None, text.splitlines(keepends=True), FILE)
    ones = {"a": np.ones((4, 6), np.float16), "b": np.ones((6, 8), np.float16), "out": np.ones((4, 8), np.float16)}
    scope = {
        "pd": pd,
        "np": np,
        "gemm": gemm,
        "GemmConfig": GemmConfig,
        "Operands": Operands,
        **vars(epilogue),
        **ones,
        "__name__": "call",
    }
    try:
        exec(compile(text, FILE, "exec"), scope)
    except pd.Error as error:
        return str(error)
    return ""


@pytest.mark.parametrize("body, text", list(cases()))
def test_the_caller_is_told_in_words(body, text):
    assert refusal(body) == text


def test_nothing_is_written_by_a_call_that_is_refused():
    a, b, out = np.ones((4, 6), np.float16), np.ones((6, 8), np.float16), np.full((4, 8), 7.0, np.float16)
    for call in (
        lambda: gemm(a, b, out=out, alpha=1e300),
        lambda: gemm(a, b, out=out, epilogue=lambda x: None),
        lambda: gemm(a, b, out=out, config=GemmConfig(stages=40)),
    ):
        with pytest.raises(pd.Error):
            call()
    assert (out == 7.0).all()


def test_a_matrix_at_an_odd_address_is_refused():
    odd = np.zeros(129, np.uint8)[1:].view(np.float16).reshape(8, 8)
    with pytest.raises(
        pd.LaunchError, match=r"`a` begins at the address 0x[0-9a-f]+, which is not a multiple of its 2-byte"
    ):
        gemm(odd, np.eye(8, dtype=np.float16))


def test_an_output_at_an_odd_address_is_refused():
    odd = np.zeros(129, np.uint8)[1:].view(np.float16).reshape(8, 8)
    with pytest.raises(pd.LaunchError) as refused:
        gemm(np.eye(8, dtype=np.float16), np.eye(8, dtype=np.float16), out=odd)
    assert refused.value.message.startswith("`out` begins at the address 0x")
    assert refused.value.help == "pass an aligned array: a GPU writes aligned elements only"


class OnGpu:
    """An array of float16 on a GPU that it does not name."""

    def __init__(self, rows, columns):
        self.__cuda_array_interface__ = {
            "version": 3, "data": (1 << 30, False), "shape": (rows, columns), "strides": None, "typestr": "<f2",
        }  # fmt: skip


def tensor(rows, columns, device):
    """Answers as a matrix of torch does."""
    members = {
        "__module__": "torch", "shape": (rows, columns), "dtype": "torch.float16", "itemsize": 2,
        "device": SimpleNamespace(type="cuda"), "get_device": lambda self: device,
        "data_ptr": lambda self: (device + 1) << 30, "stride": lambda self: (columns, 1),
    }  # fmt: skip
    return type("Tensor", (), members)()


TO_ONE = "move one of them to the other"
EMULATED = f"{TO_ONE}; with numpy arrays alone, the kernel runs on the emulator"
PLACES = [
    (np.ones((4, 6), np.float16), OnGpu(6, 8), "`a` is in host memory and `b` on a GPU", EMULATED),
    (OnGpu(4, 6), np.ones((6, 8), np.float16), "`a` is on a GPU and `b` in host memory", EMULATED),
    (tensor(4, 6, 0), tensor(6, 8, 1), "`a` is on cuda:0 and `b` on cuda:1", TO_ONE),
]


@pytest.mark.parametrize("a, b, message, help", PLACES, ids=[place[2] for place in PLACES])
def test_arrays_in_several_places_are_refused(a, b, message, help):
    with pytest.raises(pd.LaunchError) as refused:
        problem_of(a, b, None, output_beside(a), 0.0)
    assert (refused.value.message, refused.value.help) == (message, help)


def output_beside(a):
    if isinstance(a, np.ndarray):
        return np.zeros((4, 8), np.float16)
    return OnGpu(4, 8) if isinstance(a, OnGpu) else tensor(4, 8, a.get_device())


ODD = {
    'gemm(a, b, schedule=[1], config="tune")': (
        "schedule is [1]; it takes one schedule, a value of ptxdsl.schedule",
        "such as IdentityThreadblockSwizzle(8), PersistentScheduler() or StreamKThreadblockSwizzle()",
    ),
    "gemm(a, b, schedule=([1],))": (
        "schedule is ([1],); it takes one schedule, a value of ptxdsl.schedule",
        "such as IdentityThreadblockSwizzle(8), PersistentScheduler() or StreamKThreadblockSwizzle()",
    ),
    "gemm(a, b, reduction=pair)": (
        'GemmConfig: reduction is array([1., 1.], dtype=float32); it takes "serial", "parallel", "scatter" or "cluster"',
        None,
    ),
    "gemm(a, b, config=pair)": (
        "`config` is array([1., 1.], dtype=float32)",
        "pass a GemmConfig, such as GemmConfig(tile=(64, 64, 32))",
    ),
    "gemm(a, b, config=[])": ("`config` is []", "pass a GemmConfig, such as GemmConfig(tile=(64, 64, 32))"),
    'gemm(a, b, reduction="")': (
        'GemmConfig: reduction is \'\'; it takes "serial", "parallel", "scatter" or "cluster"',
        None,
    ),
    "gemm(a, b, split_k=[2])": ("GemmConfig: split_k is [2]; it takes an int", None),
    "gemm(a, b, alpha=float)": ("`alpha` is <class 'float'>, not a number", "pass an int or a float"),
    "conv2d(x, w, split_k=[2])": ("GemmConfig: split_k is [2]; it takes an int", None),
    "conv2d(x, w, split_k=pair)": ("GemmConfig: split_k is array([1., 1.], dtype=float32); it takes an int", None),
    "conv2d(x, w, reduction=pair)": (
        'GemmConfig: reduction is array([1., 1.], dtype=float32); it takes "serial", "parallel", "scatter" or "cluster"',
        None,
    ),
    "conv2d(x, w, schedule=[1])": (
        "schedule is [1]; it takes one schedule, a value of ptxdsl.schedule",
        "such as IdentityThreadblockSwizzle(8), PersistentScheduler() or StreamKThreadblockSwizzle()",
    ),
    "grouped_gemm([a], [b], schedule=pair)": ("schedule is array([1., 1.], dtype=float32)", 'take "device" or "host"'),
    "grouped_gemm([a], [b], balance=pair)": ("balance is array([1., 1.], dtype=float32)", 'take "k", or leave it out'),
    "GemmConfig(atom=pair)": (
        "GemmConfig: atom is array([1., 1.], dtype=float32); it takes the name of a tensor core instruction",
        None,
    ),
    "GemmConfig(stages=pair)": ("GemmConfig: stages is array([1., 1.], dtype=float32); it takes an int", None),
    "GemmConfig(stagger=pair)": (
        "GemmConfig: stagger is array([1., 1.], dtype=float32); only warpgroups that multiply share tiles",
        None,
    ),
    "GemmConfig(reduction=pair)": (
        'GemmConfig: reduction is array([1., 1.], dtype=float32); it takes "serial", "parallel", "scatter" or "cluster"',
        None,
    ),
    "StreamKThreadblockSwizzle([8])": (
        "StreamKThreadblockSwizzle: multiprocessors is [8], which is not an integer",
        "sizes must be integers",
    ),
    "StreamKThreadblockSwizzle(available=dict())": (
        "StreamKThreadblockSwizzle: available is {}, which is not an integer",
        "sizes must be integers",
    ),
    "PersistentScheduler(max_swizzle=pair)": (
        "max_swizzle is array([1., 1.], dtype=float32)",
        "take one of 1, 2, 4, 8",
    ),
    "PersistentScheduler(raster=pair)": ("raster is array([1., 1.], dtype=float32)", 'take "m", "n" or "heuristic"'),
    "PersistentScheduler(np.array(1))": ("the cluster has 1 sizes: 1", "give it as (M, N)"),
}


@pytest.mark.parametrize("call", ODD)
def test_values_of_options_that_are_no_such_values(call):
    """Unhashable ones, arrays whose truth is ambiguous, types."""
    names = {**vars(schedules), "gemm": gemm, "conv2d": conv2d, "grouped_gemm": grouped_gemm, "GemmConfig": GemmConfig}
    a, b, pair = np.ones((4, 6), np.float16), np.ones((6, 8), np.float16), np.ones(2, np.float32)
    x, w = np.ones((1, 4, 4, 8), np.float16), np.ones((8, 3, 3, 8), np.float16)
    with pytest.raises(pd.Error) as refused:
        eval(call, {**names, "a": a, "b": b, "x": x, "w": w, "pair": pair, "np": np})
    assert (refused.value.message, refused.value.help) == ODD[call]
