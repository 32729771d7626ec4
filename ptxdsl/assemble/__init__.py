"""PTX text to a cubin: assemble, link, explain what the assembler says, and remember the result on disk.

Needs no GPU: nvJitLink from a wheel, else the command ptxas, else the driver. See `config` for the cache, the dumps and
the choice of the assembler.
"""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import product
from pathlib import Path

from ptxdsl import config
from ptxdsl.assemble import assembler_log, assembler_version, assemblers, cache, sections
from ptxdsl.assemble.assembler_log import Remark, Resources, WarpgroupLoss
from ptxdsl.errors import AssembleError, Error, Location, caller, meant

__all__ = ["Cubin", "Resources", "assemble", "check_arch", "kept"]

_FORMAT = "cubin 4"  # of a cache entry; part of its key


@dataclass(frozen=True, slots=True)
class Cubin:
    """Machine code for one architecture: the image to load, what each kernel in it needs, what ptxas warned of."""

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
        """The machine instructions as text. Raises AssembleError where no disassembler is installed."""
        for name, *flags in (("nvdisasm", "--print-code"), ("cuobjdump", "-sass")):
            if path := assemblers.tool(name):
                return _disassemble(self.image, path, *flags)
        raise AssembleError(
            "there is no disassembler: neither nvdisasm nor cuobjdump is installed",
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

    `options` are those of the command ptxas. Raises AssembleError with every error of the assembler, each with its PTX
    line and the Python line that the `.loc` before it names.
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
    """Where the cubin of such an assembler is kept."""
    return cache.key((_FORMAT, version, arch, *options, "", *modules))


def _kept(
    settings: config.Config, version: str, modules: Sequence[str], arch: str, options: Sequence[str]
) -> Cubin | None:
    return _unpack(cache.load(settings.cache_dir, _entry_name(version, modules, arch, options)))


def _load(settings: config.Config, whole_program: bool) -> assemblers.Assembler:
    """The assembler that is to be used, whose version is noted."""
    chosen = assemblers.choose(settings.assembler, whole_program)
    assembler_version.note(settings.cache_dir, chosen)
    return chosen


def check_arch(arch: str) -> None:
    """Raises AssembleError for an architecture that we do not know."""
    if arch not in config.ARCHITECTURES:
        message, help = config.why_no_target(arch)
        raise AssembleError(message, at=caller(), help=help)


_DEFINITION = re.compile(
    r"^\s*\.visible\s+\.(?:entry|func)\s*(?:\([^)]*\)\s*)?([\w$%]+)\s*(?:\([^)]*\))?[^;{]*\{"
    r"|^\s*\.visible\s+\.(?:global|const)\b[^;={]*?([\w$%]+)\s*(?:\[[^;={]*)?[;=]",
    re.MULTILINE,
)


def _check_modules(modules: Sequence[str]) -> None:
    """What nvJitLink takes in silence, or refuses without a reason."""
    owner: dict[str, int] = {}
    for number, text in enumerate(modules):
        if ".version" not in text:
            raise AssembleError(
                f"{_called(number, modules)} is no PTX: it has no `.version`", help="pass the text of a PTX module"
            )
        for definition in _DEFINITION.finditer(text) if len(modules) > 1 else ():
            name = definition[1] or definition[2]
            if owner.setdefault(name, number) != number:
                raise AssembleError(
                    f"`{name}` is defined in module {owner[name] + 1} and in module {number + 1}",
                    help="define it in one module, and declare it `.extern` in the others",
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
    """What the kernels need: shared memory by the cubin, the rest by the log."""
    shared = sections.shared_bytes(image, arch)
    by_kernel = assembler_log.resources(log)
    return {name: replace(needs, shared_bytes=shared.get(name, 0)) for name, needs in by_kernel.items()}


def _warning(remark: Remark, modules: Sequence[str]) -> str:
    # The log does not say which of several modules a warning is about.
    location = _python_location(remark, modules[0]) if len(modules) == 1 else None
    return f"{remark.message} ({location})" if location else remark.message


def _python_location(remark: Remark, text: str) -> Location | None:
    return assembler_log.python_location(text, remark.line) if remark.line else None


_HELP = (
    ("Unsupported .version", "update the assembler (pip install -U 'ptxdsl[asm]'), or emit a lower .version"),
    ("cannot be compiled to architecture", "assemble for the architecture that `.target` names, or a later one"),
    ("declares", "declare it `.extern .shared` without a size, and give the launch `shared_bytes`"),
    ("Undefined reference", "link it with the module that defines it: pd.link(kernel, module)"),
    ("Unresolved extern", "link it with the module that defines it: pd.link(kernel, module)"),
    ("Parsing error", "ptxas names the place where it stopped reading; a missing `;` is on the line before"),
)


def _refusal(outcome: assemblers.Outcome, modules: Sequence[str], arch: str) -> AssembleError:
    """The error for a failed run: every error of the log, with the PTX and the Python line."""
    errors = assembler_log.errors(outcome.log) or [Remark("error", outcome.log.strip() or "no reason given")]
    text = modules[outcome.module]
    prefix = f"module {outcome.module + 1}, " if len(modules) > 1 else ""
    listing = "\n".join(_shown(remark, text, prefix) for remark in errors)
    locations = [location for remark in errors if (location := _python_location(remark, text))]
    help = next((advice for part, advice in _HELP if part in errors[0].message), None)
    return AssembleError(
        f"the PTX does not assemble for {arch}:\n{listing}", at=locations[0] if locations else None, help=help
    )


_LOSS_HELP = {
    7504: "let the command ptxas assemble it, which pip install 'ptxdsl[ptxas]' or the CUDA toolkit brings",
    7508: "say how large a block is and how many a multiprocessor holds: @pd.kernel(reqntid=384, min_blocks=1)",
    7509: "call no function between the first wgmma.mma_async and its wgmma.wait_group",
    7510: "call no function between the first wgmma.mma_async and its wgmma.wait_group",
    7511: "give each warpgroup fewer sums: a smaller N, or more warpgroups",
    7512: "give each warpgroup fewer sums: a smaller N, or more warpgroups",
    7517: "wait for the products before their sums are used: wgmma.wait_group",
    7518: "let wgmma.wait_group stand where all threads of the warpgroup come by",
    7519: "write wgmma.fence between the last use of these registers and the first wgmma.mma_async",
    7520: "let wgmma.fence stand where all threads of the warpgroup come by",
}
_ADDED = (7517, 7519)
"""Waits and fences that the assembler adds; what else it says weighs more."""
_USED_EARLY = "use the registers of wgmma.mma_async only behind wgmma.wait_group, and write wgmma.fence before the next"


def _loss(losses: Sequence[WarpgroupLoss], modules: Sequence[str]) -> AssembleError:
    """The error for a kernel that the assembler had to change: its products run one after another, or the like."""
    text = modules[0] if len(modules) == 1 else ""
    remarks = [replace(loss.remark, line=assembler_log.loss_line(text, loss)) for loss in losses]
    listing = "\n".join(_shown(remark, text, "") for remark in remarks)
    locations = [location for remark in remarks if (location := _python_location(remark, text))]
    code = next((loss.code for loss in losses if loss.code not in _ADDED), losses[0].code)
    names = " and ".join(dict.fromkeys(f"`{loss.kernel}`" for loss in losses if loss.kernel)) or "a kernel"
    return AssembleError(
        f"the assembler changed {names}, which would run slower than it is written:\n{listing}",
        at=locations[0] if locations else None,
        help=_LOSS_HELP.get(code, _USED_EARLY),
    )


_SPILLS = {
    "wgmma.mma_async.": (
        "has more in registers than there are, beside the sums of wgmma",
        "give each warpgroup fewer sums: a smaller N, or more warpgroups",
    ),
    "setmaxnreg.": (
        "has more in registers than its warpgroups ask for",
        "give more to the warpgroup that needs them: `with pd.warpgroup(…, registers=…):`",
    ),
}
"""Instructions of kernels that must not spill: what is said of such a kernel, and what would help."""


def _check_spills(kernels: Mapping[str, Resources], modules: Sequence[str]) -> None:
    """Refuse a kernel of warpgroups that keeps registers in memory: it would run much slower than it is written."""
    for name, needs in kernels.items():
        spilled = max(needs.spill_store_bytes, needs.spill_load_bytes)
        for text, (wanted, (fault, help)) in product(modules if spilled else (), _SPILLS.items()):
            if line := assembler_log.first_line(text, name, wanted):
                remark = Remark("error", f"{spilled} bytes of registers a thread are spilled to memory", line)
                raise AssembleError(
                    f"`{name}` {fault}:\n{_shown(remark, text, '')}",
                    at=_python_location(remark, text),
                    help=f"{help}; or set PTXDSL_SPILLS=warn",
                )


def _shown(remark: Remark, text: str, prefix: str) -> str:
    lines = text.splitlines()
    if remark.line is None or not 0 < remark.line <= len(lines):
        return f"  {remark.message}"
    location = _python_location(remark, text)
    python = f" ({location})" if location else ""
    return f"  {prefix}PTX line {remark.line}{python}: {remark.message}\n    {lines[remark.line - 1].strip()}"


def kept(settings: config.Config) -> Iterator[tuple[cache.CacheEntry, Cubin | None]]:
    """The entries of the cache, the last written first; without a cubin those that this version does not use."""
    for entry in cache.entries(settings.cache_dir):
        yield entry, _unpack(cache.load(settings.cache_dir, entry.name))


def _pack(cubin: Cubin) -> bytes:
    """The bytes of a cache entry: a line of JSON, then the image."""
    facts = {
        "arch": cubin.arch,
        "kernels": {name: asdict(resources) for name, resources in cubin.kernels.items()},
        "warnings": cubin.warnings,
    }
    return json.dumps(facts).encode() + b"\n" + cubin.image


def _unpack(content: bytes | None) -> Cubin | None:
    """The cubin of an entry; None where there is none, or none that this version of ptxdsl has written."""
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
    """The path of a dump without its suffix: the first kernel, the architecture, and eight digits of the key."""
    entry = next(filter(None, map(_ENTRY.search, modules)), None)
    return settings.dump_dir / f"{entry[1] if entry else 'module'}.{arch}.{key[:8]}"


def _write(stem: Path, suffix: str, content: bytes) -> None:
    path = stem.with_name(f"{stem.name}.{suffix}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    except OSError as reason:
        raise Error(
            f"cannot write the dump {path}: {reason.strerror}", help="set PTXDSL_DUMP_DIR to a folder you can write"
        ) from None
