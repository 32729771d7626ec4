"""Tensor memory: allocation, and the cells that tcgen05.ld and tcgen05.st reach."""

import numpy as np
import pytest

from ptxdsl.layout.tensor_memory import REGISTERS_OF
from tests.emulate.support import clean, only
from tests.emulate.tensor_kernels import global_words, launch, registers, source, words

REPEATS = 1, 2, 4, 8, 16, 32, 64, 128
SHAPES = [(shape, n) for shape, each in REGISTERS_OF.items() for n in REPEATS if each * n <= 128]
WAIT = {"ld": "tcgen05.wait::ld.sync.aligned;\n", "st": "tcgen05.wait::st.sync.aligned;\n"}


def cell(shape, register, thread, second_half=0):
    """The lane and the 32-bit column of a register of a thread, as the figures of the manual show them."""
    if shape == "32x32b":
        return thread, register
    if shape == "16x32bx2":
        return thread % 16, register + (second_half if thread >= 16 else 0)
    if shape == "16x64b":
        return thread // 4 + 8 * (thread & 1), 2 * register + (thread >> 1 & 1)
    if shape == "16x128b":
        return thread // 4 + 8 * (register & 1), register // 2 * 4 + thread % 4
    return thread // 4 + 8 * (register >> 1 & 1), register // 4 * 8 + thread % 4 * 2 + (register & 1)


def access(op, shape, repeats, address="%r8", packed=False, second_half=0):
    count = REGISTERS_OF[shape] * repeats
    flag = {"ld": ".pack::16b", "st": ".unpack::16b"}[op] if packed else ""
    name = f"tcgen05.{op}.sync.aligned.{shape}.x{repeats}{flag}.b32"
    half = f", {second_half}" if shape == "16x32bx2" else ""
    if op == "ld":
        return f"{name} {registers(count)}, [{address}]{half};\n" + WAIT[op]
    return f"{name} [{address}]{half}, {registers(count)};\n" + WAIT[op]


def dump(columns=512):
    """Load all columns of the warp's lanes, and store them: word (column * 128 + lane) of the result."""
    text = ""
    for first in range(0, columns, 128):
        text += f"add.u32 %r9, %r8, {first}; add.u64 %rd3, %rd2, {first * 512};\n"
        text += access("ld", "32x32b", 128, "%r9") + global_words("st", 128, "%rd3")
    return text


def fill(columns=512):
    """Store word (column * 128 + lane) of the input to each cell of the warp's lanes."""
    text = ""
    for first in range(0, columns, 128):
        text += f"add.u32 %r9, %r8, {first}; add.u64 %rd3, %rd1, {first * 512};\n"
        text += global_words("ld", 128, "%rd3") + access("st", "32x32b", 128, "%r9")
    return text


def reach(shape, repeats, packed):
    """The columns that a shape covers, and the columns from its first half to its second."""
    wide = 1 + packed
    width = {"32x32b": 1, "16x32bx2": 1, "16x64b": 2, "16x128b": 4, "16x256b": 8}[shape] * repeats * wide
    return (2 * width, width) if shape == "16x32bx2" else (width, 0)


def expected_words(matrix, shape, repeats, packed, second_half, base):
    """What a load of all four warps gives, from the cells (column, lane)."""
    count = REGISTERS_OF[shape] * repeats
    result = np.empty((count, 128), np.uint32)
    for register in range(count):
        for thread in range(128):
            lane, column = cell(shape, register, thread % 32, second_half)
            lane += thread // 32 * 32
            if packed:
                low, high = matrix[base + 2 * column, lane], matrix[base + 2 * column + 1, lane]
                result[register, thread] = low & 0xFFFF | high << 16
            else:
                result[register, thread] = matrix[base + column, lane]
    return result


@pytest.mark.cases(12)
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("shape, repeats", SHAPES)
def test_a_load_takes_the_cells_of_the_manual(shape, repeats, packed, rng):
    width, half = reach(shape, repeats, packed)
    columns = 128 if width <= 64 else 512
    matrix, count, base = words(rng, columns), REGISTERS_OF[shape] * repeats, 8 if width < 512 else 0
    load = access("ld", shape, repeats, "%r9", packed, half) + global_words("st", count, "%rd2")
    result = np.zeros((count, 128), np.uint32)
    clean(launch(source(fill(columns) + f"add.u32 %r9, %r8, {base};\n" + load), matrix, result))
    np.testing.assert_array_equal(result, expected_words(matrix, shape, repeats, packed, half // (1 + packed), base))


@pytest.mark.cases(12)
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("shape, repeats", SHAPES)
def test_a_store_is_the_inverse_of_a_load(shape, repeats, packed, rng):
    """All other cells keep what they had."""
    (width, half), count = reach(shape, repeats, packed), REGISTERS_OF[shape] * repeats
    columns = 128 if width <= 128 else 512
    given, before = words(rng, count), words(rng, columns)
    x, result = np.concatenate([given, before]), np.zeros((columns, 128), np.uint32)
    text = source(
        f"add.u64 %rd1, %rd1, {count * 512};\n" + fill(columns) + f"sub.u64 %rd1, %rd1, {count * 512};\n"
        + global_words("ld", count, "%rd1") + access("st", shape, repeats, packed=packed, second_half=half)
        + dump(columns)
    )  # fmt: skip
    clean(launch(text, x, result))
    wanted = before.copy()
    for register in range(count):
        for thread in range(128):
            lane, column = cell(shape, register, thread % 32, half // (1 + packed))
            lane, value = lane + thread // 32 * 32, given[register, thread]
            if packed:
                wanted[2 * column, lane], wanted[2 * column + 1, lane] = value & 0xFFFF, value >> 16
            else:
                wanted[column, lane] = value
    np.testing.assert_array_equal(result, wanted)


REDUCTIONS = [
    (shape, repeats, f".{operation}{modifiers}", type)
    for shape in ("32x32b", "16x32bx2") for repeats in (2, 8, 128) for operation in ("min", "max")
    for type, modifiers in (("u32", ""), ("s32", ""), *(("f32", m) for m in ("", ".abs", ".NaN", ".abs.NaN")))
]  # fmt: skip
EDGES = np.array([0, 1 << 31, 0x7F800000, 0xFF800000, 0x7FC00000, 1, 0x80000001, 0x3F800000], np.uint32)


def reduced(numbers, modifiers):
    """The least or greatest of each thread's registers, of IEEE numbers NaN only if all are, or with .NaN any is."""
    low, numbers = ".min" in modifiers, np.abs(numbers) if ".abs" in modifiers else numbers
    if numbers.dtype != np.float32:
        return (numbers.min if low else numbers.max)(axis=0)
    result = (np.fmin if low else np.fmax).reduce(numbers)
    if ".NaN" in modifiers:
        result[np.isnan(numbers).any(0)] = np.nan
    zero = result == 0  # -0 is less than 0
    some = np.where(numbers == 0, np.signbit(numbers), not low)
    result[zero] = np.where((some.any(0) if low else some.all(0))[zero], -0.0, 0.0)
    return result


@pytest.mark.cases(6)
@pytest.mark.parametrize("shape, repeats, modifiers, type", REDUCTIONS)
def test_a_load_with_a_reduction(shape, repeats, modifiers, type, rng):
    _, half = reach(shape, repeats, False)
    matrix = np.where(rng.integers(0, 2, (256, 128)), rng.choice(EDGES, (256, 128)), words(rng, 256))
    matrix[:, 0] = EDGES[4]
    address, last = ("%r8", f", {half}" if half else "")
    name = f"tcgen05.ld.red.sync.aligned.{shape}.x{repeats}{modifiers}.{type}"
    load = f"{name} {registers(repeats)}, %v{repeats}, [{address}]{last};\n" + WAIT["ld"]
    result = np.zeros((repeats + 1, 128), np.uint32)
    text = source(fill(256) + load + global_words("st", repeats + 1, "%rd2")).replace("sm_100a", "sm_103a")
    clean(launch(text, matrix, result))
    wanted = expected_words(matrix, shape, repeats, False, half, 0)
    np.testing.assert_array_equal(result[:repeats], wanted)
    numbers = wanted.view({"u32": np.uint32, "s32": np.int32, "f32": np.float32}[type])
    expected = reduced(numbers, modifiers)
    if type == "f32":
        expected = np.where(np.isnan(expected), np.uint32(0x7FFFFFFF), expected.view(np.uint32))
    np.testing.assert_array_equal(result[repeats], expected.view(np.uint32))


def test_16_lanes_may_be_the_upper_half_of_a_quarter(rng):
    matrix, result = words(rng, 128), np.zeros((2, 128), np.uint32)
    load = "add.u32 %r9, %r8, 0x100000;\n" + access("ld", "16x128b", 1, "%r9") + global_words("st", 2, "%rd2")
    clean(launch(source(fill(128) + load), matrix, result))
    upper = np.roll(matrix, -16, axis=1)
    np.testing.assert_array_equal(result, expected_words(upper, "16x128b", 1, False, 0, 0))


def test_a_register_may_be_read_before_the_wait(rng):
    """Register dependencies are respected; the wait is for what happens to the cells afterwards."""
    matrix, result = words(rng, 128), np.zeros((4, 128), np.uint32)
    body = fill(128) + access("ld", "32x32b", 4).replace(WAIT["ld"], "") + global_words("st", 4, "%rd2") + WAIT["ld"]
    clean(launch(source(body), matrix, result))
    np.testing.assert_array_equal(result, matrix[:4])


def test_cells_that_were_never_written_are_poison():
    body = access("ld", "32x32b", 4) + global_words("st", 4, "%rd2")
    finding = only(launch(source(body), np.zeros(1), np.zeros((4, 128), np.uint32)))
    assert (finding.kind, finding.message) == (
        "uninitialized",
        "tcgen05.ld.sync.aligned.32x32b.x4.b32 reads lane 0, column 0 of tensor memory, which was never written; "
        "st.global.b32 uses it (register %v0)",
    )
    assert finding.help == "write it first: tcgen05.st, or tcgen05.mma with a false `enable_input_d`"


def test_what_an_uninitialised_register_stored_is_uninitialised():
    body = access("st", "32x32b", 1) + access("ld", "32x32b", 1) + global_words("st", 1, "%rd2")
    assert only(launch(source(body), np.zeros(1), np.zeros((1, 128), np.uint32))).message == (
        "tcgen05.st.sync.aligned.32x32b.x1.b32 stored a register in tensor memory that was never written; "
        "st.global.b32 uses it (register %v0)"
    )


def test_freed_columns_are_poison_when_they_are_allocated_again(rng):
    free = (
        "bar.sync 0; @!%p2 bra B; tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r7, 32;"
        "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r5], 32;\nB: bar.sync 0;\n"
    )
    store = global_words("ld", 1, "%rd1") + access("st", "32x32b", 1)
    body = store + free + access("ld", "32x32b", 1) + global_words("st", 1, "%rd2")
    finding = only(launch(source(body, 32), words(rng, 1), np.zeros((1, 128), np.uint32)))
    assert finding.kind == "uninitialized"


ALLOCATE = "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32"
FREE = "tcgen05.dealloc.cta_group::1.sync.aligned.b32"


def allocation(body, block=32):
    """The report of a kernel of one warp that allocates by itself."""
    text = source("", 32).partition("@!%p2 bra A")[0] + body + " ret;\n}\n"
    return launch(text, np.zeros(1), np.zeros(4, np.uint32), block)


@pytest.mark.parametrize("count", [32, 64, 128, 256, 512])
def test_sizes_that_can_be_allocated(count):
    clean(allocation(f"{ALLOCATE} [%r5], {count}; ld.shared.b32 %r7, [%r5]; {FREE} %r7, {count};\n"))


def test_allocations_do_not_overlap():
    body = "".join(f"{ALLOCATE} [%r5], 128; ld.shared.b32 %r{10 + n}, [%r5]; bar.warp.sync -1;\n" for n in range(4))
    body += "".join(f"st.global.b32 [%rd2+{4 * n}], %r{10 + n};\n" for n in range(4))
    body += "".join(f"{FREE} %r{10 + n}, 128;\n" for n in range(4))
    result = np.zeros(4, np.uint32)
    clean(launch(source("", 32).partition("@!%p2 bra A")[0] + body + " ret;\n}\n", np.zeros(1), result, 32))
    assert sorted(result.tolist()) == [0, 128, 256, 384]


def test_an_allocation_waits_until_another_warp_frees():
    """Warp 1 waits for the columns of warp 0, which frees them later."""
    body = (
        f"@!%p2 bra B; {ALLOCATE} [%r5], 512; ld.shared.b32 %r7, [%r5]; bar.sync 1, 64; {FREE} %r7, 512; bra C;\n"
        f"B: bar.sync 1, 64; {ALLOCATE} [%r5+4], 512; ld.shared.b32 %r7, [%r5+4]; {FREE} %r7, 512;\nC:\n"
    )
    clean(allocation(body, 64))


REFUSED = {
    "not freed": (
        f"{ALLOCATE} [%r5], 64;\n",
        "block (0, 0, 0) ends and columns 0 to 63 of tensor memory are still allocated",
        "execute tcgen05.dealloc in one warp before the block ends",
    ),
    "freed in part": (
        f"{ALLOCATE} [%r5], 64; ld.shared.b32 %r7, [%r5]; {FREE} %r7, 32;\n",
        f"{FREE} of 32 columns at 0x0: 64 columns were allocated there",
        "pass the address and the number of columns of tcgen05.alloc",
    ),
    "never allocated": (
        f"{FREE} 64, 32;\n",
        f"{FREE} of 32 columns at 0x40: no allocation begins there",
        "pass the address and the number of columns of tcgen05.alloc",
    ),
    "not a power of two": (
        f"mov.u32 %r9, 96; {ALLOCATE} [%r5], %r9;\n",
        f"{ALLOCATE}: `columns` is 96; the number of columns is a power of two from 32 to 512",
        "round it up to a power of two",
    ),
    "after relinquishing": (
        "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;\n"
        f"{ALLOCATE} [%r5], 32; ld.shared.b32 %r7, [%r5]; {FREE} %r7, 32;\n",
        f"{ALLOCATE} after tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned of the same block",
        "relinquish the permit after the last allocation",
    ),
    "larger than the one before": (
        f"{ALLOCATE} [%r5], 32; ld.shared.b32 %r7, [%r5]; {FREE} %r7, 32; bar.warp.sync -1;\n"
        f"{ALLOCATE} [%r5], 64; ld.shared.b32 %r7, [%r5]; {FREE} %r7, 64;\n",
        f"{ALLOCATE} of 64 columns after one of 32; the sizes of the allocations of a block must not increase",
        "allocate the largest size first",
    ),
    "of another group": (
        f"{ALLOCATE} [%r5], 32; ld.shared.b32 %r7, [%r5]; {FREE} %r7, 32;\n"
        "tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;\n",
        "tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned has .cta_group::2, and "
        f"{ALLOCATE} .cta_group::1; all tcgen05 instructions of a kernel have the same CTA group",
        "write .cta_group::1 in both, or .cta_group::2",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_misuse_of_the_allocation(name):
    body, message, help = REFUSED[name]
    finding = allocation(body).findings[0]
    assert (finding.kind, finding.message, finding.help) == ("tensor-memory", message, help)


def test_an_allocation_that_can_never_succeed_is_a_deadlock():
    body = f"{ALLOCATE} [%r5], 512; {ALLOCATE} [%r5+4], 32;\n"
    finding = only(allocation(body))
    assert finding.kind == "deadlock"
    assert finding.message == (
        "every thread is blocked\n  threads 0–31 of block (0, 0, 0) wait at tcgen05.alloc.cta_group::1.sync.aligned."
        "shared::cta.b32 (<ptx>:9), for 32 columns of tensor memory; 0 of 512 are free in the block"
    )


def test_the_quarter_that_an_address_names_is_ignored(rng):
    """Each warp loads its own lanes from the address of lane 0, as kernels of DeepGEMM do: a strict finding."""
    matrix, result = words(rng, 128), np.zeros((8, 128), np.uint32)
    text = source(fill(128) + access("ld", "32x32b", 8, "%r7") + global_words("st", 8, "%rd2"), 128)
    report = launch(text, matrix, result, strict=False)
    assert not report.errors
    assert (report.findings[0].kind, report.findings[0].message) == (
        "tensor-memory",
        "tcgen05.ld.sync.aligned.32x32b.x8.b32 of warp 1 begins in lane 0 of tensor memory; the warp reaches lanes 32 to 63",
    )
    np.testing.assert_array_equal(result, matrix[:8])


ACCESSES = {
    "lanes of another warp": (
        "add.u32 %r9, %r7, 0x200000;\n" + access("ld", "32x32b", 1, "%r9"),
        "tcgen05.ld.sync.aligned.32x32b.x1.b32 of warp 0 begins in lane 32 of tensor memory; the warp reaches "
        "lanes 0 to 31",
        "add 32 * (warp % 4) << 16 to the address: its upper half is the lane",
    ),
    "columns past the allocation": (
        "add.u32 %r9, %r8, 28;\n" + access("ld", "32x32b", 8, "%r9"),
        "tcgen05.ld.sync.aligned.32x32b.x8.b32 reads columns 28 to 35 of tensor memory; the block has allocated "
        "columns 0 to 31",
        "allocate enough columns with tcgen05.alloc",
    ),
    "columns past the allocation, stored": (
        "mov.u32 %v0, 1; add.u32 %r9, %r8, 32;\n" + access("st", "32x32b", 1, "%r9"),
        "tcgen05.st.sync.aligned.32x32b.x1.b32 writes column 32 of tensor memory; the block has allocated "
        "columns 0 to 31",
        "allocate enough columns with tcgen05.alloc",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ACCESSES)
def test_accesses_out_of_reach(name):
    body, message, help = ACCESSES[name]
    finding = only(launch(source(body, 32), np.zeros(1), np.zeros(1, np.uint32)))
    assert (finding.kind, finding.message, finding.help) == ("tensor-memory", message, help)


def test_an_address_that_differs_between_lanes():
    body = "add.u32 %r9, %r8, %r1;\n" + access("ld", "32x32b", 1, "%r9")
    finding = launch(source(body, 32), np.zeros(1), np.zeros(1, np.uint32), block=32).findings[0]
    assert (finding.kind, finding.message) == (
        "divergent-collective",
        "`address` of tcgen05.ld.sync.aligned.32x32b.x1.b32 differs between the lanes of a warp",
    )


def test_blocks_have_tensor_memory_of_their_own(rng):
    """Each of 40 blocks keeps its number there."""
    body = (
        "mov.u32 %v0, %ctaid.x;\n" + access("st", "32x32b", 1) + access("ld", "32x32b", 1)
        + "mov.u32 %r9, %ctaid.x; mul.wide.u32 %rd3, %r9, 512; add.u64 %rd2, %rd2, %rd3;\n"
        + global_words("st", 1, "%rd2")
    )  # fmt: skip
    result = np.zeros((40, 128), np.uint32)
    clean(launch(source(body, 32), np.zeros(1), result, grid=40, resident=3))
    np.testing.assert_array_equal(result, np.arange(40)[:, np.newaxis] + np.zeros((1, 128)))
