"""Functions that the CUDA compiler calls and the driver provides: vprintf and __assertfail; others are refused."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable

import numpy as np

from ...errors import EmulationError
from ...types import Type, b8, b32, b64
from ..memory.regions import POISON
from .core import Core
from .executor import Executor

_LONGEST = 1 << 16  # characters of a text
_WIDEST = 4095  # characters of a number: what C guarantees
_UNREADABLE = bytes([POISON]) * 4
_CONVERSION = re.compile(
    r"%(?P<flags>[-+ #0]*)(?P<width>\*|\d+)?(?:\.(?P<precision>\*|\d+))?(?P<length>hh|h|ll|l|z|j|t|L)?"
    r"(?P<code>[diouxXeEfFgGaAcsp%])"
)


def vprintf(machine: Core, x: Executor, text: np.ndarray, arguments: np.ndarray) -> np.ndarray:
    """Print for one lane after another; return the number of arguments that each printed."""
    counts = np.zeros(x.width, np.int64)
    for lane, (where, values) in enumerate(zip(text, arguments, strict=True)):
        with x.only(np.arange(x.width) == lane):
            line, counts[lane] = _formatted(x, _string(x, int(where)), int(values))
            machine.report.output += line
    return counts


def assertfail(
    machine: Core,
    x: Executor,
    condition: np.ndarray,
    file: np.ndarray,
    line: np.ndarray,
    function: np.ndarray,
    size: np.ndarray,
) -> np.ndarray:
    """Report a failed assertion, and end the lanes."""
    with x.only(np.arange(x.width) == 0):
        text, path, name = (_string(x, int(where[0])) for where in (condition, file, function))
    x.fail("assert", f"assertion `{text}` failed in {name} ({path}:{int(line[0]) & 0xFFFFFFFF})")
    x.end(x.lanes_now)
    return np.zeros(x.width, np.int64)


def _refused(name: str) -> Callable[..., np.ndarray]:
    def refuse(machine: Core, x: Executor, *arguments: np.ndarray) -> np.ndarray:
        raise EmulationError(
            f"the kernel calls {name}: the emulator has no device heap",
            at=x.step.location,
            help="allocate the memory on the host and pass it to the kernel",
        )

    return refuse


BUILTINS: dict[str, Callable[..., np.ndarray]] = {
    "vprintf": vprintf,
    "__assertfail": assertfail,
    **{name: _refused(name) for name in ("malloc", "free", "__nv_aligned_device_malloc")},
}


def _load(x: Executor, address: int, type: Type) -> int:
    return int(x.load("generic", np.array([address % 2**64], np.uint64), type)[0])


def _string(x: Executor, address: int) -> str:
    """Return the zero-terminated text at a generic address, up to the first bytes that cannot be read."""
    content = bytearray()
    while len(content) < _LONGEST and (byte := _load(x, address + len(content), b8)):
        content.append(byte)
        if content.endswith(_UNREADABLE):
            del content[-len(_UNREADABLE) :]
            break
    return content.decode(errors="replace")


def _formatted(x: Executor, template: str, address: int) -> tuple[str, int]:
    """Return printf's text and the number of its arguments, which are at an address, aligned to their size."""
    count, position = 0, address

    def take(size: int) -> int:
        nonlocal count, position
        position = -(-position // size) * size
        value = _load(x, position, b64 if size == 8 else b32)
        count, position = count + 1, position + size
        return value

    room = _LONGEST

    def convert(match: re.Match[str]) -> str:
        nonlocal room
        converted = _converted(x, match, take)
        room -= len(converted)
        if room < 0:
            raise EmulationError(f"vprintf writes more than {_LONGEST} characters", at=x.step.location)
        return converted

    return _CONVERSION.sub(convert, template), count


def _converted(x: Executor, conversion: re.Match[str], take: Callable[[int], int]) -> str:
    if conversion["code"] == "%":
        return "%"
    width, precision = (_extent(x, conversion[part], take) for part in ("width", "precision"))
    shape = f"%{conversion['flags']}{width}" + (f".{precision}" if precision else "")
    code, long = conversion["code"], conversion["length"] in ("l", "ll", "z", "j", "t")
    if code in "eEfFgGaA":
        return _floating(shape, code, take(8))
    if code == "s":
        return f"{shape}s" % _string(x, take(8))
    if code == "p":
        return f"{shape}s" % f"{take(8):#x}"
    value = take(8 if long else 4)
    if code == "c":
        return f"{shape}c" % (value & 255)
    return _integer(shape, code, value, 64 if long else {"h": 16, "hh": 8}.get(conversion["length"], 32))


def _extent(x: Executor, text: str | None, take: Callable[[int], int]) -> str:
    """Return a width or precision, which `*` takes from the arguments."""
    if text is None:
        return ""
    number = _signed(take(4), 32) if text == "*" else int(text)
    if abs(number) > _WIDEST:
        raise EmulationError(
            f"vprintf is asked for a number of {abs(number)} characters; the maximum is {_WIDEST}",
            at=x.step.location,
            help="write a smaller width or precision in the format",
        )
    return str(number)


def _floating(shape: str, code: str, bits: int) -> str:
    (number,) = struct.unpack("<d", bits.to_bytes(8, "little"))
    if code in "aA":
        text = number.hex()
        return f"{shape.partition('.')[0]}s" % (text.upper() if code == "A" else text)
    return f"{shape}{code}" % number


def _integer(shape: str, code: str, value: int, bits: int) -> str:
    value %= 1 << bits
    if code in "di":
        return f"{shape}d" % _signed(value, bits)
    return f"{shape}{'d' if code == 'u' else code}" % value


def _signed(value: int, bits: int) -> int:
    value %= 1 << bits
    return value - (1 << bits) if value >> (bits - 1) else value
