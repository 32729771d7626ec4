"""What a mnemonic means, and what is offered for one that means nothing."""

import pytest

from ptxdsl import ir
from ptxdsl.cli import isa as manual
from ptxdsl.isa import lookup
from ptxdsl.isa.form import Form
from ptxdsl.isa.lookup import forms_with, nearest, opcode_of
from ptxdsl.isa.opcode import Op, Opcode
from ptxdsl.isa.target import requirement
from ptxdsl.types import b32, b64


@pytest.mark.parametrize(
    "text, meant",
    [
        ("fam", ["fma"]),
        ("addd", ["add", "vadd", "addc"]),
        ("add.u33", ["add.u32", "add.u64", "add.u16"]),
        ("cp.async.cg.shared.globl", [
            "cp.async.cg.shared.global", "cp.async.ca.shared.global", "cp.async.cg.shared::cta.global",
        ]),
        ("ldmatrix.sync.aligned.m8n8.x3.shared.b16", [
            f"ldmatrix.sync.aligned.m8n8.x{n}.shared.b16" for n in (4, 2, 1)
        ]),
        ("mma.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32", [
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
            "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32",
            "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32",
        ]),
        ("wgmma.mma_async.sync.aligned.m64n40k32.s32.s8.s8", [
            f"wgmma.mma_async.sync.aligned.m64n{n}k32.s32.s8.s8" for n in (48, 32, 24)
        ]),
        ("zzzz", []),
    ],
)  # fmt: skip
def test_what_is_offered_for_a_mnemonic_that_means_nothing(text, meant):
    assert nearest(text) == meant
    assert all(lookup(spelling) or spelling in Op.table for spelling in meant)


@pytest.mark.parametrize("text", ["ld.global.f33", "bar.synk", "cvt.rn.f16.f33", "atom.global.adds.f32"])
def test_offers_are_three_different_ones_that_exist(text):
    assert len(set(nearest(text))) == 3
    assert all(map(lookup, nearest(text)))


def test_no_modifier_is_called_as_an_attribute_of_opcodes():
    for entries in Op.table.values():
        for op, form in entries:
            assert not form.names & set(Opcode.__slots__), form.syntax
            assert form.names <= op.modifiers


class Forms:
    """Forms that are in no table."""

    tensor = Form(
        "copy.dim{.hint} [map:global, {at:s32*rank}], d:b32*count{, policy:b64 if hint}",
        dim="1d 2d 3d",
        hint="L2::hint",
        derived={"rank": lambda i: int(i.dim[0]), "count": lambda i: 2 * int(i.dim[0])},
        ptx="8.0",
        sm="90a 100f",
        needs={"3d": ("8.6", 100), "2d L2::hint": ("8.3", 90)},
    )


class Anything(Op):
    """An instruction without a form of its own."""


def opcode(text: str) -> Opcode:
    values = Forms.tensor.match(text.split(".")[1:])
    assert values is not None
    return opcode_of(text, Anything(), Forms.tensor, values)


MAP = ir.Register("map", b64)
X, Y, Z = (ir.Register(name, b32) for name in "xyz")
TWO, FOUR = ir.Vector((X, Y)), ir.Vector((X, Y, Z, X))


def test_numbers_of_registers_follow_from_the_choices():
    counts = {n: [o.count for o in opcode(f"copy.{n}d").operands] for n in (1, 2, 3)}
    assert counts == {1: [1, 1, 2], 2: [1, 2, 4], 3: [1, 3, 6]}
    assert opcode("copy.3d").values["rank"] == 3


def test_an_operand_with_a_condition_is_there_only_where_it_holds():
    assert [o.name for o in opcode("copy.1d").operands] == ["map", "at", "d"]
    assert [o.name for o in opcode("copy.1d.L2::hint").operands] == ["map", "at", "d", "policy"]


def test_coordinates_are_an_operand_of_their_own_and_stand_in_the_brackets():
    i = opcode("copy.2d")
    written = ir.Address(MAP, coordinates=TWO)
    assert not list(i.problems((written, FOUR)))
    assert i.bind((written, FOUR)) == [ir.Address(MAP), TWO, FOUR]
    assert i.group([ir.Address(MAP), TWO, FOUR]) == (written, FOUR)
    assert str(ir.Instruction(i, i.group([ir.Address(MAP), TWO, FOUR]))) == "copy.2d [map, {x, y}], {x, y, z, x};"


def problem(text: str, *operands: object) -> str:
    (only,) = opcode(text).problems(operands)
    return only.message


def test_coordinates_that_do_not_fit_the_rank():
    three = ir.Address(MAP, coordinates=ir.Vector((X, Y, Z)))
    assert problem("copy.2d", three, FOUR) == "`at` has 3 registers; this form takes 2"
    assert problem("copy.2d", ir.Address(MAP), FOUR) == "takes map, at, d; 2 given"
    address = ir.Address(MAP, coordinates=TWO)
    assert [p.message for p in lookup("ld.global.b32")[0].problems((X, address))] == [
        "`a` has coordinates; this instruction takes an address alone"
    ]


def test_a_form_of_some_architectures_only():
    needs = opcode("copy.1d").requires
    assert needs == requirement("8.0", "90a 100f") and str(needs) == "sm_90a or sm_100f"
    verdicts = {arch: needs.supports(arch) for arch in ("sm_80", "sm_90", "sm_90a", "sm_100", "sm_100a", "sm_103f")}
    assert [arch for arch, has in verdicts.items() if has] == ["sm_90a", "sm_100a", "sm_103f"]


def test_what_modifiers_require_besides():
    assert str(opcode("copy.3d").requires) == "sm_100f" and opcode("copy.3d").requires.version == (8, 6)
    assert opcode("copy.2d").requires.version == (8, 0)
    assert opcode("copy.2d.L2::hint").requires.version == (8, 3)
    assert str(requirement("7.0", 80)) == "sm_80 or later" and requirement("7.0", 80).least == "sm_80"


def heads(text: str) -> list[str]:
    """The lines of syntax on a page of the manual."""
    return [line.split()[0] for line in manual.page(text).splitlines() if line.startswith("  ") and line[2] != " "]


def test_words_filter_the_manual():
    assert heads("cp.async") and all(head.startswith("cp.async") for head in heads("cp.async"))
    assert {head.split(".")[0] for head in heads("e4m3")} >= {"mma", "cvt"}
    assert all("sync" in head for head in heads("mma.sync"))
    assert len(forms_with(["e4m3"], "mma")) < len(forms_with([], "mma"))


LEAST = """
lop3.b32 4.3 50
dp4a.u32.u32 5.0 61
bfe.u32 2.0 20
mad.lo.s32 1.0 10
fma.rn.f32 2.0 20
mad.rn.f32 2.0 20
div.rn.f32 2.0 20
tanh.approx.f32 7.0 75
add.f16 4.2 53
add.rn.bf16 7.8 90
fma.rn.relu.bf16x2 7.0 80
neg.f16 6.0 53
neg.bf16 7.0 80
abs.f16 6.5 53
max.f16 7.0 80
ex2.approx.f16 7.0 75
tanh.approx.bf16 7.8 90
add.rn.f32x2 8.6 100
setp.lt.f16 4.2 53
cvt.rn.bf16.f32 7.0 80
cvt.rn.satfinite.e4m3x2.f32 8.1 89
ld.global.nc.f32 3.1 32
ld.acquire.gpu.global.u32 6.0 70
st.release.gpu.global.u32 6.0 70
red.global.add.f64 5.0 60
cp.async.commit_group 7.0 80
cp.async.bulk.commit_group 8.0 90
ldmatrix.sync.aligned.m8n8.x4.shared.b16 6.5 75
stmatrix.sync.aligned.m8n8.x4.shared.b16 7.8 90
mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 7.0 80
mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 8.4 89
mbarrier.init.shared.b64 7.0 80
mbarrier.try_wait.shared.b64 7.8 90
fence.proxy.async 8.0 90
barrier.cluster.arrive 7.8 90
elect.sync 8.0 90
griddepcontrol.wait 7.8 90
shfl.sync.idx.b32 6.0 30
redux.sync.add.u32 7.0 80
match.any.sync.b32 6.0 70
activemask.b32 6.2 30
createpolicy.fractional.L2::evict_last.b64 7.4 80
mapa.u64 7.8 90
nanosleep.u32 6.2 70
"""


@pytest.mark.parametrize("mnemonic, version, sm", [line.split() for line in LEAST.split("\n") if line])
def test_instructions_need_the_ptx_version_and_target_of_the_manual(mnemonic, version, sm):
    assert lookup(mnemonic)[0].requires == requirement(version, int(sm))
