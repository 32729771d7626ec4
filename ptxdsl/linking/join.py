"""Join PTX modules into one: rename private names so that they are unique, and define shared names once."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from ptxdsl import ir
from ptxdsl.emulate.run.library import BUILTINS
from ptxdsl.errors import LinkError, Location, here
from ptxdsl.isa.target import capability
from ptxdsl.verify import least_version

Named: TypeAlias = "ir.Function | ir.Variable"
_MERGED = ("weak", "common")  # linkages that may be defined in several modules


@dataclass(frozen=True, slots=True)
class LinkedModule:
    """A module to be joined; `name` identifies it in messages. Its items are modified."""

    name: str
    module: ir.PtxModule


def join(parts: Sequence[LinkedModule], arch: str) -> ir.PtxModule:
    """Return one module for a target. Raises LinkError for a name that is undefined, defined twice, or declared
    differently.
    """
    for part in parts:
        _check_target(part, arch)
    return _Join(parts).module(arch)


def _check_target(part: LinkedModule, arch: str) -> None:
    target = part.module.target[0]
    if part.module.address_size != 64:
        raise _refusal(
            f"{part.name} uses {part.module.address_size}-bit addresses", "only 64-bit programs are supported"
        )
    (number, feature), (least, needed) = capability(arch), capability(target)
    if number < least or (needed and (number, feature) != (least, needed)):
        raise _refusal(f"{part.name} targets {target}; the program is linked for {arch}", f'link for arch="{target}"')


def _refusal(message: str, help: str) -> LinkError:
    return LinkError(message, at=here().location, help=help)


@dataclass(slots=True)
class _Join:
    """The definitions of shared names, and the module of each."""

    parts: Sequence[LinkedModule]
    defined: dict[str, tuple[LinkedModule, Named]] = field(default_factory=dict)

    def module(self, arch: str) -> ir.PtxModule:
        self._separate()
        for part in self.parts:
            for item in _named(part.module):
                if _is_shared(item) and _defines(item):
                    self._define(part, item)
        self._check_declarations()
        words = dict.fromkeys(word for part in self.parts for word in part.module.target[1:])
        joined = ir.PtxModule((arch, *words), items=[*self._declarations(), *self._variables(), *self._bodies()])
        joined.version = max(part.module.version or (0, 0) for part in self.parts)
        joined.version = max(joined.version, least_version(joined))
        return joined

    def _separate(self) -> None:
        """Give the private items of a module names that no other module has."""
        taken = {item.name for part in self.parts for item in _named(part.module) if _is_shared(item)}
        for part in self.parts:
            local = {name for function in part.module.functions for name in function.names}
            renamed: dict[str, str] = {}
            for item in _named(part.module):
                if _is_shared(item):
                    continue
                if item.name not in renamed:
                    renamed[item.name] = _distinct(item.name, taken, local)
                    taken.add(renamed[item.name])
                item.name = renamed[item.name]

    def _define(self, part: LinkedModule, item: Named) -> None:
        other, known = self.defined.setdefault(item.name, (part, item))
        if known is item or item.linkage in _MERGED:
            return
        if known.linkage not in _MERGED:
            help = "omit one of them or rename it; functions defined in many modules are .weak (C++: inline)"
            twice = f"`{item.name}` is defined by {other.name} and by {part.name}"
            raise _refusal(f"`{item.name}` is defined twice in {part.name}" if other is part else twice, help)
        self.defined[item.name] = part, item

    def _check_declarations(self) -> None:
        directives = [item for part in self.parts for item in part.module.items if isinstance(item, ir.Directive)]
        aliases = {str(directive.arguments[0]) for directive in directives if directive.name == "alias"}
        for part in self.parts:
            for item in _named(part.module):
                if _defines(item) or item.name in aliases or _is_dynamic(item):
                    continue
                if item.name in self.defined:
                    self._check_alike(part, item, *self.defined[item.name])
                elif item.name not in BUILTINS and not _has_body(part.module, item):
                    raise self._missing(part, item)

    def _check_alike(self, part: LinkedModule, item: Named, other: LinkedModule, known: Named) -> None:
        declared, defined = _kind(item), _kind(known)
        if declared != defined:
            raise _refusal(
                f"`{item.name}` is declared by {part.name} as {declared}; {other.name} defines {defined}",
                "change the declaration to match the definition",
            )

    def _missing(self, part: LinkedModule, item: Named) -> LinkError:
        near = difflib.get_close_matches(item.name, list(self.defined), 1)
        help = f"did you mean `{near[0]}` in {self.defined[near[0]][0].name}?" if near else None
        location = _location_of_use(part.module, item)
        at = f" ({location})" if location else ""
        used = f"`{item.name}` is {'called' if isinstance(item, ir.Function) else 'used'} by {part.name}{at}"
        return _refusal(
            f"{used}, but no module of the link defines it", help or "pass the module that defines it to pd.link"
        )

    def _declarations(self) -> Iterator[ir.Function]:
        """Yield declarations, which precede the first use of a function."""
        known: set[str] = set()
        for part in self.parts:
            for item in part.module.functions:
                if item.body is None and item.name not in known:
                    known.add(item.name)
                    if item.name in self.defined:
                        item.linkage = self.defined[item.name][1].linkage
                    yield item

    def _variables(self) -> Iterator[ir.Variable | ir.Directive | ir.Section]:
        known: dict[str, ir.Variable] = {}
        for part in self.parts:
            for item in part.module.items:
                if isinstance(item, ir.Variable):
                    if item.name not in known or (_defines(item) and self._is_the_one(item)):
                        known.setdefault(item.name, item)
                        yield item
                    elif _is_dynamic(item):
                        known[item.name].align = max(known[item.name].align or 1, item.align or 1)
                elif isinstance(item, ir.Directive) and item.name == "pragma":
                    yield item

    def _bodies(self) -> Iterator[ir.Function | ir.Directive]:
        for part in self.parts:
            for item in part.module.items:
                if isinstance(item, ir.Function) and item.body is not None:
                    if not _is_shared(item) or self._is_the_one(item):
                        yield item
                elif isinstance(item, ir.Directive) and item.name == "alias":
                    yield item

    def _is_the_one(self, item: Named) -> bool:
        """True if this is the program's definition of a shared name."""
        return item.name in self.defined and self.defined[item.name][1] is item


def _named(module: ir.PtxModule) -> Iterator[Named]:
    return (item for item in module.items if isinstance(item, ir.Function | ir.Variable))


def _is_shared(item: Named) -> bool:
    """True if other modules can refer to this name. Dynamic shared arrays start at one address under any name."""
    return bool(item.linkage) and not _is_dynamic(item)


def _is_dynamic(item: Named) -> bool:
    return isinstance(item, ir.Variable) and item.space == "shared" and item.linkage == "extern"


def _defines(item: Named) -> bool:
    return item.body is not None if isinstance(item, ir.Function) else item.linkage != "extern"


def _has_body(module: ir.PtxModule, declaration: Named) -> bool:
    return any(each.name == declaration.name and each.body is not None for each in module.functions)


def _distinct(name: str, taken: set[str], local: set[str]) -> str:
    number, distinct = 0, name
    while distinct in taken or (number and distinct in local):
        number += 1
        distinct = f"{name}_{number}"
    return distinct


def _kind(item: Named) -> str:
    """Return the interface that modules must agree on: parameter sizes of a function; space, type and size of a
    variable.
    """
    if isinstance(item, ir.Variable):
        extents = "".join(f"[{extent}]" for extent in item.shape if extent is not None)
        return f"a .{item.type}{extents} in .{item.space}"
    passed, returned = (" and ".join(map(_bytes, each)) or "nothing" for each in (item.parameters, item.returns))
    return f"a function that takes {passed} and returns {returned}"


def _bytes(variable: ir.Variable | ir.Register) -> str:
    count = variable.bytes if isinstance(variable, ir.Variable) else variable.type.bytes
    return f"{count} byte{'s' * (count != 1)}"


def _location_of_use(module: ir.PtxModule, item: Named) -> Location | None:
    """Return the first location that uses a name."""
    for function in module.functions:
        for instruction in function.walk():
            if any(getattr(operand, "name", None) == item.name for operand in instruction.operands):
                return instruction.location
    return None
