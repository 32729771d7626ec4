"""Nested integer tuples: the shapes, strides and coordinates of layouts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod
from typing import Any, TypeAlias

from ptxdsl.errors import LayoutError, here

IntTuple: TypeAlias = "int | tuple[IntTuple, ...]"


def refusal(message: str, help: str | None = None) -> LayoutError:
    """Return a LayoutError at the user's current line."""
    location = here().location
    return LayoutError(message, at=location if location.line else None, help=help)


def kind_of(value: Any) -> str:
    """Describe a value of the wrong type for a message."""
    return f"{value!r} of type {type(value).__name__}"


def is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def check_int(value: Any, subject: str, least: int | None = None) -> None:
    """Raise LayoutError unless `value` is an int of at least `least`; `subject` names it in the message."""
    if not is_int(value):
        raise refusal(f"{subject} must be an int; found {kind_of(value)}", "layouts are static: use a Python int")
    if least is not None and value < least:
        raise refusal(f"{subject} must be {least} or more; found {value}", f"use an int of at least {least}")


def int_tuple(value: Any, subject: str, least: int | None = None) -> IntTuple:
    """Return `value` as nested tuples of ints, each at least `least`; lists are converted to tuples."""
    if isinstance(value, (tuple, list)):
        if not value:
            raise refusal(
                f"a {subject} must have at least one mode; found ()", "the layout of a single element is Layout(1)"
            )
        return tuple(int_tuple(v, subject, least) for v in value)
    if not is_int(value):
        raise refusal(
            f"a {subject} must be an int or a nested tuple of ints; found {kind_of(value)}",
            "layouts are static: use Python ints, and call the layout with traced coordinates",
        )
    if least is not None and value < least:
        raise refusal(
            f"the entries of a {subject} must be {least} or more; found {value}", "a mode with one element has size 1"
        )
    return value  # type: ignore[no-any-return]


def modes(value: IntTuple) -> tuple[IntTuple, ...]:
    """Return the top-level modes; an int is a single mode."""
    return value if isinstance(value, tuple) else (value,)


def flatten(value: Any) -> tuple[Any, ...]:
    """Return the leaves from left to right."""
    return tuple(leaf for v in value for leaf in flatten(v)) if isinstance(value, tuple) else (value,)


def product(value: IntTuple) -> int:
    return prod(flatten(value))


def depth_of(value: IntTuple) -> int:
    """Return the nesting depth: 0 for an int, 1 for a flat tuple."""
    return 1 + max(map(depth_of, value)) if isinstance(value, tuple) else 0


def like(profile: IntTuple, leaves: Iterator[Any]) -> Any:
    """Return `leaves` nested like `profile`."""
    return tuple(like(p, leaves) for p in profile) if isinstance(profile, tuple) else next(leaves)


def map_leaves(function: Callable[..., Any], value: Any, *others: Any) -> Any:
    """Apply `function` to each leaf of `value` and the corresponding leaves of `others`."""
    if not isinstance(value, tuple):
        return function(value, *others)
    return tuple(map_leaves(function, *entries) for entries in zip(value, *others, strict=True))


def compact(shape: IntTuple) -> IntTuple:
    """Return the compact strides of `shape`, first mode fastest."""
    strides, running = [], 1
    for n in flatten(shape):
        strides.append(running)
        running *= n
    return like(shape, iter(strides))  # type: ignore[no-any-return]


def paths(value: IntTuple, prefix: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
    """Yield the path of each leaf as indices from the top level down."""
    if not isinstance(value, tuple):
        yield prefix
        return
    for i, v in enumerate(value):
        yield from paths(v, (*prefix, i))


def mode_name(value: IntTuple, leaf: int) -> str:
    """Return the name of leaf number `leaf` for a message: "mode 1", or "mode 1.0" inside a nested mode."""
    path = list(paths(value))[leaf]
    return "mode " + (".".join(map(str, path)) or "0")


def mismatch(shape: Any, other: Any) -> tuple[Any, Any] | None:
    """Return the first pair of entries with different nesting, or None if the two are congruent."""
    if not isinstance(shape, tuple) and not isinstance(other, tuple):
        return None
    if not (isinstance(shape, tuple) and isinstance(other, tuple) and len(shape) == len(other)):
        return shape, other
    return next((m for s, o in zip(shape, other, strict=True) if (m := mismatch(s, o))), None)


def show(value: Any) -> str:
    """Format a nested tuple as layouts print it, without spaces or a trailing comma."""
    return f"({','.join(map(show, value))})" if isinstance(value, tuple) else str(value)
