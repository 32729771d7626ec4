"""What the command line is pointed at: a kernel in a module or file, a launcher, or PTX, as one program."""

from __future__ import annotations

import ast
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

from . import config, ir
from .calls import DEFAULT_ARCH, Variant
from .errors import Error, Location
from .kernel import Kernel
from .lower import lower
from .parse import parse
from .types import TYPES
from .verify import least_version

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
    return kernel.variant(arch, read_constants(kernel, constants))


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
    raise UsageError(f"`{name}` of {place} is a {type(found).__name__}, not a kernel", help=_kernels_of(module, name))


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
            raise _failed(name, missing) from missing
        help = f"for a file, write {name}.py:kernel" if Path(f"{name}.py").exists() else None
        raise UsageError(f"there is no module `{missing.name}`", help=help) from None
    except Exception as error:
        raise _failed(name, error) from error


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
        raise _failed(file, error) from error
    return module


def _failed(place: str, error: Exception) -> Error:
    """What went wrong while a module was imported: our own errors as they are, others with the last line of it."""
    if isinstance(error, Error):
        return error
    if isinstance(error, SyntaxError) and error.filename:
        at = Location(error.filename, error.lineno or 0, source=error.text or "")
    else:
        last = [
            frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith("<frozen")
        ][-1]
        at = Location(last.filename, last.lineno or 0)
    return UsageError(f"{place} cannot be imported: {type(error).__name__}: {getattr(error, 'msg', error)}", at=at)


def read_constants(kernel: Kernel, texts: Sequence[str]) -> dict[str, Any]:
    """The constants of a kernel that texts such as `n=3` or `config.stages=3` give."""
    defaults = kernel.signature.constants
    values: dict[str, Any] = {}
    for text in texts:
        path, equals, value = text.partition("=")
        name, *inner = path.strip().split(".")
        if not equals:
            raise UsageError(f"--const {text} gives no value", help=f"write --const {text}=VALUE")
        if name not in defaults:
            known = f"it has {', '.join(defaults)}" if defaults else "its parameters are given at each launch"
            raise UsageError(f"kernel `{kernel.name}` has no constant `{name}`", help=known)
        values[name] = with_field(path.strip(), values.get(name, defaults[name]), inner, read_value(value.strip()))
    return values


def with_field(path: str, owner: Any, inner: Sequence[str], value: Any) -> Any:
    """`owner` with the field that `inner` leads to replaced by `value`; `value` itself where `inner` is empty."""
    if not inner:
        return value
    known = [field.name for field in fields(owner)] if is_dataclass(owner) and not isinstance(owner, type) else []
    if inner[0] not in known:
        help = nearest(inner[0], known) or (f"it has {', '.join(known)}" if known else None)
        raise UsageError(f"{path}: {type(owner).__name__} has no field `{inner[0]}`", help=help)
    return replace(owner, **{inner[0]: with_field(path, getattr(owner, inner[0]), inner[1:], value)})


def read_value(text: str) -> Any:
    """A Python literal, the name of a type such as f16, or else the text itself."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return TYPES.get(text, text)


def override(what: str, owner: Any, texts: Sequence[str]) -> Any:
    """A dataclass with the fields replaced that texts such as `stages=3` give."""
    for text in texts:
        path, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"{what} {text} gives no value", help=f"write {what} {text}=VALUE")
        owner = with_field(path.strip(), owner, path.strip().split("."), read_value(value.strip()))
    return owner


def instructions(module: ir.Module) -> Mapping[str, int]:
    """How often each mnemonic stands in a module, the most frequent first."""
    counted = Counter(i.opcode.text for function in module.functions for i in function.walk())
    return dict(counted.most_common())
