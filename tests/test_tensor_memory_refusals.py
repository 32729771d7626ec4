"""What pd.tensor_memory, pd.TensorMemoryMma and the atoms of tcgen05 refuse, word for word."""

from __future__ import annotations

import pytest

import ptxdsl as pd
from ptxdsl import bf16, f16, f32, ptr, u8, u32
from ptxdsl.layout import Layout, atom, mma_atom, scale_layout, shared_operand, tile_layout

ATOM = "tcgen05.m128n64k16.f32.f16"
NVFP4 = "tcgen05.m128n64k64.f32.e2m1.block16.ue4m3"
TYPES = (
    "the types are f32.f16, f32.bf16, f16.f16, f32.tf32, f32.e4m3, f32.e5m2, f32.e2m3, f32.e3m2, f32.e2m1, f16.e4m3, "
    "f16.e5m2, f16.e2m3, f16.e3m2, f16.e2m1, s32.u8, s32.s8; of two types of 8, 6 or 4 bits A and B may mix, as in "
    "tcgen05.m128n64k32.f32.e4m3.e2m1"
)

ATOMS = {
    "tcgen05.f16": ("", "write tcgen05.SHAPE.ACCUMULATOR.INPUT, such as tcgen05.m128n256k16.f32.bf16"),
    "tcgen05.m96n64k16.f32.f16": (": M is 96", "M is 64 or 128, or 256 for a CTA pair"),
    "tcgen05.m64n64k64.f32.e2m1.block16.ue4m3": (": M is 64", "M is 128, or 256 for a CTA pair"),
    "tcgen05.m128n12k16.f32.f16": (": N is 12", "N is a multiple of 8, up to 256"),
    "tcgen05.m256n24k16.f32.f16": (": N is 24", "N is a multiple of 16, up to 256"),
    "tcgen05.m256n48k32.s32.s8": (": N is 48", "N is a multiple of 32, up to 256"),
    "tcgen05.m128n264k16.f32.f16": (": N is 264", "N is a multiple of 8, up to 256"),
    "tcgen05.m128n40k32.s32.s8": (": N is 40", "N is a multiple of 16 from 32 on, up to 256"),
    "tcgen05.m128n64k32.f32.f16": (": K is 32", "one instruction multiplies K = 16 of f16"),
    "tcgen05.m128n64k16.f32.e2m1.block16.ue4m3": (": K is 16", "one instruction multiplies K = 32 or 64 of e2m1"),
    "tcgen05.m128n64k16.f16.bf16": (": tcgen05.mma has no f16 accumulators of bf16", TYPES),
    "tcgen05.m128n64k16.f32.f32": (": tcgen05.mma has no f32 accumulators of f32", TYPES),
    "tcgen05.m128n64k32.s32.s8.e4m3": (": tcgen05.mma has no s32 accumulators of s8 and e4m3", TYPES),
    "tcgen05.m128n64k16.f32.f16.block16.ue4m3": (
        ": tcgen05.mma has no f32 accumulators of f16 with block scales",
        "the types are f32.e4m3, f32.e5m2, f32.e2m3, f32.e3m2, f32.e2m1; of two types of 8, 6 or 4 bits A and B may "
        "mix, as in tcgen05.m128n64k32.f32.e4m3.e2m1",
    ),
    "tcgen05.m128n64k64.f32.e2m1.block32.ue4m3": (
        ": K = 64 of e2m1 has no ue4m3 scales of blocks of 32",
        "the scales are .block32.ue8m0, .block16.ue4m3, .block16.ue8m0",
    ),
    "tcgen05.m128n64k32.f32.e4m3.block16.ue8m0": (
        ": K = 32 of e4m3 has no ue8m0 scales of blocks of 16", "the scales are .block32.ue8m0",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ATOMS)
def test_atoms(name):
    message, help = ATOMS[name]
    with pytest.raises(pd.LayoutError) as error:
        mma_atom(name)
    assert (error.value.message, error.value.help) == (f"there is no MMA atom {name!r}{message}", help)


LAYOUTS = {
    "a load of another shape": (
        lambda: atom("tcgen05.ld.16x32bx2.x4"), "there is no atom 'tcgen05.ld.16x32bx2.x4'",
        "write tcgen05.ld.SHAPE.xN or tcgen05.st.SHAPE.xN; the shapes are 32x32b, 16x64b, 16x128b, 16x256b",
    ),
    "too many registers": (
        lambda: atom("tcgen05.ld.16x256b.x64"), "there is no atom 'tcgen05.ld.16x256b.x64': it repeats 64 times",
        "it is a power of two up to 32 for 16x256b",
    ),
    "scales of 100 rows": (
        lambda: scale_layout(100, 4), "block scales of 100 rows and 4 factors are not whole blocks of 128 x 4",
        "fill the scales up with zeros",
    ),
    "tf32 that is MN-major": (
        lambda: shared_operand("tcgen05.m64n8k8.f32.tf32", "a", Layout((64, 32), (1, 64))),
        "tcgen05 reads operand A of tcgen05.m64n8k8.f32.tf32 as swizzle atoms of 8 rows of 16 bytes along K, at one "
        "stride in each direction, with no swizzle: (64,32):(1,64) does not have these atoms in each (64,8)",
        f"use this layout instead: {tile_layout(64, 32, 32)}",
    ),
    "pairs that are MN-major": (
        lambda: shared_operand(NVFP4, "b", Layout((64, 128), (1, 64))),
        f"tcgen05 reads operand B of {NVFP4} as swizzle atoms of 8 rows of 16 bytes along K, at one stride in each "
        "direction, with no swizzle: (64,128):(1,64) does not have these atoms in each (64,32)",
        f"use this layout instead: {tile_layout(64, 128, 8)}",
    ),
    "rows one after another": (
        lambda: shared_operand(ATOM, "a", Layout((128, 64), (64, 1))),
        f"tcgen05 reads operand A of {ATOM} as swizzle atoms of 8 rows of 16 bytes along K or M, at one stride in each "
        "direction, with no swizzle: (128,64):(64,1) does not have these atoms in each (128,16)",
        f"use this layout instead: {tile_layout(128, 64, 16)}",
    ),
    "a tile that is too small": (
        lambda: shared_operand(ATOM, "a", tile_layout(64, 64, 16)),
        f"operand A of {ATOM} has tiles of (128,16), which do not divide (64,64)",
        "choose a tile that divides the layout, and handle the remainder in the kernel",
    ),
    "A of .ts": (
        lambda: shared_operand(f"{ATOM}.ts", "a", tile_layout(128, 64, 16)),
        f"{ATOM}.ts takes operand A from tensor memory, so it has no descriptor", f"leave out .ts: {ATOM}",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LAYOUTS)
def test_layouts(name):
    body, message, help = LAYOUTS[name]
    with pytest.raises(pd.LayoutError) as error:
        body()
    assert (error.value.message, error.value.help) == (message, help)


def refused(body, arch="sm_100a", block=128, **options):
    """Trace a kernel and return its error: the message and the help."""

    @pd.kernel(arch=arch, reqntid=block, **options)
    def kernel(y: ptr[f32], n: u32):
        body(y, n)

    with pytest.raises(pd.Error) as error:
        kernel.ptx()
    return error.value.message, error.value.help


def allocate(columns):
    with pd.tensor_memory(columns):
        pass


def in_a_branch(y, n):
    with pd.if_(n > 1), pd.tensor_memory(64):
        pass


def in_a_role(y, n):
    with pd.warp(0), pd.tensor_memory(64):
        pass


def twice(y, n):
    allocate(64)
    allocate(32)


def returning(y, n):
    with pd.tensor_memory(64):
        pd.return_(n > 1)


def allocating(y, n):
    with pd.tensor_memory(64) as memory:
        pd.ptx.tcgen05.alloc.cta_group__1.sync.aligned.shared__cta.b32(pd.shared(u32, 1).address(0), 32)
        memory.matrix(f32, 128, 32)


def not_entered(y, n):
    pd.tensor_memory(64)
    y[0] = 0.0


def pair_of(atom=ATOM, rows=128):
    def body(y, n):
        tiles = [pd.shared(f16, tile_layout(extent, 64, 16), align=1024) for extent in (rows, 32)]
        with pd.tensor_memory(64, pair=True) as memory:
            pd.TensorMemoryMma(memory, atom, *tiles)

    return body


PAIRS = {
    "no cluster": (
        pair_of(), {}, "`pd.tensor_memory(64, pair=True)` is for a CTA pair; the kernel does not declare its cluster size",
        "write @pd.kernel(cluster=2)",
    ),
    "a ring without a cluster": (
        lambda y, n: pd.Ring(2, producers=1, consumers=1, pair=True), {"cluster": 4},
        "`pd.Ring(…, pair=True)` is for a CTA pair; the kernel has clusters of (4, 1, 1)", "write @pd.kernel(cluster=2)",
    ),
    "one arrival for a warp": (
        lambda y, n: pd.Ring(2, producers=1, consumers=32, pair=True, each="warp"), {"cluster": 2},
        "pd.Ring takes each='warp' and pair=True", "each thread arrives in the even block",
    ),
    "an atom of one block": (
        pair_of(), {"cluster": 2},
        f"{ATOM} is an instruction of one block; `pd.tensor_memory(64, pair=True)` is tensor memory of a CTA pair",
        "use an atom with M = 256",
    ),
    "all rows in one block": (
        pair_of("tcgen05.m256n64k16.f32.f16", 256), {"cluster": 2},
        "`tiles` has 256 rows of M; tcgen05.m256n64k16.f32.f16 multiplies 128 of each block",
        "make the tile 128 rows, or use another atom",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PAIRS)
def test_pairs(name):
    body, options, message, help = PAIRS[name]
    assert refused(body, **options) == (message, help)


FIRST_LINE = "test_tensor_memory_refusals.py"
ALLOCATIONS = {
    "48 columns": (
        lambda y, n: allocate(48), "pd.tensor_memory takes a power of two from 32 to 512; found 48", "64 has room for them",
    ),
    "16 columns": (
        lambda y, n: allocate(16), "pd.tensor_memory takes a power of two from 32 to 512; found 16", "32 has room for them",
    ),
    "1024 columns": (
        lambda y, n: allocate(1024), "pd.tensor_memory takes a power of two from 32 to 512; found 1024",
        "an SM has 512 columns",
    ),
    "traced columns": (
        lambda y, n: allocate(n), "pd.tensor_memory takes `n`, a u32 as its number of columns",
        "it is an int that is known while tracing",
    ),
    "a branch": (
        in_a_branch, "`pd.tensor_memory(64)` is inside a branch or a loop, `with pd.if_(…)` (LINE): all threads of the "
        "block reach it", "put it before, at the beginning of the kernel, and the roles into it",
    ),
    "a role": (
        in_a_role, "`pd.tensor_memory(64)` is inside a role, `with pd.warp(0)` (LINE): all threads of the block reach it",
        "put it before, at the beginning of the kernel, and the roles into it",
    ),
    "twice": (
        twice, "`pd.tensor_memory(32)` is a second allocation; the first, LINE, gives up the right to allocate",
        "allocate once, and take parts of it: `memory.matrix(…)`",
    ),
    "return": (
        returning, "`ret` is inside of `with pd.tensor_memory(64)`: the threads end before tensor memory is freed",
        "leave out the work of these threads by `with pd.if_(…):`",
    ),
    "tcgen05.alloc": (
        allocating, "`tcgen05.alloc` is inside of `with pd.tensor_memory(64)`, which has given up the right to allocate",
        "allocate all columns by pd.tensor_memory, and take parts of them: `memory.matrix(…)`",
    ),
    "not entered": (
        not_entered, "`pd.tensor_memory(64)` was called, but never entered",
        "write `with pd.tensor_memory(64):` and indent what it holds",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ALLOCATIONS)
def test_allocations(name):
    body, message, help = ALLOCATIONS[name]
    found = refused(body)
    assert (without_lines(found[0]), found[1]) == (message, help)


def without_lines(message):
    """The message, with LINE for a line of this file."""
    before, separator, after = message.partition(f"{FIRST_LINE}:")
    return f"{before}LINE{after.lstrip('0123456789')}" if separator else message


def test_the_block_has_whole_warps():
    assert refused(lambda y, n: allocate(32), block=100) == (
        "`pd.tensor_memory(32)` is in a kernel that has blocks of 100 threads; a whole warp allocates",
        "declare a multiple of 32 threads: `@pd.kernel(reqntid=256)`",
    )
    assert refused(lambda y, n: allocate(32), block=None) == (
        "`pd.tensor_memory(32)` is in a kernel that does not declare its block size; a whole warp allocates",
        "declare a multiple of 32 threads: `@pd.kernel(reqntid=256)`",
    )


@pytest.mark.parametrize("arch", ["sm_90a", "sm_120a"])
def test_the_target_has_tensor_memory(arch):
    assert refused(lambda y, n: allocate(32), arch=arch) == (
        "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 needs sm_100f or sm_110f; this kernel is traced for "
        f"{arch}",
        f'ask for arch="sm_100f", or use instructions that {arch} has',
    )


def outside(y, n):
    with pd.tensor_memory(64) as memory:
        matrix = memory.matrix(f32, 128, 64)
    matrix.load()


def lane(y, n):
    with pd.tensor_memory(64) as memory, pd.elect():
        memory.matrix(f32, 128, 64).load()


def with_matrix(use, stages=1, rows=128):
    def body(y, n):
        with pd.tensor_memory(128) as memory:
            use(memory.matrix(f32, rows, 64, stages=stages), n)

    return body


def with_memory(use):
    def body(y, n):
        with pd.tensor_memory(128) as memory:
            use(memory)

    return body


MATRICES = {
    "too many columns": (
        with_memory(lambda memory: memory.matrix(f32, 128, 80, stages=2)),
        "2 matrices of 128x80 take 160 columns of tensor memory; 128 of 128 are left", "allocate 256: pd.tensor_memory(256)",
    ),
    "more than an SM has": (
        with_memory(lambda memory: memory.matrix(f32, 128, 256, stages=3)),
        "3 matrices of 128x256 take 768 columns of tensor memory; 128 of 128 are left", "use a smaller tile",
    ),
    "bf16": (
        with_memory(lambda memory: memory.matrix(bf16, 128, 64)), "a matrix of bf16 in tensor memory",
        "its elements are f16, or have 32 bits",
    ),
    "96 rows": (
        with_memory(lambda memory: memory.matrix(f32, 96, 64)), "a matrix of 96 rows in tensor memory",
        "it has 64 or 128 rows",
    ),
    "no stages": (
        with_memory(lambda memory: memory.matrix(f32, 128, 64, stages=0)), "a matrix in tensor memory has 0 stages",
        "pass a positive int",
    ),
    "outside of the with": (
        outside, "a matrix in tensor memory is used after the end of `with pd.tensor_memory(64)`, which frees it",
        "indent its use, so that it belongs to the `with`",
    ),
    "one lane": (
        lane, "`tcgen05.ld.sync.aligned.32x32b.x64.b32` is inside `with pd.elect()` (LINE): all 32 lanes of a warp run "
        "it together, but only one lane of a warp reaches it", "move it before or after `with pd.elect():`",
    ),
    "all stages": (
        with_matrix(lambda matrix, n: matrix.load(), stages=2), "`load` of 2 stages of a matrix",
        "choose one: `matrix[slot].load(…)`",
    ),
    "a stage too far": (
        with_matrix(lambda matrix, n: matrix[2], stages=2), "stage 2 of matrices in tensor memory of 2 stages", "pass 0 to 1",
    ),
    "columns too far": (
        with_matrix(lambda matrix, n: matrix.load(48, 32)), "`load` of columns 48 to 79", "the matrix has columns 0 to 63",
    ),
    "a part of 8 columns": (
        with_matrix(lambda matrix, n: matrix.load(4, 8), rows=64), "`load` of columns 4 to 11",
        "the matrix has columns 0 to 63, in multiples of 8",
    ),
    "traced columns": (
        with_matrix(lambda matrix, n: matrix.load(n, 8)), "`load` takes columns that are known while tracing; found `n`, "
        "a u32", "unroll the loop by Python's range",
    ),
    "too many registers": (
        with_matrix(lambda matrix, n: matrix.store([n] * 65)), "`store` of columns 0 to 64", "the matrix has columns 0 to 63",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MATRICES)
def test_matrices(name):
    body, message, help = MATRICES[name]
    found = refused(body)
    assert (without_lines(found[0]), found[1]) == (message, help)


def product(atom=ATOM, use=None, a=(128, 64), b=(64, 64), type=f16, stages=1, **options):
    """Refuse the product of two arrays in shared memory, or a use of it."""

    def body(y, n):
        tiles = [
            shape and pd.shared(type, tile_layout(*shape, type.bits, min(128, shape[1] * type.bytes)), align=1024)
            for shape in (a, b)
        ]
        scales = {name: pd.shared(u8, (size,), align=128) for name, size in options.items() if name.endswith("scales")}
        with pd.tensor_memory(512) as memory:
            mma = pd.TensorMemoryMma(memory, atom, *tiles, **scales)
            if use:
                use(mma, memory)

    return body


def use_of(call):
    return product(use=lambda mma, memory: call(mma, mma.accumulators(stages=2), memory))


PRODUCTS = {
    "no memory": (
        lambda y, n: pd.TensorMemoryMma(512, ATOM), "pd.TensorMemoryMma takes tensor memory first; found 512",
        "allocate it: `with pd.tensor_memory(256) as memory:`",
    ),
    "a wgmma": (
        product("wgmma.m64n64k16.f32.f16"),
        "pd.TensorMemoryMma takes a tcgen05 atom; found wgmma.m64n64k16.f32.f16",
        "such as tcgen05.m128n256k16.f32.bf16",
    ),
    "a pair": (
        product("tcgen05.m256n64k16.f32.f16"),
        "tcgen05.m256n64k16.f32.f16 is an instruction of a CTA pair; `pd.tensor_memory(512)` is tensor memory of one block",
        "pd.tensor_memory(512, pair=True)",
    ),
    "no a": (
        product(a=None), f"{ATOM} reads A from shared memory; `a` is missing",
        "an atom with the suffix .ts reads A from tensor memory, others from `a`",
    ),
    "a in tensor memory": (
        product(f"{ATOM}.ts"), f"{ATOM}.ts reads A from tensor memory; `a` is given",
        "an atom with the suffix .ts reads A from tensor memory, others from `a`",
    ),
    "bytes": (
        product(type=u8),
        f"operand A of {ATOM} has elements of f16, 16 bits wide; the elements of `shared` are u8",
        "use an instruction of u8, or convert the elements",
    ),
    "bf16": (
        product(type=bf16),
        f"operand A of {ATOM} has elements of f16, 16 bits wide; the elements of `shared` are bf16",
        "use an instruction of bf16, or convert the elements",
    ),
    "rows of M": (
        product(a=(256, 64)), "`shared` has 256 rows of M; tcgen05.m128n64k16.f32.f16 multiplies 128",
        "make the tile 128 rows, or use another atom",
    ),
    "rows of N": (
        product(b=(128, 64)), "`shared_1` has 128 rows of N; tcgen05.m128n64k16.f32.f16 multiplies 64",
        "make the tile 64 rows, or use another atom",
    ),
    "other K": (product(b=(64, 128)), "A has a K of 64 and B of 128", "give both the same K"),
    "scales of an atom without": (
        product(a_scales=512), f"{ATOM} has no block scales; `a_scales` or `b_scales` is given",
        "name them in the atom: ….block16.ue4m3",
    ),
    "no scales": (
        product(NVFP4, a=(128, 128), b=(64, 128), type=u8, a_scales=2048), "`b_scales` is an array in shared memory; found None",
        f"{NVFP4} has block scales",
    ),
    "too few scales": (
        product(NVFP4, a=(128, 128), b=(64, 128), type=u8, a_scales=1024, b_scales=2048),
        "`shared_2` holds 1024 bytes; the scales of 1 stage of 128 x 256 elements are 2048 bytes",
        "a stage has 4 blocks of 512 bytes, in the order of ptxdsl.layout.scale_layout(128, 16)",
    ),
    "half a group of scales": (
        product("tcgen05.m128n64k32.f32.e4m3.block32.ue8m0", a=(128, 64), b=(64, 64), type=u8, a_scales=512, b_scales=512),
        "stages have a K of 64; four scales of tcgen05.m128n64k32.f32.e4m3.block32.ue8m0 cover 128",
        "make K a multiple of 128",
    ),
    "all stages": (
        use_of(lambda mma, accumulators, memory: mma(accumulators)), "the accumulators have 2 stages",
        "choose one: `mma(accumulators[slot], …)`",
    ),
    "other accumulators": (
        use_of(lambda mma, accumulators, memory: mma(memory.matrix(f32, 128, 32))),
        "the product has accumulators of 128x64 of f32 in tensor memory; found 128x32 of f32",
        "make them with `mma.accumulators()`",
    ),
    "no accumulators": (
        use_of(lambda mma, accumulators, memory: mma(3)),
        "the product has accumulators of 128x64 of f32 in tensor memory; found 3", "make them with `mma.accumulators()`",
    ),
    "a stage too far": (
        use_of(lambda mma, accumulators, memory: mma(accumulators[0], 1, 0)), "stage 1 of an array of 1 stage", "pass 0 to 0",
    ),
    "A in shared memory": (
        use_of(lambda mma, accumulators, memory: mma.a_matrix()), f"{ATOM} reads A from shared memory",
        f"write {ATOM}.ts to read it from tensor memory",
    ),
    "A in tensor memory is missing": (
        product(f"{ATOM}.ts", a=None, use=lambda mma, memory: mma(mma.accumulators(), 0)),
        f"{ATOM}.ts reads A from tensor memory; found 0", "pass one stage of `mma.a_matrix(…)`",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name):
    body, message, help = PRODUCTS[name]
    assert refused(body) == (message, help)
