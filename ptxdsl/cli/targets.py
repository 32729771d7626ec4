"""Targets of the command line: a kernel in a module or file, a launcher, or PTX."""

from __future__ import annotations

import argparse
import difflib
import importlib
import importlib.util
import io
import os
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any

from ptxdsl import config, ir
from ptxdsl.cli.process import Interrupted, UsageError
from ptxdsl.cli.user_code import recursion_limit, user_code
from ptxdsl.kernel import AnyKernel, Kernel
from ptxdsl.linking.link import LinkedProgram
from ptxdsl.lower import lower
from ptxdsl.parse import parse
from ptxdsl.runtime.variant import DEFAULT_ARCH, Variant
from ptxdsl.trace.functions import DeviceFunction
from ptxdsl.trace.signature import REQUIRED
from ptxdsl.types import TYPES
from ptxdsl.verify import least_version

STDIN = "-"
LAUNCHERS = ("ptxdsl.kernels.gemm:gemm", "ptxdsl.kernels.conv:conv2d")  # with another kernel on sm_90a
MOST_PTX_BYTES = 256 << 20  # the largest kernels of libraries have some 10 MiB


def find(target: str, arch: str | None = None, constants: Sequence[str] = ()) -> Variant:
    """Return the program that `target` names: `module:kernel`, `file.py:kernel`, a PTX file, or - for PTX from stdin.

    `constants` are texts such as `tile=(64, 64)` or, for a field of a dataclass, `config.stages=3`. Raises UsageError
    if the target does not exist, and the errors of tracing and parsing.
    """
    if arch is not None:
        check_arch(arch)
    if is_ptx(target):
        if constants:
            raise UsageError(f"--const {constants[0]}: PTX has no constants", help="leave it out")
        return _from_ptx(target, arch)
    kernel = find_kernel(target)
    defaults: dict[str, Any] = {}
    if target in LAUNCHERS and (arch or config.current().arch) == "sm_90a":
        kernel, defaults = importlib.import_module("ptxdsl.cli.hopper").kernel_of(target)
    values = defaults | read_constants(kernel, constants, defaults)
    with user_code(f"kernel `{kernel.name}` cannot be traced"):
        return kernel.variant(arch, values)


def _from_ptx(target: str, arch: str | None) -> Variant:
    module = read_ptx(target)
    if arch is not None:
        module.target = (arch, *module.target[1:])
        module.version = max(module.version or (1, 0), least_version(module))
    name = module.kernels[0].name if module.kernels else ""
    assembled_for = module.target[0] if module.target[0] in config.ARCHITECTURES else DEFAULT_ARCH
    return Variant(name, assembled_for, module, lower(module, lineinfo=config.current().lineinfo), [], parsed=module)


def split(target: str) -> tuple[str, str]:
    """Return the module, file or PTX of a target, and the name after it, which may be empty."""
    source, colon, name = target.rpartition(":")
    return (source, name) if colon else (target, "")


def is_ptx(source: str) -> bool:
    """True if a target, without a kernel after it, is PTX: a file or stdin."""
    return source == STDIN or source.endswith(".ptx")


def read_ptx(source: str) -> ir.PtxModule:
    """Parse the module in a file, or in stdin for -."""
    file = "<stdin>" if source == STDIN else source
    text = _read(source)
    try:
        return parse(text, file=file)
    except RecursionError:
        raise UsageError(f"{file} is nested deeper than {recursion_limit()}") from None


def _read(target: str) -> str:
    file = "stdin" if target == STDIN else target
    try:
        if target == STDIN:
            if isinstance(sys.stdin, io.TextIOWrapper):
                sys.stdin.reconfigure(encoding="utf-8", errors="strict")
            text = sys.stdin.read(MOST_PTX_BYTES + 1)
        else:
            with open(target, encoding="utf-8") as opened:
                text = opened.read(MOST_PTX_BYTES + 1)
    except OSError as reason:
        raise UsageError(f"{file} cannot be read: {reason.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{file} is not text", help="to disassemble a cubin, use nvdisasm") from None
    if len(text) > MOST_PTX_BYTES:
        raise UsageError(f"{file} has more than {MOST_PTX_BYTES >> 20} MiB, the limit for PTX")
    return text


def add_constants(parser: argparse.ArgumentParser) -> None:
    """Add the option --const, which `read_constants` reads."""
    parser.add_argument(
        "--const",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="set a constant of the kernel, or a field of one",
    )


def find_kernel(target: str) -> AnyKernel:
    """Return the kernel that `module:name` or `file.py:name` names; without a name, the only kernel of the module.

    A kernel of a program of `pd.link` is `file.py:program.name`, or `file.py:program` if the program has one kernel.
    """
    source, name = split(target)
    if is_ptx(source):
        raise UsageError(f"{target} names one kernel of PTX; this command takes the whole file", help=f"write {source}")
    module = load_module(source)
    return kernel_in(module, source, name) if name else only_kernel(source, module)


def check_arch(arch: str) -> None:
    """Raise UsageError for an unknown target architecture."""
    if arch not in config.ARCHITECTURES:
        message, help = config.why_no_target(arch)
        raise UsageError(message, help=help)


def kernel_in(module: ModuleType, source: str, name: str) -> AnyKernel:
    """Return the kernel with a name, which may have dots, in the module of `source`."""
    return _as_kernel(source, name, named(module, source, name), module)


def named(module: ModuleType, source: str, name: str) -> Any:
    """Return the value of a name, which may have dots, in the module of `source`."""
    value: Any = module
    for part in name.split("."):
        with user_code(f"`{name}` of {source} cannot be read"):
            if isinstance(value, LinkedProgram) and part in value.kernels:
                value = value.kernel(part)
                continue
            if not hasattr(value, part):
                raise UsageError(f"{source} has no `{name}`", help=_kernels_of(module, name))
            value = getattr(value, part)
    return value


def load_module(source: str) -> ModuleType:
    """Import the module that a dotted name or a .py file names."""
    return _from_file(source) if source.endswith(".py") else _from_path(source)


def _as_kernel(source: str, name: str, value: Any, module: ModuleType) -> AnyKernel:
    """Return `value` if it is a kernel, or the attribute `kernel` of a launcher; its constants have defaults."""
    kernel = _kernel_of(value)
    if kernel is not None:
        return kernel
    if isinstance(value, ModuleType):
        return only_kernel(value.__name__, value)
    if isinstance(value, LinkedProgram):
        return _only_one(f"`{name}` of {source}", source, _of_program(name, value))
    if isinstance(value, DeviceFunction):
        raise UsageError(f"`{name}` of {source} is a device function, not a kernel", help="name a kernel that calls it")
    if callable(value):
        help = f"put @pd.kernel above it, or name the kernel that it launches: `{name}.kernel = …`"
        raise UsageError(f"`{name}` of {source} is a function, not a kernel", help=help)
    raise UsageError(
        f"`{name}` of {source} is of type {type(value).__name__}, not a kernel", help=_kernels_of(module, name)
    )


def only_kernel(source: str, module: ModuleType) -> AnyKernel:
    """Return the only kernel of a module."""
    return _only_one(source, source, kernels_of(module))


def _only_one(owner: str, source: str, kernels: Mapping[str, AnyKernel]) -> AnyKernel:
    if len(kernels) == 1:
        return next(iter(kernels.values()))
    raise UsageError(
        f"{owner} has {len(kernels) or 'no'} kernels: name one" if kernels else f"{owner} has no kernel",
        help=f"write `{source}:{next(iter(kernels))}`; it has {', '.join(kernels)}" if kernels else None,
    )


def kernels_of(module: ModuleType) -> dict[str, AnyKernel]:
    """Return the kernels and launchers that a module defines or imports, by name; linked kernels by program.name."""
    kernels = {name: kernel for name, value in vars(module).items() if (kernel := _kernel_of(value)) is not None}
    programs = _programs_of(module)
    taken = {id(kernel) for program in programs.values() for kernel in program.traced}
    kernels = {name: kernel for name, kernel in kernels.items() if id(kernel) not in taken}
    for name, program in programs.items():
        kernels |= {
            path: kernel for path, kernel in _of_program(name, program).items() if kernel not in kernels.values()
        }
    return kernels


def _programs_of(module: ModuleType) -> dict[str, LinkedProgram]:
    return {name: value for name, value in vars(module).items() if isinstance(value, LinkedProgram)}


def _of_program(name: str, program: LinkedProgram) -> dict[str, AnyKernel]:
    """Return the kernels of a linked program, by the names that targets use."""
    return {f"{name}.{kernel}": program.kernel(kernel) for kernel in program.kernels}


def _kernel_of(value: Any) -> AnyKernel | None:
    """Return a kernel, or the kernel of a launcher."""
    try:
        kernel = value if isinstance(value, AnyKernel) else getattr(value, "kernel", None)
    except Exception:  # an attribute of a user's object may raise anything; then it is not a launcher
        return None
    return kernel if isinstance(kernel, AnyKernel) else None


def _kernels_of(module: ModuleType, wanted: str) -> str | None:
    known = kernels_of(module)
    for name, program in _programs_of(module).items():
        known |= _of_program(name, program)
    return nearest(wanted, known) or (f"its kernels: {', '.join(known)}" if known else None)


def nearest(wanted: str, known: Iterable[str]) -> str | None:
    """Return `did you mean …?` if a known name is close."""
    near = difflib.get_close_matches(wanted, list(known), 3)
    return "did you mean " + " or ".join(f"`{name}`" for name in near) + "?" if near else None


def _from_path(name: str) -> ModuleType:
    """Import a module by its dotted name, from the current folder or the installed packages."""
    if os.getcwd() not in sys.path and "" not in sys.path:
        sys.path.insert(0, os.getcwd())
    if not all(part.isidentifier() for part in name.split(".")):
        raise UsageError(
            f"`{name}` is not a module, a .py file or a .ptx file",
            help="write package.module:kernel, file.py:kernel, file.ptx, or - for PTX from stdin",
        )
    with user_code(f"{name} cannot be imported"):
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as missing:
            if missing.name is None or not f"{name}.".startswith(f"{missing.name}."):
                raise
            module, _, last = name.rpartition(".")
            help = "write package.module:kernel, file.py:kernel, file.ptx, or - for PTX from stdin"
            if Path(f"{name}.py").exists():
                help = f"for a file, write {name}.py:kernel"
            elif hasattr(sys.modules.get(module), last):  # the module was imported on the way
                help = f"for a name in it, write {module}:{last}"
            raise UsageError(f"there is no module `{missing.name}`", help=help) from None


def _from_file(file: str) -> ModuleType:
    """Import a file as `import` would; modules in its folder can be imported."""
    path = Path(file).resolve()
    if not os.path.isfile(path):  # unlike Path.is_file, False for a name that is too long
        raise UsageError(f"there is no file {file}")
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    with user_code(f"{file} cannot be imported"):
        spec.loader.exec_module(module)
    return module


def read_constants(
    kernel: AnyKernel, texts: Sequence[str], known: Mapping[str, Any] = MappingProxyType({})
) -> dict[str, Any]:
    """Return the constants that texts such as `n=3` or `config.stages=3` set, by name.

    `known` replaces defaults of the kernel. Raises UsageError for an unknown name and for a missing constant.
    """
    if not isinstance(kernel, Kernel):
        if texts:
            help = "pass constants of linked kernels to pd.link; PTX has no constants"
            raise UsageError(f"--const {texts[0]}: the constants of kernel `{kernel.name}` are fixed", help=help)
        return {}
    constants = kernel.signature.constants
    defaults = {**constants, **{name: value for name, value in known.items() if name in constants}}
    names = TYPES | vars(sys.modules[kernel.__module__])
    changes: dict[str, dict[tuple[str, ...], Any]] = {}
    for text in texts:
        path, value = _split("--const", text)
        name, *inner = path.split(".")
        if name not in defaults:
            help = f"it has {', '.join(defaults)}" if defaults else "its parameters are passed at each launch"
            raise UsageError(f"kernel `{kernel.name}` has no constant `{name}`", help=help)
        if inner and defaults[name] is REQUIRED and () not in changes.get(name, {}):
            raise UsageError(f"--const {text}: `{name}` has no default", help=f"pass the whole value: --const {name}=…")
        changes.setdefault(name, {})[tuple(inner)] = read_value(value, names)
    values = {name: with_fields(name, defaults[name], fields_of) for name, fields_of in changes.items()}
    lacking = [name for name, default in defaults.items() if default is REQUIRED and name not in values]
    if lacking:
        help = f"pass --const {lacking[0]}=…"
        raise UsageError(f"constant `{lacking[0]}` of kernel `{kernel.name}` has no default", help=help)
    return values


def override(flag: str, owner: Any, texts: Sequence[str]) -> Any:
    """Return a dataclass with the fields replaced that texts such as `stages=3` set."""
    changes = {}
    for text in texts:
        path, value = _split(flag, text)
        changes[tuple(path.split("."))] = read_value(value, TYPES)
    return with_fields("", owner, changes)


def _split(flag: str, text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"{flag} {text} has no value", help=f"write {flag} {text}=VALUE")
    return name.strip(), value.strip()


def with_fields(path: str, owner: Any, changes: Mapping[tuple[str, ...], Any]) -> Any:
    """Replace the named fields of `owner`, nested ones too, all at once: some values are valid only together.

    A value without a name replaces the owner itself.
    """
    owner = changes.get((), owner)
    inner: dict[str, dict[tuple[str, ...], Any]] = {}
    for names, value in changes.items():
        if names:
            inner.setdefault(names[0], {})[names[1:]] = value
    known = [field.name for field in fields(owner)] if is_dataclass(owner) and not isinstance(owner, type) else []
    for name in inner:
        if name not in known:
            help = nearest(name, known) or (f"it has {', '.join(known)}" if known else None)
            raise UsageError(f"{_joined(path, name)}: {type(owner).__name__} has no field `{name}`", help=help)
    changed = {n: with_fields(_joined(path, n), getattr(owner, n), values) for n, values in inner.items()}
    return replace(owner, **changed) if changed else owner


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def read_value(text: str, names: Mapping[str, Any]) -> Any:
    """Evaluate a Python expression of literals and `names`; any other single word is a string."""
    if text.isidentifier() and text not in ("True", "False", "None"):
        return names.get(text, text)
    try:
        return eval(text, dict(names))  # the user's own command line, in the user's own module
    except Interrupted:
        raise
    except BaseException as error:
        raise UsageError(
            f"{text} is not a value: {error}", help="write a Python expression, such as 3 or (64, 64)"
        ) from None


def instructions(module: ir.PtxModule) -> Mapping[str, int]:
    """Count each mnemonic of a module, the most frequent first."""
    counted = Counter(i.opcode.text for function in module.functions for i in function.walk())
    return dict(counted.most_common())
