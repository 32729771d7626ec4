"""What the assemblers print: resources, warnings and errors of real logs, and the Python lines behind PTX lines."""

import pytest

from ptxdsl.assemble.assembler_log import (
    Remark,
    Resources,
    errors,
    loss_line,
    python_location,
    resources,
    warnings,
    warpgroup_losses,
)
from ptxdsl.errors import Location

NVJITLINK = """\
ptxas warning : Registers are spilled to local memory in function 'big', 328 bytes spill stores, 320 bytes spill loads
ptxas info    : 0 bytes gmem
ptxas info    : Function properties for helper
ptxas         .     8 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads
ptxas info    : Compiling entry function 'big' for 'sm_90a'
ptxas info    : Function properties for big
ptxas         .     336 bytes stack frame, 328 bytes spill stores, 320 bytes spill loads
ptxas info    : Used 30 registers, used 2 barriers, 256 bytes smem
ptxas info    : Compile time = 11.125 ms
info    : 0 bytes gmem
info    : Function properties for 'big':
info    : used 32 registers, used 9 barriers, 344 stack, 1280 bytes smem, 552 bytes cmem[0], 0 bytes lmem
"""
PTXAS = """\
ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized in function 'one'
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'one' for 'sm_80'
ptxas info    : Function properties for one
    64 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 10 registers, used 0 barriers, 64 bytes cumulative stack size, 360 bytes cmem[0], 8 bytes cmem[2]
ptxas info    : Compiling entry function 'two' for 'sm_80'
ptxas info    : Function properties for two
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers, used 1 barriers, 256 bytes smem, 376 bytes cmem[0]
"""


def test_ptxas_knows_spills_and_barriers_and_the_linker_registers_and_stack():
    assert resources(NVJITLINK) == {
        "big": Resources(
            registers=32,
            spill_store_bytes=328,
            spill_load_bytes=320,
            stack_bytes=344,
            constant_bytes=552,
            barriers=2,
        )
    }


def test_each_kernel_has_its_own_resources():
    assert resources(PTXAS) == {
        "one": Resources(registers=10, stack_bytes=64, constant_bytes=368),
        "two": Resources(registers=8, constant_bytes=376, barriers=1),
    }


def test_resources_read_as_one_line():
    assert str(resources(NVJITLINK)["big"]) == (
        "32 registers, 0 bytes of shared memory, 328 bytes spilled, 344 bytes of stack, 2 barriers"
    )
    assert str(Resources(registers=1, shared_bytes=1, barriers=1)) == (
        "1 register, 1 byte of shared memory, 0 bytes spilled, 0 bytes of stack, 1 barrier"
    )


def test_spills_and_numbered_advice_are_warnings():
    assert [remark.message for remark in warnings(NVJITLINK + PTXAS + "ptxas info : (C1234) Mind this")] == [
        "Registers are spilled to local memory in function 'big', 328 bytes spill stores, 320 bytes spill loads",
        "(C1234) Mind this",
    ]


def test_what_a_warpgroup_loses_is_no_warning_but_a_loss():
    (loss,) = warpgroup_losses(NVJITLINK + PTXAS)
    assert (loss.code, loss.kernel) == (7510, "one")
    (ignored,) = warpgroup_losses(NVJITLINK + "ptxas info : (C7508) Loss: 'setmaxnreg' ignored; unable to determine")
    assert (ignored.code, ignored.kernel) == (7508, "big")


@pytest.mark.parametrize("message, line", [
    ("(C7508) 'setmaxnreg' ignored", 5),
    ("(C7510) wgmma.mma_async instructions are serialized", 6),
    ("(C7517) wgmma.wait_group is injected in around line 14 by compiler", 14),
])  # fmt: skip
def test_a_loss_is_where_the_remark_says_or_at_the_first_such_instruction(message, line):
    text = """.entry other()
setmaxnreg.dec.sync.aligned.u32 40;
wgmma.mma_async.sync.aligned;
.entry one()
setmaxnreg.dec.sync.aligned.u32 40;
wgmma.mma_async.sync.aligned;
"""
    (loss,) = warpgroup_losses(f"ptxas info    : {message} in function 'one'")
    assert loss_line(text, loss) == line
    assert loss_line(".entry one()", loss) == (14 if line == 14 else None)


def test_a_warning_may_name_its_line_in_its_sentence():
    (remark,) = warnings("ptxas info    : (C1519) something is injected in around line 14 by compiler")
    assert remark.line == 14


def test_every_error_of_a_log_is_listed_with_its_line():
    log = (
        "ptxas application ptx input, line 15; error   : Arguments mismatch for instruction 'st'\n"
        "ptxas /tmp/a, b/module0.ptx, line 16; error   : Unknown modifier '.u33'\n"
        "ptxas fatal   : Ptx assembly aborted due to errors\n"
        "ERROR NVJITLINK_ERROR_PTX_COMPILE: JIT the PTX (module0)\n"
    )
    assert errors(log) == [
        Remark("error", "Arguments mismatch for instruction 'st'", 15),
        Remark("error", "Unknown modifier '.u33'", 16),
    ]


def test_an_aborted_run_without_a_cause_is_an_error_too():
    assert errors("ptxas fatal   : Ptx assembly aborted due to errors") == [
        Remark("fatal", "Ptx assembly aborted due to errors")
    ]


def test_too_much_static_shared_memory_is_said_in_bytes():
    (remark,) = errors("error   : Entry function 'k' uses too much shared data (0xeac4 bytes, 0xc000 max)")
    assert remark.message == "`k` declares 60100 bytes of static shared memory; the limit is 49152"


PTX = """\
.version 8.0
.target sm_80
.file 1 "/home/ada/outer.py"
.file 2 "/home/ada/inner.py"
.visible .entry before() {
  mov.u32 %r9, 9;
  .loc 1 3 1
  ret;
}
.visible .entry kernel(.param .u64 x)
{
  mov.u32 %r0, 0;
  .loc 1 10 5
  mov.u32 %r1, 1;
  mov.u32 %r2, 2;
  .loc 2 20 9, function_name $L__name0, inlined_at 1 10 5
  mov.u32 %r3, 3;
  .loc 2 30 0, function_name $L__name1+4, inlined_at 2 20 9
  mov.u32 %r4, 4;
  .loc 2 40 2, function_name $L__name1, inlined_at 1 99 7
  mov.u32 %r5, 5;
}
"""
CALL = Location("/home/ada/outer.py", 10, (4, 5))
HELPER = Location("/home/ada/inner.py", 20, (8, 9), inlined_at=CALL)


@pytest.mark.parametrize(
    "instruction, place",
    [
        ("%r9", None),
        ("%r0", None),
        ("%r1", CALL),
        ("%r2", CALL),
        ("%r3", HELPER),
        ("%r4", Location("/home/ada/inner.py", 30, (0, 0), inlined_at=HELPER)),
        (
            "%r5",
            Location("/home/ada/inner.py", 40, (1, 2), inlined_at=Location("/home/ada/outer.py", 99, (6, 7))),
        ),
    ],
)
def test_a_ptx_line_has_the_python_location_of_the_loc_before_it_in_its_function(instruction, place):
    line = next(n for n, text in enumerate(PTX.splitlines(), 1) if instruction in text)
    assert python_location(PTX, line) == place
