"""One table of matrix products: atoms and instructions read the same rows."""

import pytest

from ptxdsl.isa import lookup
from ptxdsl.layout import mma_atom
from ptxdsl.layout.mma_shapes import MMA, WGMMA, mma_names


@pytest.mark.parametrize("product", MMA, ids=lambda product: f"{product.name}.{product.inputs[0]}")
def test_every_product_is_an_instruction(product):
    flag = ".xor.popc" if product.inputs == ("b1",) else ""
    for sums in product.sums:
        for inputs in product.inputs:
            i = lookup(f"mma.sync.aligned.{product.name}.row.col{flag}.{sums}.{inputs}.{inputs}.{sums}")
            assert len(i) == 1 and i[0].requires.sm == product.sm


@pytest.mark.parametrize("inputs", ["f16", "bf16", "tf32", "f64", "s8", "u8", "e4m3", "e5m2"])
def test_names_are_those_of_atoms(inputs):
    names = mma_names(inputs, 90)
    assert names and [mma_atom(name).name for name in names] == list(names)


def test_older_targets_have_fewer_products():
    assert mma_names("f64", 80) == ("mma.m8n8k4.f64.f64",)
    assert mma_names("f64", 90)[:3] == tuple(f"mma.m16n8k{k}.f64.f64" for k in (16, 8, 4))
    assert mma_names("f16", 75) == ("mma.m16n8k8.f32.f16", "mma.m16n8k8.f16.f16")
    assert mma_names("f16", 80, "f16") == ("mma.m16n8k16.f16.f16", "mma.m16n8k8.f16.f16")
    assert mma_names("e4m3", 80) == ()


@pytest.mark.parametrize("product", WGMMA, ids=lambda product: product.inputs[0])
def test_every_product_of_a_warpgroup_is_an_instruction(product):
    flag = ".and.popc" if product.inputs == ("b1",) else ""
    for n in product.n:
        for sums in product.sums:
            text = (
                f"wgmma.mma_async.sync.aligned.m64n{n}k{product.k}{flag}.{sums}.{product.inputs[0]}.{product.inputs[0]}"
            )
            assert [i.operands[0].count for i in lookup(text)] == [n // 4 if sums == "f16" else n // 2] * 2
