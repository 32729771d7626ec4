"""Text that means harm, or that was damaged: it is refused in words, in little time and memory, or it is harmless."""

import pickle
import subprocess
import sys
import tracemalloc

import pytest

import ptxdsl as pd
from ptxdsl.errors import ParseError
from ptxdsl.lower import lower
from ptxdsl.parse import parse

HEADER = ".version 8.0\n.target sm_80\n.address_size 64\n"


def kernel(body, before=""):
    """A module with one kernel, whose body is on line 7."""
    registers = ".reg .b32 %r<4>; .reg .f32 %f<3>; .reg .b64 %rd<3>;"
    return f"{HEADER}{before}.visible .entry k(.param .u64 p)\n{{\n{registers}\n{body}\n}}\n"


def module(text):
    return f"{HEADER}{text}\n"


SECTION_DATA = "write labels (`x:`), numbers (`.b8 104,105,0`), and `.b32` or `.b64` with a label, `x+8` or `y-x`"
REFUSED = {
    "braces 500 deep": (
        kernel("{" * 500 + "}" * 500),
        "line 4, column 1: this scope is nested too deeply; 100 levels are allowed\n"
        "  <ptx>:4 | .visible .entry k(.param .u64 p)\n"
        "            ^\n"
        "  help: move a part of it out",
    ),
    "braces 500 deep around a label": (
        kernel("{" * 500 + "L:" + "}" * 500),
        "line 7, column 501: this scope is nested too deeply; 100 levels are allowed\n"
        + "  <ptx>:7 | "
        + "{" * 100
        + "L:}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}\n"
        + " " * 112
        + "^\n"
        + "  help: move a part of it out",
    ),
    "braces 20000 deep": (
        kernel("{" * 20000 + "}" * 20000),
        "line 1, column 1: this text is nested too deeply; 100 levels are allowed\n"
        "  <ptx>:1 | .version 8.0\n"
        "            ^\n"
        "  help: move a part of it out",
    ),
    "deep parentheses": (
        kernel("mov.u32 %r1, " + "(" * 101 + "1" + ")" * 101 + ";"),
        "line 7, column 14: this expression is nested too deeply; 100 levels are allowed\n"
        + "  <ptx>:7 | mov.u32 %r1, "
        + "(" * 101
        + "1)))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))\n"
        + "                         ^\n"
        + "  help: move a part of it out",
    ),
    "many signs": (
        kernel("mov.u32 %r1, " + "~" * 101 + "1;"),
        "line 7, column 14: this expression is nested too deeply; 100 levels are allowed\n"
        + "  <ptx>:7 | mov.u32 %r1, "
        + "~" * 101
        + "1;\n"
        + "                         ^\n"
        + "  help: move a part of it out",
    ),
    "deep arguments": (
        kernel("call f, " + "(" * 102 + "1" + ")" * 102 + ";", ".func f(.reg .b32 a) { ret; }\n"),
        "line 8, column 6: this expression is nested too deeply; 100 levels are allowed\n"
        + "  <ptx>:8 | call f, "
        + "(" * 102
        + "1)))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))\n"
        + "                 ^\n"
        + "  help: move a part of it out",
    ),
    "nested vectors": (
        kernel("mov.b32 %r1, {{%r1, %r2}, %r3};"),
        "line 7, column 15: a vector contains a vector\n"
        "  <ptx>:7 | mov.b32 %r1, {{%r1, %r2}, %r3};\n"
        "                          ^\n"
        "  help: write one list: `{a, b, c, d}`",
    ),
    "an initial value in deep braces": (
        module(".global .b32 x = " + "{" * 200 + "1" + "}" * 200 + ";"),
        "line 4, column 218: this initial value is nested too deeply; 100 levels are allowed\n"
        + "  <ptx>:4 | "
        + "{" * 100
        + "1}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}\n"
        + " " * 112
        + "^\n"
        + "  help: move a part of it out",
    ),
    "a guard and three million spaces": (
        kernel("@" + " " * 3_000_000 + ";"),
        "line 7, column 1: expected an instruction after its guard\n"
        + "  <ptx>:7 | @\n"
        + "            "
        + "^" * 200
        + "\n"
        + "  help: write `@p add.u32 …;`",
    ),
    "an integer of 5000 digits": (
        kernel("mov.u32 %r1, " + "9" * 5000 + ";"),
        "line 7, column 14: `"
        + "9" * 80
        + "…` does not fit 64 bits\n"
        + "  <ptx>:7 | mov.u32 %r1, "
        + "9" * 187
        + "\n"
        + "                         "
        + "^" * 187
        + "\n"
        + "  help: write a smaller constant",
    ),
    "a hexadecimal number of 5000 digits": (
        kernel("mov.u32 %r1, 0x" + "f" * 5000 + ";"),
        "line 7, column 14: `0x"
        + "f" * 78
        + "…` does not fit 64 bits\n"
        + "  <ptx>:7 | mov.u32 %r1, 0x"
        + "f" * 185
        + "\n"
        + "                         "
        + "^" * 187
        + "\n"
        + "  help: write a smaller constant",
    ),
    "an integer beyond 64 bits": (
        kernel("mov.b64 %rd1, 18446744073709551616;"),
        "line 7, column 15: `18446744073709551616` does not fit 64 bits\n"
        "  <ptx>:7 | mov.b64 %rd1, 18446744073709551616;\n"
        "                          ^^^^^^^^^^^^^^^^^^^^\n"
        "  help: write a smaller constant",
    ),
    "an offset beyond 64 bits": (
        kernel("ld.global.b32 %r1, [%rd1+18446744073709551616];"),
        "line 7, column 26: `18446744073709551616` does not fit 64 bits\n"
        "  <ptx>:7 | ld.global.b32 %r1, [%rd1+18446744073709551616];\n"
        "                                     ^^^^^^^^^^^^^^^^^^^^\n"
        "  help: write a smaller constant",
    ),
    "a count beyond 64 bits": (
        kernel(".reg .b32 q<18446744073709551616>;"),
        "line 7, column 13: `18446744073709551616` does not fit 64 bits\n"
        "  <ptx>:7 | .reg .b32 q<18446744073709551616>;\n"
        "                        ^^^^^^^^^^^^^^^^^^^^\n"
        "  help: write a smaller constant",
    ),
    "a bound beyond 64 bits": (
        module(".entry k() .maxntid 99999999999999999999 { ret; }"),
        "line 4, column 21: `99999999999999999999` does not fit 64 bits\n"
        "  <ptx>:4 | .entry k() .maxntid 99999999999999999999 { ret; }\n"
        "                                ^^^^^^^^^^^^^^^^^^^^\n"
        "  help: write a smaller constant",
    ),
    "a file number beyond 64 bits": (
        module('.file 99999999999999999999 "a"'),
        "line 4, column 7: `99999999999999999999` does not fit 64 bits\n"
        '  <ptx>:4 | .file 99999999999999999999 "a"\n'
        "                  ^^^^^^^^^^^^^^^^^^^^\n"
        "  help: write a smaller constant",
    ),
    "a line number of 20 digits": (
        kernel(".loc 1 99999999999999999999 3"),
        "line 7, column 1: `.loc` takes a file, a line and a column\n"
        "  <ptx>:7 | .loc 1 99999999999999999999 3\n"
        "            ^^^^\n"
        "  help: write it as `.loc 1 12 5`",
    ),
    "a version of 5000 digits": (
        f".version {'9' * 5000}.0",
        "line 1, column 10: expected a version such as `8.0`, found `"
        + "9" * 80
        + "…`\n"
        + "  <ptx>:1 | .version "
        + "9" * 191
        + "\n"
        + "                     "
        + "^" * 191,
    ),
    "a decimal beyond 64 bits": (
        kernel("mov.f64 %rd1, 1e400;"),
        "line 7, column 15: `1e400` is outside the range of f64\n"
        "  <ptx>:7 | mov.f64 %rd1, 1e400;\n"
        "                          ^^^^^\n"
        "  help: write its bits as 0d followed by 16 hexadecimal digits",
    ),
    "a decimal that vanishes": (
        kernel("mov.f64 %rd1, 1e-400;"),
        "line 7, column 15: `1e-400` is outside the range of f64\n"
        "  <ptx>:7 | mov.f64 %rd1, 1e-400;\n"
        "                          ^^^^^^\n"
        "  help: write its bits as 0d followed by 16 hexadecimal digits",
    ),
    "an octal number with an 8 in an initial value": (
        module(".global .b32 x[1] = {08};"),
        "line 4, column 22: `08` is not an octal number\n"
        "  <ptx>:4 | .global .b32 x[1] = {08};\n"
        "                                 ^^\n"
        "  help: drop the leading 0 of a decimal number",
    ),
    "an octal number with an 8 in a row of numbers": (
        module(".global .b32 x[2] = {1, 08};"),
        "line 4, column 25: `08` is not an octal number\n"
        "  <ptx>:4 | .global .b32 x[2] = {1, 08};\n"
        "                                    ^^\n"
        "  help: drop the leading 0 of a decimal number",
    ),
    "an octal bound with an 8": (
        module(".entry k() .maxntid 08 { ret; }"),
        "line 4, column 21: `08` is not an octal number\n"
        "  <ptx>:4 | .entry k() .maxntid 08 { ret; }\n"
        "                                ^^\n"
        "  help: drop the leading 0 of a decimal number",
    ),
    "digits of another script": (
        kernel("mov.b64 %rd1, ٣;"),
        "line 7, column 15: `٣` is not ASCII; PTX is limited to ASCII\n"
        "  <ptx>:7 | mov.b64 %rd1, ٣;\n"
        "                          ^\n"
        "  help: remove it; other characters are allowed in comments and file names",
    ),
    "letters of another script": (
        kernel(".reg .b32 größe;"),
        "line 7, column 13: `ö` is not ASCII; PTX is limited to ASCII\n"
        "  <ptx>:7 | .reg .b32 größe;\n"
        "                        ^\n"
        "  help: remove it; other characters are allowed in comments and file names",
    ),
    "a space of another script": (
        kernel("ret\u00a0;"),
        "line 7, column 4: `\\xa0` is not ASCII; PTX is limited to ASCII\n"
        "  <ptx>:7 | ret ;\n"
        "               ^\n"
        "  help: remove it; other characters are allowed in comments and file names",
    ),
    "another script in a pragma": (
        kernel('.pragma "ä";'),
        "line 7, column 10: `ä` is not ASCII; PTX is limited to ASCII\n"
        '  <ptx>:7 | .pragma "ä";\n'
        "                     ^\n"
        "  help: remove it; other characters are allowed in comments and file names",
    ),
    "UTF-16": (
        module("").encode("utf-16"),
        "line 1, column 1: `\\udcff` is not ASCII; PTX is limited to ASCII\n"
        "  <ptx>:1 |   . v e r s i o n   8 . 0 \n"
        "            ^\n"
        "  help: remove it; other characters are allowed in comments and file names",
    ),
    "a damaged section": (
        module(".section .debug_str { x:\n .b8 zz }"),
        "line 5, column 6: `zz` is not valid section data\n"
        "  <ptx>:5 | .b8 zz }\n"
        "                ^^\n"
        f"  help: {SECTION_DATA}",
    ),
    "a section of words": (
        module(".section .debug_info { .b8 1 hello }"),
        "line 4, column 30: `hello` is not valid section data\n"
        "  <ptx>:4 | .section .debug_info { .b8 1 hello }\n"
        "                                         ^^^^^\n"
        f"  help: {SECTION_DATA}",
    ),
    "a section whose list does not end": (
        module(".section .debug_abbrev { .b8 1,2, }"),
        "line 4, column 33: `,` is not valid section data\n"
        "  <ptx>:4 | .section .debug_abbrev { .b8 1,2, }\n"
        "                                            ^\n"
        f"  help: {SECTION_DATA}",
    ),
    "a section with an address of a byte": (
        module(".section .debug_info { .b8 $x }"),
        "line 4, column 28: `$x` is not valid section data\n"
        "  <ptx>:4 | .section .debug_info { .b8 $x }\n"
        "                                       ^^\n"
        f"  help: {SECTION_DATA}",
    ),
    "a section with addresses in a list": (
        module(".section .debug_info { .b64 $x, $y }"),
        "line 4, column 31: `,` is not valid section data\n"
        "  <ptx>:4 | .section .debug_info { .b64 $x, $y }\n"
        "                                          ^\n"
        f"  help: {SECTION_DATA}",
    ),
    "a section with a type that nothing has": (
        module(".section .debug_info { .b128 1 }"),
        "line 4, column 24: `.b128` is not valid section data\n"
        "  <ptx>:4 | .section .debug_info { .b128 1 }\n"
        "                                   ^^^^^\n"
        f"  help: {SECTION_DATA}",
    ),
    "a section without a number": (
        module(".section .debug_info { .b8 }"),
        "line 4, column 24: `.b8` is not valid section data\n"
        "  <ptx>:4 | .section .debug_info { .b8 }\n"
        "                                   ^^^\n"
        f"  help: {SECTION_DATA}",
    ),
    "a byte of a section beyond 8 bits": (
        module(".section .debug_info { .b8 1, 256 }"),
        "line 4, column 31: 256 does not fit .b8, which has -128 to 255\n"
        "  <ptx>:4 | .section .debug_info { .b8 1, 256 }\n"
        "                                          ^^^\n"
        "  help: write it as .b32",
    ),
    "a number of a section below 16 bits": (
        module(".section .debug_info { .b16 -32769 }"),
        "line 4, column 29: -32769 does not fit .b16, which has -32768 to 65535\n"
        "  <ptx>:4 | .section .debug_info { .b16 -32769 }\n"
        "                                        ^^^^^^\n"
        "  help: write it as .b32",
    ),
    "an octal number of a section": (
        module(".section .debug_info { .b8 09 }"),
        "line 4, column 28: `09` is not an octal number\n"
        "  <ptx>:4 | .section .debug_info { .b8 09 }\n"
        "                                       ^^\n"
        "  help: drop the leading 0 of a decimal number",
    ),
    "a number of 500 digits in a section": (
        module(".section .debug_str { x:\n .b8 " + "9" * 500 + " }"),
        f"line 5, column 6: `{'9' * 80}…` does not fit 64 bits\n"
        f"  <ptx>:5 | .b8 {'9' * 196}\n"
        f"                {'^' * 196}\n"
        "  help: write a smaller constant",
    ),
    "an open section": (
        module(".section .debug_str { x:"),
        "line 4, column 21: the data of this section is not closed\n"
        "  <ptx>:4 | .section .debug_str { x:\n"
        "                                ^\n"
        "  help: close it with `}`",
    ),
    "an alignment of 3": (
        module(".global .align 3 .b32 x;"),
        "line 4, column 16: an alignment is a power of two; found 3\n"
        "  <ptx>:4 | .global .align 3 .b32 x;\n"
        "                           ^\n"
        "  help: write .align 4, 8 or 16",
    ),
    "an alignment of 0": (
        module(".shared .align 0 .b32 x;"),
        "line 4, column 16: an alignment is a power of two; found 0\n"
        "  <ptx>:4 | .shared .align 0 .b32 x;\n"
        "                           ^\n"
        "  help: write .align 4, 8 or 16",
    ),
    "an alignment of a parameter": (
        module(".entry k(.param .align 3 .b8 x[3]) { ret; }"),
        "line 4, column 24: an alignment is a power of two; found 3\n"
        "  <ptx>:4 | .entry k(.param .align 3 .b8 x[3]) { ret; }\n"
        "                                   ^\n"
        "  help: write .align 4, 8 or 16",
    ),
    "addresses of 33 bits": (
        ".version 8.0\n.target sm_80\n.address_size 33\n",
        "line 3, column 15: an address has 32 or 64 bits; found 33\n"
        "  <ptx>:3 | .address_size 33\n"
        "                          ^^\n"
        "  help: write .address_size 64",
    ),
    "an initial value that is too long": (
        module(".global .b32 x[2] = {1, 2, 3};"),
        "line 4, column 22: the initial value of `x` has 3 elements in braces where 2 are declared\n"
        "  <ptx>:4 | .global .b32 x[2] = {1, 2, 3};\n"
        "                                 ^\n"
        "  help: it is .b32 x[2]: write a list in braces for each dimension",
    ),
    "a row of an initial value that is too long": (
        module(".global .b32 x[2][2] = {{1, 2}, {3, 4, 5}};"),
        "line 4, column 26: the initial value of `x` has 3 elements in braces where 2 are declared\n"
        "  <ptx>:4 | .global .b32 x[2][2] = {{1, 2}, {3, 4, 5}};\n"
        "                                     ^\n"
        "  help: it is .b32 x[2][2]: write a list in braces for each dimension",
    ),
    "too many rows": (
        module(".global .b32 x[1][2] = {{1, 2}, {3, 4}};"),
        "line 4, column 26: the initial value of `x` has 2 elements in braces where 1 are declared\n"
        "  <ptx>:4 | .global .b32 x[1][2] = {{1, 2}, {3, 4}};\n"
        "                                     ^\n"
        "  help: it is .b32 x[1][2]: write a list in braces for each dimension",
    ),
    "rows without braces": (
        module(".global .b32 x[2][2] = {1, 2};"),
        "line 4, column 25: the initial value of `x` has one element where 2 in braces are declared\n"
        "  <ptx>:4 | .global .b32 x[2][2] = {1, 2};\n"
        "                                    ^\n"
        "  help: it is .b32 x[2][2]: write a list in braces for each dimension",
    ),
    "an array of one value without braces": (
        module(".global .b32 x[2] = 1;"),
        "line 4, column 21: the initial value of `x` has one element where 2 in braces are declared\n"
        "  <ptx>:4 | .global .b32 x[2] = 1;\n"
        "                                ^\n"
        "  help: it is .b32 x[2]: write a list in braces for each dimension",
    ),
    "braces around a scalar": (
        module(".global .b32 x = {1};"),
        "line 4, column 19: the initial value of `x` has braces, and is a single element\n"
        "  <ptx>:4 | .global .b32 x = {1};\n"
        "                              ^\n"
        "  help: write one value, without braces",
    ),
    "half a vector": (
        module(".global .v2 .f32 x = {1.0};"),
        "line 4, column 23: the initial value of `x` has 1 element in braces where 2 are declared\n"
        "  <ptx>:4 | .global .v2 .f32 x = {1.0};\n"
        "                                  ^\n"
        "  help: it is .v2 .f32 x: write a list in braces for each dimension",
    ),
    "an integer for a float": (
        module(".global .f32 x = 1;"),
        "line 4, column 18: `1` is not a valid initial value of `x`, which is .f32\n"
        "  <ptx>:4 | .global .f32 x = 1;\n"
        "                             ^\n"
        "  help: write 1.0, or the bits as 0f3F800000",
    ),
    "a float for an integer": (
        module(".global .u32 x[2] = {1, 0f3F800000};"),
        "line 4, column 22: `0f3F800000` is not a valid initial value of `x`, which is .u32\n"
        "  <ptx>:4 | .global .u32 x[2] = {1, 0f3F800000};\n"
        "                                 ^\n"
        "  help: write an integer",
    ),
    "an initial value in shared memory": (
        module(".shared .b32 x = 1;"),
        "line 4, column 18: `x` is in .shared, which takes no initial value\n"
        "  <ptx>:4 | .shared .b32 x = 1;\n"
        "                             ^\n"
        "  help: store it in the kernel",
    ),
    "an initial value elsewhere": (
        module(".extern .global .b32 x = 1;"),
        "line 4, column 26: `x` is an external variable, which takes no initial value\n"
        "  <ptx>:4 | .extern .global .b32 x = 1;\n"
        "                                     ^\n"
        "  help: give the initial value at its definition",
    ),
    "values without commas": (
        module(".global .f32 x[3] = {1.0 2.0, 3.0};"),
        "line 4, column 26: expected an operator, `,`, `?` or `}`, found `2.0`\n"
        "  <ptx>:4 | .global .f32 x[3] = {1.0 2.0, 3.0};\n"
        "                                     ^^^",
    ),
    "an integer and a decimal": (
        module(".global .f32 x = 1 + 2.0;"),
        "line 4, column 20: `1 + 2.0` is not a constant\n"
        "  <ptx>:4 | .global .f32 x = 1 + 2.0;\n"
        "                               ^\n"
        "  help: write both as integers, or both as decimals",
    ),
    "a decimal divided by zero": (
        module(".global .f32 x = 1.0 / 0.0;"),
        "line 4, column 22: division by zero in a constant expression\n"
        "  <ptx>:4 | .global .f32 x = 1.0 / 0.0;\n"
        "                                 ^",
    ),
    "a cast of a decimal": (
        module(".global .b32 x = (.s64) 1.5;"),
        "line 4, column 19: `.s64` takes an integer; found 1.5\n"
        "  <ptx>:4 | .global .b32 x = (.s64) 1.5;\n"
        "                              ^^^^\n"
        "  help: write an integer constant",
    ),
    "a condition that is no number": (
        kernel("mov.u32 %r1, p ? 1 : 2;"),
        "line 7, column 14: `?` takes an integer condition; found p\n"
        "  <ptx>:7 | mov.u32 %r1, p ? 1 : 2;\n"
        "                         ^\n"
        "  help: compare: `a != 0 ? b : c`",
    ),
    "the generic address of a number": (
        module(".global .u64 x = generic(5);"),
        "line 4, column 18: `generic(…)` is not a PTX operator\n"
        "  <ptx>:4 | .global .u64 x = generic(5);\n"
        "                             ^^^^^^^\n"
        "  help: write generic(name) or 0xff(name)",
    ),
    "the mask of a decimal": (
        module(".global .b8 x = mask(1.5, x);"),
        "line 4, column 17: `mask(…)` is not a PTX operator\n"
        "  <ptx>:4 | .global .b8 x = mask(1.5, x);\n"
        "                            ^^^^\n"
        "  help: write generic(name) or 0xff(name)",
    ),
    "two results in .param space": (
        module(".func (.param .b32 a, .param .b32 b) f();"),
        "line 4, column 38: `f` returns 2 values, and ptxas takes one in .param space\n"
        "  <ptx>:4 | .func (.param .b32 a, .param .b32 b) f();\n"
        "                                                 ^\n"
        "  help: return them as one array: .param .align 8 .b8 results[16]",
    ),
    "an array without length": (
        module(".global .b32 x[];"),
        "line 4, column 14: `x` has no length\n"
        "  <ptx>:4 | .global .b32 x[];\n"
        "                         ^\n"
        "  help: write x[n], or .extern if another module defines it",
    ),
    "an array of no elements": (
        module(".global .b32 x[0];"),
        "line 4, column 16: the length of an array is an integer of at least 1; found 0\n"
        "  <ptx>:4 | .global .b32 x[0];\n"
        "                           ^\n"
        "  help: write a constant",
    ),
    "an array of a decimal of elements": (
        module(".global .b32 x[1.5];"),
        "line 4, column 16: the length of an array is an integer of at least 1; found 1.5\n"
        "  <ptx>:4 | .global .b32 x[1.5];\n"
        "                           ^^^\n"
        "  help: write a constant",
    ),
    "an array as the length of an array": (
        module(".global .b32 y; .global .b32 x[y];"),
        "line 4, column 32: the length of an array is an integer of at least 1; found y\n"
        "  <ptx>:4 | .global .b32 y; .global .b32 x[y];\n"
        "                                           ^\n"
        "  help: write a constant",
    ),
    "many variables of one name": (
        module(".global .b32 x<100000>;"),
        "line 4, column 14: `x<100000>` declares 100000 variables; the maximum is 65536\n"
        "  <ptx>:4 | .global .b32 x<100000>;\n"
        "                         ^\n"
        "  help: declare an array",
    ),
    "a duplicate variable": (
        module(".global .b32 x;\n.global .b32 x;"),
        "line 5, column 14: `x` is defined twice\n"
        "  <ptx>:5 | .global .b32 x;\n"
        "                         ^\n"
        "  help: rename one of the two",
    ),
    "a duplicate weak variable": (
        module(".weak .global .b32 x;\n.weak .global .b32 x;"),
        "line 5, column 20: `x` is defined twice\n"
        "  <ptx>:5 | .weak .global .b32 x;\n"
        "                               ^\n"
        "  help: rename one of the two",
    ),
    "a variable of two types": (
        module(".extern .global .f32 x;\n.visible .global .b32 x;"),
        "line 5, column 23: `x` is .global .b32 here, and .global .f32 where it was declared first\n"
        "  <ptx>:5 | .visible .global .b32 x;\n"
        "                                  ^\n"
        "  help: use the same declaration everywhere",
    ),
    "a vector and a scalar": (
        module(".extern .global .v2 .f32 x;\n.visible .global .f32 x;"),
        "line 5, column 23: `x` is .global .f32 here, and .global .v2 .f32 where it was declared first\n"
        "  <ptx>:5 | .visible .global .f32 x;\n"
        "                                  ^\n"
        "  help: use the same declaration everywhere",
    ),
    "a variable and a kernel of one name": (
        module(".global .b32 k;\n.entry k() { ret; }"),
        "line 5, column 8: `k` is declared as a variable and as a function\n"
        "  <ptx>:5 | .entry k() { ret; }\n"
        "                   ^\n"
        "  help: rename one of the two",
    ),
    "a parameter and a register of one name": (
        kernel(".reg .b64 p;"),
        "line 7, column 11: `p` is declared twice in this scope\n"
        "  <ptx>:7 | .reg .b64 p;\n"
        "                      ^\n"
        "  help: rename one of the two",
    ),
    "a parameter and a shared variable of one name": (
        kernel(".shared .b64 p;"),
        "line 7, column 14: `p` is declared twice in this scope\n"
        "  <ptx>:7 | .shared .b64 p;\n"
        "                         ^\n"
        "  help: rename one of the two",
    ),
    "two parameters of one name": (
        module(".entry k(.param .u64 p, .param .u64 p) { ret; }"),
        "line 4, column 8: `k` has two parameters `p`\n"
        "  <ptx>:4 | .entry k(.param .u64 p, .param .u64 p) { ret; }\n"
        "                   ^\n"
        "  help: rename one of the two",
    ),
    "a result and a parameter of one name": (
        module(".func (.reg .b32 a) f(.reg .b32 a) { ret; }"),
        "line 4, column 21: `f` has two parameters `a`\n"
        "  <ptx>:4 | .func (.reg .b32 a) f(.reg .b32 a) { ret; }\n"
        "                                ^\n"
        "  help: rename one of the two",
    ),
    "a register without a name": (
        kernel(".reg .b32 _;"),
        "line 7, column 11: `_` discards a result and cannot be declared\n"
        "  <ptx>:7 | .reg .b32 _;\n"
        "                      ^\n"
        "  help: use another name",
    ),
    "a family without a name": (
        kernel("{ .reg .b32 _<3>; }"),
        "line 7, column 13: `_` discards a result and cannot be declared\n"
        "  <ptx>:7 | { .reg .b32 _<3>; }\n"
        "                        ^\n"
        "  help: use another name",
    ),
    "a label without a name": (
        kernel("_: ret;"),
        "line 7, column 1: `_` discards a result and cannot be declared\n"
        "  <ptx>:7 | _: ret;\n"
        "            ^^\n"
        "  help: use another name",
    ),
    "a variable without a name": (
        module(".global .b32 _[3];"),
        "line 4, column 14: `_` discards a result and cannot be declared\n"
        "  <ptx>:4 | .global .b32 _[3];\n"
        "                         ^\n"
        "  help: use another name",
    ),
    "a function whose parameter has no name": (
        module(".func f(.param .b32 _) { ret; }"),
        "line 4, column 7: `_` discards a result and cannot be declared\n"
        "  <ptx>:4 | .func f(.param .b32 _) { ret; }\n"
        "                  ^\n"
        "  help: use another name",
    ),
    "a register in a huge family": (
        kernel(".reg .b32 q<10000000>; .reg .f32 q5;"),
        "line 7, column 34: `q5` is declared twice in this scope\n"
        "  <ptx>:7 | .reg .b32 q<10000000>; .reg .f32 q5;\n"
        "                                             ^^\n"
        "  help: rename one of the two",
    ),
    "a huge family with a register that is known": (
        kernel(".reg .f32 q5; .reg .b32 q<10000000>;"),
        "line 7, column 25: `q5` is declared twice in this scope\n"
        "  <ptx>:7 | .reg .f32 q5; .reg .b32 q<10000000>;\n"
        "                                    ^\n"
        "  help: rename one of the two",
    ),
    "two families of one name": (
        kernel(".reg .b32 q<10000000>, q<20000000>;"),
        "line 7, column 24: `q<n>` is declared twice in this scope\n"
        "  <ptx>:7 | .reg .b32 q<10000000>, q<20000000>;\n"
        "                                   ^\n"
        "  help: rename one of the two",
    ),
    "a register past a huge family": (
        kernel(".reg .b32 q<10000000>; not.b32 q10000000, q0;"),
        "line 7, column 32: `q10000000` is not declared\n"
        "  <ptx>:7 | .reg .b32 q<10000000>; not.b32 q10000000, q0;\n"
        "                                           ^^^^^^^^^\n"
        "  help: declare the register or variable, or write the label, before this",
    ),
    "two files of one number": (
        module('.file 1 "a"\n.file 1 "b"'),
        "line 5, column 7: file 1 is named twice\n"
        '  <ptx>:5 | .file 1 "b"\n'
        "                  ^\n"
        "  help: give each file its own number",
    ),
    "a constant added to a float": (
        kernel("mov.f32 %f1, %f2+4;"),
        "line 7, column 14: `%f2+4` adds to a .f32 register; only integer registers allow that\n"
        "  <ptx>:7 | mov.f32 %f1, %f2+4;\n"
        "                         ^^^\n"
        "  help: add it with a separate instruction",
    ),
    "a sum among arguments": (
        kernel("call f, (%r1+4);", ".func f(.reg .b32 a) { ret; }\n"),
        "line 8, column 10: `%r1+4` is an address\n"
        "  <ptx>:8 | call f, (%r1+4);\n"
        "                     ^^^\n"
        "  help: write [%r1+4] for memory, or add with an instruction",
    ),
    "an index of no array": (
        kernel("mov.u32 %r1, s[0];", ".shared .b32 s;\n"),
        "line 8, column 14: `s` has an index, but is not an array\n"
        "  <ptx>:8 | mov.u32 %r1, s[0];\n"
        "                         ^\n"
        "  help: write [register+bytes] for memory",
    ),
    "a register as an index": (
        kernel("mov.u32 %r1, s[%r1];", ".shared .b32 s[4];\n"),
        "line 8, column 14: the index of `s` must be an integer; found %r1\n"
        "  <ptx>:8 | mov.u32 %r1, s[%r1];\n"
        "                         ^\n"
        "  help: write [register+bytes] for memory",
    ),
}


@pytest.mark.parametrize("text, message", REFUSED.values(), ids=REFUSED)
def test_it_is_refused_in_words(text, message):
    with pytest.raises(ParseError) as caught:
        parse(text)
    assert str(caught.value) == message


@pytest.mark.parametrize("value, kind", [(None, "NoneType"), (3, "int"), (["ret;"], "list")])
def test_what_is_no_text_is_refused_at_the_call(value, kind):
    with pytest.raises(ParseError) as caught:
        pd.parse(value)
    assert str(caught.value) == (
        f"pd.parse takes PTX as str or bytes; found {kind}\n"
        f"  {caught.value.at} | pd.parse(value)\n"
        f"  {' ' * len(str(caught.value.at))}   ^^^^^^^^^^^^^^^\n"
        "  help: pass the text of a module: pd.parse(path.read_text(), file=str(path))"
    )


def test_a_limit_of_python_is_no_bare_error():
    """Where Python's stack is nearly used up already."""

    def deeper(frames):
        return pd.parse(kernel("{" * 90 + "}" * 90)) if frames == 0 else deeper(frames - 1)

    with pytest.raises(ParseError, match="this text is nested too deeply"):
        deeper(sys.getrecursionlimit() - 150)


@pytest.mark.parametrize("wrap", [bytes, bytearray, memoryview])
def test_bytes_are_read_as_nvrtc_gives_them(wrap):
    text = kernel("ret;")
    assert lower(parse(wrap(text.encode() + b"\0"))) == lower(parse(text)) == lower(parse(text + "\0"))


def test_comments_may_have_any_letters():
    assert lower(parse(kernel("ret; // größe \u00a0"))) == lower(parse(kernel("ret;")))
    assert lower(parse(kernel("ret; // gr\xf6\xdfe").encode("latin-1"))) == lower(parse(kernel("ret;")))


def test_ninety_levels_are_read():
    text = lower(parse(kernel("{" * 90 + "not.b32 %r1, " + "(" * 90 + "1" + ")" * 90 + ";" + "}" * 90)))
    assert "not.b32 %r1, 1;" in text and lower(parse(text)) == text


def test_zeros_in_front_do_not_count():
    text = lower(parse(kernel(f"mov.u32 %r1, {'0' * 5000}7; mov.u32 %r2, 0x{'0' * 5000}a;")))
    assert "mov.u32 %r1, 7;" in text and "mov.u32 %r2, 10;" in text


def test_counts_and_bounds_are_written_in_any_base():
    text = lower(parse(module(".entry k() .maxntid 0x20 { .reg .b32 r<0x10>, s<010>; mov.b32 r15, s7; }")))
    assert ".maxntid 32" in text and ".reg .b32 r<16>;" in text and ".reg .b32 s<8>;" in text


FEW_BYTES = 4_000_000


@pytest.mark.parametrize("scope", ["{}", "{{ {} }}"], ids=["function", "scope"])
def test_registers_that_nothing_uses_need_no_memory(scope):
    text = kernel(scope.format(".reg .b32 q<10000000>; mov.b32 q9999999, q0; .reg .v2 .f32 v<10000000>;"))
    parse(text)
    tracemalloc.start()
    printed = lower(parse(text))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < FEW_BYTES
    used = (".reg .b32 q0, q9999999;", ".reg .b32 q9999999, q0;")  # by declaration, or by use in a nested scope
    assert any(declaration in printed for declaration in used) and ".f32 v" not in printed


def test_many_families_that_nothing_uses_need_no_memory():
    text = module("".join(f".func f{n}() {{ .reg .b32 %r<60000>; ret; }}\n" for n in range(200)))
    tracemalloc.start()
    parse(text)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20 * FEW_BYTES


def test_a_huge_family_hides_registers_of_outer_scopes_until_its_scope_ends():
    body = "mov.u32 %r1, 1; { .reg .b32 %r<1000>; mov.u32 %r1, %r999; mov.u32 %r1, 2; } mov.u32 %r1, 3;"
    instructions = [str(i) for i in parse(kernel(body)).functions[0].walk()]
    assert instructions == [
        "mov.u32 %r1, 1;", "mov.u32 %r1_1, %r999;", "mov.u32 %r1_1, 2;", "mov.u32 %r1, 3;",
    ]  # fmt: skip


def test_a_vector_of_thirty_thousand_takes_linear_time():
    """Some 0.1 s; it was a minute."""
    names = [f"%r{n}" for n in range(30_000)]
    (instruction,) = (
        parse(kernel(f"mov.b32 {{{', '.join(names)}}}, %r2;").replace("%r<4>", "%r<30000>")).functions[0].walk()
    )
    assert [str(register) for register in instruction.operands[0].elements] == names


def test_the_number_of_a_register_may_be_long():
    """Some 0.1 s; it was more than a second for each."""
    text = kernel("".join(f"mov.u32 %r1, %r{'9' * 100_000};\n" for _ in range(2)))
    with pytest.raises(ParseError, match=r"`%r9{78}…` is not declared"):
        parse(text)
    assert "mov.u32 %r1, %r2;" in lower(parse(kernel(f"mov.u32 %r1, %r{'0' * 900}2;")))


def test_spaces_take_linear_time():
    for text in ("@" + " " * 3_000_000 + "%p1 ret;", "ret" + " " * 3_000_000 + ";", "L" + " " * 3_000_000 + ": ret;"):
        assert len(parse(kernel(".reg .pred %p1; " + text)).functions[0].body) <= 2


@pytest.mark.parametrize("body", ["mov.u32 %r1, 1;", "ld.global.b32 %r1, [%rd1+4];", "frobnicate %r1;"])
def test_modules_are_pickled(body):
    read = pd.parse(kernel(body), file="k.ptx")
    again = pickle.loads(pickle.dumps(read))
    assert again.ptx() == read.ptx() and again.kernels == ("k",)
    (before,), (after,) = (m.ir.functions[0].walk() for m in (read, again))
    assert str(after.location) == "k.ptx:7" and type(after.opcode) is type(before.opcode)
    assert getattr(after.opcode, "form", None) is getattr(before.opcode, "form", None)


def test_a_pickled_module_is_read_in_another_process(tmp_path):
    (tmp_path / "module").write_bytes(pickle.dumps(pd.parse(kernel("mov.u32 %r1, 1;"))))
    script = "import pickle, sys; print(pickle.load(open(sys.argv[1], 'rb')).ptx())"
    command = [sys.executable, "-c", script, str(tmp_path / "module")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "mov.u32 %r1, 1;" in done.stdout
