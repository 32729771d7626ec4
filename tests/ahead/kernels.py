"""What tests build ahead of time."""

import ptxdsl as pd
from ptxdsl import b32, bf16, f16, f32, ptr, s8, u32, u64


@pd.kernel
def axpy(x: ptr[f32], y: ptr[f32], a: f32, n: u32):
    i = pd.ctaid.x * pd.ntid.x + pd.tid.x
    with pd.if_(i < n):
        y[i] = a * x[i] + y[i]


class Matrix(pd.Parameters):
    data: ptr[bf16]
    stride: u64


@pd.kernel(reqntid=(32, 4))
def many(m: Matrix, out: ptr[f16], half: f16, byte: s8, int_: b32):
    tile = pd.dynamic_shared(f32, 20000)
    tile[pd.tid.x] = m.data[0].to(f32) + half.to(f32) + byte.to(f32)
    out[pd.tid.x] = tile[pd.tid.x].to(f16)
    out[40] = int_.bitcast(f32).to(f16)


@pd.kernel(arch="sm_90a", reqntid=128)
def hopper(x: pd.TensorMap(f32, (16, 128)), y: ptr[f32]):
    box = x.shared()
    pd.ptx.wgmma.fence.sync.aligned()
    y[0] = box[0, 0]


helper = pd.extern("helper", (f32,), f32)


@pd.kernel
def caller(x: ptr[f32]):
    x[0] = helper(x[0])


@pd.function
def doubled(x: f32) -> f32:
    return x * 2.0


HELPER = """
.version 7.0
.target sm_80
.address_size 64
.visible .func (.param .b32 r) helper(.param .b32 x)
{
    .reg .f32 %f;
    ld.param.f32 %f, [x];
    add.f32 %f, %f, %f;
    st.param.f32 [r], %f;
    ret;
}
"""
both = pd.link(axpy, caller, HELPER)
