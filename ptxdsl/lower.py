"""Print the IR as PTX text: deterministic, readable, with the Python line of every instruction.

This module has no knowledge of individual instructions: everything it prints comes from the IR and the table in `isa/`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import count

from ptxdsl.errors import Location, printable
from ptxdsl.ir import (
    Directive,
    Function,
    Instruction,
    Item,
    Label,
    PtxModule,
    Register,
    Scope,
    Section,
    Variable,
    quoted,
    text_at,
)
from ptxdsl.types import Type
from ptxdsl.verify import check_targets, least_version

INDENT = "    "
WIDTH = 110


def lower(module: PtxModule, *, lineinfo: bool = True, annotate: bool = False) -> str:
    """Return the text of a module, ready for an assembler.

    `.version` is the module's, or the minimum that its target, directives and instructions need. With `lineinfo` each
    instruction carries its Python line (`.loc`); with `annotate` that line is printed above it as a comment. Raises
    VerifyError, at the Python line, for a form that the target does not support.
    """
    check_targets(module)
    return _Printer(module, lineinfo, annotate).text()


class _Printer:
    """The lines of one module, with the file table and the names of inlined functions for source positions."""

    def __init__(self, module: PtxModule, lineinfo: bool, annotate: bool) -> None:
        self.module, self.lineinfo, self.annotate = module, lineinfo, annotate
        self.lines: list[str] = []
        self.files = _files(module)
        self.debug_str = [line for section in _debug_str(module) for line in section.lines]
        self.names = {text_at(data): label for section in _debug_str(module) for label, data in section.data().items()}
        self.inlined = False
        self.line: Location | None = None
        self.sites: dict[tuple[str, int, int], Location] = {}
        self.annotated: tuple[str, int] | None = None

    def text(self) -> str:
        for item in self.module.items:
            self._module_item(item)
        if self.debug_str and self.lineinfo:
            self._section(Section(".debug_str", self.debug_str))
        return "\n".join([*self._header(), *self.lines]) + "\n"

    def _header(self) -> Iterator[str]:
        major, minor = self.module.version or least_version(self.module, self.inlined)
        yield f".version {major}.{minor}"
        yield f".target {', '.join(self.module.target)}"
        yield f".address_size {self.module.address_size}"
        if self.lineinfo:
            yield from (f".file {index} {quoted(name)}" for name, index in self.files.items())

    def _module_item(self, item: Function | Variable | Directive | Section) -> None:
        if isinstance(item, Function):
            self._function(item)
        elif isinstance(item, Section):
            if item.name != ".debug_str" and (self.lineinfo or not item.name.startswith(".debug")):
                self._section(item)
        elif isinstance(item, Variable):
            self.lines.append(f"{declaration(item)};")
        elif item.name != "file":
            self.lines.append(f"{item};")

    def _section(self, section: Section) -> None:
        self.lines += ["", f".section {section.name}", "{", *section.lines, "}"]

    def _function(self, function: Function) -> None:
        self.line, self.annotated = None, None
        self.sites.clear()
        self.lines += ["", signature(function)]
        self.lines += [f"{item};" if item.name == "pragma" else str(item) for item in function.directives]
        if function.body is None:
            self.lines[-1] += ";"
            return
        self.lines.append("{")
        self.lines += [INDENT + line for line in registers(function)]
        self._body(function.body, 1)
        self.lines.append("}")

    def _body(self, body: list[Item], depth: int) -> None:
        indent = INDENT * depth
        for item in body:
            if isinstance(item, Instruction):
                if item.location is not None:
                    self._locate(item.location, indent)
                self.lines.append(f"{indent}{item}")
            elif isinstance(item, Label):
                self.lines.append(f"{item}:")
            elif isinstance(item, Scope):
                self.lines.append(f"{indent}{{")
                self._body(item.body, depth + 1)
                self.lines.append(f"{indent}}}")
            else:
                self.lines.append(f"{indent}{declaration(item) if isinstance(item, Variable) else directive(item)};")

    def _locate(self, location: Location, indent: str) -> None:
        if location is self.line or not is_source(location):
            return
        if self.annotate and (location.file, location.line) != self.annotated:
            self.annotated = (location.file, location.line)
            self.lines.append(f"{indent}// {_comment(location)}")
        if self.lineinfo and (self.line is None or _chain(location) != _chain(self.line)):
            self._loc(location, indent)
        self.line = location

    def _loc(self, location: Location, indent: str) -> None:
        """Yield `.loc`, preceded by those of its callers unless the preceding `.loc` has the same callers."""
        text = f"{indent}.loc {self._position(location)}"
        if caller := location.inlined_at:
            known = self.sites.get(_site(caller))
            if known is None or _chain(known) != _chain(caller):
                self._loc(caller, indent)
            text += f", function_name {self._function_name(location)}, inlined_at {self._position(caller)}"
            self.inlined = True
        self.sites[_site(location)] = location
        self.lines.append(text)

    def _function_name(self, location: Location) -> str:
        """Return the label in `.debug_str` of the function at a location."""
        name = location.function
        if name not in self.names:
            labels = (f"$L__info_string{n}" for n in count())
            self.names[name] = label = next(label for label in labels if f"{label}:" not in self.debug_str)
            self.debug_str += [f"{label}:", f".b8 {','.join(map(str, [*name.encode(), 0]))}"]
        return self.names[name]

    def _position(self, location: Location) -> str:
        file, line, column = _site(location)
        return f"{self.files.setdefault(file, max(self.files.values(), default=0) + 1)} {line} {column}"


def _comment(location: Location) -> str:
    """Return a location and its line in ASCII: assemblers reject other characters even in comments."""
    text = f"{location} | {printable(location.text.strip())}".rstrip("| ")
    return text.encode("ascii", "backslashreplace").decode()


def is_source(location: Location) -> bool:
    """True if the location is in the source of a kernel, rather than in PTX or unknown."""
    return not location.file.startswith("<") and not location.file.endswith(".ptx")


def _site(location: Location) -> tuple[str, int, int]:
    """Return file, line and column in the numbering of `.loc`: columns from 1, 0 if unknown."""
    start, end = location.columns
    return location.file, location.line, start + 1 if end else 0


def _chain(location: Location) -> list[tuple[tuple[str, int, int], str]]:
    """Return the sites of a location as `.loc` describes them, each with the function there unless it is the kernel
    itself.
    """
    return [(_site(site), site.function if site.inlined_at else "") for site in location.chain()]


def _files(module: PtxModule) -> dict[str, int]:
    """Return the file numbers of a parsed module; new files are numbered after them."""
    files = [item.arguments for item in module.items if isinstance(item, Directive) and item.name == "file"]
    return {str(name): index for index, name in files if isinstance(index, int)}


def _debug_str(module: PtxModule) -> list[Section]:
    return [item for item in module.items if isinstance(item, Section) and item.name == ".debug_str"]


def directive(item: Directive) -> str:
    """Return a directive in a body; a prototype is printed with its signature."""
    if item.name != "callprototype":
        return str(item)
    (prototype,) = item.arguments
    assert isinstance(prototype, Function)
    return f"{item.label}: .callprototype {_results(prototype)}_ ({_list(prototype.parameters)})"


def signature(function: Function) -> str:
    """Return `.visible .entry name(…)`, one parameter per line."""
    linkage = f".{function.linkage} " if function.linkage else ""
    head = f"{linkage}.{function.kind} {_results(function)}{function.name}"
    if not function.parameters:
        return f"{head}()"
    parameters = f",\n{INDENT}".join(_declarations(function.parameters))
    return f"{head}(\n{INDENT}{parameters}\n)"


def _results(function: Function) -> str:
    return f"({_list(function.returns)}) " if function.returns else ""


def _list(variables: Iterable[Variable | Register]) -> str:
    return ", ".join(_declarations(variables))


def _declarations(parameters: Iterable[Variable | Register]) -> Iterator[str]:
    """Yield the declarations of parameters; the first element of a vector register stands for all of them."""
    for parameter in parameters:
        if isinstance(parameter, Variable) or parameter.vector == 1:
            yield declaration(parameter)
        elif vector := _vector(parameter):
            yield f".reg .v{parameter.vector} .{parameter.type} {vector}"


def _vector(register: Register) -> str:
    """Return the name of the vector register that a register is the first element of, else an empty string."""
    return register.name.removesuffix(".x") if register.vector > 1 and register.name.endswith(".x") else ""


def declaration(variable: Variable | Register) -> str:
    """Return a declaration without its semicolon."""
    if isinstance(variable, Register):
        return f".reg .{variable.type} {variable}"
    words = [f".{variable.linkage}"] if variable.linkage else []
    words.append(f".{variable.space}")
    words += [a for a in variable.attributes if a.startswith(".attribute")]
    words += [f".align {variable.align}"] if variable.align else []
    words += [f".v{variable.vector}"] if variable.vector > 1 else []
    words.append(f".{variable.type}")
    words += [a for a in variable.attributes if not a.startswith(".attribute")]
    extents = "".join(f"[{'' if extent is None else extent}]" for extent in variable.shape)
    initial = "" if variable.initial is None else f" = {initializer(variable.initial)}"
    return f"{' '.join(words)} {variable}{extents}{initial}"


def initializer(value: object) -> str:
    """Return the text of an initial value; nested tuples become nested braces."""
    return "{" + ", ".join(map(initializer, value)) + "}" if isinstance(value, tuple) else str(value)


def registers(function: Function) -> Iterator[str]:
    """Yield `.reg` lines: by type, numbered families as `%r<12>`, the others as lists."""
    by_type: dict[Type, list[str]] = defaultdict(list)
    for register in function.registers:
        if register.vector == 1:
            by_type[register.type].append(register.name)
    taken = {register.name for register in function.registers} | function.names.keys()
    for type, names in by_type.items():
        families = _families(names, taken)
        single = [name for name in names if not _FAMILY.search(name) or _FAMILY.sub("", name) not in families]
        yield from (f".reg .{type} {prefix}<{size}>;" for prefix, size in families.items())
        yield from (f".reg .{type} {line};" for line in _wrap(single))
    vectors: dict[str, list[str]] = defaultdict(list)
    for register in function.registers:
        if vector := _vector(register):
            vectors[f".v{register.vector} .{register.type}"].append(vector)
    for words, names in vectors.items():
        yield from (f".reg {words} {line};" for line in _wrap(names))


_FAMILY = re.compile(r"(0|[1-9]\d*)$")


def _families(names: list[str], taken: set[str] | frozenset[str]) -> dict[str, int]:
    """Return the prefixes of names numbered from 0 (or 1) without a gap, with the n of `prefix<n>`."""
    numbers: dict[str, set[int]] = defaultdict(set)
    for name in names:
        if match := _FAMILY.search(name):
            numbers[name[: match.start()]].add(int(match[0]))
    return {
        prefix: max(used) + 1
        for prefix, used in numbers.items()
        if len(used) > 2 and max(used) + 1 - len(used) <= (0 not in used) and (0 in used or f"{prefix}0" not in taken)
    }


def _wrap(names: list[str]) -> Iterator[str]:
    """Yield names as comma-separated lines of at most WIDTH characters."""
    line = ""
    for name in names:
        if line and len(line) + len(name) + 2 > WIDTH:
            yield line
            line = ""
        line += f", {name}" if line else name
    if line:
        yield line
