"""Lists of matrices, checked all at once by column."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np

from ptxdsl import arrays
from ptxdsl.arrays import Array
from ptxdsl.cached import cached_property
from ptxdsl.errors import LaunchError
from ptxdsl.kernels.call.matrix import describe_type, matrix
from ptxdsl.types import Type

ORDERS = ("row", "column")
WIDEST = 16  # bytes of one access
MOST_EXTENT = 2**31 - 1


@dataclass(frozen=True)
class Matrices:
    """One operand of all problems. `shapes` is (problems, 2); `strides` are the elements between rows or columns."""

    name: str
    owners: Sequence[Any]
    type: Type
    device: int | None
    shapes: np.ndarray
    pointers: np.ndarray
    orders: dict[str, np.ndarray]  # strides of the orders in which all matrices can be read
    major: str
    readonly: Sequence[bool]

    @property
    def strides(self) -> np.ndarray:
        return self.orders[self.major]

    @property
    def transposed(self) -> Matrices:
        """The transposes, without moving data."""
        exchanged = {
            order: self.orders[other] for order, other in zip(ORDERS, ORDERS[::-1], strict=True) if other in self.orders
        }
        other = ORDERS[self.major == "row"]
        return replace(self, shapes=self.shapes[:, ::-1], orders=exchanged, major=other)

    @property
    def without_columns(self) -> Matrices:
        """The matrices with no columns, of which nothing is read."""
        return replace(self, shapes=self.shapes * (1, 0))

    @property
    def along_column(self) -> Matrices:
        """The matrices, described as column-major if all of them are that too."""
        return replace(self, major="column") if "column" in self.orders else self

    @cached_property
    def lines(self) -> np.ndarray:
        """The number of rows of row-major matrices, of columns of column-major ones."""
        return self.shapes[:, int(self.major == "column")]

    @cached_property
    def lengths(self) -> np.ndarray:
        """The number of elements of a row of row-major matrices, of a column of column-major ones."""
        return self.shapes[:, int(self.major == "row")]

    @cached_property
    def bytes(self) -> np.ndarray:
        """The number of bytes from the first element of each matrix to the end of its last one."""
        elements = (self.lines - 1) * self.strides + self.lengths
        return np.where((self.lines > 0) & (self.lengths > 0), elements, 0) * self.type.bytes

    def widest(self, extents: Any = 0) -> int:
        """Return the widest access in bytes for which every row of every matrix is aligned and which divides `extents`
        elements."""
        apart = np.where(self.lines > 1, self.strides, 0) | extents
        common = np.bitwise_or.reduce((self.pointers | apart * self.type.bytes)[self.bytes > 0], initial=WIDEST)
        return int(common & -common)

    def array(self, number: int) -> Array:
        array = arrays.describe(self.owners[number])
        assert array is not None
        return array


def matrices(name: str, owners: Sequence[object]) -> Matrices:
    """Check a list of matrices. Raises LaunchError for items that are not matrices or differ in kind."""
    seen = [_look(name, number, owner) for number, owner in enumerate(owners)]
    kinds, shapes, strides, pointers, readonly = zip(*seen, strict=True)
    _check_alike(name, kinds)
    element, device = kinds[0]
    if len({len(shape) for shape in shapes}) > 1 or len(shapes[0]) != 2 or element is None:
        _refuse_first(name, owners)
    orders = _orders(np.array(shapes, np.int64), np.array(strides, np.int64))
    both = {order: strides for order, (fits, strides) in orders.items() if fits.all()}
    if not both:
        _refuse_orders(name, owners, orders)
    extents = np.array(shapes, np.int64)
    major = next(iter(both))
    addresses = np.array(pointers, np.uint64).view(np.int64)
    result = Matrices(name, owners, element, device, extents, addresses, both, major, readonly)
    _check_addresses(result)
    return result


def _look(name: str, number: int, owner: Any) -> tuple[Any, ...]:
    """Return ((type, GPU), shape, strides in elements, address, True if read-only)."""
    library = arrays.library_of(type(owner))
    if library is not None and library.name == "torch" and owner.is_cuda:
        with suppress(RuntimeError):  # it has no memory, which is said below
            kind = arrays.type_of(owner.dtype), owner.get_device()
            return kind, owner.shape, owner.stride(), owner.data_ptr(), False
    array = matrix(f"{name}[{number}]", owner).array
    return (array.type, array.device), array.shape, array.strides, array.pointer, array.readonly


def _check_alike(name: str, kinds: tuple[Any, ...]) -> None:
    for number, (element, device) in enumerate(kinds):
        if element is not kinds[0][0]:
            raise LaunchError(
                f"`{name}[{number}]` is {describe_type(element)} and `{name}[0]` {describe_type(kinds[0][0])}; "
                "all matrices of a list are of one type",
                help="convert them before, or call grouped_gemm once for each type",
            )
        if device != kinds[0][1]:
            raise LaunchError(
                f"`{name}[{number}]` is on {located(device)} and `{name}[0]` on {located(kinds[0][1])}",
                help="one launch runs on one GPU: move the arrays there, or call grouped_gemm once for each",
            )


def located(device: int | None) -> str:
    return "the host" if device == arrays.HOST else f"cuda:{device or 0}"


def _orders(shapes: np.ndarray, strides: np.ndarray) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return which matrices can be read as row-major and as column-major, and the elements between their rows or
    columns."""
    readings = {}
    for order, line in zip(ORDERS, (0, 1), strict=True):
        lines, across, apart, step = shapes[:, line], shapes[:, 1 - line], strides[:, line], strides[:, 1 - line]
        fits = ((step == 1) | (across <= 1)) & ((apart >= across) | (lines <= 1)) | (lines * across == 0)
        least = np.maximum(across, 1)
        readings[order] = fits, np.where(lines > 1, np.maximum(apart, least), least)
    return readings


def _refuse_first(name: str, owners: Sequence[object]) -> NoReturn:
    """Raise for the first item that is not a matrix."""
    for number, owner in enumerate(owners):
        matrix(f"{name}[{number}]", owner)
    raise AssertionError(f"all matrices of {name} are in order")


def _refuse_orders(name: str, owners: Sequence[object], orders: dict[str, tuple[np.ndarray, np.ndarray]]) -> NoReturn:
    rows, columns = (fits for fits, _ in orders.values())
    if not (rows | columns).all():
        _refuse_first(name, owners)
    by_column, by_row = int((~rows).argmax()), int((~columns).argmax())
    raise LaunchError(
        f"`{name}[{by_row}]` is row-major and `{name}[{by_column}]` column-major; all matrices of a list lie alike",
        help="copy some into the order of the others, or call grouped_gemm once for each order",
    )


def _check_addresses(operand: Matrices) -> None:
    used = operand.bytes > 0
    for number in np.flatnonzero(used & (operand.pointers == 0)):
        raise LaunchError(
            f"`{operand.name}[{number}]` has the shape {tuple(operand.shapes[number].tolist())} and a null address",
            help="pass an array with memory of its own",
        )
    for number in np.flatnonzero(used & (operand.pointers % operand.type.bytes != 0)):
        matrix(f"{operand.name}[{number}]", operand.owners[int(number)])
    for number in np.flatnonzero((operand.shapes > MOST_EXTENT).any(axis=1)):
        raise LaunchError(
            f"`{operand.name}[{number}]` has the shape {tuple(operand.shapes[number].tolist())}; "
            f"an extent may be up to {MOST_EXTENT}",
            help="compute it in parts",
        )
