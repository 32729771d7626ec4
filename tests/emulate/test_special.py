"""Special registers."""

import numpy as np
import pytest

from ptxdsl.errors import EmulationError
from tests.emulate.support import clean, run


def register(name, grid=1, block=32, type="u32", **options):
    """The values of a special register in all threads, (blocks, threads)."""
    bits = 64 if type == "u64" else 32
    body = f"""
        ld.param.u64 %rd1, [x];
        mov.u32 %r1, %ctaid.z; mov.u32 %r2, %nctaid.y; mov.u32 %r3, %ctaid.y; mad.lo.u32 %r1, %r1, %r2, %r3;
        mov.u32 %r2, %nctaid.x; mov.u32 %r3, %ctaid.x; mad.lo.u32 %r1, %r1, %r2, %r3;
        mov.u32 %r4, %tid.z; mov.u32 %r5, %ntid.y; mov.u32 %r6, %tid.y; mad.lo.u32 %r4, %r4, %r5, %r6;
        mov.u32 %r5, %ntid.x; mov.u32 %r6, %tid.x; mad.lo.u32 %r4, %r4, %r5, %r6;
        mov.u32 %r7, {np.prod(block)}; mad.lo.u32 %r4, %r1, %r7, %r4;
        mul.wide.u32 %rd2, %r4, {bits // 8}; add.u64 %rd2, %rd1, %rd2;
        mov.{type} {"%rd3" if bits == 64 else "%r9"}, {name};
        st.global.b{bits} [%rd2], {"%rd3" if bits == 64 else "%r9"};
    """
    x = np.zeros((int(np.prod(grid)), int(np.prod(block))), f"u{bits // 8}")
    clean(run(body, x, grid=grid, block=block, **options))
    return x


def test_places_in_three_dimensions():
    grid, block = (2, 3, 2), (5, 4, 3)
    for axis, letter in enumerate("xyz"):
        threads = np.indices(block[::-1])[2 - axis].reshape(-1)
        blocks = np.indices(grid[::-1])[2 - axis].reshape(-1)
        assert (register(f"%tid.{letter}", grid, block) == threads).all()
        assert (register(f"%ctaid.{letter}", grid, block) == blocks[:, None]).all()
        assert (register(f"%ntid.{letter}", grid, block) == block[axis]).all()
        assert (register(f"%nctaid.{letter}", grid, block) == grid[axis]).all()


def test_places_in_the_warp():
    lane = np.arange(70) % 32
    one = np.uint64(1) << lane.astype(np.uint64)
    assert (register("%laneid", block=70) == lane).all()
    assert (register("%warpid", block=70) == np.arange(70) // 32).all()
    assert (register("%lanemask_eq", block=70) == one).all()
    assert (register("%lanemask_lt", block=70) == one - 1).all()
    assert (register("%lanemask_le", block=70) == 2 * one - 1).all()
    assert (register("%lanemask_gt", block=70) == 2**32 - 2 * one).all()
    assert (register("%lanemask_ge", block=70) == 2**32 - one).all()


def test_many_blocks_in_several_batches():
    blocks = 700
    assert (register("%ctaid.x", grid=blocks, block=33) == np.arange(blocks)[:, None]).all()


@pytest.mark.parametrize(("name", "value"), [
    ("%nsmid", 132), ("%cluster_ctarank", 0), ("%cluster_nctarank", 1), ("%nclusterid.x", 3), ("%tid.w", 0),
    ("%dynamic_smem_size", 48),
])  # fmt: skip
def test_what_is_the_same_for_all(name, value):
    text_target = {"shared_bytes": 48}
    assert (register(name, grid=3, **text_target) == value).all()


@pytest.mark.parametrize("name", ["%clock64", "%globaltimer"])
def test_clocks_advance(name):
    body = (
        f"ld.param.u64 %rd1, [x]; mov.u64 %rd2, {name}; mov.u64 %rd3, {name}; st.global.v2.u64 [%rd1], {{%rd2, %rd3}};"
    )
    x = np.zeros(2, np.uint64)
    clean(run(body, x, block=1))
    assert x[0] < x[1]


def test_what_only_a_gpu_has():
    with pytest.raises(EmulationError) as caught:
        register("%pm0")
    assert str(caught.value) == ("the emulator has no %pm0\n  <ptx>:14\n  help: it reads state that only a GPU has")
