"""Instructions that only a GPU runs yet, and kernels that ask too much of a block."""

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import ptr, u32
from ptxdsl.errors import EmulationError, VerifyError
from ptxdsl.isa.opaque import GpuOnly
from ptxdsl.isa.opcode import Op
from ptxdsl.parse import parse
from ptxdsl.verify import verify


@pd.kernel
def orders(x: ptr[u32]):
    pd.ptx.multimem.red.relaxed.sys.global_.add.u32(x, 1)


def test_the_emulator_refuses_what_it_cannot_run(monkeypatch):
    monkeypatch.setenv("PTXDSL_ARCH", "sm_100a")
    with pytest.raises(EmulationError) as refusal:
        pd.emulate(orders, 1, 128, np.zeros(1, np.uint32))
    message, line, mend = str(refusal.value).splitlines()[0], *str(refusal.value).splitlines()[1::2][:2]
    assert message == (
        "`multimem.red.relaxed.sys.global.add.u32` cannot be emulated yet: the table has its forms but no implementation"
    )
    assert "test_gpu_only.py" in line and "pd.ptx.multimem.red" in line
    assert mend == "  help: run this kernel on a GPU; `ptxdsl dump` prints and assembles it anywhere"


def test_every_instruction_has_a_meaning_or_says_that_it_has_none():
    silent = [
        op for rows in Op.table.values() for op, _ in rows if type(op).run is Op.run and type(op).execute is Op.execute
    ]
    assert not silent
    assert any(isinstance(op, GpuOnly) for rows in Op.table.values() for op, _ in rows)


KERNEL = """.version 8.0
.target sm_90a
.address_size 64
.visible .entry k() DIRECTIVES
{
INSTRUCTION
ret;
}
"""


@pytest.mark.parametrize("directives, instruction, message", [
    (
        ".reqnctapercluster 4, 4, 2",
        "",
        "`k` asks for clusters of 4 x 4 x 2 blocks; the maximum is 16\n"
        "  help: 8 blocks run on every GPU that has clusters",
    ),
    (
        "",
        "setmaxnreg.inc.sync.aligned.u32 64;",
        "setmaxnreg.inc.sync.aligned.u32: the assembler ignores it in a kernel that does not declare its "
        "block size\n  <ptx>:6\n  help: declare it: `@pd.kernel(reqntid=384)`, or .reqntid in PTX",
    ),
    (
        ".maxntid 384, 1, 1",
        "setmaxnreg.inc.sync.aligned.u32 64;",
        "setmaxnreg.inc.sync.aligned.u32: the assembler ignores it in a kernel that does not declare the minimum "
        "blocks per multiprocessor\n  <ptx>:6\n"
        "  help: declare it: `@pd.kernel(reqntid=384, min_blocks=1)`, or .minnctapersm in PTX",
    ),
    (".maxntid 384, 1, 1\n.minnctapersm 1", "setmaxnreg.inc.sync.aligned.u32 64;", ""),
    (
        ".reqntid 256\n.minnctapersm 2",
        "setmaxnreg.inc.sync.aligned.u32 256;",
        "setmaxnreg.inc.sync.aligned.u32: 256 registers for a thread of a warpgroup and 24 for the others are 35840; "
        "the block is launched with 32768\n  <ptx>:7\n  help: ask for 232 at most",
    ),
    (
        ".reqntid 96\n.minnctapersm 1",
        "setmaxnreg.dec.sync.aligned.u32 40;",
        "setmaxnreg.dec.sync.aligned.u32: register counts change per warpgroup of 128 threads, but the block has 96\n"
        "  <ptx>:7\n  help: take a multiple of 128 threads",
    ),
    (".reqntid 384\n.maxnreg 168", "setmaxnreg.inc.sync.aligned.u32 64;", ""),
    (".reqnctapercluster 2, 8, 1", "", ""),
])  # fmt: skip
def test_what_a_kernel_says_of_its_blocks(directives, instruction, message):
    text = KERNEL.replace("DIRECTIVES", directives).replace("INSTRUCTION", instruction)
    try:
        verify(parse(text))
        refusal = ""
    except VerifyError as error:
        refusal = str(error)
    assert refusal == message
