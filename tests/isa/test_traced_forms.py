"""Every form for Hopper and Blackwell, called in Python and read from text: what is printed is what was meant."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ptxdsl import ir
from ptxdsl.parse import parse
from tests.tracing import source_kernel

from .spelled import Spelled, chapters, covering, fitting, forms_of, opcode_of, registers_in

NEW = (
    "bulk",
    "tensor",
    "multimem",
    "transactions",
    "cluster",
    "wgmma",
    "tcgen05",
    "tcgen05_mma",
    "blackwell",
    "mma_sparse",
    "mma_narrow",
)


def first_spellings(chapter: str) -> Iterator[Spelled]:
    """One spelling of each form, with and without operands that may be left out."""
    for _, form in forms_of(chapter):
        yield from fitting(opcode_of(form, covering(form, 1)[0]))


def argument(value: Any) -> str:
    """An operand as Python code."""
    if isinstance(value, ir.Vector):
        return f"[{', '.join(map(argument, value.elements))}]"
    if isinstance(value, ir.Address):
        return argument(value.base)
    return str(value)


def initial(register: ir.Register) -> str:
    if register.type.name == "pred":
        return f"{register} = n < 3"
    zero = "0.0" if register.type.is_float else "0"
    return f"{register} = pd.var({register.type}, {zero})"


def kernel(i: Spelled) -> Any:
    """A kernel that calls the instruction."""
    bound = i.opcode.bind(i.operands)
    assert isinstance(bound, list)
    operands = [(o, value) for o, value in zip(i.opcode.operands, bound, strict=True) if value is not None]
    sources = [argument(value) for o, value in operands if not o.written]
    outs = [argument(value) for o, value in operands if o.role == "both"]
    out = f", out={outs[0]}" if outs else ""
    needed = dict.fromkeys(registers_in(value for o, value in operands if not o.written or o.role == "both"))
    lines = [*map(initial, needed), f'_ = pd.ptx("{i.opcode.text}", {", ".join(sources)}{out})']
    return source_kernel("\n".join(lines), "n: u32", "(reqntid=384, min_blocks=1)")


def last(module: ir.PtxModule) -> ir.Instruction:
    """The last instruction but the ret."""
    return [*module.kernels[0].walk()][-2]


@pytest.mark.parametrize("chapter", NEW)
def test_a_call_in_python_prints_the_form_and_is_read_as_it(chapter):
    for i in first_spellings(chapter):
        if any(o.type is not None and o.type.bits == 128 for o in i.opcode.operands):
            continue  # Python has no values of 128 bits
        text = kernel(i).ptx(i.least[1])
        printed = last(parse(text))
        assert printed.opcode is i.opcode, i
        assert [type(o) for o in printed.operands] == [type(o) for o in i.operands], i


@pytest.mark.cases(8)
@pytest.mark.parametrize("chapter", chapters())
def test_what_is_printed_is_read_as_the_same_form(chapter):
    spelled = [i for i in first_spellings(chapter) if i.opcode.text.split(".")[0] not in ("bra", "brx", "call")]
    declared = dict.fromkeys(r for i in spelled for r in registers_in(i.operands))
    lines = [*(f".reg .{r.type} {r};" for r in declared), *map(str, spelled), "ret;"]
    text = ".version 9.0\n.target sm_90a\n.address_size 64\n.visible .entry k() {\n" + "\n".join(lines) + "\n}\n"
    for i, again in zip(spelled, parse(text).kernels[0].walk(), strict=False):
        assert (str(again), again.opcode.form.syntax) == (str(i), i.opcode.form.syntax)
