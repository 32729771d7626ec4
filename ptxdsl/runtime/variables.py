"""Variables of PTX modules (`.global`, `.const`), shared by their kernels and accessible from the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from ptxdsl import config, ir
from ptxdsl.driver import Late
from ptxdsl.errors import EmulationError
from ptxdsl.runtime.shape import refuse
from ptxdsl.runtime.values import elements, shown
from ptxdsl.types import from_dtype

if TYPE_CHECKING:
    from ptxdsl import driver
    from ptxdsl.assemble import Cubin
    from ptxdsl.emulate.run import program as programs
    from ptxdsl.runtime import loaded as loading
    from ptxdsl.runtime.loaded import Image
else:
    driver = Late("ptxdsl.driver")
    loading = Late("ptxdsl.runtime.loaded")
    programs = Late("ptxdsl.emulate.run.program")


class ModuleMemory:
    """The variables of a module between launches: `contents` on the emulator, `images` on GPUs, by target.

    `assemble` returns the machine code for a target. `text` is the PTX of a parsed module, printed once for all of its
    kernels.
    """

    def __init__(self, assemble: Callable[[str], Cubin]) -> None:
        self.assemble = assemble
        self.text: str | None = None
        self.contents: dict[ir.Variable, bytes | np.ndarray] = {}
        self.images: dict[str, Image] = {}
        self.written: dict[str, bytes] = {}  # by the host, to all GPUs

    def image(self, arch: str) -> Image:
        """Return the machine code for a target, which all kernels of the module share."""
        if arch not in self.images:
            self.images[arch] = loading.Image(self.assemble(arch))
            self.images[arch].contents |= self.written
        return self.images[arch]

    def write(self, name: str, content: bytes) -> None:
        """Write a variable on all GPUs, now and whenever the module is loaded on another one."""
        self.written[name] = content
        for image in self.images.values():
            image.contents[name] = content
            for device in image.devices:
                image.write(device, name, content)


class ModuleVariable:
    """The result of `module[name]`: a variable that lives as long as the module, as with cudaMemcpyToSymbol.

    The emulator and each GPU have separate copies. `shape` and `type` are those of the declaration.
    """

    def __init__(self, memory: ModuleMemory, variable: ir.Variable) -> None:
        self._memory, self._variable = memory, variable
        self.name, self.type = variable.name, variable.type
        self.shape = (*variable.shape, *((variable.vector,) if variable.vector > 1 else ()))

    def __repr__(self) -> str:
        return f"<variable {self.name}: {self._declared()}>"

    def read(self, device: int | None = None) -> np.ndarray:
        """Return a copy of the contents, on the emulator or on a GPU; on a GPU, wait for all work first.

        The default is the emulator's copy, or the first GPU's with PTXDSL_DEVICE=cuda. Elements that numpy lacks are
        returned as unsigned integers of the same width.
        """
        if device is None and config.current().device == "cuda":
            device = 0
        content = self._emulated() if device is None else self._image(device).read(device, self.name)
        return np.frombuffer(content, self.type.dtype).reshape(self.shape).copy()

    def write(self, value: object, device: int | None = None) -> None:
        """Write the whole variable, from an array of its type and shape or from numbers that fit.

        The default is to write on the emulator and on every GPU; with `device`, on that GPU alone. Raises LaunchError
        for a value that does not fit.
        """
        content = self._bytes(value)
        if device is not None:
            self._image(device).write(device, self.name, content)
            return
        self._memory.contents[self._variable] = content
        self._memory.write(self.name, content)

    def _image(self, device: int) -> Image:
        return self._memory.image(driver.device(device).arch)

    def _emulated(self) -> bytes | np.ndarray:
        if self._variable not in self._memory.contents:
            try:
                self._memory.contents[self._variable] = programs.initial_bytes(self._variable, _no_address)
            except EmulationError:
                refuse(
                    f"`{self.name}` is initialised with addresses, which the emulator assigns at the first launch",
                    "launch a kernel of the module first",
                )
        return self._memory.contents[self._variable]

    def _bytes(self, value: object) -> bytes:
        array = np.asarray(value)
        if array.shape != self.shape:
            refuse(f"`{self.name}` is {self._declared()}, but {shown(value)} has the shape {array.shape}")
        if isinstance(value, np.ndarray | np.generic) or hasattr(value, "__array__"):
            if from_dtype(array.dtype) not in elements(self.type):
                refuse(
                    f"`{self.name}` is {self._declared()}, got {shown(value)}",
                    f"convert it to {self.type.dtype}",
                )
            return array.tobytes()
        return self._converted(array).tobytes()

    def _converted(self, numbers: np.ndarray) -> np.ndarray:
        """Convert Python numbers to the variable's type; integers must be exact."""
        dtype, is_whole = self.type.dtype, numbers.dtype.kind in "iub"
        if not (is_whole or (numbers.dtype.kind == "f" and dtype.kind == "f")):
            refuse(f"`{self.name}` is {self._declared()}, which cannot hold {numbers.ravel().tolist()[0]!r}")
        with np.errstate(all="ignore"):
            converted = numbers.astype(dtype)
        wrong = numbers[converted != numbers] if is_whole else numbers[np.isinf(converted) & np.isfinite(numbers)]
        if wrong.size:
            refuse(f"`{self.name}` is {self._declared()}, which cannot hold {wrong.ravel()[0]}")
        return converted

    def _declared(self) -> str:
        return f"{self.type}{''.join(f'[{extent}]' for extent in self.shape)} in .{self._variable.space}"


def _no_address(value: object) -> int:
    raise EmulationError(f"{value} has no address yet")
