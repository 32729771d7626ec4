"""What does not fit into memory is an error that keeps its cause, not a machine half made."""

import sys

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl.emulate.memory import regions
from ptxdsl.emulate.run.machine import Machine

TEXT = """.version 7.0
.target sm_80
.address_size 64
{outside}
.visible .entry f(.param .u64 p)
{{
    .reg .b64 %rd;
    {inside}
    mov.u64 %rd, x;
    ret;
}}
"""


def run(**parts):
    kernel = pd.parse(TEXT.format(**{"outside": "", "inside": ""} | parts))["f"]
    kernel[1, 1](np.zeros(4, np.float32))


def refusal(**parts):
    with pytest.raises(pd.Error) as refused:
        run(**parts)
    return refused.value.message


def test_dynamic_shared_memory_without_end():
    @pd.kernel
    def k(x: pd.ptr[pd.f32]):
        x[0] = 1.0

    with pytest.raises(pd.LaunchError) as refused:
        k[1, 1, 10**12](np.zeros(4, np.float32))
    assert refused.value.message == (
        "k requests 1000000000000 bytes of dynamic shared memory; a block on sm_80 can have 166912"
    )


def test_shared_variables_without_end():
    expected = "`f` declares 1000000000000000000 bytes of static shared memory; the limit is 49152"
    assert refusal(inside=".shared .b8 x[1000000000000000000];") == expected
    assert refusal(outside=".shared .b8 x[1000000000000000000];") == expected


@pytest.mark.parametrize(
    "parts",
    [
        {"inside": ".local .b8 x[1000000000000000000];"},
        {"outside": ".global .b8 x[1000000000000000000];"},
        {"outside": ".const .b8 x[1000000000000000000];"},
        {"outside": ".global .b64 x[125000000000000000];"},
    ],
)
def test_other_variables_without_end(parts):
    assert refusal(**parts) == "not enough memory to emulate f: `x` takes 1000000000000000000 bytes"


def test_memory_that_runs_out_keeps_its_cause(monkeypatch):
    full = MemoryError("Unable to allocate 3 GiB")

    def allocate(*_):
        raise full

    monkeypatch.setattr(regions.np, "full", allocate)
    with pytest.raises(pd.EmulationError) as refused:
        run(inside=".local .b8 x[16];")
    assert str(refused.value) == "not enough memory to emulate f: Unable to allocate 3 GiB"
    assert refused.value.__cause__ is full


def test_an_error_before_the_first_instruction_is_told_as_it_is(monkeypatch):
    def broken(*_):
        raise RuntimeError("while blocks are made")

    monkeypatch.setattr(sys.modules[Machine.__module__], "Residents", broken)
    with pytest.raises(RuntimeError, match="while blocks are made"):
        run(inside=".local .b8 x[16];")


def test_a_kernel_without_registers_runs():
    pd.parse(".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry f()\n{\nret;\n}\n")["f"][1, 1024]()
