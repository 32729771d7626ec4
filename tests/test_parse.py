"""The parser: what each shape of PTX becomes, that nothing is lost, and what is said of text that is not PTX."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptxdsl import ir
from ptxdsl.errors import ParseError
from ptxdsl.isa.opaque import Opaque
from ptxdsl.lower import lower
from ptxdsl.parse import constants, parse
from ptxdsl.types import b32, f32, f64, pred, u16, u32
from ptxdsl.verify import verify

HEADER = ".version 8.0\n.target sm_80\n.address_size 64\n"
WRITTEN = sorted((Path(__file__).parent / "corpus" / "ptx").glob("*.ptx"))


def kernel(body, header=HEADER):
    """A module with one kernel; line 8 is the first of its body."""
    return (
        f"{header}.visible .entry k(.param .u64 p)\n{{\n"
        f"\t.reg .b32 %r<4>;\n\t.reg .pred %p1; .reg .b64 %rd<3>; .reg .f32 %f<3>;\n{body}\n}}\n"
    )


def only(text):
    """The one instruction of a body."""
    (instruction,) = parse(kernel(text)).functions[0].walk()
    return instruction


def printed(text):
    """The instructions of a body as they print again."""
    return [str(i) for i in parse(kernel(text)).functions[0].walk()]


def variable(declaration):
    (found,) = parse(HEADER + declaration).globals
    return found


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: path.stem)
def test_printing_what_was_parsed_is_a_fixed_point(path):
    text = lower(parse(path.read_text()))
    assert lower(parse(text)) == text


def test_no_source_text_is_kept():
    text = kernel("\tadd.u32   %r1 , %r2,%r3 ; // a sum")
    assert "a sum" not in repr(parse(text)) and "  %r1 ," not in repr(parse(text))
    assert printed("\tadd.u32   %r1 , %r2,%r3 ; // a sum") == ["add.u32 %r1, %r2, %r3;"]


def test_header_and_target_options():
    module = parse(".version 9.4\n.target sm_90a, debug\n.address_size 64\n")
    assert (module.version, module.target, module.address_size) == ((9, 4), ("sm_90a", "debug"), 64)


@pytest.mark.parametrize(
    "text, expected",
    [
        ("st.global.b32[%rd1],%r1;", "st.global.b32 [%rd1], %r1;"),
        ("tcgen05.ld.sync.aligned.32x32b.x2.b32{%r1,%r2}, [%r3];",
         "tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r1, %r2}, [%r3];"),
        ("@!%p1 mov.b64\n\t%rd1\n,\n{%r1,\n%r2};", "@!%p1 mov.b64 %rd1, {%r1, %r2};"),
        ("ld.global.u32 %r1, [%rd1+-16];", "ld.global.u32 %r1, [%rd1+-16];"),
        ("ld.global.u32 %r1, [%rd1-16];", "ld.global.u32 %r1, [%rd1+-16];"),
        ("ld.global.u32 %r1, [ %rd1 + 0 ];", "ld.global.u32 %r1, [%rd1+0];"),
        ("ld.global.u32 %r1, [%rd1 + (8)];", "ld.global.u32 %r1, [%rd1+8];"),
        ("ld.local.u32 %r1, [0x100];", "ld.local.u32 %r1, [256];"),
        ("ld.param.u64 %rd1, [p];", "ld.param.u64 %rd1, [p];"),
        ("shfl.sync.bfly.b32 %r1|%p1, %r2, 1, 31, -1;", "shfl.sync.bfly.b32 %r1|%p1, %r2, 1, 31, -1;"),
        ("elect.sync _|%p1, -1;", "elect.sync _|%p1, -1;"),
        ("setp.lt.and.s32 %p1, %r1, %r2, !%p1;", "setp.lt.and.s32 %p1, %r1, %r2, !%p1;"),
        ("ldmatrix.sync.aligned.x2.m8n8.shared.b16 {%r1, %r2}, [%r3];",
         "ldmatrix.sync.aligned.x2.m8n8.shared.b16 {%r1, %r2}, [%r3];"),
        ("add.sat.s32 %r1, %r2, %r3;", "add.sat.s32 %r1, %r2, %r3;"),
        ("mov.u32 %r1, %tid.x;", "mov.u32 %r1, %tid.x;"),
        ("mov.u32 %r1, WARP_SZ;", "mov.u32 %r1, 32;"),
        ("cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global [%r1], [%rd1, {%r2, %r3}], [%r2];",
         "cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global [%r1], [%rd1, {%r2, %r3}], [%r2];"),
        ("vmad.s32.s32.s32 %r1, %r2.b1, -%r3, %r1;", "vmad.s32.s32.s32 %r1, %r2.b1, -%r3, %r1;"),
        ("/* a; b */ ret; // { done", "ret;"),
    ],
)  # fmt: skip
def test_instructions_print_again(text, expected):
    assert printed(text) == [expected]


@pytest.mark.parametrize(
    "text, value",
    [
        ("010", 8), ("0x1F", 31), ("0b101", 5), ("7U", 7), ("-0x10", -16), ("0xFFFFFFFFFFFFFFFF", (1 << 64) - 1),
        ("(3 + 4) * 2 - 7 / 2 % 3", 14), ("~0x0f & 0xff | 1 ^ 2", 243), ("5 > 3 ? 11 : 13", 11), ("-7 / 2", -3),
        ("1 << 4 + 1", 32), ("!0 + (2 <= 2) + (1 == 0 || 1 != 0 && 1)", 3), ("2 - 3 - 4", -5),
        ("(.s64) 0xFFFFFFFFFFFFFFFF", -1), ("(1 << 63) * 4", 0),
    ],
)  # fmt: skip
def test_constant_expressions(text, value):
    assert only(f"mov.b64 %rd1, {text};").operands[1] == ir.Immediate(value)


@pytest.mark.parametrize(
    "text, bits",
    [
        ("-7 % 3", 0), ("-1 % -7", 6), ("-1 % 7U", 1), ("7 % -1", 7),
        ("-7 / 2", -3), ("-7 / 2U", 0x7FFFFFFFFFFFFFFC), ("-1 / ~2", 1), ("0xFFFFFFFFFFFFFFFF / -7", 1), ("1 / -3U", 0),
        ("-1 > 0", 0), ("-1 > 0U", 1), ("-1 < 0U", 0), ("5 - 6U > 0", 1), ("~0 < 0", 0), ("-3U < 0", 0), ("!3U - 1 < 0", 1),
        ("-1 == 0xFFFFFFFFFFFFFFFF", 1), ("9223372036854775808 > 0", 1), ("(.s64)9223372036854775808 > 0", 0),
        ("(.u64)-1 > 0", 1), ("0x7FFFFFFFFFFFFFFF + 1 < 0", 1), ("(3 & 2U) * 0 - 1 < 0", 0), ("(3 == 2U) * 0 - 1 < 0", 1),
        ("-8 >> 1", -4), ("(0 - 8U) >> 1", 0x7FFFFFFFFFFFFFFC), ("-8 >> 1U", -4), ("1 << 65", 2), ("1U << -1 > 0", 1),
        ("(1 ? 3 : 3U) * 0 - 1 < 0", 1), ("(1 ? 3U : 3) * 0 - 1 < 0", 0), ("~0", -1), ("-3U", -3),
    ],
)  # fmt: skip
def test_constant_expressions_have_the_types_that_ptxas_gives_them(text, bits):
    """As recorded from the data of cubins: `%` and `~` are unsigned, and what has one unsigned operand."""
    assert only(f"mov.b64 %rd1, {text};").operands[1] == ir.Immediate(bits)


SIGNS = ["+", "-", "*", "&", "|", "^", "<", ">", "==", "!=", "<=", ">="]


def combined(inner):
    """Terms with operators; comparisons in parentheses, for Python lets them bind looser than & and chains them."""
    compared = st.tuples(inner, st.sampled_from(SIGNS[6:]), inner).map(lambda t: f"(({t[0]}) {t[1]} ({t[2]}))")
    return st.one_of(compared, st.tuples(inner, st.sampled_from(SIGNS[:6]), inner).map(" ".join))


@given(st.recursive(st.integers(0, 1 << 20).map(str), combined, max_leaves=6))
def test_constant_expressions_are_those_of_python(text):
    expected = int(eval(text))
    if abs(expected) < 1 << 63:
        assert only(f"mov.b64 %rd1, {text};").operands[1] == ir.Immediate(expected)


@pytest.mark.parametrize(
    "mnemonic, text, expected",
    [
        ("mov.f32 %f1", "0f3F800000", ir.Immediate(0x3F800000, f32)),
        ("mov.f32 %f1", "0F7fc00001", ir.Immediate(0x7FC00001, f32)),
        ("mov.f64 %rd1", "0dFFF0000000000000", ir.Immediate(0xFFF << 52, f64)),
        ("mov.f32 %f1", "1.5", ir.Immediate(0x3FC00000, f32)),
        ("mov.f32 %f1", "-2.5e-3", ir.Immediate(0xBB23D70A, f32)),
        ("mov.f32 %f1", "1e39", ir.Immediate(0x7F800000, f32)),
        ("mov.f64 %rd1", "1.0E+3", ir.Immediate.float(1000.0, f64)),
        ("mov.f64 %rd1", "-.5", ir.Immediate.float(-0.5, f64)),
    ],
)
def test_floating_constants_keep_their_bits(mnemonic, text, expected):
    assert only(f"{mnemonic}, {text};").operands[1] == expected


@given(st.floats(width=32, allow_nan=False))
def test_a_decimal_becomes_the_f32_that_c_makes_of_it(number):
    assert constants.as_f32(ir.Immediate.float(number, f64)) == ir.Immediate.float(number, f32)


@pytest.mark.parametrize(
    "text, expected",
    [
        (".global .align 4 .b32 x;", ir.Variable("x", "global", b32, align=4)),
        (".visible .const .u16 x[2][3];", ir.Variable("x", "const", u16, (2, 3), linkage="visible")),
        (".extern .shared .align 16 .f32 x[];", ir.Variable("x", "shared", f32, (None,), 16, linkage="extern")),
        (".common .global .b32 x[4*2];", ir.Variable("x", "global", b32, (8,), linkage="common")),
        (".global .v4 .f32 x;", ir.Variable("x", "global", f32, vector=4)),
        (".global .attribute( .managed ) .u32 x;",
         ir.Variable("x", "global", u32, attributes=(".attribute(.managed)",))),
    ],
)  # fmt: skip
def test_variables(text, expected):
    found = variable(text)
    assert [getattr(found, name) for name in found.__slots__] == [getattr(expected, name) for name in found.__slots__]


def initial(text, extents="[9]"):
    return variable(f".global .u64 x{extents} = {text};").initial


def test_initial_values_are_nested_tuples_of_constants():
    one, two, three = (ir.Immediate(n) for n in (1, 2, 3))
    assert initial("5", "") == ir.Immediate(5)
    assert initial("{}") == ()
    assert initial("{1, 2, 3}") == (one, two, three)
    assert initial("{{1, 2}, {3}}", "[2][2]") == ((one, two), (three,))
    assert initial("{1, 1 + 1, 3}") == (one, two, three)
    assert initial("{-1, 0x10, 010}") == (ir.Immediate(-1), ir.Immediate(16), ir.Immediate(8))
    assert variable(".global .f32 x[3] = {0f3F800000, -1.0, 0.5};").initial == tuple(
        map(ir.Immediate.float, (1.0, -1.0, 0.5))
    )


def test_initial_values_name_variables_and_functions():
    text = HEADER + (
        ".global .b32 a; .func f() { ret; }\n"
        ".global .u64 t[5] = {a, a+8, generic(a), generic(a) + 4, f};\n"
        ".global .u8 m[2] = {0xff(a), mask(0xff00, generic(a))};"
    )
    module = parse(text)
    a, t, m = module.globals
    generic = ir.Generic(a)
    assert t.initial == (a, ir.Offset(a, 8), generic, ir.Offset(generic, 4), module.functions[0])
    assert m.initial == (ir.Masked(0xFF, a), ir.Masked(0xFF00, generic))


def test_sampler_settings():
    found = variable(".global .samplerref x = { addr_mode_0 = wrap, force_unnormalized_coords = 1 };")
    assert found.initial == (ir.Setting("addr_mode_0", "wrap"), ir.Setting("force_unnormalized_coords", "1"))


def test_a_declaration_stands_for_the_definition_that_follows():
    module = parse(
        HEADER + ".extern .global .b32 x; .func f(.param .b32 a); .alias g, f; .func g(.param .b32 a);\n"
        ".func f(.param .b32 a) { .reg .b32 %r; ld.global.b32 %r, [x]; call f, (a); ret; }\n"
        ".visible .global .b32 x = 3;"
    )
    declaration, _, definition = module.functions
    load, call, _ = definition.walk()
    assert load.operands[1].base is module.globals[1] and module.globals[0].initial is None
    assert call.operands[0] is definition and declaration.body is None
    (alias,) = (item for item in module.items if isinstance(item, ir.Directive))
    assert alias.arguments[1] is definition


def test_calls_take_lists():
    module = parse(
        HEADER + ".func (.reg .b32 s) f(.reg .b32 a) { ret; } .func g() { ret; }\n"
        ".entry k() { .reg .b32 %r<2>; call (%r0), f, (8); call.uni g; call.uni g, (); }"
    )
    first, second, third = module.functions[2].walk()
    (r0, _), f, g = module.functions[2].registers, *module.functions[:2]
    assert first.operands == (ir.Arguments((r0,)), f, ir.Arguments((ir.Immediate(8),)))
    assert second.operands == (g,) and third.operands == (g, ir.Arguments(()))


def test_registers_of_nested_scopes_become_the_functions_and_are_renamed_only_on_a_clash():
    body = (
        "{ .reg .b32 t; mov.b32 t, 1; }\n{ .reg .f32 t; mov.f32 t, 0f00000000; }\n{ .reg .b32 %r1; not.b32 %r1, %r2; }"
    )
    module = parse(kernel(body))
    (function,) = module.functions
    assert printed(body) == ["mov.b32 t, 1;", "mov.f32 t_1, 0f00000000;", "not.b32 %r1_1, %r2;"]
    assert [register.name for register in function.registers][-3:] == ["t", "t_1", "%r1_1"]
    assert len({register.name for register in function.registers}) == len(function.registers)


def test_a_register_that_nothing_in_its_scope_uses_is_dropped():
    names = [register.name for register in parse(kernel("{ .reg .b32 unused; ret; }")).functions[0].registers]
    assert "unused" not in names and "%r3" in names


def test_the_outer_register_is_meant_again_after_its_shadow():
    assert printed("not.b32 %r1, %r1; { .reg .b32 %r1; not.b32 %r1, %r1; } not.b32 %r1, %r1;") == [
        "not.b32 %r1, %r1;", "not.b32 %r1_1, %r1_1;", "not.b32 %r1, %r1;",
    ]  # fmt: skip


def test_a_register_is_not_given_the_name_of_a_variable_that_it_would_hide():
    body = "{ .reg .b32 t; mov.b32 t, 1; } { .param .b32 t; st.param.b32 [t], %r1; } mov.u64 %rd1, x;"
    text = kernel(body).replace(".visible .entry", ".global .b32 x;\n.visible .entry")
    assert lower(parse(lower(parse(text)))) == lower(parse(text))
    assert printed(body.replace("mov.u64 %rd1, x;", ""))[0] == "mov.b32 t_1, 1;"


def test_labels_of_nested_scopes_are_unique_in_the_function():
    loop = "{ WAIT: @%p1 bra DONE; bra WAIT; DONE: }"
    assert printed(f"{loop} {loop}") == ["@%p1 bra DONE;", "bra WAIT;", "@%p1 bra DONE_1;", "bra WAIT_1;"]


def test_variables_stay_in_their_scope():
    (function,) = parse(kernel("{ .param .b32 a, b; st.param.b32 [b], %r1; }")).functions
    (scope,) = function.body
    assert [v.name for v in scope.body[:2]] == ["a", "b"] and scope.body[2].operands[0].base is scope.body[1]


def test_vector_registers_become_one_register_for_each_element():
    body = ".reg .v4 .f32 v; ld.global.v4.f32 v, [%rd1]; add.f32 v.x, v.g, v.w;"
    assert printed(body) == ["ld.global.v4.f32 v, [%rd1];", "add.f32 v.x, v.y, v.w;"]


def test_a_special_register_without_its_axis_is_all_four():
    assert printed(".reg .v4 .b32 v; mov.v4.b32 v, %tid;") == ["mov.v4.b32 v, {%tid.x, %tid.y, %tid.z, %tid.w};"]


def test_numbered_variables_and_variables_with_values_in_a_function():
    text = kernel(".shared .b32 s<3>; .global .u32 g[2] = {1, 2}; st.shared.b32 [s2], %r1;")
    function = parse(text).functions[0]
    assert [v.name for v in function.variables()] == ["s0", "s1", "s2", "g"]
    assert list(function.variables())[3].initial == (ir.Immediate(1), ir.Immediate(2))
    assert next(function.walk()).operands[0].base is list(function.variables())[2]


def test_names_without_percent_and_with_dollar():
    body = ".reg .b32 r, $r, _r; .reg .pred q; $L__BB0_1: add.u32 r, $r, _r; @q bra $L__BB0_1;"
    assert printed(body) == ["add.u32 r, $r, _r;", "@q bra $L__BB0_1;"]


def test_targets_and_prototypes():
    module = parse(kernel(
        "t: .branchtargets A, B; brx.idx %r1, t; A: B: ret;\n"
        "proto: .callprototype (.param .b32 _) _ (.param .b64 _, .param .align 8 .b8 _[12]) .noreturn;"
    ))  # fmt: skip
    targets, brx, a, b, _, prototype = module.functions[0].body
    assert targets.arguments == (a, b) and brx.operands[1] is targets.label
    (shape,) = prototype.arguments
    assert [p.bytes for p in shape.parameters] == [8, 12] and [r.bytes for r in shape.returns] == [4]
    assert [d.name for d in shape.directives] == ["noreturn"]


def test_forms_are_chosen_by_operands():
    assert only("mov.b64 %rd1, {%r1, %r2};").opcode.problems is not None
    verify(parse(kernel("mov.u32 %r1, 1; mov.u32 %r2, 2; mov.b64 %rd1, {%r1, %r2}; mov.b64 {%r1, %r2}, %rd1;")))


def test_a_wrong_use_of_a_known_instruction_parses():
    instruction = only("add.u32 %r1, %f1, %r2;")
    assert not isinstance(instruction.opcode, Opaque)
    assert [p.message for p in instruction.opcode.problems(instruction.operands)]


def test_an_unknown_instruction_is_opaque_and_prints_again():
    text = "frobnicate.sync::aligned.x4.b32 {%r1, _}, %r2|%p1, [%rd1+8], 0f3F800000, !%p1;"
    instruction = only(text)
    assert isinstance(instruction.opcode, Opaque)
    assert str(instruction) == text


def located(text, file="<ptx>"):
    return [i.location for i in parse(text, file=file).functions[0].walk()]


def test_without_loc_the_place_is_the_line_of_the_ptx():
    assert [str(at) for at in located(kernel("\tnot.b32 %r1, %r1;\n\n\tret;"), "dir/k.ptx")] == ["k.ptx:8", "k.ptx:10"]
    assert ".loc" not in lower(parse(kernel("ret;")))


def test_loc_gives_the_place_and_the_calls_that_led_to_it():
    text = kernel(
        "not.b32 %r1, %r1;\n.loc 1 3 5\nnot.b32 %r1, %r1;\n"
        ".loc 2 20 0, function_name $names, inlined_at 1 3 5\nnot.b32 %r1, %r1;\n"
        ".loc 2 30 1, function_name $names+7, inlined_at 2 20 0\nnot.b32 %r1, %r1;"
    ) + (
        '.file 1 "a.py"\n.file 2 "lib/b.py", 1700000000, 12\n'
        ".section .debug_str\n{\n$names:\n.b8 104,101,108,112,101,114,0\n.b8 102 // f\n.b8 0\n}\n"
    )
    before, here, helper, inner = located(text)
    assert str(before) == "<ptx>:8" and str(here) == "a.py:3" and here.columns == (4, 5)
    assert (helper.file, helper.line, helper.function, helper.columns) == ("lib/b.py", 20, "helper", (0, 0))
    assert [(str(at), at.function) for at in inner.chain()] == [
        ("b.py:30", "f"),
        ("b.py:20", "helper"),
        ("a.py:3", "k"),
    ]
    assert lower(parse(lower(parse(text)))) == lower(parse(text))


def test_sections_keep_their_data():
    text = (
        HEADER
        + ".section .debug_info\n{\n\t.b32 12 // length\n  .b8  1,\t2\n.b64 $L__a\n}\n.section .debug_macinfo { }"
    )
    first, second = parse(text).items
    assert (first.name, first.lines) == (".debug_info", [".b32 12", ".b8 1, 2", ".b64 $L__a"])
    assert (second.name, second.lines) == (".debug_macinfo", [])


def test_sections_are_read_as_assemblers_read_them():
    data = "$a: .b8 0x1f,\n -1,012 .b16 65535\n.b32 .debug_str + 4\n$b : .b64 $b - $a .b64 $a+8\n.b32 4294967296"
    lines = ["$a:", ".b8 31, -1,10", ".b16 65535", ".b32 .debug_str + 4", "$b:", ".b64 $b - $a", ".b64 $a+8"]
    section = parse(f"{HEADER}.section .debug_info {{ {data} }}").items[0]
    assert section.lines == [*lines, ".b32 4294967296"]


def test_importing_the_package_does_not_load_lark():
    script = "import sys, ptxdsl; print('lark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout == "False\n"


def test_predicates_are_declared_with_their_type():
    function = parse(kernel("ret;")).functions[0]
    assert {r.name: r.type for r in function.registers}["%p1"] is pred


REFUSED = {
    "a missing semicolon": (
        kernel("\tadd.u32 %r1, %r2, %r3\n\tmul.lo.u32 %r1, %r2, %r3;"),
        "line 8, column 22: `;` is missing after this instruction\n"
        "  <ptx>:8 | add.u32 %r1, %r2, %r3\n"
        "                                ^\n"
        "  help: end every instruction with `;`",
    ),
    "a missing semicolon before a label": (
        kernel("\tret\nEND:\n\tret;"),
        "line 8, column 4: `;` is missing after this instruction\n"
        "  <ptx>:8 | ret\n"
        "              ^\n"
        "  help: end every instruction with `;`",
    ),
    "a missing semicolon before a brace": (
        kernel("\tret"),
        "line 8, column 4: `;` is missing after this instruction\n"
        "  <ptx>:8 | ret\n"
        "              ^\n"
        "  help: end every instruction with `;`",
    ),
    "a missing semicolon at the end of a function that another follows": (
        kernel("\tret") + ".entry j() { .reg .b32 a; ret; }",
        "line 8, column 4: `;` is missing after this instruction\n"
        "  <ptx>:8 | ret\n"
        "              ^\n"
        "  help: end every instruction with `;`",
    ),
    "an unknown directive": (
        kernel("\t.foo 3;"),
        "line 8, column 2: unknown directive `.foo`; expected an instruction, a label, `.loc`, "
        "a state space such as `.global`, `.pragma`, `{` or `}`\n"
        "  <ptx>:8 | .foo 3;\n"
        "            ^^^^",
    ),
    "an unknown directive of a module": (
        HEADER + ".shred .b32 x;",
        "line 4, column 1: unknown directive `.shred`; expected `.visible`, `.entry` or `.func`, "
        "a state space such as `.global`, the end of the text, `.alias`, `.file`, `.pragma` or `.section`\n"
        "  <ptx>:4 | .shred .b32 x;\n"
        "            ^^^^^^",
    ),
    "a register past the end of its family": (
        kernel("\tadd.u32 %r1, %r2, %r9;"),
        "line 8, column 20: `%r9` is not declared\n"
        "  <ptx>:8 | add.u32 %r1, %r2, %r9;\n"
        "                              ^^^\n"
        "  help: declare more registers of this name: `.reg .b32 %r<10>;`",
    ),
    "an undeclared guard": (
        kernel("\t@%p2 ret;"),
        "line 8, column 3: `%p2` is not declared\n  <ptx>:8 | @%p2 ret;\n             ^^^\n  help: did you mean `%p1`?",
    ),
    "an undeclared label": (
        kernel("\tbra NOWHERE;"),
        "line 8, column 6: `NOWHERE` is not declared\n"
        "  <ptx>:8 | bra NOWHERE;\n"
        "                ^^^^^^^\n"
        "  help: declare the register or variable, or write the label, before this",
    ),
    "a guard that is no register": (
        kernel("\t@p ret;"),
        "line 8, column 3: `p` guards an instruction, but is not a register\n  <ptx>:8 | @p ret;\n             ^",
    ),
    "a duplicate label": (
        kernel("L:\n\tret;\nL:\n\tret;"),
        "line 10, column 1: `L` is declared twice in this scope\n"
        "  <ptx>:10 | L:\n"
        "             ^^\n"
        "  help: rename one of the two",
    ),
    "a duplicate register": (
        kernel("\t.reg .f32 %r2;"),
        "line 8, column 12: `%r2` is declared twice in this scope\n"
        "  <ptx>:8 | .reg .f32 %r2;\n"
        "                      ^^^\n"
        "  help: rename one of the two",
    ),
    "a duplicate kernel": (
        HEADER + ".entry k() { ret; }\n.entry k() { ret; }\n",
        "line 5, column 8: `k` is defined twice\n"
        "  <ptx>:5 | .entry k() { ret; }\n"
        "                   ^\n"
        "  help: rename one of the two",
    ),
    "an open vector": (
        kernel("\tmov.b64 {%r1, %r2, %r3;"),
        "line 8, column 10: this `{` is not closed before the `;`\n"
        "  <ptx>:8 | mov.b64 {%r1, %r2, %r3;\n"
        "                    ^\n"
        "  help: close the vector with `}`",
    ),
    "a vector with a hole": (
        kernel("\tst.v2.b32 [%rd1], {%r1, };"),
        "line 8, column 26: an operand is missing\n"
        "  <ptx>:8 | st.v2.b32 [%rd1], {%r1, };\n"
        "                                    ^\n"
        "  help: remove the comma, or write the operand",
    ),
    "an open address": (
        kernel("\tld.param.u64 %rd1, [p;"),
        "line 8, column 23: expected `,` or `]`, found `;`\n"
        "  <ptx>:8 | ld.param.u64 %rd1, [p;\n"
        "                                 ^",
    ),
    "a missing comma": (
        kernel("\tadd.u32 %r1 %r2, %r3;"),
        "line 8, column 14: expected `,` or `;`, found `%r2`\n"
        "  <ptx>:8 | add.u32 %r1 %r2, %r3;\n"
        "                        ^^^",
    ),
    "arithmetic on registers": (
        kernel("\tadd.u32 %r1, %r2 * 4, 1;"),
        "line 8, column 19: `%r2 * 4` is not a constant\n"
        "  <ptx>:8 | add.u32 %r1, %r2 * 4, 1;\n"
        "                             ^\n"
        "  help: compute it with an instruction",
    ),
    "an open comment": (
        kernel("\t/* forever"),
        "line 8, column 2: this comment is not closed\n"
        "  <ptx>:8 | /* forever\n"
        "            ^^\n"
        "  help: close it with `*/`",
    ),
    "an open string": (
        HEADER + '.file 1 "abc\n',
        "line 4, column 9: this string is not closed\n"
        '  <ptx>:4 | .file 1 "abc\n'
        "                    ^\n"
        '  help: close it with `"` on the same line',
    ),
    "garbage": (
        kernel("\t#include <x>"),
        "line 8, column 2: expected an instruction, a label, `.loc`, a state space such as `.global`, "
        "`.pragma`, `{` or `}`, found `#`\n"
        "  <ptx>:8 | #include <x>\n"
        "            ^",
    ),
    "another language": (
        "hello world",
        "line 1, column 1: expected `.version`, found `hello`\n  <ptx>:1 | hello world\n            ^^^^^",
    ),
    "an empty text": ("", "line 1, column 1: the text ends here; expected `.version`\n  <ptx>:1"),
    "no target": (
        ".version 8.0\n.entry k() { ret; }",
        "line 2, column 1: expected `.target`, found `.entry`\n  <ptx>:2 | .entry k() { ret; }\n            ^^^^^^",
    ),
    "a function without end": (
        HEADER + ".entry k()\n{\n\tret;\n",
        "line 6, column 5: the text ends inside a function\n"
        "  <ptx>:6 | ret;\n"
        "               ^\n"
        "  help: close its body with `}`",
    ),
    "a brace too many": (
        HEADER + ".entry k() { ret; }\n}\n",
        "line 5, column 1: this `}` has no matching `{`\n"
        "  <ptx>:5 | }\n"
        "            ^\n"
        "  help: remove it, or add the missing `{`",
    ),
    "a short float": (
        kernel("\tmov.f32 %f1, 0f3F80;"),
        "line 8, column 15: `0f3F80` is not a constant\n"
        "  <ptx>:8 | mov.f32 %f1, 0f3F80;\n"
        "                         ^^^^^^\n"
        "  help: write integers as 31 or 0x1f, floats as 0f with 8 or 0d with 16 hexadecimal digits",
    ),
    "a decimal that looks octal": (
        kernel("\tmov.u32 %r1, 089;"),
        "line 8, column 15: `089` is not an octal number\n"
        "  <ptx>:8 | mov.u32 %r1, 089;\n"
        "                         ^^^\n"
        "  help: drop the leading 0 of a decimal number",
    ),
    "division by zero": (
        HEADER + ".global .b32 x = 1/0;",
        "line 4, column 19: division by zero in a constant expression\n"
        "  <ptx>:4 | .global .b32 x = 1/0;\n"
        "                              ^",
    ),
    "a register with a value": (
        kernel("\t.reg .b32 a = 3;"),
        "line 8, column 12: `a` is a register, which takes no initial value\n"
        "  <ptx>:8 | .reg .b32 a = 3;\n"
        "                      ^\n"
        "  help: write it with mov",
    ),
    "an unknown type": (
        kernel("\t.reg .b33 %x;"),
        "line 8, column 7: unknown type `.b33`; expected a type such as `.b32`, a name, `.align` or `.ptr`\n"
        "  <ptx>:8 | .reg .b33 %x;\n"
        "                 ^^^^",
    ),
    "no type": (
        kernel("\t.reg %x;"),
        "line 8, column 7: `%x` has no type\n"
        "  <ptx>:8 | .reg %x;\n"
        "                 ^^\n"
        "  help: write a type before it: `.b32 %x`",
    ),
    "half a loc": (
        kernel("\t.loc 1 2;\n\tret;"),
        "line 8, column 2: `.loc` takes a file, a line and a column\n"
        "  <ptx>:8 | .loc 1 2;\n"
        "            ^^^^\n"
        "  help: write it as `.loc 1 12 5`",
    ),
    "an unknown operator of initial values": (
        HEADER + ".global .u64 x = foo(3);",
        "line 4, column 18: `foo(…)` is not a PTX operator\n"
        "  <ptx>:4 | .global .u64 x = foo(3);\n"
        "                             ^^^\n"
        "  help: write generic(name) or 0xff(name)",
    ),
    "a guard without instruction": (
        kernel("\t@%p1;"),
        "line 8, column 2: expected an instruction after its guard\n"
        "  <ptx>:8 | @%p1;\n"
        "            ^^^^^\n"
        "  help: write `@p add.u32 …;`",
    ),
}  # fmt: skip


@pytest.mark.parametrize("text, message", REFUSED.values(), ids=REFUSED)
def test_what_is_not_ptx_is_refused_in_words(text, message):
    with pytest.raises(ParseError) as caught:
        parse(text)
    assert str(caught.value) == message


def test_an_error_names_the_file():
    with pytest.raises(ParseError, match=r"kernel\.ptx:1 \| hello"):
        parse("hello", file="dir/kernel.ptx")


@given(st.text(alphabet=' \n\t.{}[]()@%$!;:,"/*<>=+-|?~_&09afrx', max_size=40))
def test_any_text_is_read_or_refused(text):
    for candidate in (text, kernel(text), HEADER + text):
        try:
            parse(candidate)
        except ParseError as error:
            assert error.at and error.message


@pytest.mark.parametrize(
    "text, message, help",
    [
        ("a/k.ptx", "'a/k.ptx' is a file name, not PTX", "read it: pathlib.Path('a/k.ptx').read_text()"),
        ("k.cu", "'k.cu' is a file name, not PTX", "compile it with nvcc -ptx, and pass the text of the result"),
        (b"\x7fELF\2\1", "this is machine code, not PTX", "pass the PTX that it was assembled from"),
    ],
)
def test_what_is_no_text_of_ptx_says_what_is(text, message, help):
    with pytest.raises(ParseError) as refused:
        parse(text)
    assert (refused.value.message, refused.value.help) == (message, help)
    assert refused.value.at.file == __file__
