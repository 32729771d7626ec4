"""What a kernel prints and asserts, on the emulator and on a GPU; that assemblers take it for GPUs."""

import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import bf16, f16, f32, f64, ptr, s16, s64, u32
from ptxdsl.errors import here

from .machines import MACHINES, machine


@pd.kernel
def told(x: ptr[f32], n: u32):
    i = pd.tid.x
    with pd.if_(i < 2):
        pd.printf("%d: %5.2f of %u\n", i, x[i], n)
    pd.assert_(x[i] < 10.0)
    pd.assert_(i < n, "more threads than numbers")


ASSERTED = here().location.line - 4


def output(kernel, *arguments):
    report = pd.emulate(kernel, 1, 1, *arguments)
    assert not report.findings, report
    return report.output


@pytest.mark.parametrize("name", MACHINES)
def test_each_thread_that_comes_there_prints(name, capfd):
    x = machine(name).array(np.arange(4, dtype=np.float32))
    told[1, 4](x, 4)
    machine(name).values(x)  # waits for the kernel
    assert capfd.readouterr().out == "0:  0.00 of 4\n1:  1.00 of 4\n"


def test_values_of_all_types_are_printed_as_they_are():
    @pd.kernel
    def k(h: ptr[f16], b: ptr[bf16], d: ptr[f64], s: ptr[s16], w: ptr[s64]):
        pd.printf("%g %g %e|", h[0], b[0], d[0])
        pd.printf("%d %lld %lld %llx|", s[0], s[0], w[0], w[0])
        pd.printf("%d%% %c %u %g %d|", -3, 65, 1 << 31, 1, h[0] > 0.0)
        pd.printf("none")

    half, short, wide = np.array([0.5], np.float16), np.array([-7], np.int16), np.array([-(1 << 40)])
    text = output(k, half, half.astype(ml_dtypes.bfloat16), np.array([1.25]), short, wide)
    assert text == "0.5 0.5 1.250000e+00|-7 -7 -1099511627776 ffffff0000000000|-3% A 2147483648 1 1|none"


def test_loops_print_in_each_round_from_the_same_memory():
    @pd.kernel
    def k(x: ptr[f32]):
        for i in pd.range(3):
            pd.printf("%u ", i)
        pd.printf("%p %u %g", x, 1, 2.0)

    text = output(k, np.zeros(1, np.float32))
    assert text.startswith("0 1 2 0x") and text.endswith(" 1 2")
    assert k.ptx().count(".local") == 1 + k.ptx().count("st.local") + k.ptx().count("cvta.local")


def test_a_failed_assertion_is_a_finding_with_the_python_line():
    finding = pd.emulate(told, 1, 4, np.full(4, 12, np.float32), 4).findings[0]
    assert (finding.kind, finding.locations[0].line, finding.count) == ("assert", ASSERTED, 4)
    assert finding.message.startswith("assertion `x[i] < 10.0` failed in told (")
    with pytest.raises(pd.EmulationError, match="assertion `more threads than numbers` failed"):
        told[1, 4](np.zeros(4, np.float32), 3)


FAILS = """
import torch
from tests.test_trace_printing import told
told[1, 4](torch.full((4,), 12.0).cuda(), 4)
torch.cuda.synchronize()
"""


@pytest.mark.gpu
def test_a_gpu_stops_at_a_failed_assertion_and_says_its_line():
    """In a process of its own, whose context is lost."""
    done = subprocess.run([sys.executable, "-c", FAILS], capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    assert done.returncode != 0
    assert f"test_trace_printing.py:{ASSERTED}: " in said
    assert "Assertion `x[i] < 10.0` failed." in said


def test_assertions_that_hold_do_nothing():
    x = np.zeros(4, np.float32)
    assert not pd.emulate(told, 1, 4, x, 4).findings


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_it_is_assembled(arch):
    assert told.cubin(arch).kernels["told"].stack_bytes >= 24
