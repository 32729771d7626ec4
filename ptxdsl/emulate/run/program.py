"""A kernel with everything that it reaches: functions, module variables and their initial values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from ... import ir
from ...errors import EmulationError
from ...types import b8
from ..memory.regions import PAGE, Allocation, elements, spread
from ..memory.spaces import CODE, GLOBAL, WINDOW_BITS, WINDOWS
from .decode import decode
from .special import RESERVED_BYTES

CODE_STEP = 16
SHARED_ZONE = 128  # a multiple of the bank row, so that banks stay the same
_BLOCK = 1 << 20  # bytes
_GAP = 0x1_3579_BD00  # between arrays: an index far outside of one hits no other


RESERVED = "%reserved_smem_offset_"
NO_EXTENTS: Mapping[str, int] = MappingProxyType({})


class Program:
    """A module as one kernel sees it: the functions that it may call, and the variables that these mention."""

    def __init__(self, kernel: ir.Function, module: ir.PtxModule) -> None:
        self.kernel, self.module = kernel, module
        self.functions = module.functions
        self._numbers = {function: number for number, function in enumerate(self.functions)}
        self._defined = {f.name: f for f in module.functions if f.body is not None}
        self._defined[kernel.name] = kernel
        self.aliases = dict(_aliases(module))
        reached = [kernel, *(f for f in self._defined.values() if f.kind == "func")]
        mentioned = {v.name for f in reached for v in decode(f).mentioned}
        inner = [v for f in reached for v in decode(f).variables]
        outer = [v for v in module.globals if v.space != "shared" or v.name in mentioned]
        self.variables = _definitions([v for v in (*outer, *inner) if v.space in ("global", "const", "shared")])
        self.reserved: ir.Variable | None = None  # the system's part of shared memory, where the kernel asks for it
        self.cancels_clusters = any(decode(f).cancels_clusters for f in reached)
        self.uses_async_proxy = any(decode(f).uses_async_proxy for f in reached)
        self.uses_tensor_memory = any(decode(f).uses_tensor_memory for f in reached)
        self.pairs = any(decode(f).pairs for f in reached)
        self.reads_without_coherence = any(decode(f).reads_without_coherence for f in reached)
        self.lets_grids_begin = any(decode(f).lets_grids_begin for f in reached)
        if any(name.startswith(RESERVED) for f in reached for name in decode(f).special):
            self.reserved = ir.Variable("reserved", "shared", b8, (2 * RESERVED_BYTES,), 16)
            self.variables[self.reserved] = self.reserved

    def of_space(self, *spaces: str) -> list[ir.Variable]:
        return list(dict.fromkeys(v for v in self.variables.values() if v.space in spaces))

    def definition(self, function: ir.Function | ir.Symbol) -> ir.Function | None:
        """Return the function with a body that a name refers to; None if the module only declares it."""
        name = self.aliases.get(function.name, function.name)
        if isinstance(function, ir.Function) and function.body is not None:
            return function
        return self._defined.get(name)

    def code_address(self, function: ir.Function) -> int:
        defined = self.definition(function) or function
        return CODE + CODE_STEP * self._numbers[defined]


def _aliases(module: ir.PtxModule) -> Iterator[tuple[str, str]]:
    for item in module.items:
        if isinstance(item, ir.Directive) and item.name == "alias":
            alias, target = map(str, item.arguments)
            yield alias, target


def _definitions(declared: Iterable[ir.Variable]) -> dict[ir.Variable, ir.Variable]:
    """Return the definition of each variable; a declaration of the same name refers to it.

    An `.extern .shared` variable defines itself; other undefined variables are left out.
    """
    best: dict[str, ir.Variable] = {}
    for variable in declared:
        if variable.linkage != "extern":
            best[variable.name] = variable
    definitions = {v: best.get(v.name, v) if v.linkage == "extern" else v for v in declared}
    return {v: d for v, d in definitions.items() if d.linkage != "extern" or d.space == "shared"}


def shared_allocations(
    variables: list[ir.Variable], dynamic_bytes: int, extents: Mapping[str, int] = NO_EXTENTS
) -> tuple[dict[ir.Variable, int], list[Allocation], int]:
    """Place shared variables with red zones between them, and the dynamic ones (`x[]`) after all others.

    `extents` are the bytes of variables that were padded so that what follows is aligned; only these bytes are theirs.
    Return addresses, allocations and the bytes of a block.
    """
    fixed = [v for v in variables if v.linkage != "extern" or v.bytes]
    dynamic = [v for v in variables if v not in fixed]
    addresses, end = spread([(v.bytes, max(16, _alignment(v))) for v in fixed], SHARED_ZONE)
    where = dict(zip(fixed, addresses, strict=True))
    allocations = [allocation(v, where[v], where[v], extents.get(v.name)) for v in fixed]
    first = -(-end // PAGE) * PAGE if dynamic else end
    where |= dict.fromkeys(dynamic, first)
    if dynamic:
        like = dynamic[0]
        count = dynamic_bytes // _element_bytes(like)
        allocations.append(
            Allocation(like.name, first, dynamic_bytes, first, str(like.type), _element_bytes(like), (count,))
        )
    return where, allocations, -(-(first + dynamic_bytes) // PAGE) * PAGE


def allocation(variable: ir.Variable, start: int, offset: int, extent: int | None = None) -> Allocation:
    """Return the allocation of a variable, or of its first `extent` bytes."""
    shape = tuple(extent or 0 for extent in variable.shape) or (variable.vector,)
    element, bytes = _element_bytes(variable), variable.bytes
    if extent is not None and extent < bytes:
        bytes, shape = extent, (extent // element,)
    return Allocation(variable.name, start, bytes, offset, str(variable.type), element, shape)


def _element_bytes(variable: ir.Variable) -> int:
    return max(1, variable.type.bytes)


def _alignment(variable: ir.Variable) -> int:
    return variable.align or max(1, variable.type.bytes * variable.vector)


class Arena:
    """Global memory before a launch: arrays and module variables at sparse addresses, with their bytes packed."""

    def __init__(self) -> None:
        self.allocations: list[Allocation] = []
        self.contents: list[bytes | np.ndarray] = []
        self._address = GLOBAL + _GAP
        self._offset = 256

    def add(self, new: Allocation, content: bytes | np.ndarray, misaligned: int = 0) -> int:
        """Give an allocation its address, `misaligned` bytes past a multiple of 256."""
        new.start = self._address + misaligned
        new.offset = self._offset + misaligned
        self._address = -(-(new.end + _GAP) // 256) * 256
        self._offset = -(-(new.offset + new.bytes + 16) // 256) * 256
        self.allocations.append(new)
        self.contents.append(content)
        return new.start

    def fill(self, data: np.ndarray) -> None:
        """Write the contents to the bytes of a region."""
        for allocation, content in zip(self.allocations, self.contents, strict=True):
            octets = np.frombuffer(content, np.uint8) if isinstance(content, bytes) else content
            copy_blocks(octets, data[allocation.offset : allocation.offset + len(octets)])

    @property
    def bytes(self) -> int:
        return self._offset + 256


def copy_blocks(source: np.ndarray, zeros: np.ndarray) -> None:
    """Copy bytes to zeros, except long blocks that are zero: memory that no kernel touches takes no pages."""
    if len(source) < 2 * _BLOCK:
        zeros[:] = source
        return
    for start in range(0, len(source), _BLOCK):
        block = source[start : start + _BLOCK]
        if block.any():
            zeros[start : start + _BLOCK] = block


def initial_bytes(variable: ir.Variable, address_of: Any) -> bytes:
    """Return the initial bytes of a module variable; those that are not given are zero."""
    content = bytearray(variable.bytes)
    if variable.initial is not None:
        _fill(content, 0, variable.initial, variable, variable.shape, address_of)
    return bytes(content)


def _fill(
    content: bytearray,
    offset: int,
    value: object,
    variable: ir.Variable,
    shape: tuple[int | None, ...],
    address_of: Any,
) -> None:
    if not isinstance(value, tuple):
        size = max(1, variable.type.bytes)
        content[offset : offset + size] = (_number(value, address_of) % (1 << 8 * size)).to_bytes(size, "little")
        return
    step = max(1, variable.type.bytes) * elements(shape[1:] or ()) * (variable.vector if len(shape) <= 1 else 1)
    if not shape:
        step = max(1, variable.type.bytes)
    for number, part in enumerate(value):
        _fill(content, offset + number * step, part, variable, shape[1:], address_of)


def _number(value: object, address_of: Any) -> int:
    """Return an element of an initial value as bits."""
    if isinstance(value, ir.Immediate):
        return value.value
    if isinstance(value, ir.Masked):
        shift = (value.mask & -value.mask).bit_length() - 1
        return (_number(value.address, address_of) & value.mask) >> shift
    if isinstance(value, ir.Offset):
        return _number(value.base, address_of) + value.bytes
    if isinstance(value, ir.Generic):
        window = WINDOWS.get(getattr(value.base, "space", ""), 0) << WINDOW_BITS
        return window + int(address_of(value.base))
    if isinstance(value, ir.Variable | ir.Function | ir.Symbol):
        return int(address_of(value))
    raise EmulationError(f"the emulator has no {type(value).__name__.lower()} as an initial value")
