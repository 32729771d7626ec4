"""Calls of grouped_gemm(): checks, the assignment of tiles to blocks, and the launch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias, TypedDict

import numpy as np

from ptxdsl import Parameters
from ptxdsl import config as settings
from ptxdsl.errors import LaunchError
from ptxdsl.kernel import Kernel
from ptxdsl.kernels.call.call import PublicCall, TunableCall
from ptxdsl.kernels.call.groups.group import ProblemGroup, problem_group
from ptxdsl.kernels.call.groups.lists import ListPlan, ProblemTable
from ptxdsl.kernels.call.groups.table import ADDRESSES, TILES_ALONG_M, TileAssignment, assign_tiles, problem_table
from ptxdsl.kernels.call.groups.warpgroups import (
    ListValues,
    align_single_row_strides,
    assign_longest_first,
    can_store_lists_by_tma,
    unmappable_lists,
)
from ptxdsl.kernels.call.launching.residency import resident_blocks
from ptxdsl.kernels.call.launching.workspace import workspace
from ptxdsl.kernels.call.paths.kernel import by_wgmma
from ptxdsl.kernels.call.paths.path import GroupRequest, Path
from ptxdsl.kernels.call.paths.select import PATHS, grouped, path_of
from ptxdsl.kernels.call.products.options import facts, narrower
from ptxdsl.kernels.call.products.plan import Kernels, check_factors
from ptxdsl.kernels.candidates.facts import ListFacts
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.epilogue import Epilogue
from ptxdsl.kernels.product.operands import CSource, Operands, takes_wgmma
from ptxdsl.kernels.tiles.many import AHEAD, IN_TURN
from ptxdsl.kernels.traits.parameters import grouped_parameters
from ptxdsl.kernels.traits.traits import Traits
from ptxdsl.runtime.dispatch import target

MAX_FEW_ROWS = 128  # average rows of a problem up to which equal shares along M gain nothing


class Constants(TypedDict):
    """The compile-time constants of the grouped kernel of the sm_80 path."""

    traits: Traits
    mode: str
    sort: bool


class GroupedCall(TunableCall):
    """A call of grouped_gemm()."""

    name = "grouped_gemm"
    problem: ProblemGroup

    def __init__(self, call: PublicCall) -> None:
        out, a, b, c = self.lists = call.arrays
        _, _, self.schedule, self.sort, self.balance = call.options
        _check_schedule(self.schedule, self.balance)
        self.kernels, self.factors = call.kernels, call.factors
        group = problem_group(a, b, c, out, (call.alpha, call.beta))
        self.out, self.is_empty = list(group.out.owners) if group else [], group is None
        if group:
            self.group, self.problem = group, group.row_major
            _check_on_host(self.device_stream[0])
        self.paths = paths_of(self.schedule, self.balanced)
        if self.schedule != "device" or self.sort:
            self.class_suffix = f", said {(self.schedule, self.sort, self.balance)}"

    @property
    def balanced(self) -> bool:
        """True if all blocks compute equal numbers of K iterations."""
        return self.balance is not None

    @property
    def request(self) -> GroupRequest:
        """The request to the paths."""
        return request_of(self.problem, self.balanced)

    def plan(self, config: GemmConfig | None, copied: str = "") -> ListPlan | None:
        """Return the launch, or None if all outputs are empty."""
        traits = traits_of(self.problem, config, self.schedule, self.balanced)
        check_factors(self.factors, traits)
        mode = "parts" if self.balance else self.schedule
        return list_plan(self.kernels, self.group, traits, self.lists, mode, self.sort)


def list_plan(
    kernels: Kernels,
    group: ProblemGroup,
    traits: Traits,
    lists: tuple[Any, Any, Any, Any],
    mode: str = "device",
    sort: bool = False,
) -> ListPlan | None:
    """Return the launch of the kernel with these traits, or None if all outputs are empty."""
    problems = group.row_major
    if not problems.out.shapes.all(axis=1).any():
        return None
    kernel, rows = kernels.of(traits), problem_table(problems)
    constants, tiles, values = _ASSIGN[traits.path](kernel, problems, traits, rows, mode, sort)
    table = ProblemTable(rows if tiles.order is None else rows[tiles.order], ADDRESSES, tiles.order)
    return ListPlan(
        kernel, tiles.blocks, constants["traits"].threads, constants, group, lists, table, values, tiles.table
    )


def request_of(group: ProblemGroup, balanced: bool = False, epilogue: Epilogue | None = None) -> GroupRequest:
    """Return the request to the paths for row-major problems. Problems with few rows do not split M into equal shares:
    half-empty tiles cost nothing where loads take longer than the wgmmas."""
    m, n, k = group.shapes.T
    return GroupRequest(
        "grouped_gemm",
        ListFacts((m, n, k), _facts_of(group)),
        group.device_stream[0],
        obstacles=tuple(unmappable_lists(group)),
        usual=AHEAD if group.c is None and not balanced else IN_TURN,
        epilogue=epilogue,
        boxed=can_store_lists_by_tma(group),
        cut=bool((m * n).sum() > MAX_FEW_ROWS * n.sum()),
    )


def paths_of(schedule: str, balanced: bool) -> list[Path]:
    """Return the paths that support a schedule. Kernels that load with TMA only assign tiles dynamically."""
    is_dynamic = schedule == "device" and not balanced
    return [path for path in PATHS if is_dynamic or not path.uses_tma]


def _facts_of(group: ProblemGroup) -> Operands:
    """Return the operand facts of row-major problems."""
    a, b, c, out = group.a, group.b, group.c, group.out
    widths = a.widest(a.inner_extents), b.widest(b.inner_extents), narrower(out, c, out.shapes[:, 1])
    return facts(a, b, c, out, widths, in_place=group.in_place)


def _assign_on_sm80(
    kernel: Kernel, problems: ProblemGroup, traits: Traits, rows: np.ndarray, mode: str, sort: bool
) -> AssignedKernel:
    """Assign tiles to the blocks of the sm_80 path."""
    constants, tiles = assign_to_resident_blocks(kernel, problems, traits, problems.device_stream[0], mode, sort)
    return constants, tiles, partial(_values, constants, tiles, len(problems.shapes))


def _assign_on_sm90(
    kernel: Kernel, problems: ProblemGroup, traits: Any, rows: np.ndarray, mode: str, sort: bool
) -> AssignedKernel:
    """Assign tiles to the blocks of the sm_90a path, the longest K first, and complete the table of problems."""
    device, _ = problems.device_stream
    resident = resident_blocks(kernel, traits.threads, device, traits=traits)
    tiles = assign_longest_first(problems.shapes, traits, resident)
    align_single_row_strides(rows, problems)
    rows[:, TILES_ALONG_M] = tiles.tiles_along_m
    return {"traits": traits}, tiles, ListValues(traits, problems, tiles.blocks)


ParametersOf: TypeAlias = Callable[[Any, Any, tuple[float, ...], int | None, int], Parameters]
AssignedKernel: TypeAlias = tuple[Any, TileAssignment, ParametersOf]
"""The constants of the kernel, the assignment of tiles, and the function that returns the parameters."""
_ASSIGN: dict[str, Callable[..., AssignedKernel]] = {"sm80": _assign_on_sm80, "sm90": _assign_on_sm90}


def _check_schedule(schedule: str, balance: str | None) -> None:
    if not isinstance(schedule, str) or schedule not in ("device", "host"):
        raise LaunchError(f"schedule is {schedule!r}", help='take "device" or "host"')
    if balance is not None and (not isinstance(balance, str) or balance != "k"):
        raise LaunchError(f"balance is {balance!r}", help='take "k", or leave it out')
    if balance and schedule == "device":
        raise LaunchError(
            'balance="k" with schedule="device": only the host can compute equal shares of K',
            help='pass schedule="host", or leave balance out',
        )


def traits_of(
    group: ProblemGroup, config: GemmConfig | None, schedule: str = "device", balanced: bool = False
) -> Traits:
    """Return the traits of the kernel for row-major problems. `config` is chosen if it is None."""
    paths = paths_of(schedule, balanced)
    if needs_wgmma(group, config) and not any(path.uses_tma for path in paths):
        cause, otherwise = by_wgmma(group.a.type, group.out.type)
        raise LaunchError(
            f"{cause}, whose tiles are assigned dynamically",
            help=f'pass schedule="device", without balance{otherwise}',
        )
    return grouped(config, request_of(group, balanced), paths)


def needs_wgmma(group: ProblemGroup, config: GemmConfig | None) -> bool:
    """Return True if the configuration uses wgmma, or, without a configuration, if only wgmma multiplies these
    types."""
    return takes_wgmma(group.a.type, group.out.type) if config is None else path_of(config).uses_tma


def _check_on_host(device: int | None) -> None:
    """Raise LaunchError for numpy arrays if PTXDSL_DEVICE asks for a GPU."""
    if device is None and settings.current().device == "cuda":
        raise LaunchError(
            "grouped_gemm runs numpy arrays on the emulator, and PTXDSL_DEVICE is cuda: lists are not copied to a GPU",
            help="pass CUDA arrays, or set PTXDSL_DEVICE=emulator",
        )


def _values(
    constants: Constants,
    tiles: TileAssignment,
    problems: int,
    table: Any,
    schedule: Any,
    factors: tuple[float, ...],
    device: int | None,
    stream: int,
) -> Parameters:
    """Return the parameters of the sm_80 kernel, given the addresses of the tables of problems and of tiles."""
    traits, shared = constants["traits"], {}
    if constants["mode"] == "parts":
        elements = tiles.slots * traits.tile[0] * traits.tile[1]
        sums, semaphores = workspace(device, stream, traits.sum, elements, tiles.slots)
        shared = {"sums": sums, "semaphores": semaphores}
    alpha, beta = factors
    kind = grouped_parameters(traits, constants["mode"])
    return kind(table=table, schedule=schedule, problems=problems, total=tiles.total, alpha=alpha, beta=beta, **shared)


def assign_to_resident_blocks(
    kernel: Kernel, group: ProblemGroup, traits: Traits, device: int | None, mode: str, sort: bool
) -> tuple[Constants, TileAssignment]:
    """Return the constants of the kernel, and the assignment of tiles to blocks."""
    constants: Constants = {"traits": traits, "mode": mode, "sort": sort and mode != "parts"}
    resident = resident_blocks(kernel, traits.threads, device, **constants)
    tiles = assign_tiles(group.shapes.tobytes(), traits.tile, resident, mode, constants["sort"])
    if mode == "parts" and not tiles.slots:
        whole: Constants = {**constants, "traits": _whole_tile_traits(traits, target(device)), "mode": "dealt"}
        if resident_blocks(kernel, traits.threads, device, **whole) >= tiles.blocks:
            return whole, tiles
    return constants, tiles


def _whole_tile_traits(traits: Traits, arch: str) -> Traits:
    """Return the traits for a table of whole tiles, which prefetch the next tile if shared memory suffices."""
    ahead = replace(traits, schedule=AHEAD)
    return ahead if traits.operands.c is CSource.NONE and ahead.fits(arch) else traits
