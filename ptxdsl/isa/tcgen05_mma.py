"""Matrix products of Blackwell in tensor memory (PTX ISA, "tcgen05.mma").

One thread issues the product for one block, or for a pair of blocks of a cluster. A is in shared memory, addressed by a
descriptor, or in tensor memory. The instruction descriptor (`idesc`) gives types and shape.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .. import ir
from ..types import b32
from .form import Form, Values
from .opcode import Op, Opcode
from .operand import OperandList, Problem, describe
from .step import Step
from .tcgen05 import GROUPS, LEAST, ONE_ARCHITECTURE
from .tensor_product import products

KINDS = "kind::f16 kind::tf32 kind::f8f6f4 kind::i8"
SCALABLE = "kind::f16 kind::tf32"
MOST_SCALE = 15  # accumulators are scaled by 2^-scale
USES = ("fill", "use", "lastuse", "discard")
COLLECTORS_A = [f"collector::a::{use}" for use in USES]
COLLECTORS_B = [f"collector::b{n}::{use}" for n in range(4) for use in USES]
SHIFTED = ["collector::a::lastuse", "collector::a::discard"]
OPERANDS_A = {"a_desc:b64": "", "[a:tmem]": "{.ashift}"}
"""A by a descriptor, or in tensor memory, where its rows may be shifted down."""
SCALES = {
    "kind::mxf8f6f4": "scale_vec::1X block32", "kind::mxf4": "scale_vec::2X block32",
    "kind::mxf4nvf4": "scale_vec::2X scale_vec::4X block16 block32",
}  # fmt: skip
"""The scale vector sizes, by kind."""
NEEDS = {"kind::i8": ("8.6", "100a 110a")}
SCALE_NEEDS = {
    "kind::mxf4nvf4": ("8.7", "100f 110f"),
    **dict.fromkeys(("scale_vec::1X", "scale_vec::2X", "scale_vec::4X"), ("8.6", ONE_ARCHITECTURE)),
    **dict.fromkeys(("block16", "block32"), ("8.8", "100f 110f")),
    **dict.fromkeys(("sp kind::mxf4", "sp kind::mxf4nvf4"), ("8.6", ONE_ARCHITECTURE)),
}


def _lane_words(i: Values) -> int:
    """Return the number of registers of the mask of disabled output lanes: 128 bits per block."""
    return 8 if i.ctas == "cta_group::2" else 4


def _plain(sparse: str, a: str, lanes: str, scale: str) -> Form:
    metadata = ", [metadata:tmem]" if sparse else ""
    return Form(
        f"tcgen05.mma{sparse}.ctas.kind{OPERANDS_A[a]}{{.collector}}"
        f" [d:tmem], {a}, b_desc:b64{metadata}, idesc:b32{lanes}, enable_input_d:flag{scale}",
        ctas=GROUPS,
        kind=SCALABLE if scale else KINDS,
        collector=COLLECTORS_A,
        derived={"lane_words": _lane_words},
        when=lambda i: not i.ashift or i.collector in (None, *SHIFTED),
        ptx="8.6",
        sm="100f" if scale else LEAST["sm"],
        needs=NEEDS,
    )


def _scaled(sparse: str, a: str, sized: bool) -> Form:
    """Return a form with block scales; `sized` adds the older size modifier."""
    metadata = ", [metadata:tmem]" if sparse else ""
    size: dict[str, Any] = {"size": "scale_vec::1X scale_vec::2X scale_vec::4X block16 block32", "when": _size_fits}
    return Form(
        f"tcgen05.mma{sparse}.ctas.kind.block_scale{'.size' if sized else ''}{{.collector}}"
        f" [d:tmem], {a}, b_desc:b64{metadata}, idesc:b32, [scale_a:tmem], [scale_b:tmem], enable_input_d:flag",
        ctas=GROUPS,
        kind=SCALES if sized else [kind for kind in SCALES if kind != "kind::mxf4nvf4"],
        collector=COLLECTORS_A,
        needs=SCALE_NEEDS,
        ptx="8.6" if sized else "8.8",
        sm=LEAST["sm"],
        **(size if sized else {}),
    )


def _size_fits(i: Values) -> bool:
    return i.size in SCALES[i.kind].split()


class TensorMemoryProduct(Op):
    """Base of the tensor memory products. The assembler accepts their addresses only in b32 registers."""

    async_proxy = True
    tensor_memory = True

    def problems(self, i: Opcode, operands: OperandList) -> Iterator[Problem]:
        for declared, value in zip(i.operands, operands, strict=True):
            if declared.space != "tmem" or not isinstance(value, ir.Address):
                continue
            if not isinstance(value.base, ir.Register) or value.base.type is not b32:
                message = f"`{declared.name}` is at {describe(value.base)}; {i.form.name}.mma takes a b32 register here"
                help = "load it by ld.shared.b32, or copy it: `pd.ptx.mov.b32(address)`"
                yield Problem(declared.name, message, help)


class Tcgen05Mma(TensorMemoryProduct):
    """Multiply-accumulate in tensor memory asynchronously: d = a * b + d, or a * b if enable_input_d is false."""

    forms = (
        *(
            _plain(sparse, a, lanes, scale)
            for sparse in ("", ".sp")
            for a in OPERANDS_A
            for lanes in ("", ", disabled_lanes:b32*lane_words")
            for scale in ("", ", scale_input_d:imm")
        ),
        *(_scaled(sparse, a, sized) for sparse in ("", ".sp") for a in OPERANDS_A for sized in (True, False)),
    )

    def problems(self, i: Opcode, operands: OperandList) -> Iterator[Problem]:
        yield from super().problems(i, operands)
        scale = operands[-1]
        is_number = i.operands[-1].name == "scale_input_d"
        if is_number and isinstance(scale, ir.Immediate) and not 0 <= scale.value <= MOST_SCALE:
            yield Problem("scale_input_d", f"`scale_input_d` is {scale.value}; it must be 0 to {MOST_SCALE}")

    def execute(self, i: Opcode, m: Step, *inputs: Any) -> None:
        named = dict(zip((operand.name for operand in i.operands), inputs, strict=True))
        for which, product in products(m, i, named):
            m.tensor.issue(m, i.ctas, which, product)


class Tcgen05MmaWs(TensorMemoryProduct):
    """Multiply-accumulate in tensor memory with weight-stationary B, kept for reuse; columns of B may be zeroed."""

    forms = tuple(
        Form(
            f"tcgen05.mma.ws{sparse}.cta_group::1.kind{{.collector}} [d:tmem], {a}, b_desc:b64"
            f"{', [metadata:tmem]' if sparse else ''}, idesc:b32, enable_input_d:flag{{, zero_columns:b64}}",
            kind=KINDS,
            collector=COLLECTORS_B,
            needs=NEEDS,
            **LEAST,
        )
        for sparse in ("", ".sp")
        for a in OPERANDS_A
    )

    def execute(self, i: Opcode, m: Step, *inputs: Any) -> None:
        named = dict(zip((operand.name for operand in i.operands), inputs, strict=True))
        for which, product in products(m, i, named):
            m.tensor.issue(m, "cta_group::1", which, product)
