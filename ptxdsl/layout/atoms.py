"""MMA and copy atoms: the mapping from threads and values to elements of one instruction.

A thread-value layout maps (thread, value) to the element's linear position, first mode fastest: in A (M, K), in B (N,
K), in C (M, N). For copies it maps to the bit's position in the data that the instruction moves.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeAlias

from ptxdsl.layout.draw import Drawable, Grid, Picture, thread_value_grid
from ptxdsl.layout.layout import Layout, from_modes
from ptxdsl.layout.mma_atom import LEAST_BITS, MmaAtom, held
from ptxdsl.layout.mma_shapes import BITS, MMA, WGMMA, WGMMA_M, MmaShape, WarpgroupProduct
from ptxdsl.layout.recast import upcast
from ptxdsl.layout.shape import check_int, kind_of, refusal
from ptxdsl.layout.tcgen05 import TensorMemoryAccess, tensor_memory_access, tensor_memory_atom

WARP = 32
WARPGROUP = 128
WIDTHS = (1, 2, 4, 8, 16, 32, 64, 128)  # element widths in bits
MATRIX_ROW_BYTES = 16  # bytes of the row that one lane's address of ldmatrix or stmatrix points to


def _type_pairs(product: MmaShape | WarpgroupProduct) -> tuple[str, ...]:
    """Return ACCUMULATOR.INPUT for each pair of types whose elements are whole bytes."""
    inputs = [name for name in product.inputs if BITS[name] >= LEAST_BITS]
    return tuple(f"{accumulator}.{name}" for accumulator in product.sums for name in inputs)


def _by_shape() -> dict[tuple[int, int, int], tuple[str, ...]]:
    pairs: dict[tuple[int, int, int], tuple[str, ...]] = {}
    for product in MMA:
        pairs[product.shape] = pairs.get(product.shape, ()) + _type_pairs(product)
    return {shape: known for shape, known in pairs.items() if known}


_MMA = _by_shape()
_WGMMA = {pair: product for product in WGMMA for pair in _type_pairs(product)}


@dataclass(frozen=True)
class CopyAtom(Drawable):
    """One copy instruction of `threads` threads.

    `source` and `target` name the state space of each side: "shared", "global", "memory" (any space) or "registers".
    `vector_bytes` is the size of the contiguous, aligned vector at a thread's address. `source_bits` and `target_bits`
    are thread-value layouts over bits.
    """

    name: str
    threads: int
    source: str
    target: str
    vector_bytes: int
    source_bits: Layout = field(repr=False)
    target_bits: Layout = field(repr=False)
    transposed: bool = False

    @property
    def addressing_threads(self) -> int:
        """The number of threads whose address is used: eight for each matrix."""
        return int(self.name.split(".")[1][1:]) * 8 if self.is_matrix else self.threads

    @property
    def is_matrix(self) -> bool:
        """True for ldmatrix and stmatrix, where threads address rows and hold elements of other threads' rows."""
        return self.threads == WARP

    def source_values(self, bits: int) -> Layout:
        """Return (thread, value) → position of a `bits` wide element on the source side."""
        self._check_width(bits)
        return upcast(self.source_bits, bits)

    def target_values(self, bits: int) -> Layout:
        """Return (thread, value) → position of a `bits` wide element on the target side."""
        self._check_width(bits)
        return upcast(self.target_bits, bits)

    def reference_values(self, bits: int) -> Layout:
        """Return the thread-value layout of the side that a tiled copy refers to: the register side if there is one."""
        return self.source_values(bits) if self.source == "registers" else self.target_values(bits)

    def _check_width(self, bits: int) -> None:
        check_element(bits)
        if self.transposed and bits != 16:
            raise refusal(
                f"{self.name} transposes 16-bit elements; these have {bits} bits",
                f"store the tile transposed, and use {self.name.removesuffix('.trans')}",
            )
        if self.is_matrix and bits > 32:
            raise refusal(
                f"{self.name} gives 32-bit parts of a row to different threads, which would split a {bits}-bit element",
                "use ld.shared",
            )
        if bits > self.vector_bytes * 8:
            raise refusal(
                f"{self.name} moves {self.vector_bytes * 8} bits per thread, less than one {bits}-bit element",
                f"use an instruction of at least {bits // 8} bytes per thread",
            )

    def __str__(self) -> str:
        return self.name

    def picture(self) -> Picture:
        """Draw the thread that addresses each vector and the threads that hold its 16-bit elements (8-bit for one-byte
        copies).
        """
        bits = min(16, self.vector_bytes * 8)
        columns = self.vector_bytes * 8 // bits
        sides = ((self.source, self.source_values(bits)), (self.target, self.target_values(bits)))
        grids = [_vector_grid(name, tv, columns, (i, 0)) for i, (name, tv) in enumerate(sides)]
        return Picture(f"{self.name}: {self.source} to {self.target}, {bits}-bit elements", tuple(grids))


Atom: TypeAlias = MmaAtom | CopyAtom | TensorMemoryAccess


def _vector_grid(title: str, layout_tv: Layout, columns: int, at: tuple[int, int]) -> Grid:
    """Draw one vector per row."""
    rows = layout_tv.cosize // columns
    values = [(t, v, p // columns + p % columns * rows) for t, v, p in held(layout_tv)]
    return thread_value_grid(title, rows, values)._replace(at=at)


def check_element(bits: Any) -> None:
    """Raise LayoutError if no type has this element width."""
    check_int(bits, "the width of an element in bits", least=1)
    if bits not in WIDTHS:
        raise refusal(f"no element type has {bits} bits", f"the widths are {', '.join(map(str, WIDTHS))}")


MULTIPLIES = ("mma", "wgmma", "tcgen05")
COPIES = ("ldmatrix", "stmatrix", "ld", "st", "cp")
INSTRUCTIONS = "an instruction such as mma.m16n8k16.f32.f16, ldmatrix.x4, cp.async.16 or ld.shared.16"


def atom(name: str) -> Atom:
    """Return the atom of a PTX name: "mma.m16n8k16.f32.f16", "ldmatrix.x4.trans", "cp.async.16", "ld.shared.v4.b32"."""
    operation, *words = _name(name, "an atom", INSTRUCTIONS).split(".")
    if operation == "tcgen05" and words[:1] in (["ld"], ["st"]):
        return tensor_memory_access(name)
    if operation not in (*MULTIPLIES, *COPIES):
        raise refusal(f"there is no atom {name!r}", f"write {INSTRUCTIONS}")
    return mma_atom(name) if operation in MULTIPLIES else copy_atom(name)


def _name(value: Any, subject: str, examples: str) -> str:
    if not isinstance(value, str):
        shown = str(value) if isinstance(value, (MmaAtom, CopyAtom)) else kind_of(value)
        raise refusal(f"{subject} is created from the name of an instruction; found {shown}", f"write {examples}")
    return value


# ---- mma -----------------------------------------------------------------------------------------------------------

_MMA_NAME = re.compile(
    r"(?P<op>mma(?=\.)|wgmma(?:\.mma_async)?)(?:\.sync)?(?:\.aligned)?\.m(?P<m>\d+)n(?P<n>\d+)k(?P<k>\d+)"
    r"(?P<majors>(?:\.(?:row|col))*)(?P<types>(?:\.\w+)*)"
)
_MIXED = ({"s8", "u8"}, {"e4m3", "e5m2"})  # input types that A and B may mix


def mma_atom(name: MmaAtom | str) -> MmaAtom:
    """Return the MMA atom of a name such as mma.m16n8k16.f32.f16 (accumulator, input) or
    mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32.

    wgmma.m64n128k16.f32.f16 reads A from shared memory; with the suffix .rs it reads A from registers.
    tcgen05.m128n256k16.f32.f16 is a product in tensor memory. An atom is returned unchanged.
    """
    if isinstance(name, MmaAtom):
        return name
    if isinstance(name, str) and name.startswith("tcgen05."):
        return tensor_memory_atom(name)
    return _named_mma(_name(name, "an MMA atom", "mma.m16n8k16.f32.f16 or wgmma.m64n128k16.f32.f16"))


@cache
def _named_mma(name: str) -> MmaAtom:
    match = _MMA_NAME.fullmatch(name)
    if not match:
        raise _no_mma(name)
    shape = int(match["m"]), int(match["n"]), int(match["k"])
    words = match["types"].split(".")[1:]
    wgmma = match["op"] != "mma"
    if match["majors"]:
        _check_majors(name, match["majors"], wgmma)
    return _wgmma(name, shape, words) if wgmma else _mma(shape, *_types(name, words, _MMA.get(shape, ())))


def _check_majors(name: str, majors: str, wgmma: bool) -> None:
    if wgmma:
        raise refusal(
            f"there is no MMA atom {name!r}: a wgmma name has no layout qualifiers, and this one has {majors}",
            f"leave out {majors}",
        )
    if majors != ".row.col":
        raise refusal(
            f"there is no MMA atom {name!r}: A is row-major and B is column-major, .row.col; found {majors}",
            "write .row.col, and load a tile of the other major with ldmatrix.x4.trans",
        )


def _types(name: str, words: list[str], known: tuple[str, ...]) -> tuple[str, str, str]:
    """Return the (accumulator, A, B) types of a name, which has none, the input, accumulator and input(s), or D, A, B
    and C.
    """
    if not words:
        words = known[0].split(".") if known else []
    elif len(words) == 1:
        words = next((k.split(".") for k in known if k.endswith("." + words[0])), [])
    if len(words) == 4 and words[0] == words[3]:
        words = words[:3]
    accumulator, a, b = (*words, words[-1])[:3] if len(words) in (2, 3) else ("", "", "")
    if a != b and {a, b} <= set(BITS) and {a, b} not in _MIXED:
        raise refusal(
            f"there is no MMA atom {name!r}: A and B must have the same type; found {a} and {b}",
            "convert one of them; only e4m3 and e5m2, or s8 and u8, may be mixed",
        )
    if f"{accumulator}.{a}" not in known or f"{accumulator}.{b}" not in known:
        raise _no_mma(name)
    return accumulator, a, b


def _label(operation: str, shape: tuple[int, int, int], accumulator: str, a: str, b: str) -> str:
    m, n, k = shape
    return f"{operation}.m{m}n{n}k{k}.{accumulator}.{a}" + (f".{b}" if a != b else "")


def _mma(shape: tuple[int, int, int], accumulator: str, a: str, b: str) -> MmaAtom:
    m, n, k = shape
    label = _label("mma", shape, accumulator, a, b)
    bits = BITS[a]
    c = _by_lane((2 * m, 1), (2, m), (m // 8, 8))
    return MmaAtom(label, shape, WARP, _operand(m, k, bits), _operand(n, k, bits), c, bits, bits, BITS[accumulator])


def _operand(rows: int, k: int, bits: int) -> Layout:
    """Return A or B of one warp: a lane holds every fourth 32-bit word of K, in row lane / 4 and every eighth row after
    it.
    """
    packed = max(1, 32 // bits)
    pieces = k // (4 * packed)
    return _by_lane((packed * rows, 1), (packed, rows), (rows // 8, 8), (pieces, 4 * packed * rows))


def _by_lane(strides: tuple[int, int], *values: tuple[int, int]) -> Layout:
    """Return the lanes as 4 x 8, followed by the value modes, given as (size, stride), whose size is more than 1."""
    kept = [v for v in values if v[0] > 1]
    by_value = from_modes(Layout(n, d) for n, d in kept) if len(kept) > 1 else Layout(*(kept[0] if kept else (1, 0)))
    return from_modes([Layout((4, 8), strides), by_value])


def _wgmma(name: str, shape: tuple[int, int, int], words: list[str]) -> MmaAtom:
    m, n, k = shape
    from_registers = words[-1:] == ["rs"]
    accumulator, a, b = _types(name, words[:-1] if from_registers else words, tuple(_WGMMA))
    bits, product = BITS[a], _WGMMA[f"{accumulator}.{a}"]
    if m != WGMMA_M or n not in product.n or k != product.k:
        raise _no_mma(name)
    fragment = Layout(((4, 8, 4), (32 // bits, 2, 2)), ((2048 // bits, 1, 16), (64, 8, 8192 // bits)))
    whole = Layout((WARPGROUP, (m, k)), (0, (1, m)))
    c = Layout(((4, 8, 4), (2, 2, n // 8)), ((128, 1, 16), (64, 8, 512)))
    label = _label("wgmma", shape, accumulator, a, b) + (".rs" if from_registers else "")
    b_layout = Layout((WARPGROUP, (n, k)), (0, (1, n)))
    return MmaAtom(
        label, shape, WARPGROUP, fragment if from_registers else whole, b_layout, c, bits, bits, BITS[accumulator]
    )


def _no_mma(name: str) -> Exception:
    shapes = {f"m{m}n{n}k{k}": types for (m, n, k), types in _MMA.items()}
    shape = next((s for s in shapes if f".{s}." in f"{name}."), "")
    if name.startswith("wgmma"):
        known = f"m64nNkK, N a multiple of 8 up to 256, 32 bytes of K, with {', '.join(_WGMMA)}"
    else:
        known = f"{shape}: {', '.join(shapes[shape])}" if shape else f"the shapes are {', '.join(shapes)}"
    if name.split(".")[0] in COPIES:
        known = "this is a copy instruction, not a matrix product"
    operation = "wgmma" if name.startswith("wgmma") else "mma"
    return refusal(f"there is no MMA atom {name!r}", f"write {operation}.SHAPE.ACCUMULATOR.INPUT; {known}")


# ---- copies --------------------------------------------------------------------------------------------------------

_SPACES = {"shared": "shared", "shared::cta": "shared", "global": "global", "local": "memory"}
_IGNORED = {"sync", "aligned", "m8n8", "nc", "ca", "cg", "cs", "lu", "cv", "wb", "wt", "relaxed", "volatile", "weak"}
_SCALAR = re.compile(r"[bfus](8|16|32|64|128)")
_COPY_HELP = (
    "write ldmatrix.x1|x2|x4[.trans], stmatrix.x1|x2|x4[.trans], cp.async.4|8|16, "
    "or ld|st[.global|.shared] with 1, 2, 4, 8 or 16 bytes as .16, .b128 or .v4.b32"
)


def copy_atom(name: CopyAtom | str) -> CopyAtom:
    """Return the copy atom of a name such as ldmatrix.x4, stmatrix.x2.trans, cp.async.16, ld.shared.16 (bytes) or
    st.global.v4.b32.

    An atom is returned unchanged.
    """
    if isinstance(name, CopyAtom):
        return name
    return _named_copy(_name(name, "a copy atom", _COPY_HELP.removeprefix("write ")))


@cache
def _named_copy(name: str) -> CopyAtom:
    operation, words = _copy_words(name)
    if operation in ("ldmatrix", "stmatrix"):
        return _matrix_copy(name, operation, words)
    size = _vector_bytes(words)
    if operation not in ("ld", "st", "cp.async") or size not in (
        (4, 8, 16) if operation == "cp.async" else (1, 2, 4, 8, 16)
    ):
        raise _no_copy(name)
    bits = Layout((1, size * 8), (0, 1))
    space = next((_SPACES[w] for w in words if w in _SPACES), "memory")
    if operation == "cp.async":
        return CopyAtom(f"cp.async.{size}", 1, "global", "shared", size, bits, bits)
    label = f"{operation}.{size}" if space == "memory" else f"{operation}.{space}.{size}"
    source, target = (space, "registers") if operation == "ld" else ("registers", space)
    return CopyAtom(label, 1, source, target, size, bits, bits)


def _copy_words(name: str) -> tuple[str, list[str]]:
    operation, *words = name.removeprefix("cp.").split(".")
    words = [w for w in words if w not in _IGNORED and not w.startswith(("L1::", "L2::"))]
    return ("cp." + operation if name.startswith("cp.") else operation), words


def _vector_bytes(words: list[str]) -> int:
    """Return the bytes a thread moves for ".16" or ".v4.b32", or 0 for other words."""
    words = [w for w in words if w not in _SPACES]
    if len(words) == 1 and words[0].isdigit():
        return int(words[0])
    count = int(words.pop(0)[1:]) if len(words) == 2 and words[0] in ("v2", "v4", "v8") else 1
    scalar = _SCALAR.fullmatch(words[0]) if len(words) == 1 else None
    return count * int(scalar[1]) // 8 if scalar else 0


def _matrix_copy(name: str, operation: str, words: list[str]) -> CopyAtom:
    words = [w for w in words if w not in ("b16", "shared", "shared::cta")]
    count, transposed = words[0] if words else "", words[1:] == ["trans"]
    if count not in ("x1", "x2", "x4") or (words[1:] and not transposed):
        raise _no_copy(name)
    matrices = int(count[1:])
    rows, fragments = _addressed_rows(matrices), _fragments(matrices, transposed)
    label = f"{operation}.{count}" + (".trans" if transposed else "")
    if operation == "ldmatrix":
        return CopyAtom(label, WARP, "shared", "registers", MATRIX_ROW_BYTES, rows, fragments, transposed)
    return CopyAtom(label, WARP, "registers", "shared", MATRIX_ROW_BYTES, fragments, rows, transposed)


def _addressed_rows(matrices: int) -> Layout:
    """Map a lane to the row it addresses: row lane % 8 of matrix lane / 8; lanes past the last matrix repeat the first
    ones.
    """
    row = MATRIX_ROW_BYTES * 8
    lanes = 8 * matrices
    return Layout((WARP, row), (row, 1)) if lanes == WARP else Layout(((lanes, WARP // lanes), row), ((row, 0), 1))


def _fragments(matrices: int, transposed: bool) -> Layout:
    """Map a lane to its 32 bits of each 8x8 matrix of 16-bit elements: in row lane / 4, or in column lane / 4 if
    transposed.
    """
    matrix = 8 * MATRIX_ROW_BYTES * 8
    if transposed:
        return _by_lane((256, 16), (16, 1), (2, 128), (matrices, matrix))
    return from_modes([Layout(WARP, 32), Layout((32, matrices), (1, matrix)) if matrices > 1 else Layout(32)])


def _no_copy(name: str) -> Exception:
    return refusal(f"there is no copy atom {name!r}", _COPY_HELP)
