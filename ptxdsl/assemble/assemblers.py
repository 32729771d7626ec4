"""The assemblers that turn PTX into a cubin: nvJitLink from its wheel, the commands ptxas and nvlink, the driver.

Each takes PTX modules and returns the linked cubin, or None, and a log. None of them raises for an error in the PTX.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from ptxdsl import driver
from ptxdsl.errors import AssembleError, LaunchError

nvjitlink: Any = driver.CudaModule("cuda.bindings.nvjitlink")
pathfinder: Any = driver.CudaModule("cuda.pathfinder")
_LOG_BYTES = 1 << 20
_NO_WHEELS = "NVIDIA has no assembler for macOS: run the kernel on the emulator, or assemble it on Linux or Windows"


class Outcome(NamedTuple):
    """The cubin (None on failure), the log, and the number of the module that the log refers to."""

    image: bytes | None
    log: str
    module: int = 0


class Assembler(Protocol):
    """An assembler for PTX."""

    def why_not(self) -> str | None:
        """Return None if the assembler is available, else what is missing."""

    def version(self) -> str:
        """Return the name and version, which the cubin depends on."""

    def describe(self) -> str:
        """Return the name and version for people."""

    def assemble(self, modules: Sequence[str], arch: str, options: Sequence[str]) -> Outcome:
        """Assemble the modules and link them; `options` are ptxas options."""


class NvJitLink:
    """The nvJitLink library of the wheel nvidia-nvjitlink or of a CUDA toolkit."""

    def why_not(self) -> str | None:
        try:
            nvjitlink.version()
        except LaunchError as missing:
            return missing.message
        except driver.pathfinder.DynamicLibNotFoundError:
            return "nvJitLink is not installed"
        except (RuntimeError, OSError) as broken:
            return f"nvJitLink cannot be loaded ({str(broken).splitlines()[0]})"
        return None

    def version(self) -> str:
        return "nvJitLink {}.{}".format(*nvjitlink.version())

    describe = version

    def assemble(self, modules: Sequence[str], arch: str, options: Sequence[str]) -> Outcome:
        # A hit in nvJitLink's own cache has no log: no register counts and no warnings.
        flags = [f"-arch={arch}", "-no-cache", "-verbose", "-Xptxas=-warn-spills"]
        flags += [f"-Xptxas={option}" for option in options]
        try:
            handle = nvjitlink.create(len(flags), flags)
        except nvjitlink.nvJitLinkError as refusal:
            return Outcome(None, f"error : {self.version()} cannot assemble for {arch} ({refusal})")
        try:
            return self._link(handle, modules)
        finally:
            nvjitlink.destroy(handle)

    def _link(self, handle: int, modules: Sequence[str]) -> Outcome:
        try:
            for number, text in enumerate(modules):
                content = text.encode()
                nvjitlink.add_data(handle, nvjitlink.InputType.PTX, content, len(content), f"module{number}")
            nvjitlink.complete(handle)
        except nvjitlink.nvJitLinkError:
            log = _read_log(handle, nvjitlink.get_error_log_size, nvjitlink.get_error_log)
            failed = re.search(r"\(module(\d+)\)", log)
            return Outcome(None, log, int(failed[1]) if failed else 0)
        image = bytearray(nvjitlink.get_linked_cubin_size(handle))
        nvjitlink.get_linked_cubin(handle, image)
        return Outcome(bytes(image), _read_log(handle, nvjitlink.get_info_log_size, nvjitlink.get_info_log))


def _read_log(handle: int, size_of: Callable[[int], int], read: Callable[[int, bytearray], None]) -> str:
    buffer = bytearray(size_of(handle))
    read(handle, buffer)
    return buffer.rstrip(b"\0").decode(errors="replace")


class Ptxas:
    """The ptxas command; for several modules also nvlink, from the same CUDA toolkit."""

    def why_not(self) -> str | None:
        return None if tool("ptxas") else "ptxas is not on the PATH"

    def version(self) -> str:
        """Identify ptxas by its file: running `ptxas --version` takes longer than loading a cached cubin."""
        try:
            about = os.stat(self._ptxas())
        except OSError:
            return _run(self._ptxas(), "--version").log
        return f"ptxas of {about.st_size} bytes and {about.st_mtime_ns} ns"

    def describe(self) -> str:
        release = re.search(r"\bV([\d.]+)", _run(self._ptxas(), "--version").log)
        return f"ptxas {release[1] if release else 'of unknown version'} ({self._ptxas()})"

    def assemble(self, modules: Sequence[str], arch: str, options: Sequence[str]) -> Outcome:
        with tempfile.TemporaryDirectory(prefix="ptxdsl") as folder:
            flags = (f"-arch={arch}", "-v", "-warn-spills", *options)
            if len(modules) == 1:
                return self._one(modules[0], Path(folder, "module0"), *flags)
            return self._several(modules, Path(folder), arch, flags)

    def _one(self, text: str, stem: Path, *flags: str) -> Outcome:
        source = stem.with_suffix(".ptx")
        source.write_text(text, encoding="utf-8")
        return _run(self._ptxas(), *flags, str(source), "-o", str(stem.with_suffix(".cubin")))

    def _several(self, modules: Sequence[str], folder: Path, arch: str, flags: Sequence[str]) -> Outcome:
        nvlink = tool("nvlink")
        if nvlink is None:
            return Outcome(None, "error : linking several PTX modules requires nvlink, which is not on the PATH")
        stems = [folder / f"module{number}" for number in range(len(modules))]
        logs = []
        for number, (text, stem) in enumerate(zip(modules, stems, strict=True)):
            result = self._one(text, stem, *flags, "-c")
            if result.image is None:
                return result._replace(module=number)
            logs.append(result.log)
        objects = [str(stem.with_suffix(".cubin")) for stem in stems]
        linked = _run(nvlink, f"-arch={arch}", "-v", *objects, "-o", str(folder / "linked.cubin"))
        return linked._replace(log="\n".join([*logs, linked.log]))

    def _ptxas(self) -> str:
        return tool("ptxas") or "ptxas"


def _run(*command: str) -> Outcome:
    """Run a command and return its log; the image is the file after `-o`, if it was written."""
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    log = done.stdout + done.stderr
    if done.returncode != 0:
        return Outcome(None, log or f"error : {command[0]} exited with status {done.returncode}")
    return Outcome(Path(command[-1]).read_bytes() if "-o" in command else b"", log)


class DriverLinker:
    """The linker of the CUDA driver. It needs a GPU and does not accept PTX newer than itself."""

    def why_not(self) -> str | None:
        return driver.why_no_gpu()

    def version(self) -> str:
        return f"CUDA driver {driver.call('querying its version', driver.cuda.cuDriverGetVersion)}"

    describe = version

    def assemble(self, modules: Sequence[str], arch: str, options: Sequence[str]) -> Outcome:
        target = getattr(driver.cuda.CUjit_target, f"CU_TARGET_COMPUTE_{arch.removeprefix('sm_').upper()}", None)
        if target is None or options:
            lacks = f"assemble for {arch}" if target is None else f"take ptxas options ({' '.join(options)})"
            return Outcome(None, f"error : {self.version()} cannot {lacks}")
        with driver.on(0):
            return self._link(modules, target)

    def _link(self, modules: Sequence[str], target: object) -> Outcome:
        option = driver.cuda.CUjit_option
        info, error = bytearray(_LOG_BYTES), bytearray(_LOG_BYTES)
        options = {
            option.CU_JIT_TARGET: target,
            option.CU_JIT_LOG_VERBOSE: 1,
            option.CU_JIT_INFO_LOG_BUFFER: info,
            option.CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES: _LOG_BYTES,
            option.CU_JIT_ERROR_LOG_BUFFER: error,
            option.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES: _LOG_BYTES,
        }
        create = driver.cuda.cuLinkCreate
        state = driver.call("starting the linker", create, len(options), [*options], [*options.values()])
        number = 0
        try:
            for number, text in enumerate(modules):
                content = text.encode() + b"\0"
                driver.call(
                    "assembling", driver.cuda.cuLinkAddData, state, driver.cuda.CUjitInputType.CU_JIT_INPUT_PTX,
                    content, len(content), f"module{number}".encode(), 0, None, None,
                )  # fmt: skip
            address, size = driver.call("linking", driver.cuda.cuLinkComplete, state)
            return Outcome(ctypes.string_at(int(address), size), _text(info))
        except LaunchError as failed:
            return Outcome(None, _text(error) or f"error : {failed.message}", number)
        finally:
            driver.call("closing the linker", driver.cuda.cuLinkDestroy, state)


def _text(log: bytearray) -> str:
    return log.partition(b"\0")[0].decode(errors="replace")


ASSEMBLERS: dict[str, Assembler] = {"nvjitlink": NvJitLink(), "ptxas": Ptxas(), "driver": DriverLinker()}


WHOLE_PROGRAM = ("ptxas", "nvjitlink", "driver")
"""The preferred order for kernels with setmaxnreg: linkers ignore it (C7504), whatever options they get."""


def candidates(name: str | None, whole_program: bool) -> list[Assembler]:
    """Return the assemblers that `choose` tries, in order."""
    return [ASSEMBLERS[each] for each in ([name] if name else WHOLE_PROGRAM if whole_program else ASSEMBLERS)]


def choose(name: str | None = None, whole_program: bool = False) -> Assembler:
    """Return the assembler of that name (see `config`), or the first available one.

    `whole_program` prefers an assembler that knows that nothing else will be linked. Raises AssembleError if none is
    available.
    """
    missing = []
    for candidate in candidates(name, whole_program):
        reason = candidate.why_not()
        if reason is None:
            return candidate
        missing.append(reason)
    if name:
        raise AssembleError(
            f"PTXDSL_ASSEMBLER selects `{name}`, which is not available: {missing[0]}",
            help="unset PTXDSL_ASSEMBLER to use the first assembler available",
        )
    raise AssembleError(
        f"no assembler for PTX is available: {'; '.join(dict.fromkeys(missing))}",
        help=_NO_WHEELS
        if sys.platform == "darwin"
        else "pip install 'ptxdsl[asm]'; it needs no GPU and no CUDA toolkit",
    )


@cache
def tool(name: str) -> str | None:
    """Return the path of an NVIDIA command, from a wheel (nvidia/cu13/bin) or else from the PATH."""
    namespace = importlib.util.find_spec("nvidia")
    folders = namespace.submodule_search_locations if namespace else None
    paths = sorted(path for folder in folders or () for path in Path(folder).glob(f"*/bin/{name}"))
    return str(paths[-1]) if paths else shutil.which(name)
