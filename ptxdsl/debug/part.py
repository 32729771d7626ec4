"""A part of an array in Python syntax: `tile[3]`, `tile[0:8, 16:32]`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ptxdsl.errors import Error

_SLICE = re.compile(r"\s*(-?\d{1,18})?\s*:\s*(-?\d{1,18})?\s*(?::\s*(-?\d{1,18})?\s*)?")
_NUMBER = re.compile(r"\s*-?\d{1,18}\s*")


@dataclass(frozen=True, slots=True)
class ArrayPart:
    """The part that an index selects: its text, the indices that remain of each axis, and numpy's index."""

    text: str
    axes: tuple[range, ...]
    index: tuple[int | slice, ...] = ()


def part(name: str, text: str, shape: tuple[int, ...]) -> ArrayPart:
    """Return the part of an array of a shape that `text` names, '[0:8, 3]' or nothing. Raises Error for an invalid
    one.
    """
    if not text:
        return ArrayPart("", tuple(map(range, shape)))
    inside = text.strip()[1:-1]
    index = tuple(_item(name, item, shape) for item in inside.removesuffix(",").split(","))
    extents = " x ".join(map(str, shape))
    if len(index) > len(shape):
        raise Error(f"{name}{text} has {len(index)} indices; {name} is {extents}", help=f"write {example(name, shape)}")
    axes = []
    for item, extent in zip(index, shape, strict=False):
        if isinstance(item, slice):
            axes.append(range(extent)[item])
        elif not -extent <= item < extent:
            raise Error(f"{name}{text} lies outside of {name}, which is {extents}")
    axes += [range(extent) for extent in shape[len(index) :]]
    if not all(axes):
        raise Error(f"{name}{text} has no elements; {name} is {extents}")
    return ArrayPart(text, tuple(axes), index)


def _item(name: str, text: str, shape: tuple[int, ...]) -> int | slice:
    if _NUMBER.fullmatch(text):
        return int(text)
    match = _SLICE.fullmatch(text)
    if match is None or (match[3] is not None and int(match[3]) == 0):
        raise Error(
            f"`{text.strip()}` is no index of {name}", help=f"ints and slices are, such as {example(name, shape)}"
        )
    return slice(*(None if number is None else int(number) for number in match.groups()))


def example(name: str, shape: tuple[int, ...]) -> str:
    """Return a part of an array that fits a terminal."""
    last = [f"0:{min(8, extent)}" for extent in shape[-2:]]
    return f"`{name}[{', '.join(['0'] * (len(shape) - len(last)) + last)}]`"
