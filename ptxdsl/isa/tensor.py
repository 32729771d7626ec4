"""Tensors: bulk copies by tensor map, and the map itself (PTX ISA, "cp.async.bulk.tensor", "tensormap.replace").

`[map, {x, y}]` names a box of a tensor: the address of a tensor map (an opaque object of 128 bytes), and the
coordinates of the first corner of the box, innermost dimension first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from .. import ir
from ..errors import EmulationError
from ..types import TYPES, b64
from .atomic import reduction
from .boxes import CHUNK, box_pieces, chunk_addresses, known_swizzle, last_corners
from .bulk import BYTES, CTA, HINTED, LEAST, MASK, MASKED, POLICY, Bulk, by_name, destinations
from .bulk import REDUCED as REDUCED_TYPES
from .cluster_address import in_block, ranks_of
from .form import Form, Needs
from .memory import alignment_problems
from .opcode import Op, Opcode
from .operand import Problem
from .step import TENSOR_MAP, WEAK, Fence, Ordering, Pieces, Step
from .tensor_map import (
    BLANK,
    MAP_ALIGNMENT,
    MAP_BYTES,
    OFFSET_BITS,
    PixelBox,
    TensorMapDescription,
    decoded,
    replaced,
)

BOX = "[map:generic, {coordinates:s32*rank}]"
OFFSETS = "{, offsets:u16*offset_count if offset_count}"
RANKS = "1d 2d 3d 4d 5d"
PIXEL_MODES = ("im2col", "im2col_no_offs")
ROWS_OF_FOUR = ("tile::gather4", "tile::scatter4")  # one column, and four rows
BLACKWELL = "100f 110f"


def _rank(i: Any) -> int:
    """Return the number of coordinates of a box."""
    return 5 if i.mode in ROWS_OF_FOUR else int(i.dim[0])


def _offset_count(i: Any) -> int:
    """Return the number of im2col operands: one offset per filter dimension, or halo and offset for .w."""
    if i.mode is None or not i.mode.startswith("im2col"):
        return 0
    return int(i.dim[0]) - 2 if i.mode == "im2col" else 0 if i.mode == "im2col_no_offs" else 2


def _mode_fits(i: Any) -> bool:
    """True if the mode supports the rank: im2col needs a spatial dimension, gather and scatter need 2 dimensions."""
    if i.mode in ROWS_OF_FOUR:
        return bool(i.dim == "2d")
    return i.mode in (None, "tile") or int(i.dim[0]) >= 3


TENSOR: dict[str, Any] = {
    "dim": RANKS, "when": _mode_fits, "derived": {"rank": _rank, "offset_count": _offset_count}, **LEAST,
}  # fmt: skip
LOADS = "tile im2col tile::gather4 im2col::w im2col::w::128"
IM2COL_W: Needs = {"im2col::w": ("8.6", 100), "im2col::w::128": ("8.6", BLACKWELL)}
GROUPS: Needs = dict.fromkeys(("cta_group::1", "cta_group::2"), ("8.6", BLACKWELL))


MapLanes: TypeAlias = Iterator[tuple[np.ndarray, TensorMapDescription]]
"""A lane mask and the tensor map that these lanes use."""

_NO_MAP = "pass the address of a tensor map: a kernel parameter, or 128 bytes in global memory"


def read_maps(
    m: Step, space: str, address: np.ndarray, ordering: Ordering = WEAK, zeros: TensorMapDescription | None = None
) -> MapLanes:
    """Yield the tensor maps at these addresses; 128 zero bytes are `zeros`. Report bytes that are not a tensor map."""
    offsets = np.arange(0, MAP_BYTES, b64.bytes, dtype=np.uint64)[:, np.newaxis]
    words = np.ascontiguousarray(m.load(space, address + offsets, b64, ordering=ordering).T)
    contents = [row.tobytes() for row in words]
    for content in dict.fromkeys(contents):
        which = np.array([each == content for each in contents])
        description = decoded(content) if any(content) else zeros
        if description is None:
            m.fail("tensor-map", f"the 128 bytes at {int(address[which][0]):#x} are not a tensor map", which, _NO_MAP)
        else:
            yield which, description


def _lies_well(m: Step, address: np.ndarray) -> bool:
    """True if the tensor maps are aligned and in a state space that copies can read."""
    crooked = address % np.uint64(MAP_ALIGNMENT) != 0
    if crooked.any():
        message = f"the tensor map is at {int(address[crooked][0]):#x}, not a multiple of {MAP_ALIGNMENT} bytes"
        m.fail("misaligned", message, crooked, "align the variable that holds it to 128 bytes")
    in_shared = ~crooked & m.within("shared", address)
    if in_shared.any():
        message = "the tensor map is in shared memory; copies read it from global, constant or parameter memory"
        help = "copy it to global memory with tensormap.cp_fenceproxy"
        m.fail("tensor-map", message, in_shared, help)
    return not (crooked | in_shared).any()


class TensorCopy(Bulk):
    """Base of the copies by tensor map; in shared memory a box is aligned to 128 bytes."""

    alignment = 128

    def boxes(self, i: Opcode, m: Step, v: dict[str, Any], shared: np.ndarray | None) -> MapLanes:
        """Return the tensor maps that the lanes can copy boxes with."""
        if i.mode not in (None, "tile", *PIXEL_MODES, *ROWS_OF_FOUR):
            raise EmulationError(
                f"`{i.text}` cannot be emulated yet: .{i.mode} requires a target that the emulator does not support",
                help="run this kernel on a GPU",
            )
        address = v["map"]
        if not _lies_well(m, address):
            return
        for which, description in read_maps(m, "generic", address, TENSOR_MAP):
            if (
                self.fits(i, m, description, which)
                and _pixels_fit(m, description, v, which)
                and _line_is_met(m, description, v["coordinates"][0], which)
                and (self.stores != "map" or _stays_inside(m, description, v["coordinates"], which))
                and self.begins_well(m, shared, which)
            ):
                yield which, _four_rows(description) if i.mode in ROWS_OF_FOUR else description

    def pieces(self, v: dict[str, Any], description: TensorMapDescription, which: np.ndarray) -> Pieces:
        """Return the boxes of some lanes."""
        offsets = v["offsets"][:, which] if v.get("offsets") is not None else ()
        pieces = box_pieces(description, v["coordinates"][:, which], offsets)
        return replace(pieces, maps=v["map"][which], swizzle=known_swizzle(description))

    def fits(self, i: Opcode, m: Step, description: TensorMapDescription, which: np.ndarray) -> bool:
        """True if the map is valid for this instruction and for the driver."""
        problem = next(description.problems(), None) or _mode_problem(i, description)
        if int(i.dim[0]) != description.rank:
            problem = (
                f"the tensor map has {description.rank} dimensions, but the instruction copies boxes of {i.dim[0]}"
            )
        if problem is not None:
            m.fail("tensor-map", problem, which, "make the map for this instruction: pd.TensorMap(type, box)")
        return problem is None

    def begins_well(self, m: Step, shared: np.ndarray | None, which: np.ndarray) -> bool:
        """True if the boxes are aligned in shared memory."""
        if shared is None:
            return True
        crooked = which & (shared % np.uint64(self.alignment) != 0)
        if crooked.any():
            message = f"the box begins at {int(shared[crooked][0]):#x} in shared memory, not a multiple of 128 bytes"
            m.fail("misaligned", message, crooked, "align the buffer to 128 bytes, or to 1024 with a swizzle of 128")
        return not crooked.any()


def _four_rows(description: TensorMapDescription) -> TensorMapDescription:
    """Return the description of the box that four rows fill in shared memory."""
    return replace(description, box=(description.box[0], 4))


def _mode_problem(i: Opcode, description: TensorMapDescription) -> str | None:
    """Return the mismatch of a map and the mode of an instruction, or None."""
    box, pixels = description.pixel_box, i.mode in PIXEL_MODES
    if i.mode in ROWS_OF_FOUR and (description.box[1] != 1 or description.interleave):
        layout = "an interleaved layout" if description.interleave else f"boxes of {description.box[1]} rows"
        return f"the tensor map has {layout}; .{i.mode} takes a map with boxes of 1 row, without interleaving"
    if pixels and box is None:
        return f"the tensor map is tiled, but .{i.mode} takes an im2col map (cuTensorMapEncodeIm2col)"
    if not pixels and box is not None:
        return "the tensor map is an im2col map, but the instruction copies tiles: write .im2col"
    if box is None or i.mode == "im2col" or "prefetch" in i.text:
        return None
    for d, (low, high) in enumerate(zip(box.lower, box.upper, strict=True), description.first_axis):
        if low < 0 or high > 0:
            return f"the pixel box extends outside the tensor along dimension {d}; stores must stay inside"
    return None


def _line_is_met(m: Step, description: TensorMapDescription, start: np.ndarray, which: np.ndarray) -> bool:
    """True if boxes start at a multiple of 16 bytes in the rows of a tensor, as GPUs require."""
    each = description.interleave or description.type.bytes
    crooked = which & (start.astype(np.int64) * each % CHUNK != 0)
    if crooked.any():
        first = int(start[crooked][0])
        message = f"the box begins at element {first} of its rows, which is not a multiple of {CHUNK} bytes"
        help = f"start boxes at multiples of {CHUNK // each} elements of {description.type}"
        m.fail("misaligned", message, crooked, help)
    return not crooked.any()


def _stays_inside(m: Step, description: TensorMapDescription, coordinates: np.ndarray, which: np.ndarray) -> bool:
    """True if stored boxes start inside the tensor and do not write past the end of its rows."""
    return _begins_inside(m, coordinates, which) and _ends_at_chunks(m, description, coordinates[0], which)


def _ends_at_chunks(m: Step, description: TensorMapDescription, start: np.ndarray, which: np.ndarray) -> bool:
    """True if no box reaches the end of a row inside a 16-byte chunk, since GPUs write whole chunks."""
    d, length = description, description.dims[0]
    behind = -length * d.type.bytes % CHUNK // d.type.bytes
    if not behind or d.interleave:
        return True
    first = start.astype(np.int64)
    beyond = which & (first < length) & (first + d.box_shape[0] > length)
    if beyond.any():
        elements = f"{behind} element{'s' * (behind > 1)}"
        message = (
            f"the box reaches the end of rows of {length} elements of {d.type}, not a multiple of {CHUNK} "
            f"bytes: GPUs write whole {CHUNK}-byte chunks, and so {elements} past the end of each row"
        )
        help = f"store the elements from {length - CHUNK // d.type.bytes + behind} on with st.global, or pad the rows"
        m.fail("out-of-bounds", message, beyond, help)
    return not beyond.any()


def _begins_inside(m: Step, coordinates: np.ndarray, which: np.ndarray) -> bool:
    """True if stored boxes have no negative coordinates; only loads may start outside the tensor."""
    before = which & (coordinates < 0).any(0)
    if before.any():
        corner = ", ".join(str(int(c[before][0])) for c in coordinates)
        message = f"the box begins at {{{corner}}}; copies to global memory start at 0 or more along each dimension"
        m.fail("out-of-bounds", message, before, "start it at 0, and copy a smaller box from shared memory")
    return not before.any()


def _pixels_fit(m: Step, description: TensorMapDescription, v: dict[str, Any], which: np.ndarray) -> bool:
    """True if the filter corners are inside the pixel box, and the offsets are within the range of the instruction."""
    if (box := description.pixel_box) is None:
        return True
    return _corners_fit(m, description, box, v["coordinates"], which) and _offsets_fit(m, description, v, which)


def _corners_fit(
    m: Step, description: TensorMapDescription, box: PixelBox, coordinates: np.ndarray, which: np.ndarray
) -> bool:
    corners = zip(box.lower, last_corners(description, box), strict=True)
    for d, (low, last) in enumerate(corners, description.first_axis):
        beyond = which & ((coordinates[d] < low) | (coordinates[d] > last))
        if beyond.any():
            corner = int(coordinates[d][beyond][0])
            message = f"the copy begins at {corner} along dimension {d}; the pixel box goes from {low} to {last}"
            help = "coordinates give the filter's corner; offsets lead from there to its elements"
            m.fail("tensor-map", message, beyond, help)
            return False
    return True


def _offsets_fit(m: Step, description: TensorMapDescription, v: dict[str, Any], which: np.ndarray) -> bool:
    rank = description.rank
    for offset in v.get("offsets", ()):
        beyond = which & (offset >> OFFSET_BITS[rank] != 0)
        if beyond.any():
            most = (1 << OFFSET_BITS[rank]) - 1
            message = f"`offsets` has {int(offset[beyond][0])}; with {rank} dimensions the maximum is {most}"
            m.fail("tensor-map", message, beyond, f"give offsets from 0 to {most}")
            return False
    return True


class TensorCopyToShared(TensorCopy):
    """Copy a box of a tensor to shared memory asynchronously, or (.multicast::cluster) to all blocks in `cta_mask`."""

    stores = "dst"
    forms = (
        Form(
            f"cp.async.bulk.tensor.dim.shared::cta.global{{.mode}}.{BYTES}{{.ctas}}{HINTED}"
            f" [dst:shared::cta], {BOX}, [mbarrier:shared]{OFFSETS}{POLICY}",
            mode=LOADS,
            ctas="cta_group::1 cta_group::2",
            needs={**CTA, **IM2COL_W, **GROUPS, "tile::gather4": ("8.6", 100)},
            **TENSOR,
        ),
        Form(
            f"cp.async.bulk.tensor.dim.shared::cluster.global{{.mode}}.{BYTES}{MASKED}{{.ctas}}{HINTED}"
            f" [dst:shared::cluster], {BOX}, [mbarrier:shared::cluster]{OFFSETS}{MASK}{POLICY}",
            mode=LOADS,
            ctas="cta_group::1 cta_group::2",
            needs={**IM2COL_W, **GROUPS, "im2col::w": ("8.6", BLACKWELL), "tile::gather4": ("8.6", BLACKWELL)},
            **TENSOR,
        ),
    )

    def execute(self, i: Opcode, m: Step, *inputs: Any) -> None:
        v, is_pair = by_name(i, inputs), i.ctas == "cta_group::2"
        space = "shared::cta" if ".shared::cta." in i.text and not is_pair else "shared::cluster"
        for alike, description in self.boxes(i, m, v, v["dst"]):
            for receives, dst, mbarrier in destinations(v):
                if is_pair and v.get("cta_mask") is not None:
                    mbarrier = _in_pair(m, dst, v["mbarrier"])
                which = alike & receives & _signals_well(i, m, dst, mbarrier, is_pair)
                if not which.any():
                    continue
                with m.only(which):
                    pieces = self.pieces(v, description, which)
                    m.load_bulk(space, chunk_addresses(description, dst[which]), pieces, mbarrier[which])


def _in_pair(m: Step, dst: np.ndarray, mbarrier: np.ndarray) -> np.ndarray:
    """Return the addresses of mbarriers in the pairs of the destinations, in the even or odd block as they are now."""
    return in_block(mbarrier, ranks_of(m, dst) & ~np.uint32(1) | ranks_of(m, mbarrier) & np.uint32(1))


def _signals_well(i: Opcode, m: Step, dst: np.ndarray, mbarrier: np.ndarray, is_pair: bool) -> np.ndarray:
    """Return the copies whose mbarrier is in the block of the destination, or in its pair, and report the others."""
    to, at = ranks_of(m, dst), ranks_of(m, mbarrier)
    apart = (to >> np.uint32(1) != at >> np.uint32(1)) if is_pair else to != at
    if apart.any():
        where = f"rank {int(to[apart][0])} and signals an mbarrier of rank {int(at[apart][0])}"
        help = "pass an mbarrier of the same block, or one of its pair with .cta_group::2"
        m.fail("cluster", f"{i.text} copies to shared memory of the block of {where}", apart, help)
    return ~apart


class TensorCopyToGlobal(TensorCopy):
    """Copy shared memory to a box of a tensor asynchronously; elements outside the tensor are not written."""

    stores = "map"
    forms = (
        Form(
            f"cp.async.bulk.tensor.dim.global.shared::cta{{.mode}}.bulk_group{HINTED} {BOX}, [src:shared::cta]{POLICY}",
            mode="tile im2col_no_offs tile::scatter4",
            needs={"tile::scatter4": ("8.6", BLACKWELL)},
            **TENSOR,
        ),
    )

    def execute(self, i: Opcode, m: Step, *inputs: Any) -> None:
        v = by_name(i, inputs)
        for which, description in self.boxes(i, m, v, v["src"]):
            with m.only(which):
                pieces = self.pieces(v, description, which)
                m.store_bulk(chunk_addresses(description, v["src"][which]), pieces)


class TensorReduce(TensorCopy):
    """Reduce shared memory asynchronously into a box of a tensor."""

    stores = "map"
    forms = (
        Form(
            f"cp.reduce.async.bulk.tensor.dim.global.shared::cta.operation{{.mode}}.bulk_group{HINTED}"
            f" {BOX}, [src:shared::cta]{POLICY}",
            operation="add min max inc dec and or xor",
            mode="tile im2col_no_offs",
            **TENSOR,
        ),
    )

    def execute(self, i: Opcode, m: Step, *inputs: Any) -> None:
        v = by_name(i, inputs)
        for which, description in self.boxes(i, m, v, v["src"]):
            with m.only(which):
                pieces = self.pieces(v, description, which)
                type = description.type
                if i.operation in ("and", "or", "xor"):  # of the bits, whatever the elements mean
                    type = TYPES[f"b{type.bits}"]
                m.store_bulk(chunk_addresses(description, v["src"][which]), pieces, type, reduction(i.operation, type))

    def fits(self, i: Opcode, m: Step, description: TensorMapDescription, which: np.ndarray) -> bool:
        if not super().fits(i, m, description, which):
            return False
        type = description.type
        names = {str(type), f"b{type.bits}"} if i.operation in ("and", "or", "xor") else {str(type)}
        if names & set(REDUCED_TYPES[i.operation].split()) or (
            i.operation == "add" and type.bits == 16 and type.is_float
        ):
            return True
        message = f"the tensor map has elements of {type}, which .{i.operation} does not support"
        m.fail("tensor-map", message, which, "make a map with an element type that it supports")
        return False


class TensorPrefetch(TensorCopy):
    """Prefetch a box of a tensor into the L2 cache."""

    forms = (
        Form(
            f"cp.async.bulk.prefetch.tensor.dim.L2.global{{.mode}}{HINTED} {BOX}{OFFSETS}{POLICY}",
            mode=LOADS,
            needs={**IM2COL_W, "im2col::w": ("8.6", BLACKWELL), "tile::gather4": ("8.6", BLACKWELL)},
            **TENSOR,
        ),
    )

    def execute(self, i: Opcode, m: Step, *inputs: Any) -> None:
        """Check the map; a prefetch has no other effect."""
        list(self.boxes(i, m, by_name(i, inputs), None))


class Field(NamedTuple):
    """A field of a tensor map: its type, the number of its elements, and its maximum value."""

    type: str
    count: int = 1
    most: int | None = None
    constant: bool = False


FIELDS = {
    "global_address": Field("b64"),
    "rank": Field("b32", most=4),
    "box_dim": Field("b32", 5),
    "global_dim": Field("b32", 5),
    "global_stride": Field("b64", 4),
    "element_stride": Field("b32", 5),
    "elemtype": Field("b32", most=12, constant=True),
    "interleave_layout": Field("b32", most=2, constant=True),
    "swizzle_mode": Field("b32", most=3, constant=True),
    "swizzle_atomicity": Field("b32", most=3, constant=True),
    "fill_mode": Field("b32", most=1, constant=True),
}
"""The fields that tensormap.replace can change; the rank is encoded as rank - 1."""


def _replace(operands: str, fits: Callable[[Field], bool], **more: Any) -> Form:
    """Return the form for the fields that take the same operands."""
    names = [name for name, field in FIELDS.items() if fits(field)]
    return Form(
        f"tensormap.replace.tile.field{{.space}}.b1024.type [map:space], {operands}",
        field=names,
        space="global shared::cta",
        type="b32 b64",
        when=lambda i: FIELDS[i.field].type == str(i.type),
        ptx="8.3",
        sm="90a 100f 110f 120f",
        **more,
    )


class TensormapReplace(Op):
    """Replace a field of a tensor map in memory."""

    stores = "map"
    forms = (
        _replace("value:type", lambda f: f.count == 1 and not f.constant),
        _replace("ord:imm, value:type", lambda f: f.count > 1),
        _replace("value:imm", lambda f: f.constant, needs={"swizzle_atomicity": ("8.6", "100f 110f 120f")}),
    )

    def execute(self, i: Opcode, m: Step, *inputs: Any) -> None:
        v = by_name(i, inputs)
        space, value = i.space or "generic", np.broadcast_to(v["value"], m.shape)
        for which, description in read_maps(m, space, v["map"], zeros=BLANK):
            for lane in np.flatnonzero(which):
                with m.only(np.arange(len(which)) == lane):
                    changed = replaced(description, i.field, int(v.get("ord", 0)), int(value[lane]))
                    _write_map(m, space, v["map"][lane : lane + 1], changed.encode())

    def problems(self, i: Opcode, operands: Sequence[Any]) -> Iterator[Problem]:
        field = FIELDS[i.field]
        yield from alignment_problems("map", operands[0], 64)
        limits = {"ord": field.count - 1, "value": field.most}
        for declared, value in zip(i.operands, operands, strict=True):
            most = limits.get(declared.name)
            if most is not None and isinstance(value, ir.Immediate) and not 0 <= value.value <= most:
                message = f"`{declared.name}` is {value.value}; .{i.field} takes 0 to {most}"
                help = "write the rank minus one" if i.field == "rank" else None
                yield Problem(declared.name, message, help)


def _write_map(m: Step, space: str, address: np.ndarray, content: bytes) -> None:
    words = np.frombuffer(content, np.uint64)[:, np.newaxis]
    m.store(space, address + np.arange(0, MAP_BYTES, b64.bytes, dtype=np.uint64)[:, np.newaxis], b64, words)


class TensormapCopyFence(Op):
    """Copy a tensor map from shared to global memory and release it to the tensormap proxy; whole warp."""

    collective = True

    stores = "dst"
    forms = (
        Form(
            "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.scope.sync.aligned"
            " [dst:global], [src:shared::cta], size:imm",
            scope="cta cluster gpu sys",
            ptx="8.3",
            sm=90,
        ),
    )

    def execute(self, i: Opcode, m: Step, dst: np.ndarray, src: np.ndarray, size: int) -> None:
        offsets = np.arange(0, MAP_BYTES, b64.bytes, dtype=np.uint64)[:, np.newaxis, np.newaxis]
        words = m.load("shared", src[:, :1] + offsets, b64)
        m.store("global", dst[:, :1] + offsets, b64, words)
        m.share_effects()
        m.order(Fence("release", i.scope))
        m.order(Fence("release", i.scope, "tensormap"))

    def problems(self, i: Opcode, operands: Sequence[Any]) -> Iterator[Problem]:
        yield from (p for n in range(2) for p in alignment_problems(i.operands[n].name, operands[n], MAP_BYTES))
        if isinstance(operands[2], ir.Immediate) and operands[2].value != MAP_BYTES:
            yield Problem("size", f"`size` is {operands[2].value}; a tensor map is {MAP_BYTES} bytes", "write 128")
