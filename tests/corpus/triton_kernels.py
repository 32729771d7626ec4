# makes: atomics-sm_80; attention-sm_80; attention-sm_90; control-sm_80; dropout-sm_90; embedding-sm_80;
#   layer_norm-sm_90; math-sm_80; matmul_bf16-sm_100; matmul_bf16-sm_80; matmul_f16-sm_80; matmul_f16-sm_90;
#   matmul_f64-sm_80; matmul_fp8-sm_90; matmul_i8-sm_80; matmul_tf32-sm_80; matmul_tma-sm_90; persistent-sm_100;
#   persistent-sm_90; scans-sm_80; softmax-sm_100; softmax-sm_80; tcgen05_attention-sm_100; tcgen05_f16-sm_100;
#   tcgen05_fp8-sm_100; tcgen05_mxf4-sm_100; tcgen05_mxf8-sm_100; tcgen05_nvf4-sm_100; tcgen05_tf32-sm_100;
#   transpose-sm_80; vector_add-sm_80; vector_add-sm_90; vector_add_bf16-sm_90; vector_add_i64-sm_80
"""Triton kernels, compiled to PTX with no GPU: `python triton_kernels.py DIRECTORY` writes one file a build."""

import os
import sys
from pathlib import Path

os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")  # unset, Triton warns; read when it is imported

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def vector_add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out + at, tl.load(x + at, mask=mask) + tl.load(y + at, mask=mask), mask=mask)


@triton.jit
def softmax(x, out, stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    values = tl.load(x + row * stride + at, mask=at < columns, other=-float("inf"))
    powers = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + row * stride + at, powers / tl.sum(powers, axis=0), mask=at < columns)


@triton.jit
def layer_norm(x, weight, bias, out, mean_out, stride, columns, epsilon, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(x + row * stride + at, mask=at < columns, other=0.0).to(tl.float32)
    mean = tl.sum(total, axis=0) / columns
    squares = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        values = tl.load(x + row * stride + at, mask=at < columns, other=0.0).to(tl.float32)
        squares += tl.where(at < columns, (values - mean) * (values - mean), 0.0)
    scale = 1 / tl.sqrt(tl.sum(squares, axis=0) / columns + epsilon)
    tl.store(mean_out + row, mean)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        mask = at < columns
        values = (tl.load(x + row * stride + at, mask=mask) - mean) * scale
        values = values * tl.load(weight + at, mask=mask) + tl.load(bias + at, mask=mask)
        tl.store(out + row * stride + at, values, mask=mask)


@triton.jit
def matmul(
    a,
    b,
    c,
    m,
    n,
    k,
    lda,
    ldb,
    ldc,
    M: tl.constexpr,
    N: tl.constexpr,
    K: tl.constexpr,
    GROUP: tl.constexpr,
    ACC: tl.constexpr,
):
    tiles_m, tiles_n = tl.cdiv(m, M), tl.cdiv(n, N)
    tile = tl.program_id(0)
    first = tile // (GROUP * tiles_n) * GROUP
    rows = min(tiles_m - first, GROUP)
    tile_m = first + tile % (GROUP * tiles_n) % rows
    tile_n = tile % (GROUP * tiles_n) // rows
    at_m, at_n, at_k = tile_m * M + tl.arange(0, M), tile_n * N + tl.arange(0, N), tl.arange(0, K)
    a_at = a + (at_m % m)[:, None] * lda + at_k[None, :]
    b_at = b + at_k[:, None] * ldb + (at_n % n)[None, :]
    total = tl.zeros((M, N), dtype=ACC)
    for start in range(0, k, K):
        x = tl.load(a_at, mask=at_k[None, :] < k - start, other=0.0)
        y = tl.load(b_at, mask=at_k[:, None] < k - start, other=0.0)
        total = tl.dot(x, y, total)
        a_at += K
        b_at += K * ldb
    c_at = c + at_m[:, None] * ldc + at_n[None, :]
    tl.store(c_at, total.to(c.dtype.element_ty), mask=(at_m < m)[:, None] & (at_n < n)[None, :])


@triton.jit
def integer_matmul(a, b, c, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    at_m, at_n, at_k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    total = tl.zeros((M, N), dtype=tl.int32)
    for start in range(0, k, K):
        x = tl.load(a + at_m[:, None] * k + start + at_k[None, :])
        y = tl.load(b + at_n[None, :] * k + start + at_k[:, None])
        total += tl.dot(x, y)
    tl.store(c + at_m[:, None] * N + at_n[None, :], total)


@triton.jit
def persistent_matmul(a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, BLOCKS: tl.constexpr):
    a_map = tl.make_tensor_descriptor(a, shape=[m, k], strides=[k, 1], block_shape=[M, K])
    b_map = tl.make_tensor_descriptor(b, shape=[n, k], strides=[k, 1], block_shape=[N, K])
    c_map = tl.make_tensor_descriptor(c, shape=[m, n], strides=[n, 1], block_shape=[M, N])
    tiles_n = tl.cdiv(n, N)
    for tile in tl.range(tl.program_id(0), tl.cdiv(m, M) * tiles_n, BLOCKS):
        row, column = tile // tiles_n * M, tile % tiles_n * N
        total = tl.zeros((M, N), dtype=tl.float32)
        for start in range(0, k, K):
            total = tl.dot(a_map.load([row, start]), b_map.load([column, start]).T, total)
        c_map.store([row, column], total.to(tl.float16))


@triton.jit
def mapped_matmul(a, b, c, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    row, column = tl.program_id(0) * M, tl.program_id(1) * N
    total = tl.zeros((M, N), dtype=tl.float32)
    for start in range(0, k, K):
        total = tl.dot(a.load([row, start]), b.load([column, start]).T, total)
    c.store([row, column], total.to(tl.float16))


@triton.jit
def scaled_matmul(
    a,
    a_scales,
    b,
    b_scales,
    c,
    k,
    M: tl.constexpr,
    N: tl.constexpr,
    K: tl.constexpr,
    FORMAT: tl.constexpr,
    PACKED: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """One tile, with a scale for each BLOCK elements along k, and PACKED elements in a byte."""
    at_m, at_n, at_k, at_s = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K // PACKED), tl.arange(0, K // BLOCK)
    total = tl.zeros((M, N), dtype=tl.float32)
    for start in range(0, k, K):
        bytes, scales = start // PACKED + at_k, start // BLOCK + at_s
        x = tl.load(a + at_m[:, None] * (k // PACKED) + bytes[None, :])
        y = tl.load(b + at_n[:, None] * (k // PACKED) + bytes[None, :])
        x_scales = tl.load(a_scales + at_m[:, None] * (k // BLOCK) + scales[None, :])
        y_scales = tl.load(b_scales + at_n[:, None] * (k // BLOCK) + scales[None, :])
        total = tl.dot_scaled(x, x_scales, FORMAT, y.T, y_scales, FORMAT, total)
    tl.store(c + at_m[:, None] * N + at_n[None, :], total)


@triton.jit
def attention(q, k, v, out, length, scale, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    at_m, at_n, at_d = tl.program_id(0) * M + tl.arange(0, M), tl.arange(0, N), tl.arange(0, D)
    query = tl.load(q + at_m[:, None] * D + at_d[None, :])
    best = tl.full([M], -float("inf"), dtype=tl.float32)
    weight = tl.zeros([M], dtype=tl.float32)
    total = tl.zeros([M, D], dtype=tl.float32)
    for start in range(0, (tl.program_id(0) + 1) * M, N):
        key = tl.load(k + (start + at_n)[None, :] * D + at_d[:, None], mask=(start + at_n)[None, :] < length, other=0.0)
        value = tl.load(
            v + (start + at_n)[:, None] * D + at_d[None, :], mask=(start + at_n)[:, None] < length, other=0.0
        )
        scores = tl.where(at_m[:, None] >= (start + at_n)[None, :], tl.dot(query, key) * scale, -float("inf"))
        new = tl.maximum(best, tl.max(scores, 1))
        powers, decay = tl.exp2(scores - new[:, None]), tl.exp2(best - new)
        weight = weight * decay + tl.sum(powers, 1)
        total = tl.dot(powers.to(tl.bfloat16), value, total * decay[:, None])
        best = new
    tl.store(out + at_m[:, None] * D + at_d[None, :], (total / weight[:, None]).to(tl.bfloat16))


@triton.jit
def atomics(x, counts, best, lock, total, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + at, mask=at < n, other=0)
    tl.atomic_add(counts + values % 16, 1, mask=at < n)
    tl.atomic_max(best, tl.max(values, axis=0), sem="relaxed", scope="gpu")
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(total, tl.load(total) + tl.sum(values, axis=0).to(tl.float32))
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


@triton.jit
def combine(a, b):
    return a * 0.5 + b


@triton.jit
def scans(x, out, indices, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    values = tl.load(x + at)
    tl.store(out + at, tl.cumsum(values, axis=0))
    tl.store(out + BLOCK + at, tl.associative_scan(values, 0, combine))
    tl.store(out + 2 * BLOCK + at, tl.sort(values))
    tl.store(indices, tl.argmax(values, axis=0))
    tl.store(indices + 1 + tl.arange(0, 32), tl.histogram(values.to(tl.int32), 32))


@triton.jit
def dropout(x, out, n, keep, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + at, mask=at < n, eviction_policy="evict_first")
    kept = tl.where(tl.rand(seed, at) < keep, values / keep, 0.0)
    tl.store(out + at, kept * tl.sigmoid(1.702 * kept), mask=at < n, cache_modifier=".cs")


@triton.jit
def transpose(x, out, rows, columns, BLOCK: tl.constexpr):
    i, j = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    tile = tl.load(x + i[:, None] * columns + j[None, :], mask=(i < rows)[:, None] & (j < columns)[None, :])
    tl.store(out + j[:, None] * rows + i[None, :], tl.trans(tile), mask=(j < columns)[:, None] & (i < rows)[None, :])


@triton.jit
def embedding(table, ids, out, width, BLOCK: tl.constexpr):
    row = tl.load(ids + tl.program_id(0))
    tl.device_assert(row >= 0, "negative id")
    for start in tl.static_range(0, 2):
        at = start * BLOCK + tl.arange(0, BLOCK)
        tl.store(
            out + tl.program_id(0) * width + at, tl.load(table + row * width + at, mask=at < width), mask=at < width
        )


@triton.jit
def math(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + at, mask=at < n)
    r = tl.sin(a) + tl.cos(a) + tl.log(a) + tl.rsqrt(a) + tl.erf(a) + tl.floor(a) + tl.fma(a, a, a) + tl.abs(a)
    tl.store(y + at, tl.where(a > 0, r, tl.clamp(a, -1.0, 1.0)), mask=at < n)


@triton.jit
def inner(x, n):
    if n > 3:
        x += n
    return x


@triton.jit
def control(x, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    total = 0
    i = tl.program_id(0)
    while i < n:
        total += tl.load(x + i)
        i += tl.num_programs(0)
    tl.store(x + at, inner(total, n) + at)
    if total == 7:
        tl.device_print("total", total)


TILE = {"M": 64, "N": 64, "K": 32, "GROUP": 8, "ACC": tl.float32}
MATMUL = dict(m="i32", n="i32", k="i32", lda="i32", ldb="i32", ldc="i32")

# name: kernel, argument types, constants, compute capabilities, options
BUILDS = {
    "vector_add": (vector_add, dict(x="*fp32", y="*fp32", out="*fp32", n="i32"), {"BLOCK": 1024}, (80, 90), {}),
    "vector_add_bf16": (vector_add, dict(x="*bf16", y="*bf16", out="*bf16", n="i32"), {"BLOCK": 512}, (90,), {}),
    "vector_add_i64": (
        vector_add,
        dict(x="*i64", y="*i8", out="*i64", n="i32"),
        {"BLOCK": 256},
        (80,),
        {"num_warps": 8},
    ),
    "softmax": (softmax, dict(x="*fp32", out="*fp32", stride="i32", columns="i32"), {"BLOCK": 1024}, (80, 100), {}),
    "layer_norm": (
        layer_norm,
        dict(
            x="*fp16",
            weight="*fp32",
            bias="*fp32",
            out="*fp16",
            mean_out="*fp32",
            stride="i32",
            columns="i32",
            epsilon="fp32",
        ),
        {"BLOCK": 512},
        (90,),
        {},
    ),
    "matmul_f16": (matmul, dict(a="*fp16", b="*fp16", c="*fp16", **MATMUL), TILE, (80, 90), {"num_stages": 3}),
    "matmul_bf16": (matmul, dict(a="*bf16", b="*bf16", c="*fp32", **MATMUL), TILE, (80, 100), {"num_stages": 2}),
    "matmul_tf32": (matmul, dict(a="*fp32", b="*fp32", c="*fp32", **MATMUL), TILE, (80,), {}),
    "matmul_fp8": (matmul, dict(a="*fp8e4nv", b="*fp8e4nv", c="*fp16", **MATMUL), TILE, (90,), {}),
    "matmul_f64": (
        matmul,
        dict(a="*fp64", b="*fp64", c="*fp64", **MATMUL),
        {"M": 32, "N": 32, "K": 16, "GROUP": 1, "ACC": tl.float64},
        (80,),
        {},
    ),
    "matmul_i8": (integer_matmul, dict(a="*i8", b="*i8", c="*i32", k="i32"), {"M": 64, "N": 32, "K": 64}, (80,), {}),
    "persistent": (
        persistent_matmul,
        dict(a="*fp16", b="*fp16", c="*fp16", m="i32", n="i32", k="i32"),
        {"M": 128, "N": 128, "K": 64, "BLOCKS": 132},
        (90, 100),
        {"num_warps": 8},
    ),
    "matmul_tma": (
        mapped_matmul,
        dict(a="tensordesc<fp16[128,64]>", b="tensordesc<fp16[64,64]>", c="tensordesc<fp16[128,64]>", k="i32"),
        {"M": 128, "N": 64, "K": 64},
        (90,),
        {"num_stages": 3},
    ),
    **{
        f"tcgen05_{name}": (
            matmul,
            dict(a=f"*{type}", b=f"*{type}", c="*fp32", **MATMUL),
            TILE | {"M": 128},
            (100,),
            {},
        )
        for name, type in (("f16", "fp16"), ("tf32", "fp32"), ("fp8", "fp8e4nv"))
    },
    **{
        f"tcgen05_{name}": (
            scaled_matmul,
            dict(a=f"*{type}", a_scales=f"*{scale}", b=f"*{type}", b_scales=f"*{scale}", c="*fp32", k="i32"),
            {"M": 128, "N": 64, "K": 128, "FORMAT": format, "PACKED": packed, "BLOCK": block},
            (100,),
            {},
        )
        for name, type, scale, format, packed, block in (
            ("mxf8", "fp8e4nv", "u8", "e4m3", 1, 32),
            ("mxf4", "u8", "u8", "e2m1", 2, 32),
            ("nvf4", "u8", "fp8e4nv", "e2m1", 2, 16),
        )
    },
    "tcgen05_attention": (
        attention,
        dict(q="*bf16", k="*bf16", v="*bf16", out="*bf16", length="i32", scale="fp32"),
        {"M": 128, "N": 64, "D": 64},
        (100,),
        {},
    ),
    "attention": (
        attention,
        dict(q="*bf16", k="*bf16", v="*bf16", out="*bf16", length="i32", scale="fp32"),
        {"M": 64, "N": 32, "D": 64},
        (80, 90),
        {},
    ),
    "atomics": (
        atomics,
        dict(x="*i32", counts="*i32", best="*i32", lock="*i32", total="*fp32", n="i32"),
        {"BLOCK": 256},
        (80,),
        {},
    ),
    "scans": (scans, dict(x="*fp32", out="*fp32", indices="*i32", n="i32"), {"BLOCK": 256}, (80,), {}),
    "dropout": (dropout, dict(x="*fp32", out="*fp32", n="i32", keep="fp32", seed="i32"), {"BLOCK": 512}, (90,), {}),
    "transpose": (transpose, dict(x="*fp16", out="*fp16", rows="i32", columns="i32"), {"BLOCK": 32}, (80,), {}),
    "embedding": (
        embedding,
        dict(table="*fp16", ids="*i64", out="*fp16", width="i32"),
        {"BLOCK": 128},
        (80,),
        {"debug": True},
    ),
    "math": (math, dict(x="*fp32", y="*fp32", n="i32"), {"BLOCK": 256}, (80,), {}),
    "control": (control, dict(x="*i32", n="i32"), {"BLOCK": 128}, (80,), {}),
}


def compile_to_ptx(kernel, types, constants, capability, options):
    signature = {name: types.get(name, "constexpr") for name in kernel.arg_names}
    # Divisibility by 16 is what the JIT itself passes for aligned pointers; it lets loads become vectors.
    aligned = {
        (i,): [["tt.divisibility", 16]]
        for i, name in enumerate(kernel.arg_names)
        if str(types.get(name, "")).startswith("*")
    }
    source = ASTSource(kernel, signature, constants, aligned)
    return triton.compile(source, target=GPUTarget("cuda", capability, 32), options=options).asm["ptx"]


def main(directory):
    for name, (kernel, types, constants, capabilities, options) in BUILDS.items():
        for capability in capabilities:
            text = compile_to_ptx(kernel, types, constants, capability, options)
            (directory / f"triton-{name}-sm_{capability}.ptx").write_text(text)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
