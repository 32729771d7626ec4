"""Batches given as lists of matrices, wherever each of them lies: the kernel reads their addresses from a table.

On sm_90a large ones, and those that only wgmma multiplies, are the problems of a grouped product.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np

from ptxdsl import Parameters, config
from ptxdsl.arrays import HOST, AddressTable
from ptxdsl.errors import Error, LaunchError
from ptxdsl.kernel import Kernel
from ptxdsl.kernels.call.groups.group import ProblemGroup, group_of
from ptxdsl.kernels.call.groups.grouped import (
    ListCall,
    candidates_of,
    carry_out,
    faster_by_wgmma,
    needs_wgmma,
    text_by_wgmma,
    traits_by_wgmma,
)
from ptxdsl.kernels.call.groups.lists import ProblemTable, Send, TableSender, keep_lists, list_launch, lists_given
from ptxdsl.kernels.call.groups.warpgroups import are_lists_boxed, are_lists_mappable
from ptxdsl.kernels.call.launching.memory import LISTS
from ptxdsl.kernels.call.launching.residency import prepared
from ptxdsl.kernels.call.launching.workspace import is_kept
from ptxdsl.kernels.call.matrices import Matrices
from ptxdsl.kernels.call.matrix import Matrix, array_argument
from ptxdsl.kernels.call.products import scheduled
from ptxdsl.kernels.call.products.configure import (
    Choice,
    by_wgmma,
    check_is_config,
    check_not_split,
    configure,
    facts,
    narrower,
)
from ptxdsl.kernels.call.products.plan import Kernels, check_factors
from ptxdsl.kernels.call.products.problem import GemmProblem
from ptxdsl.kernels.call.products.scheduled import Scheduled
from ptxdsl.kernels.call.products.selection import Selection
from ptxdsl.kernels.call.products.values import gemm_values
from ptxdsl.kernels.choose.promising import TuningCandidate
from ptxdsl.kernels.config import ROWS_OF_EIGHT, WGMMA, GemmConfig, specialise
from ptxdsl.kernels.product.operands import Operands
from ptxdsl.kernels.traits.parameters import BATCHES
from ptxdsl.kernels.traits.traits import Traits

BY_WGMMA = GemmConfig(tile=(128, 128, 128), atom=WGMMA)  # whose tiles are others
GROUPED = "ptxdsl.kernels.grouped"  # whose kernels are made of parts of those of gemm, which come before


def is_list(operand: Any) -> bool:
    return isinstance(operand, LISTS)


@dataclass(frozen=True)
class ListedBatch:
    """Products of one size whose matrices lie alike, each somewhere: as they are `listed`, and as a `group` that is
    row-major."""

    listed: ProblemGroup

    @cached_property
    def group(self) -> ProblemGroup:
        return self.listed.row_major

    @property
    def count(self) -> int:
        return len(self.group.shapes)

    @property
    def problem(self) -> GemmProblem:
        """The first product, which stands for all."""
        a, b, c, out = self.group.a, self.group.b, self.group.c, self.group.out
        return GemmProblem(_first(a), _first(b), _first(c) if c else None, _first(out))

    @property
    def facts(self) -> Operands:
        """What the matrices say of the kernel."""
        a, b, c, out = self.group.a, self.group.b, self.group.c, self.group.out
        columns = int(self.group.shapes[0, 1])
        widths = a.widest(a.lengths), b.widest(b.lengths), narrower(out, c, columns)
        return facts(a, b, c, out, widths, in_place=self.group.in_place, batches="listed")

    def launch(self, kernel: Kernel, planned: Scheduled, alpha: float, beta: float) -> tuple[ProblemTable, Send] | None:
        """Launches the kernel of a schedule; on a GPU, gives the table of addresses and what launches with another."""
        addresses = np.stack([operand.pointers for operand in self.group.operands]).view(np.uint64)
        device, stream = self.group.device_stream
        threads, traits = planned.traits.threads, planned.traits
        if device is None:
            kernel[planned.grid, threads](self._values(planned, (alpha, beta), self._table(addresses)), traits=traits)
            return None
        handle = prepared(kernel, planned.grid, threads, device, traits=traits)

        def arguments(address: int, factors: tuple[float, ...], stream: int) -> list[Any]:
            return [*self._values(planned, factors, address).flat]

        send = TableSender(handle, device, lambda rows: (rows.T,), arguments)
        send(addresses.T, (alpha, beta), stream)
        return ProblemTable(addresses.T, (0, 1, 2, 3)), send

    def _values(self, planned: Scheduled, factors: tuple[float, ...], table: Any) -> Parameters:
        """The parameters of the kernel."""
        return gemm_values(
            self.problem, planned, (factors[0], factors[1]), BATCHES["listed"](count=self.count, table=table)
        )

    def _table(self, addresses: np.ndarray) -> AddressTable:
        """For the emulator, which gives arrays addresses of its own."""
        table = addresses.view(AddressTable)
        table.holders = [
            (n * self.count + number, f"{operand.name}[{number}]", operand.array(number))
            for n, operand in enumerate(self.group.operands)
            for number in range(self.count)
        ]
        return table


def lists_of(a: Any, b: Any, c: Any, out: Any) -> dict[str, Sequence[object]]:
    """What is given of the lists of a call; a single matrix, which is for all, as often as the lists are long.

    Raises LaunchError for what is neither a list nor a single matrix.
    """
    beside = {name: operand for name, operand in (("c", c), ("out", out)) if operand is not None}
    operands = {"a": a, "b": b, **beside}
    listed = next(name for name, operand in operands.items() if is_list(operand))
    for name, operand in operands.items():
        if not is_list(operand) and (name == "out" or getattr(operand, "ndim", None) != 2):
            _check_single(name, operand, listed)
    count = len(operands[listed])
    return {name: operand if is_list(operand) else [operand] * count for name, operand in operands.items()}


def _check_single(name: str, owner: object, listed: str) -> None:
    """Raises LaunchError for what stands beside lists and is no matrix for all products."""
    shape = array_argument(name, owner, (2, 3), "a matrix has two dimensions", "reshape it").array.shape
    if len(shape) == 3 or name == "out":
        such = f", such as list({name})" if len(shape) == 3 else ""
        alone = "" if name == "out" else "; a single matrix is for all products"
        raise LaunchError(
            f"`{name}` has the shape {shape}, and `{listed}` is a list of matrices",
            help=f"pass `{name}` as a list too{such}{alone}",
        )


def batch_of(lists: Mapping[str, Sequence[object]], factors: tuple[float, float]) -> ListedBatch | None:
    """The lists of a call, checked; None where they are empty.

    Raises LaunchError for lists whose matrices are of different sizes or lie otherwise.
    """
    group = group_of(lists["a"], lists["b"], lists.get("c"), lists.get("out"), factors)
    if group is None:
        return None
    for operand in filter(None, (group.a, group.b, group.c, group.out)):
        _check_alike(operand)
    if group.a.device == HOST and config.current().device == "cuda":
        raise LaunchError(
            "lists of numpy arrays run on the emulator, and PTXDSL_DEVICE asks for a GPU",
            help="stack them: arrays of three dimensions are copied to the GPU and back",
        )
    return ListedBatch(group)


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


def run_lists(
    kernel: Kernel,
    matrices: tuple[object, object, object, object],
    choice: Choice,
    factors: tuple[float, float],
    operands: Sequence[object],
    key: Hashable,
) -> Sequence[object]:
    """out = alpha·a@b + beta·c of each matrix of a, b, c and out, of which some are lists. Returns the outputs. `key`
    is that of the call, by which no launch is known that fits."""
    if operands:
        raise LaunchError(
            "operands of the epilogue are given, and the matrices are lists",
            help="pass arrays of three dimensions, whose products all take the same operands",
        )
    lists = lists_of(*matrices)
    batch = batch_of(lists, factors)
    if batch is None:
        return []
    results = lists.get("out", batch.group.out.owners)
    by_wgmma = _traits_by_wgmma(batch.group, choice)
    if by_wgmma is not None:
        call = ListCall(key, _out_first(*matrices), factors, _out_first(*map(lists.get, ("a", "b", "c", "out"))))
        carry_out(_group_kernels(), batch.listed, by_wgmma, call)
        return results
    problem, (device, _) = batch.problem, batch.group.device_stream
    selection = Selection(problem, choice, takes_warpgroups=False, all_operands=batch.facts)
    traits = configure(selection.config(), batch.facts, device)
    check_factors(factors, traits)
    if problem.m and problem.n:
        planned = scheduled.schedule(problem, traits, kernel)
        sent = batch.launch(kernel, planned, *factors)
        listed = lists_given(lists["a"], lists["b"], lists.get("c"), lists.get("out"))
        launch = sent and list_launch(batch.listed, listed, *sent, planned.stream)
        if launch and is_kept(device, planned.stream):
            keep_lists(launch, key, _out_first(*matrices), factors)
    return results


def _out_first(a: Any, b: Any, c: Any, out: Any) -> tuple[Any, Any, Any, Any]:
    """The arrays of a call in the order in which it is remembered."""
    return out, a, b, c


def _group_kernels() -> Kernels:
    """Those of grouped products, loaded by the first lists that take them."""
    kernels: Kernels = import_module(GROUPED).KERNELS
    return kernels


def _traits_by_wgmma(group: ProblemGroup, choice: Choice) -> Traits | None:
    """What the kernel of grouped products on the sm_90a path is made for, where row-major lists shall go by it; None
    where they go by the sm_80 path, as with schedules that a caller asks for.

    Raises LaunchError for what a caller says of it that does not go.
    """
    check_is_config(choice.config)
    needs = needs_wgmma(group, choice.config)
    said = choice.of(choice.config or (BY_WGMMA if needs else GemmConfig()))
    is_dealt = said.schedule == ROWS_OF_EIGHT and said.split_k == 1
    if needs and not is_dealt:
        check_not_split(said.split_k)
        cause, otherwise = by_wgmma(group.a.type, group.out.type)
        raise LaunchError(
            f"{cause}, and schedule is {said.schedule!r}; tiles of lists are dealt to its blocks while they run",
            help=f"leave schedule out{otherwise}",
        )
    if needs:
        config = choice.config and specialise(said, reduction=GemmConfig.reduction)
        return traits_by_wgmma(group, config, choice.epilogue)
    if choice.config is not None or not is_dealt:
        return None
    return faster_by_wgmma(group, epilogue=choice.epilogue)


def class_of_lists(batch: ListedBatch) -> str:
    """What the path of lists depends on beside the shape class of their products."""
    return f"listed mapped {are_lists_mappable(batch.group)}, boxed {are_lists_boxed(batch.group)}"


def candidates_by_wgmma(batch: ListedBatch, choice: Choice) -> list[tuple[float, TuningCandidate]]:
    """What may be timed of lists on the sm_90a path, with the microseconds that each should take: none where the
    caller says how blocks share tiles."""
    known = candidates_of(batch.group, "device", False)
    return [(time, each) for time, each in known if each.config.atom == WGMMA and _goes(batch, choice, each.config)]


def general_text(batch: ListedBatch, config: GemmConfig) -> str:
    """PTX of such a candidate that is the same for all of the shape class."""
    return text_by_wgmma(_group_kernels(), batch.group, config)


def _goes(batch: ListedBatch, choice: Choice, config: GemmConfig) -> bool:
    """Whether a configuration goes with what the caller says, and the GPU has enough for it."""
    try:
        return _traits_by_wgmma(batch.group, choice._replace(config=config)) is not None
    except Error:
        return False
