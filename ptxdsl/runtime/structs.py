"""Parameter groups as C structs, for kernels of parsed PTX that take structs by value."""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import Any, NamedTuple

from ptxdsl.arrays import Array, Struct
from ptxdsl.isa.tensor_map import MAP_ALIGNMENT, MAP_BYTES
from ptxdsl.runtime.shape import refuse
from ptxdsl.runtime.tensor_maps import MappedAs
from ptxdsl.runtime.values import Bytes, Kind, Value, code, value_of
from ptxdsl.trace.parameters import Definition, ParameterField, Parameters
from ptxdsl.trace.tensor_map import TensorMap
from ptxdsl.types import Pointer, Type


class Member(NamedTuple):
    """A scalar field, possibly nested, and its byte offset from the start of the struct."""

    path: str
    type: Type | Pointer | TensorMap
    offset: int

    def __str__(self) -> str:
        return f"{self.path} at {self.offset}"


class CLayout(NamedTuple):
    """The C layout of a struct: scalars are aligned to their size, structs to their most aligned member."""

    size: int
    align: int
    members: tuple[Member, ...]


def argument_value(name: str, kind: Kind, argument: object, stream: int) -> Value:
    """Return the value of a PTX parameter. Raises LaunchError for an argument that does not fit."""
    if isinstance(kind, Bytes) and isinstance(argument, Parameters):
        return _struct(name, kind, argument, stream)
    if isinstance(kind, Bytes) and isinstance(argument, MappedAs):
        if kind.size != MAP_BYTES or kind.align % MAP_ALIGNMENT:
            help = f"a tensor map is {MAP_BYTES} bytes aligned to {MAP_ALIGNMENT}; a struct is a class of pd.Parameters"
            refuse(f"`{name}` expects {kind} aligned to {kind.align}, got a tensor map", help)
        return value_of(name, argument.map, argument, stream)
    return value_of(name, kind, argument, stream)


@lru_cache(maxsize=256)
def c_layout(definition: Definition, map_alignment: int = MAP_ALIGNMENT) -> CLayout:
    """Return the layout of a group by the rules of C on 64-bit GPUs and hosts.

    `map_alignment` is that of a CUtensorMap: 64 bytes before CUDA 13, and 128 since.
    """
    end, align, members = 0, definition.align_, []
    for field in definition.fields_:
        size, alignment, inner = _element(field, map_alignment)
        align = max(align, alignment)
        for n in range(1 if field.count is None else field.count):
            start = -(-end // alignment) * alignment
            front = field.name if field.count is None else f"{field.name}[{n}]"
            members += [Member(front + m.path, m.type, start + m.offset) for m in inner]
            end = start + size
    return CLayout(-(-end // align) * align, align, tuple(members))


def _element(field: ParameterField, map_alignment: int) -> tuple[int, int, tuple[Member, ...]]:
    """Return the size, the alignment and the members of a field, or of one element of an array field."""
    if isinstance(field.type, Definition):
        layout = c_layout(field.type, map_alignment)
        return layout.size, layout.align, tuple([m._replace(path=f".{m.path}") for m in layout.members])
    if isinstance(field.type, TensorMap):
        return MAP_BYTES, map_alignment, (Member("", field.type, 0),)
    size = field.type.register.bytes if isinstance(field.type, Pointer) else field.type.bytes
    return size, size, (Member("", field.type, 0),)


def _struct(name: str, kind: Bytes, group: Parameters, stream: int) -> Struct:
    layout = c_layout(type(group), max(MAP_ALIGNMENT, kind.align))
    if layout.size != kind.size:
        refuse(
            f"`{name}` expects {kind}, but {type(group)} has {layout.size} bytes",
            f"its C layout is {', '.join(f'{m.type} {m}' for m in layout.members)}",
        )
    content, holders, maps = bytearray(layout.size), [], []
    for member, argument in zip(layout.members, group.flat, strict=True):
        path = f"{name}.{member.path}"
        value: Any = value_of(path, member.type, argument, stream)
        if isinstance(value, Array):
            holders.append((member.offset, path, value))
        elif isinstance(value, Struct):
            content[member.offset : member.offset + MAP_BYTES] = value.content
            holders += [(member.offset + offset, called, array) for offset, called, array in value.holders]
            maps.append(member.offset)
        else:
            struct.pack_into(f"={code(member.type)}", content, member.offset, value)
    return Struct(bytes(content), tuple(holders), tuple(maps))
