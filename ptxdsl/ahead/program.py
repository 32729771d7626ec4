"""Describe kernels that are compiled ahead of time: their parameters, and their machine code for each target."""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ptxdsl.ahead.fatbin import fatbin
from ptxdsl.assemble import Cubin
from ptxdsl.errors import Error, LaunchError
from ptxdsl.runtime.values import Kind
from ptxdsl.runtime.variant import Variant
from ptxdsl.trace.parameters import ptx_name

# Names that a parameter cannot have in C++, and those that the launcher itself uses.
_RESERVED = frozenset(
    """alignas alignof and asm auto bool break case catch char class const constexpr continue default delete do double
    else enum explicit export extern false float for friend goto if inline int long mutable namespace new noexcept not
    nullptr operator or private protected public register return short signed sizeof static struct switch template this
    throw true try typedef typename union unsigned using virtual void volatile while xor
    launch grid block shared_bytes stream""".split()  # noqa: SIM905
)


class AheadParameter(NamedTuple):
    """A PTX parameter: its name in C++ and Python, its type, and if the kernel may write through it."""

    name: str
    kind: Kind
    is_written: bool


@dataclass(frozen=True, slots=True)
class AheadKernel:
    """A kernel of a program. `shared_bytes` is the dynamic shared memory that it needs; None if the launch passes it.

    `block` is the block shape if the kernel fixes one (.reqntid).
    """

    name: str
    parameters: tuple[AheadParameter, ...]
    shared_bytes: int | None
    block: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class AheadProgram:
    """Kernels compiled into one cubin per target."""

    name: str
    kernels: tuple[AheadKernel, ...]
    cubins: Mapping[str, Cubin]

    @property
    def image(self) -> bytes:
        """The machine code for all targets."""
        return fatbin({arch: cubin.image for arch, cubin in self.cubins.items()})

    @property
    def targets(self) -> str:
        return ", ".join(self.cubins)


def program(name: str, by_target: Mapping[str, Sequence[Variant]]) -> AheadProgram:
    """Return the program of kernels traced for every target. Raises Error if targets differ in parameters."""
    described = {arch: [_kernel(variant) for variant in variants] for arch, variants in by_target.items()}
    first, *others = described
    for other in others:
        for a, b in zip(described[first], described[other], strict=True):
            if a.parameters != b.parameters:
                raise Error(
                    f"kernel `{a.name}` takes {_listed(a)} on {first}, but {_listed(b)} on {other}",
                    help="build for one of them at a time: a program has one launcher for all of its targets",
                )
    kernels = tuple(_for_all(each) for each in zip(*described.values(), strict=True))
    cubins = {
        arch: variants[0].cubin.with_dynamic_shared({variant.name: variant.dynamic_bytes for variant in variants})
        for arch, variants in by_target.items()
    }  # each holds all of the kernels
    return AheadProgram(name, kernels, cubins)


def _for_all(kernels: Sequence[AheadKernel]) -> AheadKernel:
    """Merge a kernel over all targets: the most shared memory of any, and the block shape if it is the same."""
    sizes = [kernel.shared_bytes for kernel in kernels]
    most = None if None in sizes else max(size for size in sizes if size is not None)
    block = kernels[0].block if all(kernel.block == kernels[0].block for kernel in kernels) else None
    return AheadKernel(kernels[0].name, kernels[0].parameters, most, block)


def _kernel(variant: Variant) -> AheadKernel:
    signature = variant.signature
    names = _distinct([ptx_name(name) for name in signature.names])
    parameters = tuple(
        AheadParameter(called, kind, any(w.partition("+")[0] == name for w in variant.written))
        for called, name, kind in zip(names, signature.names, signature.kinds, strict=True)
    )
    promised = {d.name: d.arguments for d in variant.function.directives}
    block = tuple(int(str(n)) for n in promised["reqntid"]) if "reqntid" in promised else None
    try:
        shared: int | None = variant.shared_bytes(None)
    except LaunchError:  # an array of unknown length, whose size the launch passes
        shared = None
    return AheadKernel(variant.name, parameters, shared, block)


def _distinct(names: Sequence[str]) -> list[str]:
    """Make names valid and unique in C++ and Python."""
    distinct: list[str] = []
    for name in names:
        safe = re.sub(r"\W", "_", name, flags=re.ASCII)
        while safe in _RESERVED or keyword.iskeyword(safe) or safe in distinct or not safe[:1].isidentifier():
            safe = f"{safe}_" if safe[:1].isidentifier() else f"p{safe}"
        distinct.append(safe)
    return distinct


def _listed(kernel: AheadKernel) -> str:
    return ", ".join(f"{p.name}: {p.kind}" for p in kernel.parameters) or "nothing"
