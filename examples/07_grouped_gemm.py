"""Many products of different sizes in one launch, and a mixture of experts whose group sizes only the GPU knows.

    python examples/07_grouped_gemm.py [--device cuda]

Persistent blocks, as many as fit on the GPU, compute tile after tile. The drawing shows the tiles of six blocks: with
tiles dealt in order, the problem with the long K keeps a few blocks busy long after the others; balance="k" splits it
among blocks. A layer of experts multiplies each row of x by the weights of its expert: rows are sorted by expert, and
`ends` holds the end of each expert's rows.

New here: grouped_gemm, its schedule as a value that can be drawn, grouped_gemm_ragged.
"""

from typing import Any

import numpy as np
from arrays import LIBRARY, ON_GPU, check, to_device

from ptxdsl.kernels.call.launching.launches import recorded_launch
from ptxdsl.kernels.grouped import grouped_gemm, grouped_gemm_ragged
from ptxdsl.kernels.ragged import ragged_kernel  # noqa: F401  # found by `ptxdsl check`
from ptxdsl.schedule import GroupedProblemVisitor

PROBLEMS = [(96, 130, 64), (200, 64, 96), (64, 64, 1500), (5, 7, 0)]  # M, N, K
EXPERTS, WIDTH, HIDDEN = 8, 64, 136
SCHEDULES: list[dict[str, Any]] = [{}, {"schedule": "host", "balance": "k"}]


def normal(rng, *shape):
    return rng.standard_normal(shape).astype(np.float16)


def products(rng):
    a, b = [normal(rng, m, k) for m, _, k in PROBLEMS], [normal(rng, k, n) for _, n, k in PROBLEMS]
    for options in SCHEDULES:
        drawn = GroupedProblemVisitor(PROBLEMS, (64, 64, 32), 6, mode=options.get("schedule", "device"),
                                      balance=options.get("balance"))  # fmt: skip
        out = [to_device(np.full((m, n), np.nan, np.float16)) for m, n, _ in PROBLEMS]
        grouped_gemm(list(map(to_device, a)), list(map(to_device, b)), out=out, **options)
        for found, x, y in zip(out, a, b, strict=True):
            exact = x.astype(np.float64) @ y.astype(np.float64)
            check(f"{len(x)} x {exact.shape[1]} x {len(y)}, {options or 'dealt in the kernel'}", found, exact, 0.1)
        print(drawn.timeline().to_text(color=False))


def experts(rng):
    counts = rng.multinomial(300, rng.dirichlet(np.ones(EXPERTS)))
    ends = counts.cumsum().astype(np.int32)
    x, w = normal(rng, 300, WIDTH), normal(rng, EXPERTS, WIDTH, HIDDEN)
    out = to_device(np.full((300, HIDDEN), np.nan, np.float16))
    grouped_gemm_ragged(to_device(x), to_device(w), to_device(ends), out=out)
    of_row = np.arange(EXPERTS).repeat(counts)
    exact = np.einsum("rk,rkn->rn", x.astype(np.float64), w.astype(np.float64)[of_row])
    check(f"experts with {', '.join(map(str, counts))} rows", out, exact, 0.1)


def example_ragged_kernel(rng):
    """Return the launch of a call of grouped_gemm_ragged(), for `ptxdsl check`."""
    x, w, ends = normal(rng, 40, 32), normal(rng, 3, 32, 24), np.array([7, 7, 40], np.int32)
    return recorded_launch(lambda: grouped_gemm_ragged(x, w, ends))


def main():
    if not ON_GPU or LIBRARY:  # the kernel reads a table of addresses, so the arrays must be on its device
        products(np.random.default_rng(0))
    experts(np.random.default_rng(1))


if __name__ == "__main__":
    main()
