"""Lists of matrices, checked together as columns of numpy arrays."""

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
WIDEST = 16  # bytes
MAX_EXTENT = 2**31 - 1


@dataclass(frozen=True)
class Matrices:
    """One operand of all problems. `shapes` has the shape (problems, 2); `strides` are leading dimensions in
    elements."""

    name: str
    owners: Sequence[Any]
    type: Type
    device: int | None
    shapes: np.ndarray
    pointers: np.ndarray
    orders: dict[str, np.ndarray]  # leading dimensions, for each major order that fits all matrices
    major: str
    readonly: Sequence[bool]

    @property
    def strides(self) -> np.ndarray:
        return self.orders[self.major]

    @property
    def transposed(self) -> Matrices:
        """The transposes, without moving data."""
        orders = {
            order: self.orders[other] for order, other in zip(ORDERS, ORDERS[::-1], strict=True) if other in self.orders
        }
        other = ORDERS[self.major == "row"]
        return replace(self, shapes=self.shapes[:, ::-1], orders=orders, major=other)

    @property
    def without_columns(self) -> Matrices:
        """The matrices with zero columns, so that no element is read."""
        return replace(self, shapes=self.shapes * (1, 0))

    @property
    def along_column(self) -> Matrices:
        """The matrices, described as column-major if that order fits all of them."""
        return replace(self, major="column") if "column" in self.orders else self

    @cached_property
    def outer_extents(self) -> np.ndarray:
        """The number of rows of row-major matrices, or of columns of column-major ones."""
        return self.shapes[:, int(self.major == "column")]

    @cached_property
    def inner_extents(self) -> np.ndarray:
        """The numbers of contiguous elements: the length of a row, or of a column of column-major matrices."""
        return self.shapes[:, int(self.major == "row")]

    @cached_property
    def bytes(self) -> np.ndarray:
        """The size in bytes of the memory that each matrix spans, with its gaps."""
        elements = (self.outer_extents - 1) * self.strides + self.inner_extents
        return np.where((self.outer_extents > 0) & (self.inner_extents > 0), elements, 0) * self.type.bytes

    def widest(self, extents: Any = 0) -> int:
        """Return the widest access in bytes that is aligned in every row of every matrix and divides `extents`
        elements."""
        steps = np.where(self.outer_extents > 1, self.strides, 0) | extents
        common = np.bitwise_or.reduce((self.pointers | steps * self.type.bytes)[self.bytes > 0], initial=WIDEST)
        return int(common & -common)

    def array(self, number: int) -> Array:
        array = arrays.describe(self.owners[number])
        assert array is not None
        return array


def matrices(name: str, owners: Sequence[object]) -> Matrices:
    """Check a list of matrices, and return it. Raises LaunchError for items that are not matrices of one type, device
    and major order."""
    described = [_describe(name, number, owner) for number, owner in enumerate(owners)]
    kinds, shapes, strides, pointers, readonly = zip(*described, strict=True)
    _check_types_and_devices(name, kinds)
    element, device = kinds[0]
    if len({len(shape) for shape in shapes}) > 1 or len(shapes[0]) != 2 or element is None:
        _raise_not_a_matrix(name, owners)
    orders = _strides_by_order(np.array(shapes, np.int64), np.array(strides, np.int64))
    common = {order: strides for order, (fits, strides) in orders.items() if fits.all()}
    if not common:
        _raise_mixed_orders(name, owners, orders)
    extents = np.array(shapes, np.int64)
    major = next(iter(common))
    addresses = np.array(pointers, np.uint64).view(np.int64)
    result = Matrices(name, owners, element, device, extents, addresses, common, major, readonly)
    _check_addresses(result)
    return result


def _describe(name: str, number: int, owner: Any) -> tuple[Any, ...]:
    """Return ((type, device), shape, strides in elements, address, is_readonly) of one matrix."""
    library = arrays.library_of(type(owner))
    if library is not None and library.name == "torch" and owner.is_cuda:
        with suppress(RuntimeError):  # it has no memory: `matrix` raises
            kind = arrays.type_of(owner.dtype), owner.get_device()
            return kind, owner.shape, owner.stride(), owner.data_ptr(), False
    array = matrix(f"{name}[{number}]", owner).array
    return (array.type, array.device), array.shape, array.strides, array.pointer, array.readonly


def _check_types_and_devices(name: str, kinds: tuple[Any, ...]) -> None:
    for number, (element, device) in enumerate(kinds):
        if element is not kinds[0][0]:
            raise LaunchError(
                f"`{name}[{number}]` is {describe_type(element)} and `{name}[0]` {describe_type(kinds[0][0])}; "
                "all matrices of a list must have one type",
                help="convert them before, or call grouped_gemm once per type",
            )
        if device != kinds[0][1]:
            raise LaunchError(
                f"`{name}[{number}]` is on {device_name(device)} and `{name}[0]` on {device_name(kinds[0][1])}",
                help="one launch runs on one GPU: move the arrays there, or call grouped_gemm once per GPU",
            )


def device_name(device: int | None) -> str:
    return "the host" if device == arrays.HOST else f"cuda:{device or 0}"


def _strides_by_order(shapes: np.ndarray, strides: np.ndarray) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return for both major orders the mask of the matrices that it fits, and their leading dimensions."""
    by_order = {}
    for order, axis in zip(ORDERS, (0, 1), strict=True):
        outer, inner, stride, step = shapes[:, axis], shapes[:, 1 - axis], strides[:, axis], strides[:, 1 - axis]
        fits = ((step == 1) | (inner <= 1)) & ((stride >= inner) | (outer <= 1)) | (outer * inner == 0)
        least = np.maximum(inner, 1)
        by_order[order] = fits, np.where(outer > 1, np.maximum(stride, least), least)
    return by_order


def _raise_not_a_matrix(name: str, owners: Sequence[object]) -> NoReturn:
    """Raise LaunchError for the first item that is not a matrix."""
    for number, owner in enumerate(owners):
        matrix(f"{name}[{number}]", owner)
    raise AssertionError(f"all matrices of {name} are in order")


def _raise_mixed_orders(
    name: str, owners: Sequence[object], orders: dict[str, tuple[np.ndarray, np.ndarray]]
) -> NoReturn:
    rows, columns = (fits for fits, _ in orders.values())
    if not (rows | columns).all():
        _raise_not_a_matrix(name, owners)
    by_column, by_row = int((~rows).argmax()), int((~columns).argmax())
    raise LaunchError(
        f"`{name}[{by_row}]` is row-major and `{name}[{by_column}]` column-major; all matrices of a list must have one "
        "order",
        help="copy some into the order of the others, or call grouped_gemm once per order",
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
    for number in np.flatnonzero((operand.shapes > MAX_EXTENT).any(axis=1)):
        raise LaunchError(
            f"`{operand.name}[{number}]` has the shape {tuple(operand.shapes[number].tolist())}; "
            f"an extent may be up to {MAX_EXTENT}",
            help="compute it in parts",
        )
