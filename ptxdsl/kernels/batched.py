"""Batches given as lists of matrices, wherever each of them lies: the kernel reads their addresses from a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ptxdsl import config
from ptxdsl.arrays import AddressTable
from ptxdsl.errors import LaunchError
from ptxdsl.kernel import Kernel
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.group import Group, Matrices, group_of
from ptxdsl.kernels.matrix import Matrix
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

    def specialise(self, made: GemmConfig) -> GemmConfig:
        """A configuration of the first product, for all of them."""
        a, b, c, out = self.group.a, self.group.b, self.group.c, self.group.out
        n = int(self.group.shapes[0, 1])
        return specialise(
            made,
            a_bytes=a.widest(),
            b_bytes=b.widest(),
            out_bytes=out.widest(n) if c is None else min(out.widest(n), c.widest(n)),
            c="none" if c is None else "in place" if self.group.in_place else "separate",
            batches="listed",
        )

    def run(self, kernel: Kernel, made: Scheduled, alpha: float, beta: float) -> None:
        """Launches the kernel of a schedule."""
        problem, addresses = self.problem, np.stack([operand.pointers for operand in self.group.operands]).view(np.uint64)
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


def batch_of(a: Any, b: Any, c: Any, out: Any, beta: float) -> Batch | None:
    """The lists of a call, of which each may be a single matrix for all; None where they are empty.

    Raises LaunchError for lists whose matrices are of different sizes or lie otherwise.
    """
    count = next(len(found) for found in (a, b) if is_list(found))
    a, b, c = (found if found is None or is_list(found) else [found] * count for found in (a, b, c))
    group = group_of(a, b, c, out, beta)
    if group is None:
        return None
    for operand in filter(None, (group.a, group.b, group.c, group.out)):
        _check_alike(operand)
    if group.a.device is not None and group.a.device < 0 and config.current().device == "cuda":
        raise LaunchError(
            "lists of numpy arrays run on the emulator, and PTXDSL_DEVICE asks for a GPU",
            help="stack them: arrays of three dimensions are copied to the GPU and back",
        )
    return Batch(group.row_major)


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
