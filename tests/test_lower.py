"""The printer: each piece of a module as text, the least version, targets, and lines of the source."""

import os
import subprocess
from pathlib import Path

import pytest

from ptxdsl import ir
from ptxdsl.assemble import assemble
from ptxdsl.assemble.assemblers import tool
from ptxdsl.errors import Location, VerifyError, show_lines_of
from ptxdsl.isa import choose
from ptxdsl.isa.opaque import opaque
from ptxdsl.isa.special import SPECIAL_REGISTERS
from ptxdsl.lower import lower
from ptxdsl.parse import parse
from ptxdsl.types import b8, b32, b128, f32, pred, u16, u32, u64

GOLDEN = Path(__file__).parent / "golden"
WRITTEN = Path(__file__).parent / "corpus" / "ptx"
SOURCE = Path(__file__)


def kernel(**registers):
    """A kernel `k` with registers of these names and types."""
    function = ir.Function("k")
    return function, [function.register(name, type) for name, type in registers.items()]


def instruction(text, *operands, at=None, guard=None):
    return ir.Instruction(choose(text, operands) or opaque(text), operands, guard, at)


def module(*items, target="sm_80", version=None):
    return ir.PtxModule((target,), version, items=list(items))


def body(text):
    """The lines between the braces of the one function."""
    return [line.strip() for line in text.partition("\n{\n")[2].partition("\n}\n")[0].splitlines()]


def place(line, column=4, function="k", caller=None, file="kernels.py"):
    return Location(file, line, (column, column + 1), function, caller)


def test_a_kernel_prints_its_signature_and_directives():
    function, _ = kernel()
    function.parameters = [
        ir.Variable("x", "param", u64, attributes=(".ptr", ".global", ".align 16")),
        ir.Variable("s", "param", b8, (24,), align=8),
    ]
    function.directives = [ir.Directive("maxntid", (128, 1, 1)), ir.Directive("pragma", ('"nounroll"',))]
    assert lower(module(function)) == (
        ".version 7.0\n.target sm_80\n.address_size 64\n\n"
        ".visible .entry k(\n    .param .u64 .ptr .global .align 16 x,\n    .param .align 8 .b8 s[24]\n)\n"
        '.maxntid 128, 1, 1\n.pragma "nounroll";\n{\n}\n'
    )


def test_functions_are_declared_and_defined():
    results, parameters = [ir.Variable("r", "param", b32)], [ir.Variable("x", "param", b32)]
    declared = ir.Function("f", "func", parameters, results, [ir.Directive("noreturn")], None, linkage="extern")
    text = lower(module(declared, ir.Function("g", "func", [ir.Register("a", u32)], [], [], [], linkage="")))
    assert ".extern .func (.param .b32 r) f(\n    .param .b32 x\n)\n.noreturn;\n" in text
    assert ".func g(\n    .reg .u32 a\n)\n{\n}\n" in text


@pytest.mark.parametrize(
    "variable, text",
    [
        (ir.Variable("x", "global", f32), ".global .f32 x;"),
        (ir.Variable("x", "shared", b8, (None,), 16, linkage="extern"), ".extern .shared .align 16 .b8 x[];"),
        (ir.Variable("x", "global", f32, vector=4), ".global .v4 .f32 x;"),
        (ir.Variable("x", "const", u16, (2, 3), initial=((1, 2), (3,))), ".const .u16 x[2][3] = {{1, 2}, {3}};"),
        (ir.Variable("x", "global", f32, initial=ir.Immediate.float(1.5)), ".global .f32 x = 0f3FC00000;"),
        (
            ir.Variable("x", "global", b32, attributes=(".attribute(.managed)",)),
            ".global .attribute(.managed) .b32 x;",
        ),
    ],
)
def test_variables_are_declared(variable, text):
    assert text in lower(module(variable)).splitlines()


def test_registers_are_grouped_by_type_and_numbered_families_are_folded():
    names = ["r0", "n", "r1", "acc", "acc_1", "acc_2", "acc_3", "r2", "s0", "s1", "odd1", "odd3", "odd4"]
    function, _ = kernel(**dict.fromkeys(names, u32), p=pred)
    assert body(lower(module(function))) == [
        ".reg .u32 r<3>;",
        ".reg .u32 acc_<4>;",
        ".reg .u32 n, acc, s0, s1, odd1, odd3, odd4;",
        ".reg .pred p;",
    ]


def test_a_family_that_would_declare_the_name_of_something_else_is_listed():
    function, _ = kernel(acc_1=u32, acc_2=u32, acc_3=u32, acc_0=f32)
    assert body(lower(module(function))) == [".reg .u32 acc_1, acc_2, acc_3;", ".reg .f32 acc_0;"]


def test_long_lists_of_registers_are_wrapped():
    names = [f"{word}_{letter}" for word in ("accumulator", "coordinate") for letter in "abcdefgh"]
    function, _ = kernel(**dict.fromkeys(names, b32))
    lines = body(lower(module(function)))
    assert len(lines) == 3 and max(map(len, lines)) <= 120
    assert ", ".join(line.removeprefix(".reg .b32 ").rstrip(";") for line in lines).split(", ") == names


def test_bodies_hold_labels_scopes_variables_and_directives():
    function, (r, p) = kernel(r=u32, p=pred)
    end = function.label("end")
    targets = ir.Directive("branchtargets", (end,), function.label("targets"))
    prototype = ir.Function("_", "func", [ir.Variable("_", "param", b32)], [ir.Variable("_", "param", u64)], body=None)
    tile = ir.Variable("tile", "shared", f32, (32,), 16)
    scope = ir.Scope([tile, instruction("mov.u32", r, tile), ir.Directive("pragma", ('"nounroll"',))])
    function.body = [
        targets,
        ir.Directive("callprototype", (prototype,), function.label("proto")),
        instruction("bra", end, guard=ir.Not(p)),
        scope,
        end,
        instruction("ret"),
    ]
    assert body(lower(module(function))) == [
        ".reg .u32 r;", ".reg .pred p;",
        "targets: .branchtargets end;",
        "proto: .callprototype (.param .u64 _) _ (.param .b32 _);",
        "@!p bra end;",
        "{", ".shared .align 16 .f32 tile[32];", "mov.u32 r, tile;", '.pragma "nounroll";', "}",
        "end:", "ret;",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "operand, text",
    [
        (ir.Immediate(-3), "-3"),
        (ir.Immediate.float(0.1), "0f3DCCCCCD"),
        (ir.Address(ir.Register("r", u64), -16), "[r+-16]"),
        (ir.Address(ir.Register("r", u64), 0, explicit=True), "[r+0]"),
        (ir.Address(ir.Register("m", u64), 0, ir.Vector((ir.Register("x", u32), ir.Immediate(0)))), "[m, {x, 0}]"),
        (ir.Address(ir.Register("t", u64), 0, ir.Vector((ir.Sink(),)), ir.Register("s", u64)), "[t, s, {_}]"),
        (ir.Pair(ir.Register("d", u32), ir.Register("p", pred)), "d|p"),
        (ir.Lane(ir.Register("r", u32), "b0"), "r.b0"),
        (ir.Negative(ir.Register("r", u32)), "-r"),
        (ir.Arguments((ir.Register("r", u32), ir.Immediate(1))), "(r, 1)"),
        (ir.Offset(ir.Generic(ir.Variable("x", "global", b32)), 8), "generic(x)+8"),
        (ir.Masked(0xFF00, ir.Variable("x", "global", b32)), "0xff00(x)"),
        (ir.Setting("filter_mode", "nearest"), "filter_mode = nearest"),
    ],
)
def test_operands_print_as_ptx(operand, text):
    assert str(operand) == text


def test_the_version_is_the_least_that_all_parts_know():
    function, (r, wide) = kernel(r=u32, d=u64)
    assert lower(module(function)).startswith(".version 7.0\n")
    assert lower(module(function, target="sm_90")).startswith(".version 7.8\n")
    function.body = [instruction("mov.u32", r, SPECIAL_REGISTERS["%cluster_ctarank"])]
    assert lower(module(function, target="sm_90a")).startswith(".version 8.0\n")
    function.body = [instruction("mov.u64", wide, SPECIAL_REGISTERS["%current_graph_exec"])]
    assert lower(module(function)).startswith(".version 8.0\n")


def test_registers_parameters_directives_and_instructions_raise_the_version():
    def version(function, *items):
        return lower(module(*items, function, target="sm_90")).split()[1]

    plain, (r,) = kernel(r=u32)
    assert version(plain, ir.Variable("x", "global", b32, attributes=(".attribute(.unified(1,2))",))) == "8.0"
    assert version(kernel(q=b128)[0]) == "8.3"
    plain.directives = [ir.Directive("blocksareclusters")]
    assert version(plain) == "9.0"
    plain.directives, plain.parameters = [], [ir.Variable("s", "param", b8, (5000,))]
    assert version(plain) == "8.1"
    plain.parameters, plain.body = [], [instruction("add.u16x2", r, r, r)]
    assert version(plain) == "8.0"


def test_a_version_that_the_module_names_is_kept():
    assert lower(module(target="sm_80", version=(8, 8))).startswith(".version 8.8\n")


def test_a_form_that_the_target_lacks_is_refused_at_its_line():
    function, (r,) = kernel(r=u32)
    line = next(n for n, text in enumerate(SOURCE.read_text().splitlines(), 1) if "def kernel" in text)
    function.body = [instruction("add.u16x2", r, r, r, at=place(line, file=str(SOURCE)))]
    with pytest.raises(VerifyError) as caught:
        lower(module(function))
    assert str(caught.value) == (
        "`add.u16x2` needs sm_90 or later; the target is sm_80\n"
        f"  test_lower.py:{line} | def kernel(**registers):\n"
        f"  {' ' * len(f'test_lower.py:{line}')}       ^\n"
        '  help: compile the kernel for sm_90 or later: arch="sm_90"'
    )


def test_special_registers_and_directives_that_the_target_lacks_are_refused():
    function, (r,) = kernel(r=u32)
    function.body = [instruction("mov.u32", r, SPECIAL_REGISTERS["%cluster_ctarank"])]
    with pytest.raises(VerifyError) as caught:
        lower(module(function))
    assert caught.value.message == "`%cluster_ctarank` needs sm_90 or later; the target is sm_80"
    function.body, function.directives = [], [ir.Directive("reqnctapercluster", (2,))]
    with pytest.raises(VerifyError) as caught:
        lower(module(function))
    assert caught.value.message == "`.reqnctapercluster` needs sm_90 or later; the target is sm_80"


def test_an_unknown_target_is_refused():
    with pytest.raises(VerifyError, match="`sm_91` is not a supported target\n  help: use one of sm_50, "):
        lower(module(target="sm_91"))


def chain():
    """A line, one in a helper called there, and one in a helper of that one."""
    first = place(3)
    helper = place(20, 0, "helper", first)
    return first, helper, place(30, 8, "inner", helper)


def inlined():
    """Instructions at a line, in a helper called there, in a helper of that one, and back."""
    function, (r,) = kernel(r=u32)
    first, helper, inner = chain()
    function.body = [
        *(instruction("add.u32", r, r, ir.Immediate(n), at=at) for n, at in enumerate([first, inner, helper, first])),
        instruction("ret", at=place(4, file="<unknown>")),
    ]
    return module(function)


def test_loc_follows_the_source_and_names_callers():
    lines = [line for line in body(lower(inlined())) if not line.startswith(".reg")]
    assert lines == [
        ".loc 1 3 5",
        "add.u32 r, r, 0;",
        ".loc 1 20 1, function_name $L__info_string0, inlined_at 1 3 5",
        ".loc 1 30 9, function_name $L__info_string1, inlined_at 1 20 1",
        "add.u32 r, r, 1;",
        ".loc 1 20 1, function_name $L__info_string0, inlined_at 1 3 5",
        "add.u32 r, r, 2;",
        ".loc 1 3 5",
        "add.u32 r, r, 3;",
        "ret;",
    ]


def test_names_of_inlined_functions_stand_in_debug_str():
    text = lower(inlined())
    assert text.startswith('.version 7.2\n.target sm_80\n.address_size 64\n.file 1 "kernels.py"\n')
    assert text.endswith(
        "\n.section .debug_str\n{\n$L__info_string0:\n.b8 104,101,108,112,101,114,0\n"
        "$L__info_string1:\n.b8 105,110,110,101,114,0\n}\n"
    )


def test_a_second_call_of_a_helper_from_another_line_says_so():
    function, (r,) = kernel(r=u32)
    helper = [place(20, 0, "helper", place(line)) for line in (3, 4)]
    inner = [place(30, 0, "inner", caller) for caller in helper]
    function.body = [instruction("not.b32", r, r, at=at) for at in inner]
    module_ = module(function)
    assert [i.location.chain()[2].line for i in parse(lower(module_)).functions[0].walk()] == [3, 4]


def test_without_lineinfo_no_line_and_no_debug_section_is_printed():
    text = lower(inlined(), lineinfo=False)
    assert ".loc" not in text and ".file" not in text and ".section" not in text
    assert text.startswith(".version 7.0\n")


def test_annotate_shows_each_source_line_over_its_instructions():
    function, (r,) = kernel(r=u32)
    first, second = (Location(str(SOURCE), line, (0, 3), "k") for line in (1, 3))
    function.body = [instruction("not.b32", r, r, at=at) for at in (first, first, second)]
    assert body(lower(module(function), lineinfo=False, annotate=True))[1:] == [
        f"// test_lower.py:1 | {SOURCE.read_text().splitlines()[0]}",
        "not.b32 r, r;",
        "not.b32 r, r;",
        "// test_lower.py:3 | import os",
        "not.b32 r, r;",
    ]


def test_a_line_whose_source_is_not_at_hand_is_annotated_by_its_place():
    function, (r,) = kernel(r=u32)
    function.body = [instruction("not.b32", r, r, at=place(7))]
    assert body(lower(module(function), annotate=True))[1:3] == ["// kernels.py:7", ".loc 1 7 5"]


@pytest.mark.skipif(tool("nvdisasm") is None, reason="nvdisasm is not installed")
def test_the_disassembler_shows_the_lines_and_their_callers(tmp_path):
    sink = ir.Variable("sink", "global", u32)
    function, (r,) = kernel(r=u32)
    function.body = [instruction("mov.u32", r, ir.Immediate(1))]
    function.body += [instruction("st.volatile.global.u32", ir.Address(sink), r, at=at) for at in chain()]
    text = lower(module(sink, function))
    cubin = tmp_path / "k.cubin"
    cubin.write_bytes(assemble(text, "sm_80", options=["-lineinfo"]).image)
    command = [tool("nvdisasm"), "--print-line-info-inline", "--print-code", str(cubin)]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert 'kernels.py", line 30 inlined at "kernels.py", line 20' in shown
    assert 'kernels.py", line 20 inlined at "kernels.py", line 3' in shown


@pytest.mark.parametrize("name", ["control", "linkage", "names"])
def test_golden(name):
    text = lower(parse((WRITTEN / f"{name}.ptx").read_text()))
    file = GOLDEN / f"{name}.ptx"
    if os.environ.get("PTXDSL_UPDATE_GOLDEN"):
        file.write_text(text)
    assert text == file.read_text()


HOSTILE = 'a"\n.entry evil() { ret; }\n.file 2 "b'


def test_a_file_name_cannot_add_text():
    function, (a,) = kernel(a=b32)
    function.body = [instruction("not.b32", a, a, at=place(3, file=HOSTILE))]
    text = lower(module(function))
    assert text.splitlines()[3] == r'.file 1 "a\042\012.entry evil() { ret; }\012.file 2 \042b"'
    assert [f.name for f in parse(text).functions] == ["k"]
    assert next(parse(text).functions[0].walk()).location.file == HOSTILE
    assert "a:3" not in lower(module(function), lineinfo=False, annotate=True)


def test_the_name_of_a_file_cannot_leave_its_comment():
    function, (a,) = kernel(a=b32)
    function.body = [instruction("not.b32", a, a, at=place(3, file="a\n.entry evil"))]
    assert body(lower(module(function), annotate=True, lineinfo=False)) == [
        ".reg .b32 a;", "// a .entry evil:3", "not.b32 a, a;",
    ]  # fmt: skip


def test_other_letters_than_ascii_assemble(tmp_path):
    """ptxas refuses them in names of files and in comments; nvcc writes the bytes of UTF-8 in octal, as we do."""
    path = tmp_path / "größe.py"
    path.write_text("# größe = π\n")
    show_lines_of(str(path))
    function, (a,) = kernel(a=b32)
    function.body = [instruction("mov.b32", a, ir.Immediate(1), at=place(1, file=str(path)))]
    text = lower(module(function), annotate=True)
    assert r'gr\303\266\303\237e.py"' in text and r"// gr\xf6\xdfe.py:1 | # gr\xf6\xdfe = \u03c0" in text
    assert "k" in assemble(text, "sm_80").kernels


@pytest.mark.parametrize("name", ["a.py", r"C:\new\x", "a\udce4.py", "\ud800", 'x"', "tab\t", "", "\\", "\\101"])
def test_names_of_files_are_read_back(name):
    text = ir.quoted(name)
    assert text.isascii() and text.isprintable() and text.count('"') == 2
    assert ir.unquoted(text[1:-1]) == name.replace("\ud800", "?")
    assert ir.unquoted("C:\\temp") == "C:\\temp"
