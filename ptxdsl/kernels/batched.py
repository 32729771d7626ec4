"""Batches given as lists of matrices, wherever each of them lies: the kernel reads their addresses from a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np

from ptxdsl import config
from ptxdsl.arrays import HOST, AddressTable, library_of
from ptxdsl.errors import LaunchError
from ptxdsl.kernel import Kernel
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.group import Group, Matrices, check_apart, group_of
from ptxdsl.kernels.matrix import Matrix, tensor
from ptxdsl.kernels.plan import ALIGNMENT, MOST_PLANS
from ptxdsl.kernels.problem import Problem
from ptxdsl.kernels.residency import launch
from ptxdsl.kernels.scheduled import Scheduled, specialise
from ptxdsl.kernels.upload import upload

OPERANDS = 4  # whose addresses the table has: A, B, C or out in its place, out


def is_list(*operands: Any) -> bool:
    return any(isinstance(operand, list | tuple) for operand in operands)


@dataclass(frozen=True)
class Batch:
    """Products of one size whose matrices lie alike, each somewhere; `group` is row-major."""

    group: Group

    @property
    def count(self) -> int:
        return len(self.group.shapes)

    @property
    def problem(self) -> Problem:
        """The first product, which stands for all."""
        a, b, c, out = self.group.a, self.group.b, self.group.c, self.group.out
        return Problem(_first(a), _first(b), _first(c) if c else None, _first(out))

    @property
    def low(self) -> int:
        """The low bits of all addresses: what kernels are made for."""
        return int(np.bitwise_or.reduce([np.bitwise_or.reduce(o.pointers) for o in self.group.operands])) % ALIGNMENT

    def specialise(self, made: GemmConfig) -> GemmConfig:
        """A configuration of the first product, for all of them."""
        a, b, c, out = self.group.a, self.group.b, self.group.c, self.group.out
        n = int(self.group.shapes[0, 1])
        return specialise(
            made,
            a_bytes=a.widest(a.lengths),
            b_bytes=b.widest(b.lengths),
            out_bytes=out.widest(n) if c is None else min(out.widest(n), c.widest(n)),
            c="none" if c is None else "in place" if self.group.in_place else "separate",
            batches="listed",
        )

    def run(self, kernel: Kernel, made: Scheduled, alpha: float, beta: float) -> None:
        """Launches the kernel of a schedule."""
        problem = self.problem
        addresses = np.stack([operand.pointers for operand in self.group.operands]).view(np.uint64)
        c = problem.c.stride if problem.c else 0
        numbers = problem.m, problem.n, problem.k, problem.a.stride, problem.b.stride, c, problem.out.stride
        given = *[0] * OPERANDS, *numbers, alpha, beta, *made.arguments, self.count
        device, stream = problem.place
        threads = made.config.threads
        if device is None:
            kernel[made.grid, threads](*given, self._table(addresses), config=made.config)
        else:
            table = upload(device, stream, addresses)
            launch(kernel, made.grid, threads, (*given, table), device, stream, config=made.config)

    def _table(self, addresses: np.ndarray) -> AddressTable:
        """For the emulator, which gives arrays addresses of its own."""
        table = addresses.view(AddressTable)
        table.holders = [
            (n * self.count + number, f"{operand.name}[{number}]", operand.array(number))
            for n, operand in enumerate(self.group.operands)
            for number in range(self.count)
        ]
        return table


def lists_of(a: Any, b: Any, c: Any, out: Any) -> dict[str, Sequence[Any]]:
    """What is given of the lists of a call; a single matrix, which is for all, as often as the lists are long.

    Raises LaunchError for what is neither a list nor a single matrix.
    """
    beside = {name: found for name, found in (("c", c), ("out", out)) if found is not None}
    given = {"a": a, "b": b, **beside}
    listed = next(name for name, found in given.items() if is_list(found))
    for name, found in given.items():
        if not is_list(found) and (name == "out" or getattr(found, "ndim", None) != 2):
            _check_single(name, found, listed)
    count = len(given[listed])
    return {name: found if is_list(found) else [found] * count for name, found in given.items()}


def _check_single(name: str, owner: Any, listed: str) -> None:
    """Raises LaunchError for what stands beside lists and is no matrix for all products."""
    shape = tensor(name, owner, (2, 3), "a matrix has two dimensions", "reshape it").array.shape
    if len(shape) == 3 or name == "out":
        such = f", such as list({name})" if len(shape) == 3 else ""
        alone = "" if name == "out" else "; a single matrix is for all products"
        raise LaunchError(
            f"`{name}` has the shape {shape}, and `{listed}` is a list of matrices",
            help=f"pass `{name}` as a list too{such}{alone}",
        )


def batch_of(lists: Mapping[str, Sequence[Any]], beta: float) -> Batch | None:
    """The lists of a call, checked; None where they are empty.

    Raises LaunchError for lists whose matrices are of different sizes or lie otherwise.
    """
    group = group_of(lists["a"], lists["b"], lists.get("c"), lists.get("out"), beta)
    if group is None:
        return None
    for operand in filter(None, (group.a, group.b, group.c, group.out)):
        _check_alike(operand)
    if group.a.device == HOST and config.current().device == "cuda":
        raise LaunchError(
            "lists of numpy arrays run on the emulator, and PTXDSL_DEVICE asks for a GPU",
            help="stack them: arrays of three dimensions are copied to the GPU and back",
        )
    return Batch(group.row_major)


@dataclass(frozen=True)
class ListPlan:
    """A launch of lists of tensors that lie as those of an earlier call, of which only the addresses are new.

    `alike` is the library's own check of types, shapes, strides and GPU; `low` has the low bits of all addresses.
    """

    batch: Batch
    made: Scheduled
    alike: Callable[..., bool]
    low: int

    def launch(self, kernel: Kernel, lists: Mapping[str, Sequence[Any]], alpha: float, beta: float) -> bool:
        """Whether the lists were found to be like those, and the launch was made. Raises LaunchError for lists of which
        one is written and shares memory with another."""
        if not self.alike(*chain(*lists.values())):
            return False
        found = Batch(_elsewhere(self.batch.group, lists))
        if self.made.stream not in (None, found.problem.place[1]) or self.low != found.low:
            return False
        if found.group.in_place != self.batch.group.in_place:
            return False
        check_apart(found.group)
        found.run(kernel, self.made, alpha, beta)
        return True


class ListPlans:
    """Plans of lists by what their user knows of a launch beside the matrices."""

    def __init__(self) -> None:
        self._plans: dict[tuple[Any, ...], ListPlan] = {}

    def launch(
        self, kernel: Kernel, what: tuple[Any, ...], lists: Mapping[str, Sequence[Any]], factors: tuple[Any, Any]
    ) -> bool:
        """Whether such a launch was planned, and has now been made with these lists."""
        plan = self._plans.get(_key(what, lists))
        return plan is not None and plan.launch(kernel, lists, *factors)

    def learn(self, what: tuple[Any, ...], lists: Mapping[str, Sequence[Any]], batch: Batch, made: Scheduled) -> None:
        """Plans a launch that has just been made, of lists whose library can tell whether others are like them."""
        matrices = list(chain(*lists.values()))
        libraries = {library_of(type(matrix)) for matrix in matrices}
        library = libraries.pop()
        alike = library.alike(matrices) if library and not libraries and batch.group.a.device != HOST else None
        if alike is None:
            return
        if len(self._plans) >= MOST_PLANS:
            self._plans.clear()
        self._plans[_key(what, lists)] = ListPlan(batch, made, alike, batch.low)


def _key(what: tuple[Any, ...], lists: Mapping[str, Sequence[Any]]) -> tuple[Any, ...]:
    return what, *((name, len(matrices)) for name, matrices in lists.items())


def _elsewhere(group: Group, lists: Mapping[str, Sequence[Any]]) -> Group:
    """The same products of other matrices, which lie as these do."""

    def moved(operand: Matrices) -> Matrices:
        owners = lists[operand.name]
        addresses = np.array([owner.data_ptr() for owner in owners], np.uint64).view(np.int64)
        return replace(operand, owners=owners, pointers=addresses)

    return Group(moved(group.a), moved(group.b), moved(group.c) if group.c else None, moved(group.out))


def _check_alike(operand: Matrices) -> None:
    kinds = np.column_stack((operand.shapes, np.where(operand.lines > 1, operand.strides, 0)))
    for number in np.flatnonzero((kinds != kinds[0]).any(axis=1)):
        (rows, columns, apart), first = kinds[number].tolist(), kinds[0].tolist()
        raise LaunchError(
            f"`{operand.name}[{number}]` has the shape {(rows, columns)} with lines {apart} elements apart, and "
            f"`{operand.name}[0]` {tuple(first[:2])} with {first[2]}; gemm takes lists of matrices that lie alike",
            help="grouped_gemm of ptxdsl.kernels.grouped takes problems of any sizes",
        )


def _first(operand: Matrices) -> Matrix:
    rows, columns = operand.shapes[0].tolist()
    stride, count = int(operand.strides[0]), len(operand.shapes)
    return Matrix(operand.name, operand.owners[0], operand.array(0), (rows, columns), operand.major, stride, count)
