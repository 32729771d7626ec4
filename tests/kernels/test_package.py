"""What `ptxdsl.kernels` has: modules, of which one is called as its function, and functions by their names."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import errors, kernels
from ptxdsl.kernels import conv, gemm
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.gemm import gemm_kernel, warpgroup_gemm_kernel
from ptxdsl.kernels.grouped import warpgroup_grouped_kernel
from ptxdsl.kernels.product.operands import Operands
from ptxdsl.kernels.sm90.tiling import WarpgroupTiling
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.kernels.tiles.many import AHEAD
from ptxdsl.kernels.tiles.persistent import Strips
from ptxdsl.kernels.tiles.stream_k import ANY

A = np.full((4, 4), 2, np.float16)
REFUSED = {
    "a module of one function": (
        lambda: conv(A, A),
        "`ptxdsl.kernels.conv` is a module, and has no function of that name",
        "call `conv.conv2d`",
    ),
    "a module of several": (
        lambda: kernels.ragged(A, A, A),
        "`ptxdsl.kernels.ragged` is a module, and has no function of that name",
        "call `ragged.grouped_gemm_ragged` or `ragged.grouped_gemm_masked`",
    ),
    "a call of a module": (
        lambda: gemm(A),
        "gemm lacks `b`; it takes a, b, c, out, alpha, beta, config, schedule, split_k, reduction, epilogue and operands",
        None,
    ),
    "a misspelt name": (lambda: kernels.conv3d, "ptxdsl.kernels has no `conv3d`", "did you mean `conv2d`?"),
    "another name": (lambda: kernels.softmax, "ptxdsl.kernels has no `softmax`", None),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_there_is_refused_in_words(case):
    call, message, help = REFUSED[case]
    with pytest.raises(errors.Error) as refused:
        call()
    error = refused.value
    assert (error.message, error.help) == (message, help)
    assert error.at.file == __file__


def test_the_module_of_gemm_is_called_as_its_function():
    assert (gemm(A, A) == 16).all()
    assert (pd.kernels.gemm(A, A, alpha=0.5) == 8).all()
    assert inspect.ismodule(gemm)
    assert gemm.gemm is importlib.import_module("ptxdsl.kernels.gemm").gemm
    assert inspect.signature(gemm) == inspect.signature(gemm.gemm)
    with pytest.raises(TypeError):
        inspect.signature(conv)


@pytest.mark.parametrize("name", kernels._HOME)
def test_functions_are_those_of_their_modules(name):
    if name != "gemm":
        assert getattr(kernels, name) is getattr(getattr(kernels, kernels._HOME[name]), name)
    assert name in dir(kernels)


@pytest.mark.exhaustive
def test_all_of_it_is_functions_and_modules():
    program = "from ptxdsl.kernels import *; print(*(name for name in globals() if name[0] != '_'))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == kernels.__all__ == sorted(kernels._HOME)
    assert {name for name in dir(kernels) if name[0] != "_"} == {*kernels._HOME, *kernels._FUNCTIONS}


@pytest.mark.exhaustive
def test_names_that_are_used_leave_the_package_as_it_was():
    program = "from ptxdsl.kernels import conv2d, gemm, kept, relu; print(callable(gemm), kept._is_unchanged())"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "True"]


def test_names_of_python_are_not_there():
    assert not hasattr(kernels, "__wrapped__")
    with pytest.raises(ImportError, match=r"cannot import name 'gem' from 'ptxdsl\.kernels'"):
        from ptxdsl.kernels import gem  # noqa: F401


tracing = importlib.import_module("ptxdsl.trace")
TILING = WarpgroupTiling((64, 64, 64), 2)
ONCE = {
    "K is split": (gemm_kernel, "sm_80", GemmConfig(split_k=2).traits(Operands())),
    "stream-K": (gemm_kernel, "sm_80", GemmConfig(schedule=ANY).traits(Operands())),
    "lists": (warpgroup_grouped_kernel, "sm_90a", WarpgroupTraits(TILING, Operands(out_boxes=True), AHEAD)),
    "boxes": (warpgroup_gemm_kernel, "sm_90a", WarpgroupTraits(TILING, Operands(out_boxes=True), Strips())),
    "few blocks": (warpgroup_gemm_kernel, "sm_90a", WarpgroupTraits(TILING, Operands(c="separate"), Strips())),
}


@pytest.mark.parametrize("which", ONCE)
def test_kernels_are_traced_once(which, monkeypatch):
    """What they change of Python in a loop or branch would be traced thrice."""
    kernel, arch, traits = ONCE[which]
    traces, traced = [], tracing._traced
    monkeypatch.setattr(tracing, "_traced", lambda *given: traces.append(given) or traced(*given))
    constants = {"traits": replace(traits)}  # of which nothing has been asked yet
    tracing.trace(kernel.signature, constants, arch=arch, directives=kernel.options.directives(constants))
    assert len(traces) == 1
