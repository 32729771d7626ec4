# makes: atomics-sm_80; checked-sm_80; complexes-sm_100; dynamic_shared-sm_80; local_table-sm_80; mathematics-sm_80;
#   matmul-sm_80; printing-sm_80; saxpy-sm_80; saxpy_strided-sm_90; structures-sm_90; tiled_matmul-sm_90;
#   warp_sum-sm_80
"""numba-cuda kernels, compiled to PTX with no GPU: `python numba_kernels.py DIRECTORY` writes one file a build."""

import math
import sys
from pathlib import Path

import numba
import numpy as np
from numba import cuda

POINT = numba.from_dtype(np.dtype([("x", np.float32), ("tag", np.int16), ("y", np.float64)], align=True))
TABLE = np.array([1.0, -2.0, 0.25], dtype=np.float32)


def saxpy(a, x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] += a * x[i]


def matmul(a, b, c):
    row, column = cuda.grid(2)
    if row < c.shape[0] and column < c.shape[1]:
        total = 0.0
        for k in range(a.shape[1]):
            total += a[row, k] * b[k, column]
        c[row, column] = total


def tiled_matmul(a, b, c):
    x = cuda.shared.array((16, 16), numba.float32)
    y = cuda.shared.array((16, 16), numba.float32)
    i, j = cuda.threadIdx.x, cuda.threadIdx.y
    row, column = cuda.grid(2)
    total = numba.float32(0)
    for tile in range(a.shape[1] // 16):
        x[i, j] = a[row, tile * 16 + j]
        y[i, j] = b[tile * 16 + i, column]
        cuda.syncthreads()
        for k in range(16):
            total += x[i, k] * y[k, j]
        cuda.syncthreads()
    c[row, column] = total


def atomics(counts, best, total, x):
    i = cuda.grid(1)
    cuda.atomic.add(counts, x[i] % 16, 1)
    cuda.atomic.max(best, 0, x[i])
    cuda.atomic.add(total, 0, float(x[i]))
    cuda.atomic.cas(counts, 16, 0, x[i])


def warp_sum(x, out):
    i = cuda.grid(1)
    value = x[i]
    for offset in (16, 8, 4, 2, 1):
        value += cuda.shfl_down_sync(0xFFFFFFFF, value, offset)
    if cuda.laneid == 0:
        out[i // 32] = value + cuda.popc(cuda.ballot_sync(0xFFFFFFFF, value > 0))


def mathematics(x, y):
    i = cuda.grid(1)
    v = x[i]
    y[i] = math.sin(v) + math.exp(v) * math.sqrt(abs(v)) + math.pow(v, 1.5) + math.atan2(v, 2.0) + v % 3.0 + v // 2.0


def structures(points, out):
    i = cuda.grid(1)
    points[i].tag += 1
    out[i] = points[i].x * points[i].y + points[i].tag


def local_table(x, out):
    scratch = cuda.local.array(8, numba.int64)
    table = cuda.const.array_like(TABLE)
    for k in range(8):
        scratch[k] = x[k] ** 2
    i = cuda.grid(1)
    out[i] = scratch[x[i] & 7] * table[i % 3]


def printing(x):
    i = cuda.grid(1)
    if x[i] < 0:
        print("negative", i, x[i])


def complexes(z, out, limit):
    i = cuda.grid(1)
    value, count = 0j, 0
    while abs(value) < 2.0 and count < limit:
        value = value * value + z[i]
        count += 1
    out[i] = count


def checked(x, y):
    i = cuda.grid(1)
    y[i] = x[i] // y[i]


def dynamic_shared(x, out):
    s = cuda.shared.array(0, numba.float64)
    t = cuda.threadIdx.x
    s[t] = x[t]
    cuda.syncthreads()
    out[t] = s[t] * s[cuda.blockDim.x - 1 - t]


F32, F64, I32, I64 = numba.float32, numba.float64, numba.int32, numba.int64

# name: function, signature, compute capability, options of compile_ptx
BUILDS = {
    "saxpy": (saxpy, numba.void(F32, F32[::1], F32[::1]), (8, 0), {}),
    "saxpy_strided": (saxpy, numba.void(F64, F64[:], F64[:]), (9, 0), {"lineinfo": True}),
    "matmul": (matmul, numba.void(F64[:, ::1], F64[:, ::1], F64[:, ::1]), (8, 0), {}),
    "tiled_matmul": (tiled_matmul, numba.void(F32[:, ::1], F32[:, ::1], F32[:, ::1]), (9, 0), {"fastmath": True}),
    "atomics": (atomics, numba.void(I32[::1], I32[::1], F64[::1], I32[::1]), (8, 0), {}),
    "warp_sum": (warp_sum, numba.void(F32[::1], F32[::1]), (8, 0), {"lineinfo": True}),
    "mathematics": (mathematics, numba.void(F64[::1], F64[::1]), (8, 0), {}),
    "structures": (structures, numba.void(POINT[::1], F64[::1]), (9, 0), {}),
    "local_table": (local_table, numba.void(I64[::1], F32[::1]), (8, 0), {}),
    "printing": (printing, numba.void(I64[::1]), (8, 0), {}),
    "complexes": (complexes, numba.void(numba.complex128[::1], I32[::1], I32), (10, 0), {}),
    "checked": (checked, numba.void(I32[::1], I32[::1]), (8, 0), {"debug": True, "opt": False}),
    "dynamic_shared": (dynamic_shared, numba.void(F64[::1], F64[::1]), (8, 0), {}),
}


def main(directory):
    for name, (function, signature, capability, options) in BUILDS.items():
        text, _ = cuda.compile_ptx(function, signature, cc=capability, **options)
        (directory / f"numba-{name}-sm_{capability[0]}{capability[1]}.ptx").write_text(text.rstrip("\0"))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
