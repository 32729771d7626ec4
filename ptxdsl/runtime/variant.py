"""A kernel for one target and one set of constants, and its machine code, launches and checks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np

from ptxdsl import ir
from ptxdsl.cached import cached_property
from ptxdsl.driver import Late
from ptxdsl.lower import lower
from ptxdsl.notes import NO_NOTES, KernelNotes, SharedArray
from ptxdsl.runtime.shape import refuse
from ptxdsl.trace.captured import NOTHING, Captures
from ptxdsl.verify.effects import written

if TYPE_CHECKING:
    import ptxdsl.assemble as assembling
    import ptxdsl.parse as parsing
    from ptxdsl.assemble import Cubin
    from ptxdsl.emulate.run import program as programs
    from ptxdsl.runtime import arguments
    from ptxdsl.runtime import launch as launching
    from ptxdsl.runtime.arguments import Parameter, Signature
    from ptxdsl.runtime.launch import Compiled
    from ptxdsl.runtime.loaded import Image
    from ptxdsl.runtime.variables import ModuleMemory
    from ptxdsl.trace import Traced
else:
    arguments = Late("ptxdsl.runtime.arguments")
    assembling = Late("ptxdsl.assemble")
    launching = Late("ptxdsl.runtime.launch")
    parsing = Late("ptxdsl.parse")
    programs = Late("ptxdsl.emulate.run.program")


DEFAULT_ARCH = "sm_80"


@dataclass(eq=False)
class Variant:
    """A kernel for one target and one set of constants: its text, and what is derived from it on demand.

    `dynamic_bytes` is the dynamic shared memory of a launch; None leaves it to the caller. `captures` are the Python
    values that the kernel read while it was traced. `memory` holds the variables of a parsed module. `program` is a
    module, or a function that traces the kernel to one, which is not called for a cached text. `kept_written` are the
    pointers that the kernel may write through and `kept_extents` the bytes of its shared arrays, if they are cached
    with the text.
    """

    name: str
    arch: str
    program: ir.PtxModule | Callable[[], Traced] = field(repr=False)
    text: str
    parameters: Sequence[Parameter]
    dynamic_bytes: int | None = 0
    parsed: ir.PtxModule | None = field(default=None, repr=False)
    captures: Captures = field(default=NOTHING, repr=False)
    memory: ModuleMemory | None = field(default=None, repr=False)
    kept_written: frozenset[str] | None = field(default=None, repr=False)
    kept_extents: dict[str, int] | None = field(default=None, repr=False)
    _cubins: dict[str, Cubin] = field(default_factory=dict, repr=False)
    _compiled: dict[str, Compiled] = field(default_factory=dict, repr=False)

    @property
    def module(self) -> ir.PtxModule:
        """The program as it was traced or parsed."""
        return self.program if isinstance(self.program, ir.PtxModule) else self._traced.module

    @property
    def arrays(self) -> tuple[SharedArray, ...]:
        """The shared memory arrays that the kernel declares."""
        return self.notes.arrays

    @property
    def notes(self) -> KernelNotes:
        """Information about the kernel that its text lacks, for messages; a cached kernel is traced again to get it."""
        return NO_NOTES if isinstance(self.program, ir.PtxModule) else self._traced.notes

    @cached_property
    def extents(self) -> dict[str, int]:
        """The bytes of its shared arrays as declared in Python; the PTX variables may be longer."""
        return self.notes.extents if self.kept_extents is None else self.kept_extents

    @cached_property
    def _traced(self) -> Traced:
        return cast("Callable[[], Traced]", self.program)()

    @cached_property
    def read(self) -> ir.PtxModule:
        """The module that `parse` reads from the text, which the emulator runs."""
        return self.parsed or parsing.parse(self.text)

    @cached_property
    def function(self) -> ir.Function:
        return next(f for f in self.read.kernels if f.name == self.name)

    @cached_property
    def waits_for_others(self) -> bool:
        """True if it waits for the previous kernels on its stream, so that it can be launched as a dependent."""
        return "griddepcontrol.wait;" in self.text

    @property
    def cubin(self) -> Cubin:
        """The text assembled for its own target."""
        return self.assembled(self.arch)

    @property
    def alone(self) -> Cubin:
        """The cubin for its own target, without the other kernels of a parsed module."""
        if self.memory is None or len(self.read.kernels) == 1:
            return self.cubin
        others = [f for f in self.read.kernels if f.name != self.name]
        alone = replace(self.read, items=[item for item in self.read.items if item not in others])
        return assembling.assemble(lower(alone), self.arch)

    def assembled(self, arch: str) -> Cubin:
        """Assemble the text for its own target or a later one."""
        if arch not in self._cubins:
            image = self._image(arch)
            cubin = image.cubin if image else assembling.assemble(self.text, arch)
            self._cubins[arch] = cubin.with_dynamic_shared({self.name: self.dynamic_bytes})
        return self._cubins[arch]

    @cached_property
    def static_bytes(self) -> int:
        """The bytes of static shared memory."""
        shared = programs.Program(self.function, self.read).of_space("shared")
        return sum(variable.bytes for variable in shared)

    @cached_property
    def signature(self) -> Signature:
        return arguments.Signature(self.name, self.parameters, self.written)

    @cached_property
    def written(self) -> frozenset[str]:
        """The pointers that it may write through, by their names in messages."""
        if self.kept_written is not None:
            return self.kept_written
        function = next(f for f in self.module.kernels if f.name == self.name)
        names = [name for parameter in self.parameters for name, _ in arguments.leaves_of(*parameter)]
        called = {p.name: name for p, name in zip(function.parameters, names, strict=True)}
        parts = (through.partition("+") for through in written(function))  # p+8 is a field of a struct
        return frozenset(called[name] + plus + offset for name, plus, offset in parts)

    @cached_property
    def flattener(self) -> Callable[..., tuple[Any, ...]] | None:
        """A function from launch arguments to PTX arguments; None if they are the same."""
        return self.signature.flattener() if self.signature.has_groups else None

    def compiled(self, arch: str) -> Compiled:
        """Return a handle that launches it on GPUs of `arch`."""
        if arch not in self._compiled:
            cubin = self.assembled(arch)
            self._compiled[arch] = launching.load(cubin, self.name, self.parameters, self.written, self._image(arch))
        return self._compiled[arch]

    def _image(self, arch: str) -> Image | None:
        """Return the machine code that it shares with the other kernels of a parsed module."""
        return self.memory.image(arch) if self.memory else None

    def shared_bytes(self, asked: int | None) -> int:
        """Return the dynamic shared memory of a launch in bytes.

        Raises LaunchError if the launch passes less than the kernel needs, something that is not an int, or nothing for
        an array of unknown length.
        """
        if asked is not None and not isinstance(asked, int | np.integer):
            refuse(
                f"{self.name} expects its bytes of dynamic shared memory as an int, got {asked!r}",
                f"launch it as {self.name}[grid, block, shared_bytes](…), or leave out shared_bytes",
            )
        if self.dynamic_bytes is None and asked is None:
            refuse(
                f"{self.name} has a shared array of unknown length, but the launch does not pass its shared memory "
                "size",
                f"launch it as {self.name}[grid, block, shared_bytes](…)",
            )
        if asked is not None and self.dynamic_bytes is not None and asked < self.dynamic_bytes:
            refuse(
                f"{self.name} needs {self.dynamic_bytes} bytes of dynamic shared memory, but the launch passes only "
                f"{asked}",
                f"launch it as {self.name}[grid, block](…), which passes the size that it needs",
            )
        return (self.dynamic_bytes or 0) if asked is None else asked


class Runnable(Protocol):
    """The interface of a kernel that a launch uses."""

    def variant(self, arch: str | None, constants: dict[str, object]) -> Variant:
        """Return the kernel for a target and constants."""
