"""What the command line is pointed at: a kernel in a module or file, a launcher, or PTX, as one program."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import os
import sys
import traceback
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

from ptxdsl import config, ir
from ptxdsl.calls import DEFAULT_ARCH, Variant
from ptxdsl.errors import Error, Location
from ptxdsl.kernel import Kernel
from ptxdsl.lower import lower
from ptxdsl.parse import parse
from ptxdsl.trace import REQUIRED
from ptxdsl.types import TYPES
from ptxdsl.verify import least_version

STDIN = "-"


class UsageError(Error):
    """The command line names something that is not there."""


def find(target: str, arch: str | None = None, constants: Sequence[str] = ()) -> Variant:
    """The program that `target` names: `module:kernel`, `file.py:kernel`, a PTX file, or - for PTX from stdin.

    `constants` are texts such as `tile=(64, 64)` or, for a field of a dataclass, `config.stages=3`.
    Raises UsageError for what is not there, and the errors of tracing and parsing.
    """
    if arch is not None and arch not in config.ARCHITECTURES:
        raise UsageError(
            f"there is no architecture `{arch}`", help=f"the known ones are {', '.join(config.ARCHITECTURES)}"
        )
    if target == STDIN or target.endswith(".ptx"):
        if constants:
            raise UsageError(f"--const {constants[0]}: PTX has no constants", help="leave it out")
        return _from_ptx(target, arch)
    kernel = find_kernel(target)
    values = read_constants(kernel, constants)
    try:
        return kernel.variant(arch, values)
    except Error:
        raise
    except Exception as error:
        raise _failed(f"kernel `{kernel.name}` cannot be traced", error) from error


def _from_ptx(target: str, arch: str | None) -> Variant:
    file = "<stdin>" if target == STDIN else target
    module = parse(_read(target), file=file)
    if arch is not None:
        module.target = (arch, *module.target[1:])
        module.version = max(module.version or (1, 0), least_version(module))
    name = module.kernels[0].name if module.kernels else ""
    assembled_for = module.target[0] if module.target[0] in config.ARCHITECTURES else DEFAULT_ARCH
    return Variant(name, assembled_for, module, lower(module, lineinfo=config.current().lineinfo), [], parsed=module)


def _read(target: str) -> str:
    try:
        return sys.stdin.read() if target == STDIN else Path(target).read_text()
    except OSError as reason:
        raise UsageError(f"{target} cannot be read: {reason.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(
            f"{'stdin' if target == STDIN else target} is not text", help="a cubin is read by nvdisasm, not by ptxdsl"
        ) from None


def find_kernel(target: str) -> Kernel:
    """The kernel that `module:name` or `file.py:name` names; the only one of the module without a name."""
    place, colon, name = target.rpartition(":")
    if not colon:
        place, name = target, ""
    if place == STDIN or place.endswith(".ptx"):
        raise UsageError(f"{target} names a kernel of PTX, which is taken as a whole", help=f"write {place}")
    with redirect_stdout(sys.stderr):  # what a module prints is not what it is asked for
        module = _from_file(place) if place.endswith(".py") else _from_path(place)
    if not name:
        return _only_kernel(place, module)
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            raise UsageError(f"{place} has no `{name}`", help=_kernels_of(module, name))
        found = getattr(found, part)
    return _as_kernel(place, name, found, module)


def _as_kernel(place: str, name: str, found: Any, module: ModuleType) -> Kernel:
    """`found`, or the kernel that a launcher stands for: its attribute `kernel`, whose constants have defaults."""
    kernel = found if isinstance(found, Kernel) else getattr(found, "kernel", None)
    if isinstance(kernel, Kernel):
        return kernel
    if callable(found):
        help = f"put @pd.kernel above it, or name the kernel that it launches: `{name}.kernel = …`"
        raise UsageError(f"`{name}` of {place} is a function, not a kernel", help=help)
    raise UsageError(
        f"`{name}` of {place} is of type {type(found).__name__}, not a kernel", help=_kernels_of(module, name)
    )


def _only_kernel(place: str, module: ModuleType) -> Kernel:
    kernels = _kernels(module)
    if len(kernels) == 1:
        return next(iter(kernels.values()))
    raise UsageError(
        f"{place} has {len(kernels) or 'no'} kernels: say which" if kernels else f"{place} has no kernel",
        help=f"write `{place}:{next(iter(kernels))}`; it has {', '.join(kernels)}" if kernels else None,
    )


def _kernels(module: ModuleType) -> dict[str, Kernel]:
    """The kernels and launchers that a module defines or imports, by name."""
    named = {n: v if isinstance(v, Kernel) else getattr(v, "kernel", None) for n, v in vars(module).items()}
    return {name: value for name, value in named.items() if isinstance(value, Kernel)}


def _kernels_of(module: ModuleType, wanted: str) -> str | None:
    known = _kernels(module)
    return nearest(wanted, known) or (f"its kernels: {', '.join(known)}" if known else None)


def nearest(wanted: str, known: Iterable[str]) -> str | None:
    """`did you mean …?`, where there is something near."""
    near = difflib.get_close_matches(wanted, list(known), 3)
    return "did you mean " + " or ".join(f"`{name}`" for name in near) + "?" if near else None


def _from_path(name: str) -> ModuleType:
    """A module by its dotted name, from the current folder as from the installed packages."""
    if os.getcwd() not in sys.path and "" not in sys.path:
        sys.path.insert(0, os.getcwd())
    if not all(part.isidentifier() for part in name.split(".")):
        raise UsageError(
            f"`{name}` is neither a module, a .py file nor a .ptx file",
            help="write package.module:kernel, file.py:kernel, file.ptx, or - for PTX from stdin",
        )
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as missing:
        if missing.name is None or not f"{name}.".startswith(f"{missing.name}."):
            raise _failed(f"{name} cannot be imported", missing) from missing
        help = f"for a file, write {name}.py:kernel" if Path(f"{name}.py").exists() else None
        raise UsageError(f"there is no module `{missing.name}`", help=help) from None
    except Exception as error:
        raise _failed(f"{name} cannot be imported", error) from error


def _from_file(file: str) -> ModuleType:
    """A module by its file, run as `import` would; its neighbours can be imported."""
    path = Path(file).resolve()
    if not path.is_file():
        raise UsageError(f"there is no file {file}")
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise _failed(f"{file} cannot be imported", error) from error
    return module


def _failed(what: str, error: Exception) -> Error:
    """A failure of the user's Python: our own errors as they are, others with the line where they arose."""
    if isinstance(error, Error):
        return error
    if isinstance(error, SyntaxError) and error.filename:
        at = Location(error.filename, error.lineno or 0, source=error.text or "")
    else:
        frames = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith("<frozen")]
        at = Location(frames[-1].filename, frames[-1].lineno or 0)
    return UsageError(f"{what}: {type(error).__name__}: {getattr(error, 'msg', error)}", at=at)


def read_constants(kernel: Kernel, texts: Sequence[str]) -> dict[str, Any]:
    """The constants of a kernel that texts such as `n=3` or `config.stages=3` give."""
    defaults = kernel.signature.constants
    names = TYPES | vars(sys.modules[kernel.__module__])
    given: dict[str, dict[tuple[str, ...], Any]] = {}
    for text in texts:
        path, value = _split("--const", text)
        name, *inner = path.split(".")
        if name not in defaults:
            known = f"it has {', '.join(defaults)}" if defaults else "its parameters are given at each launch"
            raise UsageError(f"kernel `{kernel.name}` has no constant `{name}`", help=known)
        if inner and defaults[name] is REQUIRED and () not in given.get(name, {}):
            raise UsageError(f"--const {text}: `{name}` has no default", help=f"give it whole: --const {name}=…")
        given.setdefault(name, {})[tuple(inner)] = read_value(value, names)
    values = {name: with_fields(name, defaults[name], found) for name, found in given.items()}
    lacking = [name for name, default in defaults.items() if default is REQUIRED and name not in values]
    if lacking:
        help = f"give it: --const {lacking[0]}=…"
        raise UsageError(f"constant `{lacking[0]}` of kernel `{kernel.name}` has no default", help=help)
    return values


def override(what: str, owner: Any, texts: Sequence[str]) -> Any:
    """A dataclass with the fields replaced that texts such as `stages=3` give."""
    given = {}
    for text in texts:
        path, value = _split(what, text)
        given[tuple(path.split("."))] = read_value(value, TYPES)
    return with_fields("", owner, given)


def _split(what: str, text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"{what} {text} gives no value", help=f"write {what} {text}=VALUE")
    return name.strip(), value.strip()


def with_fields(path: str, owner: Any, given: Mapping[tuple[str, ...], Any]) -> Any:
    """`owner` with the fields that names lead to replaced, all at once: some make sense together only.

    A value without a name stands for the owner itself.
    """
    owner = given.get((), owner)
    inner: dict[str, dict[tuple[str, ...], Any]] = {}
    for names, value in given.items():
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
    """A Python expression of literals and `names`; a word that is none of them is that text."""
    if text.isidentifier() and text not in ("True", "False", "None"):
        return names.get(text, text)
    try:
        return eval(text, dict(names))  # the user's own command line, in the user's own module
    except Exception as error:
        raise UsageError(
            f"{text} is no value: {error}", help="write a Python expression, such as 3 or (64, 64)"
        ) from None


def instructions(module: ir.Module) -> Mapping[str, int]:
    """How often each mnemonic stands in a module, the most frequent first."""
    counted = Counter(i.opcode.text for function in module.functions for i in function.walk())
    return dict(counted.most_common())
