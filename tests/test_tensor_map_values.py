"""Tensor maps and pointer tables for kernels of parsed PTX: as parameters, and inside of structs by value."""

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import f32, ptr, u32, u64
from ptxdsl.arrays import describe
from ptxdsl.runtime.copies import copied
from tests.machines import MACHINES, machine

every_machine = pytest.mark.parametrize("name", MACHINES)
BODY = """
    .shared .align 128 .b8 tile[512];
    .shared .align 8 .b64 bar;
    .reg .pred %p<3>;
    .reg .b32 %r<8>;
    .reg .b64 %rd<8>;
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, bar;
    mov.u32 %r3, tile;
    setp.eq.u32 %p1, %r1, 0;
    @%p1 mbarrier.init.shared::cta.b64 [%r2], 1;
    @%p1 fence.mbarrier_init.release.cluster;
    @%p1 fence.proxy.async.shared::cta;
    bar.sync 0;
    @%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 512;
    @%p1 cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes
        [%r3], [%rd1, {0, %r4}], [%r2];
WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], 0;
    @!%p2 bra WAIT;
    mad.lo.u32 %r5, %r1, 16, %r3;
    ld.shared.v4.f32 {%r6, %r7, %r4, %r5}, [%r5];
    mad.wide.u32 %rd2, %r1, 16, %rd2;
    st.global.v4.f32 [%rd2], {%r6, %r7, %r4, %r5};
    ret;
"""
TEXT = f""".version 8.0
.target sm_90a
.address_size 64
.visible .entry direct(.param .align 64 .b8 map[128], .param .u64 out, .param .u32 row)
{{
    .reg .b64 %m;
    mov.b64 %m, map;
    {BODY.replace("mov.u32 %r1, %tid.x;", "cvta.param.u64 %rd1, %m; ld.param.u64 %rd2, [out]; ld.param.u32 %r4, [row]; mov.u32 %r1, %tid.x;")}
}}
.visible .entry packed(.param .align 128 .b8 p[256])
{{
    .reg .b64 %m;
    mov.b64 %m, p;
    {BODY.replace("mov.u32 %r1, %tid.x;", "cvta.param.u64 %m, %m; add.u64 %rd1, %m, 128; ld.param.u64 %rd2, [p]; ld.param.u32 %r4, [p+8]; mov.u32 %r1, %tid.x;")}
}}
"""
ROWS = np.arange(32 * 16, dtype=np.float32).reshape(32, 16)


class Packed(pd.Parameters):
    """A struct of C, whose CUtensorMap has the alignment of CUDA 13."""

    out: ptr[f32]
    row: u32
    map: pd.TensorMap(f32, (8, 16))


@every_machine
@pytest.mark.parametrize("given", ["box", "map"])
def test_a_parameter_of_128_bytes_takes_a_tensor_map(name, given):
    where, box = machine(name), (8, 16)
    a, out = where.array(ROWS), where.array(np.zeros((8, 16), np.float32))
    pd.parse(TEXT)["direct"][1, 32](pd.tensor_map(a, box if given == "box" else pd.TensorMap(f32, box)), out, 8)
    assert (where.values(out) == ROWS[8:16]).all()


@every_machine
@pytest.mark.parametrize("mapped", [lambda a: a, lambda a: pd.tensor_map(a, (8, 16))], ids=["array", "map"])
def test_a_field_of_a_struct_takes_a_tensor_map(name, mapped):
    where = machine(name)
    a, out = where.array(ROWS), where.array(np.zeros((8, 16), np.float32))
    pd.parse(TEXT)["packed"][1, 32](Packed(out=out, row=20, map=mapped(a)))
    assert (where.values(out) == ROWS[20:28]).all()


@every_machine
def test_rows_out_of_bounds_have_the_fill(name):
    where = machine(name)
    a, out = where.array(ROWS), where.array(np.zeros((8, 16), np.float32))
    pd.parse(TEXT)["direct"][1, 32](pd.tensor_map(a, (8, 16), fill="nan"), out, 28)
    assert (where.values(out)[:4] == ROWS[28:]).all() and np.isnan(where.values(out)[4:]).all()


@every_machine
def test_swizzled_boxes(name):
    where = machine(name)
    a, out = where.array(ROWS), where.array(np.zeros((8, 16), np.float32))
    pd.parse(TEXT)["direct"][1, 32](pd.tensor_map(a, (8, 16), swizzle=64), out, 0)
    chunks = ROWS[:8].reshape(8, 4, 4)
    swizzled = np.stack([chunks[row, np.arange(4) ^ (row // 2 % 4)] for row in range(8)])
    assert (where.values(out) == swizzled.reshape(8, 16)).all()


def test_a_tensor_map_parameter_of_a_traced_kernel_takes_one():
    @pd.kernel(arch="sm_90a", reqntid=32)
    def kernel(a: pd.TensorMap(f32, (8, 16)), out: ptr[f32]):
        out[pd.tid.x] = 1

    out = np.zeros(32, np.float32)
    kernel[1, 32](pd.tensor_map(ROWS, (8, 16)), out)
    assert (out == 1).all()
    with pytest.raises(pd.LaunchError) as refused:
        kernel[1, 32](pd.tensor_map(ROWS, (8, 8)), out)
    assert refused.value.message == (
        "`a` expects TensorMap(f32, (8, 16)); the array is mapped as TensorMap(f32, (8, 8))"
    )


@pytest.mark.parametrize(
    "launch, message, help",
    [
        (
            lambda k, out: k["direct"][1, 32](ROWS, out, 0),
            "`map` expects a struct of 128 bytes, got 2048 bytes",
            "if it is a tensor map, pass pd.tensor_map(array, box, swizzle=…)",
        ),
        (
            lambda k, out: k["packed"][1, 32](pd.tensor_map(ROWS, (8, 16))),
            "`p` expects a struct of 256 bytes aligned to 128, got a tensor map",
            "a tensor map is 128 bytes aligned to 64; a struct is a class of pd.Parameters",
        ),
        (
            lambda k, out: k["direct"][1, 32](pd.tensor_map(ROWS[:, ::2], (8, 8)), out, 0),
            "`map` expects TensorMap(f32, (8, 8)); it has shape (32, 8) and strides (16, 2): "
            "the stride of the last axis must be 1",
            "pass a row-major array, such as the transpose of a column-major one, or a copy",
        ),
        (
            lambda k, out: k["packed"][1, 32](Packed(out=out, row=0, map=pd.tensor_map(ROWS, (8, 8)))),
            "`p.map` expects TensorMap(f32, (8, 16)); the array is mapped as TensorMap(f32, (8, 8))",
            "map it with the same element type, box and swizzle",
        ),
        (
            lambda k, out: pd.tensor_map(5, (8, 16)),
            "pd.tensor_map takes an array; found 5",
            "pass a numpy or a CUDA array",
        ),
        (
            lambda k, out: pd.tensor_map(ROWS.astype(np.complex64), (8, 16)),
            "PTX has no type for elements of complex64",
            "pass `element=`, the type that the kernel reads",
        ),
        (
            lambda k, out: pd.tensor_map(ROWS, (8, 15)),
            "the last axis of a box of (8, 15) has 60 bytes of f32, which is not a multiple of 16",
            "give it a multiple of 4 elements",
        ),
        (
            lambda k, out: pd.pointer_table([ROWS, 1]),
            "element 1 of pd.pointer_table is 1",
            "pass numpy, torch or CuPy arrays",
        ),
    ],
    ids=["array", "struct", "strides", "box", "number", "type", "bytes", "table"],
)
def test_refusals(launch, message, help):
    with pytest.raises(pd.Error) as refused:
        launch(pd.parse(TEXT), np.zeros(128, np.float32))
    assert (refused.value.message, refused.value.help) == (message, help)


TABLES = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .align 8 .b8 p[24])
{
    .reg .pred %p;
    .reg .b32 %r<4>;
    .reg .b64 %rd<6>;
    ld.param.u32 %r1, [p];
    ld.param.u64 %rd1, [p+8];
    ld.param.u64 %rd2, [p+16];
    mov.u32 %r2, %tid.x;
NEXT:
    ld.global.u64 %rd3, [%rd1];
    ld.global.u64 %rd4, [%rd2];
    mad.wide.u32 %rd3, %r2, 4, %rd3;
    mad.wide.u32 %rd4, %r2, 4, %rd4;
    ld.global.u32 %r3, [%rd3];
    st.global.u32 [%rd4], %r3;
    add.u64 %rd1, %rd1, 8;
    add.u64 %rd2, %rd2, 8;
    sub.u32 %r1, %r1, 1;
    setp.ne.u32 %p, %r1, 0;
    @%p bra NEXT;
    ret;
}
"""


class Tables(pd.Parameters):
    n: u32
    read: ptr[u64]
    written: ptr[u64]


def test_pointer_tables_inside_of_a_struct():
    read = [np.arange(32, dtype=np.uint32) + n for n in range(3)]
    written = [np.zeros(32, np.uint32) for _ in read]
    group = Tables(n=3, read=pd.pointer_table(read), written=pd.pointer_table(written))
    for _ in range(2):
        pd.parse(TABLES)["k"][1, 32](group)
        assert all((x == y).all() for x, y in zip(read, written, strict=True))
        read[1] += 7


def test_a_table_of_numpy_arrays_is_refused_where_they_would_be_copied():
    with pytest.raises(pd.LaunchError) as refused, copied([describe(pd.pointer_table([ROWS]))]):
        pass
    assert refused.value.message == (
        "a pointer table of numpy arrays cannot be copied to a GPU, which cannot read host memory"
    )
