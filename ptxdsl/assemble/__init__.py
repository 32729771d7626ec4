"""PTX text to a cubin: assemble, link, explain what the assembler says, and remember the result on disk.

Needs no GPU: nvJitLink from a wheel, else the command ptxas, else the driver. See `config` for the cache, the dumps and
the choice of the assembler.
"""

from __future__ import annotations

import json
import re
import struct
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import product
from pathlib import Path

from ptxdsl import config
from ptxdsl.assemble import assembler_log, assembler_version, assemblers, cache
from ptxdsl.assemble.assembler_log import Remark, Resources, WarpgroupLoss
from ptxdsl.errors import AssembleError, Error, Location, caller, meant

__all__ = ["Cubin", "Resources", "assemble", "check_arch", "kept"]

_FORMAT = "cubin 4"  # of a cache entry; part of its key


@dataclass(frozen=True, slots=True)
class Cubin:
    """Machine code for one architecture: the image to load, the resources of each kernel, and the warnings of ptxas."""

    image: bytes = field(repr=False)
    arch: str
    kernels: Mapping[str, Resources]
    warnings: tuple[str, ...] = ()

    def with_dynamic_shared(self, dynamic_bytes: Mapping[str, int | None]) -> Cubin:
        """Return this cubin with the dynamic shared memory of kernels, in bytes by name; the image does not hold it."""
        kernels = dict(self.kernels)
        for name in dynamic_bytes.keys() & kernels.keys():
            kernels[name] = replace(kernels[name], dynamic_shared_bytes=dynamic_bytes[name])
        return replace(self, kernels=kernels)

    def sass(self) -> str:
        """Return the disassembled machine code. Raises AssembleError if no disassembler is installed."""
        for name, *flags in (("nvdisasm", "--print-code"), ("cuobjdump", "-sass")):
            if path := assemblers.tool(name):
                return _disassemble(self.image, path, *flags)
        raise AssembleError(
            "no disassembler is installed, neither nvdisasm nor cuobjdump",
            help="pip install 'ptxdsl[sass]'",
        )


def _disassemble(image: bytes, *command: str) -> str:
    with tempfile.TemporaryDirectory(prefix="ptxdsl") as folder:
        path = Path(folder, "kernel.cubin")
        path.write_bytes(image)
        done = subprocess.run([*command, str(path)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise AssembleError(f"{command[0]} cannot read this cubin: {done.stderr.strip()}")
    return done.stdout


def assemble(ptx: str | Sequence[str], arch: str, *, options: Sequence[str] = ()) -> Cubin:
    """Assemble one PTX module, or several that call each other's functions, for an architecture such as `sm_90a`.

    `options` are ptxas options. Raises AssembleError with every error of the assembler, each with its PTX line and the
    Python line of the preceding `.loc`.
    """
    modules = (ptx,) if isinstance(ptx, str) else tuple(ptx)
    check_arch(arch)
    _check_modules(modules)
    settings = config.current()
    whole_program = any("setmaxnreg." in text for text in modules)
    version = assembler_version.version(settings.cache_dir, settings.assembler, whole_program)
    if version is None:
        version = _load(settings, whole_program).version()
    stem = _dump_stem(settings, modules, arch, _entry_name(version, modules, arch, options))
    if "ptx" in settings.dump:
        for number, text in enumerate(modules):
            _write(stem, f"{number}.ptx" if len(modules) > 1 else "ptx", text.encode())
    cubin = _kept(settings, version, modules, arch, options)
    if cubin is None:
        chosen = _load(settings, whole_program)
        if chosen.version() != version:  # another nvJitLink than the noted one is loaded
            cubin = _kept(settings, chosen.version(), modules, arch, options)
    if cubin is None:
        cubin = _assemble(chosen, modules, arch, options)
        cache.store(settings.cache_dir, _entry_name(chosen.version(), modules, arch, options), _pack(cubin))
    if settings.spills == "error":
        _check_spills(cubin.kernels, modules)
    if "cubin" in settings.dump:
        _write(stem, "cubin", cubin.image)
    if "sass" in settings.dump:
        _write(stem, "sass", cubin.sass().encode())
    return cubin


def _entry_name(version: str, modules: Sequence[str], arch: str, options: Sequence[str]) -> str:
    """Return the name of the cache entry of this cubin."""
    return cache.key((_FORMAT, version, arch, *options, "", *modules))


def _kept(
    settings: config.Config, version: str, modules: Sequence[str], arch: str, options: Sequence[str]
) -> Cubin | None:
    return _unpack(cache.load(settings.cache_dir, _entry_name(version, modules, arch, options)))


def _load(settings: config.Config, whole_program: bool) -> assemblers.Assembler:
    """Load the assembler to use, and note its version."""
    chosen = assemblers.choose(settings.assembler, whole_program)
    assembler_version.note(settings.cache_dir, chosen)
    return chosen


def check_arch(arch: str) -> None:
    """Raise AssembleError for an unknown architecture."""
    if arch not in config.ARCHITECTURES:
        message, help = config.why_no_target(arch)
        raise AssembleError(message, at=caller(), help=help)


_DEFINITION = re.compile(
    r"^\s*\.visible\s+\.(?:entry|func)\s*(?:\([^)]*\)\s*)?([\w$%]+)\s*(?:\([^)]*\))?[^;{]*\{"
    r"|^\s*\.visible\s+\.(?:global|const)\b[^;={]*?([\w$%]+)\s*(?:\[[^;={]*)?[;=]",
    re.MULTILINE,
)


def _check_modules(modules: Sequence[str]) -> None:
    """Reject modules that nvJitLink accepts silently, or rejects without a reason."""
    owner: dict[str, int] = {}
    for number, text in enumerate(modules):
        if ".version" not in text:
            raise AssembleError(
                f"{_called(number, modules)} is not PTX: it has no `.version`", help="pass the text of a PTX module"
            )
        for definition in _DEFINITION.finditer(text) if len(modules) > 1 else ():
            name = definition[1] or definition[2]
            if owner.setdefault(name, number) != number:
                raise AssembleError(
                    f"`{name}` is defined in both module {owner[name] + 1} and module {number + 1}",
                    help="define it in one module and declare it `.extern` in the others",
                )


def _called(number: int, modules: Sequence[str]) -> str:
    return f"module {number + 1} of {len(modules)}" if len(modules) > 1 else "the text"


def _assemble(chosen: assemblers.Assembler, modules: Sequence[str], arch: str, options: Sequence[str]) -> Cubin:
    outcome = chosen.assemble(modules, arch, options)
    if outcome.image is None:
        raise _refusal(outcome, modules, arch)
    if losses := assembler_log.warpgroup_losses(outcome.log):
        raise _loss(losses, modules)
    warnings = tuple(_warning(remark, modules) for remark in assembler_log.warnings(outcome.log))
    return Cubin(outcome.image, arch, _resources(outcome.image, arch, outcome.log), warnings)


def _resources(image: bytes, arch: str, log: str) -> dict[str, Resources]:
    """Return the resources of the kernels: shared memory from the cubin, the rest from the log."""
    shared = _shared_bytes(image, arch)
    by_kernel = assembler_log.resources(log)
    return {name: replace(needs, shared_bytes=shared.get(name, 0)) for name, needs in by_kernel.items()}


_RESERVED_BYTES = 1024  # per block, reserved by the system since sm_90
_PREFIX = ".nv.shared."


def _shared_bytes(image: bytes, arch: str) -> dict[str, int]:
    """Return the bytes of static shared memory of each kernel, from the sizes of the sections of a cubin, an ELF file.

    No log gives it reliably: when nvJitLink compiles relocatable code, ptxas omits variables declared outside of
    functions, and the linker includes memory reserved by the system. Kernels without any are omitted.
    """
    number = int(re.findall(r"\d+", arch)[0])
    reserved = _RESERVED_BYTES if number >= 90 else 0
    sizes = {name.removeprefix(_PREFIX): size for name, size in _sections(image).items() if name.startswith(_PREFIX)}
    return {kernel: max(0, size - reserved) for kernel, size in sizes.items()}


def _sections(image: bytes) -> dict[str, int]:
    """Return the sections of an ELF file with their sizes."""
    (start,) = struct.unpack_from("<Q", image, 0x28)
    each, count, of_names = struct.unpack_from("<3H", image, 0x3A)
    headers = [struct.unpack_from("<I20xQQ", image, start + each * n) for n in range(count)]
    names = headers[of_names][1] if headers else 0
    return {_name_at(image, names + name): size for name, _, size in headers}


def _name_at(image: bytes, start: int) -> str:
    return image[start : image.index(b"\0", start)].decode()


def _warning(remark: Remark, modules: Sequence[str]) -> str:
    # The log does not name the module of a warning.
    location = _python_location(remark, modules[0]) if len(modules) == 1 else None
    return f"{remark.message} ({location})" if location else remark.message


def _python_location(remark: Remark, text: str) -> Location | None:
    return assembler_log.python_location(text, remark.line) if remark.line else None


_HELP = (
    ("Unsupported .version", "update the assembler (pip install -U 'ptxdsl[asm]'), or emit a lower .version"),
    ("cannot be compiled to architecture", "assemble for the architecture that `.target` names, or a later one"),
    ("declares", "declare it `.extern .shared` without a size, and pass `shared_bytes` at launch"),
    ("Undefined reference", "link it with the module that defines it: pd.link(kernel, module)"),
    ("Unresolved extern", "link it with the module that defines it: pd.link(kernel, module)"),
    ("Parsing error", "ptxas reports the place where it stopped parsing; a missing `;` is on the line before"),
)


def _refusal(outcome: assemblers.Outcome, modules: Sequence[str], arch: str) -> AssembleError:
    """Return the error for a failed run: every error of the log, with the PTX and the Python line."""
    errors = assembler_log.errors(outcome.log) or [Remark("error", outcome.log.strip() or "no reason given")]
    prefix = f"module {outcome.module + 1}, " if len(modules) > 1 else ""
    help = next((advice for part, advice in _HELP if part in errors[0].message), None)
    return _error(f"the PTX does not assemble for {arch}", errors, modules[outcome.module], help, prefix)


def _error(message: str, remarks: Sequence[Remark], text: str, help: str | None, prefix: str = "") -> AssembleError:
    """Return an error that lists remarks with their PTX lines, at the first Python line of these."""
    listing = "\n".join(_shown(remark, text, prefix) for remark in remarks)
    at = next((location for remark in remarks if (location := _python_location(remark, text))), None)
    return AssembleError(f"{message}:\n{listing}", at=at, help=help)


_LOSS_HELP = {
    7504: "assemble it with ptxas, from pip install 'ptxdsl[ptxas]' or the CUDA toolkit",
    7508: "set the block size and the blocks per multiprocessor: @pd.kernel(reqntid=384, min_blocks=1)",
    7509: "call no function between the first wgmma.mma_async and its wgmma.wait_group",
    7510: "call no function between the first wgmma.mma_async and its wgmma.wait_group",
    7511: "use fewer accumulator registers per warpgroup: a smaller N, or more warpgroups",
    7512: "use fewer accumulator registers per warpgroup: a smaller N, or more warpgroups",
    7517: "wait with wgmma.wait_group before reading the accumulators",
    7518: "place wgmma.wait_group where all threads of the warpgroup execute it",
    7519: "place wgmma.fence between the last access to these registers and the first wgmma.mma_async",
    7520: "place wgmma.fence where all threads of the warpgroup execute it",
}
_ADDED = (7517, 7519)
"""Codes for waits and fences that the assembler inserts; other codes take precedence."""
_USED_EARLY = (
    "access the registers of wgmma.mma_async only after wgmma.wait_group, and insert wgmma.fence before the next one"
)


def _loss(losses: Sequence[WarpgroupLoss], modules: Sequence[str]) -> AssembleError:
    """Return the error for a kernel that the assembler had to change, for example by serialising wgmma."""
    text = modules[0] if len(modules) == 1 else ""
    remarks = [replace(loss.remark, line=assembler_log.loss_line(text, loss)) for loss in losses]
    code = next((loss.code for loss in losses if loss.code not in _ADDED), losses[0].code)
    names = " and ".join(dict.fromkeys(f"`{loss.kernel}`" for loss in losses if loss.kernel)) or "a kernel"
    message = f"the assembler changed {names}, which would run slower than written"
    return _error(message, remarks, text, _LOSS_HELP.get(code, _USED_EARLY))


_SPILLS = {
    "wgmma.mma_async.": (
        "needs more registers than a thread can have, in addition to its wgmma accumulators",
        "use fewer accumulator registers per warpgroup: a smaller N, or more warpgroups",
    ),
    "setmaxnreg.": (
        "needs more registers than its warpgroups request",
        "request more for the warpgroup that needs them: `with pd.warpgroup(…, registers=…):`",
    ),
}
"""Instructions of kernels that must not spill, with the fault and the help of the error."""


def _check_spills(kernels: Mapping[str, Resources], modules: Sequence[str]) -> None:
    """Reject a warp-specialised kernel that spills registers: it would run much slower than written."""
    for name, needs in kernels.items():
        spilled = max(needs.spill_store_bytes, needs.spill_load_bytes)
        for text, (wanted, (fault, help)) in product(modules if spilled else (), _SPILLS.items()):
            if line := assembler_log.first_line(text, name, wanted):
                remark = Remark("error", f"{spilled} bytes of registers per thread are spilled to memory", line)
                raise _error(f"`{name}` {fault}", [remark], text, f"{help}; or set PTXDSL_SPILLS=warn")


def _shown(remark: Remark, text: str, prefix: str) -> str:
    lines = text.splitlines()
    if remark.line is None or not 0 < remark.line <= len(lines):
        return f"  {remark.message}"
    location = _python_location(remark, text)
    python = f" ({location})" if location else ""
    return f"  {prefix}PTX line {remark.line}{python}: {remark.message}\n    {lines[remark.line - 1].strip()}"


def kept(settings: config.Config) -> Iterator[tuple[cache.CacheEntry, Cubin | None]]:
    """Yield the cache entries, newest first; the cubin is None for entries of other versions."""
    for entry in cache.entries(settings.cache_dir):
        yield entry, _unpack(cache.load(settings.cache_dir, entry.name))


def _pack(cubin: Cubin) -> bytes:
    """Return the bytes of a cache entry: a line of JSON, then the image."""
    facts = {
        "arch": cubin.arch,
        "kernels": {name: asdict(resources) for name, resources in cubin.kernels.items()},
        "warnings": cubin.warnings,
    }
    return json.dumps(facts).encode() + b"\n" + cubin.image


def _unpack(content: bytes | None) -> Cubin | None:
    """Return the cubin of an entry; None if there is none, or if another version of ptxdsl wrote it."""
    if content is None:
        return None
    line, _, image = content.partition(b"\n")
    try:
        facts = json.loads(line)
        kernels = {name: Resources(**resources) for name, resources in facts["kernels"].items()}
        return Cubin(image, facts["arch"], kernels, tuple(facts["warnings"]))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


_ENTRY = re.compile(r"\.entry\s+([\w$]+)")


def _dump_stem(settings: config.Config, modules: Sequence[str], arch: str, key: str) -> Path:
    """Return the path of a dump without its suffix: the first kernel, the architecture, and eight digits of the key."""
    entry = next(filter(None, map(_ENTRY.search, modules)), None)
    return settings.dump_dir / f"{entry[1] if entry else 'module'}.{arch}.{key[:8]}"


def _write(stem: Path, suffix: str, content: bytes) -> None:
    path = stem.with_name(f"{stem.name}.{suffix}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    except OSError as reason:
        raise Error(
            f"cannot write the dump {path}: {reason.strerror}", help="set PTXDSL_DUMP_DIR to a writable folder"
        ) from None
