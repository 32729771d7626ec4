"""Batches given as lists of matrices. The kernel reads the addresses of the matrices from a table.

On sm_90a, large lists and types that only wgmma multiplies run as a grouped GEMM.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from ptxdsl import Parameters, config
from ptxdsl.arrays import HOST
from ptxdsl.errors import Error, LaunchError
from ptxdsl.kernels.call.call import PublicCall, TunableCall
from ptxdsl.kernels.call.groups.group import ProblemGroup, problem_group
from ptxdsl.kernels.call.groups.grouped import (
    list_plan,
    needs_wgmma,
    request_of,
)
from ptxdsl.kernels.call.groups.lists import NO_SCHEDULE, ListPlan, ProblemTable
from ptxdsl.kernels.call.launching.memory import LISTS
from ptxdsl.kernels.call.matrices import Matrices
from ptxdsl.kernels.call.matrix import Matrix, array_argument
from ptxdsl.kernels.call.paths.kernel import by_wgmma, configure
from ptxdsl.kernels.call.paths.path import GroupRequest
from ptxdsl.kernels.call.paths.select import PATHS, grouped, path_of, select
from ptxdsl.kernels.call.products import scheduled
from ptxdsl.kernels.call.products.options import GemmOptions, check_is_config, check_not_split, facts, narrower
from ptxdsl.kernels.call.products.plan import Kernels, check_factors
from ptxdsl.kernels.call.products.planner import GemmPlanner
from ptxdsl.kernels.call.products.problem import GemmProblem
from ptxdsl.kernels.call.products.scheduled import Scheduled
from ptxdsl.kernels.call.products.values import gemm_values
from ptxdsl.kernels.choose.promising import TuningCandidate
from ptxdsl.kernels.config import ROWS_OF_EIGHT, WGMMA, GemmConfig, specialise
from ptxdsl.kernels.traits.parameters import BATCHES
from ptxdsl.kernels.traits.traits import Traits

ANY_WGMMA = GemmConfig(tile=(128, 128, 128), atom=WGMMA)  # only its path matters: the tile is chosen later
GROUPED = "ptxdsl.kernels.grouped"  # imported late: it imports parts of the gemm kernels


def is_list(operand: Any) -> bool:
    return isinstance(operand, LISTS)


def batch_planner(group: ProblemGroup, options: GemmOptions) -> GemmPlanner:
    """Return the planner of a row-major batch on the sm_80 path. The first product represents the batch."""
    a, b, c, out = group.a, group.b, group.c, group.out
    first = GemmProblem(_first(a), _first(b), _first(c) if c else None, _first(out))
    widths = a.widest(a.inner_extents), b.widest(b.inner_extents), narrower(out, c, first.n)
    operands = facts(a, b, c, out, widths, in_place=group.in_place, batches="listed")
    return GemmPlanner(first, options, [path for path in PATHS if not path.uses_tma], operands)


def _first(operand: Matrices) -> Matrix:
    rows, columns = operand.shapes[0].tolist()
    stride, count = int(operand.strides[0]), len(operand.shapes)
    return Matrix(operand.name, operand.owners[0], operand.array(0), (rows, columns), operand.major, stride, count)


def lists_by_name(a: Any, b: Any, c: Any, out: Any) -> dict[str, Sequence[object]]:
    """Return the lists of a call by name. A single matrix is shared by all products, and is repeated.

    Raises LaunchError for an argument that is neither a list nor a single matrix.
    """
    optional = {name: operand for name, operand in (("c", c), ("out", out)) if operand is not None}
    operands = {"a": a, "b": b, **optional}
    first_list = next(name for name, operand in operands.items() if is_list(operand))
    for name, operand in operands.items():
        if not is_list(operand) and (name == "out" or getattr(operand, "ndim", None) != 2):
            _check_single(name, operand, first_list)
    count = len(operands[first_list])
    return {name: operand if is_list(operand) else [operand] * count for name, operand in operands.items()}


def _check_single(name: str, owner: object, first_list: str) -> None:
    """Raise LaunchError for an argument next to lists that is not a single matrix."""
    shape = array_argument(name, owner, (2, 3), "a matrix has two dimensions", "reshape it").array.shape
    if len(shape) == 3 or name == "out":
        example = f", such as list({name})" if len(shape) == 3 else ""
        sharing = "" if name == "out" else "; a single matrix is shared by all products"
        raise LaunchError(
            f"`{name}` has the shape {shape}, and `{first_list}` is a list of matrices",
            help=f"pass `{name}` as a list too{example}{sharing}",
        )


def batched_group(lists: Mapping[str, Sequence[object]], factors: tuple[float, float]) -> ProblemGroup | None:
    """Check the lists of a call, and return the problems, all of one size; None if the lists are empty.

    Raises LaunchError for lists whose matrices differ in shape or strides.
    """
    group = problem_group(lists["a"], lists["b"], lists.get("c"), lists.get("out"), factors)
    if group is None:
        return None
    for operand in filter(None, (group.a, group.b, group.c, group.out)):
        _check_one_layout(operand)
    if group.a.device == HOST and config.current().device == "cuda":
        raise LaunchError(
            "lists of numpy arrays run on the emulator, and PTXDSL_DEVICE asks for a GPU",
            help="stack them: arrays of three dimensions are copied to the GPU and back",
        )
    return group


def _check_one_layout(operand: Matrices) -> None:
    layouts = np.column_stack((operand.shapes, np.where(operand.outer_extents > 1, operand.strides, 0)))
    for number in np.flatnonzero((layouts != layouts[0]).any(axis=1)):
        (rows, columns, stride), first = layouts[number].tolist(), layouts[0].tolist()
        raise LaunchError(
            f"`{operand.name}[{number}]` has the shape {(rows, columns)} and a leading dimension of {stride}, and "
            f"`{operand.name}[0]` {tuple(first[:2])} and {first[2]}; the matrices of a list must have one layout",
            help="call grouped_gemm of ptxdsl.kernels.grouped, which takes problems of any sizes",
        )


class BatchCall(TunableCall):
    """A call of gemm() with lists. The sm_80 path runs the gemm kernel, the sm_90a path the grouped kernel."""

    name = "gemm"
    problem: ProblemGroup

    def __init__(self, call: PublicCall) -> None:
        out, a, b, c, *_ = call.arrays
        self.kernels, self.options, self.factors = call.kernels, call.gemm_options, call.factors
        if call.operands:
            raise LaunchError(
                "operands of the epilogue are given, and the matrices are lists",
                help="pass arrays of three dimensions: all their products take the same operands",
            )
        lists = lists_by_name(a, b, c, out)
        self.lists = lists.get("out"), lists["a"], lists["b"], lists.get("c")
        group = batched_group(lists, (call.alpha, call.beta))
        self.out, self.is_empty = lists.get("out", group.out.owners) if group else [], group is None
        if group:
            self.group, self.problem = group, group.row_major
            self.planner = batch_planner(self.problem, self.options)
            self.class_suffix = self.options.class_suffix

    @property
    def request(self) -> GroupRequest:
        """The request for a grouped kernel."""
        return request_of(self.problem, epilogue=self.options.epilogue)

    def plan(self, config: GemmConfig | None, copied: str = "") -> ListPlan | None:
        """Return the launch, or None if the outputs are empty."""
        planner = replace(self.planner, options=self.options._replace(config=config))
        first, options = planner.problem, planner.options
        traits = grouped_traits(self.problem, options)
        if traits is not None:
            check_factors(self.factors, traits)
            return list_plan(_group_kernels(), self.group, traits, self.lists)
        traits = configure(planner.config(), planner.operands, self.device_stream[0])
        check_factors(self.factors, traits)
        if not first.m or not first.n:
            return None
        kernel = self.kernels.of(traits)
        launch = scheduled.schedule(first, traits, kernel)
        addresses = np.stack([operand.pointers for operand in self.problem.operands]).view(np.uint64)
        table = ProblemTable(addresses.T, (0, 1, 2, 3), by_column=True)
        values, constants = partial(_values, first, launch), {"traits": launch.traits}
        return ListPlan(
            kernel, launch.grid, traits.threads, constants, self.group, self.lists, table, values, NO_SCHEDULE,
            stream=launch.stream,
        )  # fmt: skip

    def candidates(self) -> list[tuple[float, TuningCandidate]]:
        """Return the tuning candidates of the shape class: of the gemm kernel on the sm_80 path, and of the grouped
        kernel on paths with TMA."""
        grouped = [
            (time, candidate)
            for time, candidate in super().candidates()
            if path_of(candidate.config).uses_tma and self._supports(candidate)
        ]
        return self.planner.candidates() + grouped

    def _supports(self, candidate: TuningCandidate) -> bool:
        """Return True if the grouped kernel has this configuration for the options of the call and the GPU."""
        try:
            return grouped_traits(self.problem, self.options._replace(config=candidate.config)) is not None
        except Error:
            return False


def _values(
    first: GemmProblem,
    launch: Scheduled,
    table: Any,
    schedule: Any,
    factors: tuple[float, ...],
    device: int | None,
    stream: int,
) -> Parameters:
    """Return the parameters of the gemm kernel."""
    batches, (alpha, beta) = BATCHES["listed"](count=first.batches, table=table), factors
    return gemm_values(first, launch, (alpha, beta), batches)


def _group_kernels() -> Kernels:
    """Return the kernels of grouped GEMM. They are imported on first use."""
    kernels: Kernels = import_module(GROUPED).KERNELS
    return kernels


def grouped_traits(group: ProblemGroup, options: GemmOptions) -> Traits | None:
    """Return the traits of the grouped kernel, which runs row-major lists on paths with TMA; None if the gemm kernel
    runs them, as it does for a schedule of the caller.

    Raises LaunchError for options that the grouped kernel does not support.
    """
    check_is_config(options.config)
    needs, request = needs_wgmma(group, options.config), request_of(group, epilogue=options.epilogue)
    config = options.of(options.config or (ANY_WGMMA if needs else GemmConfig()))
    is_dynamic = config.schedule == ROWS_OF_EIGHT and config.split_k == 1
    if needs and not is_dynamic:
        check_not_split(config.split_k)
        cause, otherwise = by_wgmma(group.a.type, group.out.type)
        raise LaunchError(
            f"{cause}, and schedule is {config.schedule!r}; tiles of lists are assigned dynamically",
            help=f"leave schedule out{otherwise}",
        )
    if needs:
        return grouped(options.config and specialise(config, reduction=GemmConfig.reduction), request)
    if options.config is not None or not is_dynamic or not path_of(select(request)[0]).uses_tma:
        return None
    return grouped(None, request)
