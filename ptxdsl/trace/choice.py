"""`pd.select` for values and pointers."""

from __future__ import annotations

from typing import Any, overload

from ptxdsl.trace import operators
from ptxdsl.trace.builder import refuse
from ptxdsl.trace.instruction import Scalar, ScalarLike, shown
from ptxdsl.trace.memory import PointerValue


@overload
def select(condition: Scalar, a: PointerValue, b: PointerValue) -> PointerValue: ...  # type: ignore[overload-overlap]


@overload
def select(condition: Scalar, a: ScalarLike, b: ScalarLike) -> Scalar: ...


def select(condition: Scalar, a: Any, b: Any) -> Scalar | PointerValue:
    """Return `a` in threads where the predicate `condition` holds, else `b`; both are computed.

    `a` and `b` are values of one type (one may be a Python number), or pointers of one element type and state space.
    Raises TraceError otherwise.

        y[i] = pd.select(x[i] > 0, x[i], 0.0)
    """
    if not (isinstance(a, PointerValue) or isinstance(b, PointerValue)):
        return operators.select(condition, a, b)
    if not (isinstance(a, PointerValue) and isinstance(b, PointerValue)):
        pointer, other = (a, b) if isinstance(a, PointerValue) else (b, a)
        refuse(f"pd.select of a pointer, {pointer.type}, and {shown(other)}", "give it two pointers, or two values")
    if a.type != b.type:
        help = "one register holds the address of elements of one type, in one state space"
        refuse(f"pd.select of two kinds of pointers: `{a.name}` is {a.type}, `{b.name}` is {b.type}", help)
    with operators.steps():
        first, second = a.value, b.value
    return PointerValue(operators.select(condition, first, second), a.type)
