"""Tensors: bulk copies by a tensor map, and the map itself (PTX ISA, "cp.async.bulk.tensor", "tensormap.replace").

`[map, {x, y}]` names a box of a tensor: the address of a tensor map (an opaque object of 128 bytes), and where the box
begins, the coordinate of the contiguous dimension first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from .. import ir
from .bulk import BYTES, CTA, HINTED, LEAST, MASK, MASKED, POLICY, Bulk
from .form import Form, Needs
from .memory import alignment_problems
from .opaque import GpuOnly
from .opcode import Opcode
from .operand import Problem

BOX = "[map:generic, {coordinates:s32*rank}]"
OFFSETS = "{, offsets:u16*offset_count if offset_count}"
RANKS = "1d 2d 3d 4d 5d"
ROWS_OF_FOUR = ("tile::gather4", "tile::scatter4")  # one column, and four rows
BLACKWELL = "100f 110f"
MAP_BYTES = 128


def _rank(i: Any) -> int:
    """How many coordinates name a box."""
    return 5 if i.mode in ROWS_OF_FOUR else int(i.dim[0])


def _offset_count(i: Any) -> int:
    """How many numbers im2col takes besides: an offset for each dimension of the filter, or halo and offset of .w."""
    if i.mode is None or not i.mode.startswith("im2col"):
        return 0
    return int(i.dim[0]) - 2 if i.mode == "im2col" else 0 if i.mode == "im2col_no_offs" else 2


def _mode_fits(i: Any) -> bool:
    """im2col is about images: channels, batch and at least one dimension; gathering is about rows of a matrix."""
    if i.mode in ROWS_OF_FOUR:
        return bool(i.dim == "2d")
    return i.mode in (None, "tile") or int(i.dim[0]) >= 3


TENSOR: dict[str, Any] = {
    "dim": RANKS, "when": _mode_fits, "derived": {"rank": _rank, "offset_count": _offset_count}, **LEAST,
}  # fmt: skip
LOADS = "tile im2col tile::gather4 im2col::w im2col::w::128"
IM2COL_W: Needs = {"im2col::w": ("8.6", 100), "im2col::w::128": ("8.6", BLACKWELL)}
GROUPS: Needs = dict.fromkeys(("cta_group::1", "cta_group::2"), ("8.6", BLACKWELL))


class TensorCopy(Bulk):
    """Base of the copies by a tensor map; in shared memory a box begins at a multiple of 128 bytes."""

    alignment = 128


class TensorCopyToShared(TensorCopy):
    """Copies a box of a tensor to shared memory, with .multicast::cluster of all blocks in `cta_mask`."""

    stores = "dst"
    forms = (
        Form(
            f"cp.async.bulk.tensor.dim.shared::cta.global{{.mode}}.{BYTES}{{.group}}{HINTED}"
            f" [dst:shared::cta], {BOX}, [mbarrier:shared]{OFFSETS}{POLICY}",
            mode=LOADS,
            group="cta_group::1 cta_group::2",
            needs={**CTA, **IM2COL_W, **GROUPS, "tile::gather4": ("8.6", 100)},
            **TENSOR,
        ),
        Form(
            f"cp.async.bulk.tensor.dim.shared::cluster.global{{.mode}}.{BYTES}{MASKED}{{.group}}{HINTED}"
            f" [dst:shared::cluster], {BOX}, [mbarrier:shared]{OFFSETS}{MASK}{POLICY}",
            mode=LOADS,
            group="cta_group::1 cta_group::2",
            needs={**IM2COL_W, **GROUPS, "im2col::w": ("8.6", BLACKWELL), "tile::gather4": ("8.6", BLACKWELL)},
            **TENSOR,
        ),
    )


class TensorCopyToGlobal(TensorCopy):
    """Copies shared memory to a box of a tensor; what lies outside of the tensor is left out."""

    stores = "map"
    forms = (
        Form(
            f"cp.async.bulk.tensor.dim.global.shared::cta{{.mode}}.bulk_group{HINTED} {BOX}, [src:shared::cta]{POLICY}",
            mode="tile im2col_no_offs tile::scatter4",
            needs={"tile::scatter4": ("8.6", BLACKWELL)},
            **TENSOR,
        ),
    )


class TensorReduce(TensorCopy):
    """Combines shared memory with a box of a tensor, by an operation on its type."""

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


class TensorPrefetch(TensorCopy):
    """Brings a box of a tensor into L2."""

    forms = (
        Form(
            f"cp.async.bulk.prefetch.tensor.dim.L2.global{{.mode}}{HINTED} {BOX}{OFFSETS}{POLICY}",
            mode=LOADS,
            needs={**IM2COL_W, "im2col::w": ("8.6", BLACKWELL), "tile::gather4": ("8.6", BLACKWELL)},
            **TENSOR,
        ),
    )


class Field(NamedTuple):
    """A field of a tensor map: its type, how many of it there are, and the most that it can be."""

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
"""What tensormap.replace can change; the rank is said as one less than it is."""


def _replace(operands: str, fits: Callable[[Field], bool], **more: Any) -> Form:
    """The fields that are changed by the same operands."""
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


class TensormapReplace(GpuOnly):
    """Changes a field of a tensor map in memory."""

    stores = "map"
    forms = (
        _replace("value:type", lambda f: f.count == 1 and not f.constant),
        _replace("ord:imm, value:type", lambda f: f.count > 1),
        _replace("value:imm", lambda f: f.constant, needs={"swizzle_atomicity": ("8.6", "100f 110f 120f")}),
    )

    def problems(self, i: Opcode, operands: Sequence[Any]) -> Iterator[Problem]:
        field = FIELDS[i.field]
        yield from alignment_problems("map", operands[0], 64)
        limits = {"ord": field.count - 1, "value": field.most}
        for declared, value in zip(i.operands, operands, strict=True):
            most = limits.get(declared.name)
            if most is not None and isinstance(value, ir.Immediate) and not 0 <= value.value <= most:
                message = f"`{declared.name}` is {value.value}; for .{i.field} it is from 0 to {most}"
                help = "write one less than the rank" if i.field == "rank" else None
                yield Problem(declared.name, message, help)


class TensormapCopyFence(GpuOnly):
    """Copies a tensor map from shared to global memory, where copies by it then see the change; for a whole warp."""

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

    def problems(self, i: Opcode, operands: Sequence[Any]) -> Iterator[Problem]:
        yield from (p for n in range(2) for p in alignment_problems(i.operands[n].name, operands[n], MAP_BYTES))
        if isinstance(operands[2], ir.Immediate) and operands[2].value != MAP_BYTES:
            yield Problem("size", f"`size` is {operands[2].value}; a tensor map has {MAP_BYTES} bytes", "write 128")
