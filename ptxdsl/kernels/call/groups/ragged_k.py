"""A call of grouped_gemm_ragged_k(): its arrays are checked, its launch made and remembered."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ptxdsl.errors import LaunchError
from ptxdsl.kernels.call.groups.ragged import (
    Groups,
    check_output,
    check_size_array,
    check_values,
    check_written,
    group_values,
    help_of_types,
    in_boxes,
    is_boxed,
    matrix_of_rank,
)
from ptxdsl.kernels.call.launching.launches import LaunchPlan, carry_out
from ptxdsl.kernels.call.launching.memory import CALLS, key_of
from ptxdsl.kernels.call.launching.residency import resident_blocks
from ptxdsl.kernels.call.launching.workspace import room, workspace
from ptxdsl.kernels.call.matrix import (
    WIDEST_ACCESS,
    Matrix,
    array_argument,
    check_input_types,
    describe_type,
    empty,
)
from ptxdsl.kernels.call.products.configure import check_is_bool, check_mappable, configure, facts, settled
from ptxdsl.kernels.call.products.plan import Kernels
from ptxdsl.kernels.call.products.problem import check_devices
from ptxdsl.kernels.choose.grouped import choose_tiles, choose_warpgroup_tiles, of_groups, staggered
from ptxdsl.kernels.choose.model import model_of
from ptxdsl.kernels.choose.warpgroups import ListFacts
from ptxdsl.kernels.config import WGMMA, GemmConfig
from ptxdsl.kernels.product.operands import INPUTS, Operands, outputs
from ptxdsl.kernels.sm90.maps import map_bytes
from ptxdsl.kernels.sm90.parameters import tensor_ragged_k_parameters
from ptxdsl.kernels.sm90.tile_queue import COUNTERS
from ptxdsl.kernels.sm90.tiling import ARCH, TURNED
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.kernels.tiles.many import AHEAD
from ptxdsl.kernels.traits.parameters import ragged_k_parameters
from ptxdsl.kernels.traits.traits import Traits
from ptxdsl.runtime.dispatch import target
from ptxdsl.schedule.problems import MOST_TILES
from ptxdsl.types import u32


def run(
    kernels: Kernels, a: object, b: object, offsets: object, out: object, config: GemmConfig | None, validate: bool
) -> Any:
    """The products of the groups, by one of `kernels`. Returns out."""
    check_is_bool("validate", validate)
    arrays, options, config = (out, a, b, offsets), (bool(validate), out is None), settled(config)
    key = key_of(kernels, config, options, a, b)
    launched = CALLS.launch(key, arrays, ())
    if launched is not None:
        return launched
    groups, plan = groups_of(a, b, offsets, out), None
    if validate:
        check_values("ragged", groups.sizes, groups.a.shape[0])
    if groups.out.array.size:
        plan = plan_of(kernels, groups, traits_of(groups, config), bool(validate))
    return carry_out(plan, key, arrays, groups.out.owner)


def groups_of(a: object, b: object, offsets: object, out: object) -> Groups:
    """The arrays of a call; out is made where it is not given. Raises LaunchError for what does not fit."""
    left, right = matrix_of_rank("a", a, 2, "(rows, M)"), matrix_of_rank("b", b, 2, "(rows, N)")
    check_input_types(left, right, INPUTS, help_of_types(INPUTS))
    if left.shape[0] != right.shape[0]:
        raise LaunchError(
            f"`a` has the shape {left.shape} and `b` {right.shape}: {left.shape[0]} rows meet {right.shape[0]}",
            help="pass a of (rows, M) and b of (rows, N): the rows of a group are the K of its product",
        )
    counted = array_argument(
        "offsets", offsets, 1, "it has one number for each group", "pass offsets of the shape (groups,)"
    )
    (count,) = counted.array.shape
    check_size_array(counted, count, f"`offsets` has {count} groups")
    shape = count, left.shape[1], right.shape[1]
    known = outputs(left.type)[0]
    written = matrix_of_rank("out", empty(left, shape, known) if out is None else out, 3, str(shape))
    check_output(written, shape, left)
    check_devices([left, right, written, counted])
    check_written(written, [left, right, counted])
    return Groups(left, right, written, counted)


def traits_of(groups: Groups, config: GemmConfig | None) -> Traits:
    """What the kernel is made for: `config` gives the tiles, else they are chosen."""
    a, b, out = groups.a, groups.b, groups.out
    widths = _width(a), _width(b), out.widest(out.shape[1])
    operands = facts(a.transposed, b, None, out, widths)
    device, _ = groups.device_stream
    config = _chosen(groups, operands, device) if config is None else of_groups(config, AHEAD, staggers=True)
    if config.atom != WGMMA:
        return configure(config, operands, device)
    traits = configure(config, replace(operands, batches="strided"), device, takes_warpgroups=True)
    _check_mappable(groups)
    return in_boxes(traits, device) if is_boxed(out) else traits


def _width(matrix: Matrix) -> int:
    """Of a copy, in bytes. A group begins at any row: anywhere on a line of what is contiguous along the rows."""
    return matrix.widest(matrix.length) if matrix.major == "row" else matrix.type.bytes


def _check_mappable(groups: Groups) -> None:
    """Raises LaunchError for A and B that tensor copies cannot address from any row on, or that wgmma does not read."""
    a, b = groups.a, groups.b
    if a.type not in TURNED:
        raise LaunchError(
            f'atom is "wgmma", and `a` and `b` are {describe_type(a.type)}, which it multiplies along lines, '
            "and here lines are rows of K",
            help="leave atom out, or convert them to float16 or bfloat16",
        )
    for matrix in (a, b):
        if matrix.major != "row":
            raise LaunchError(
                f'atom is "wgmma", and `{matrix.name}` is column-major: its groups begin anywhere on a line, and '
                "tensor copies at multiples of 16 bytes",
                help=f"pass a row-major `{matrix.name}`, or leave atom out: then such arrays are copied otherwise",
            )
    check_mappable(a.shape[0], a, b)


def _chosen(groups: Groups, operands: Operands, device: int | None) -> GemmConfig:
    """The configuration that should take the least time for groups of average size."""
    (rows, m), n, count = groups.a.shape, groups.b.shape[1], groups.out.batches or 1
    model, arch = model_of(device), target(device)
    sizes = np.full(count, m), np.full(count, n), np.full(count, rows / count)
    config = choose_tiles(sizes, arch, operands, AHEAD, model)
    are_rows = groups.a.major == groups.b.major == "row" and groups.a.is_mappable and groups.b.is_mappable
    if arch != ARCH or groups.a.type not in TURNED or not are_rows:
        return config
    computing = model.group(config, operands.inputs, sizes)
    known = ListFacts(sizes, replace(operands, batches="strided", out_boxes=is_boxed(groups.out)))
    by_warpgroups = choose_warpgroup_tiles(known, AHEAD, model, computing)
    return config if by_warpgroups is None else staggered(by_warpgroups)


def plan_of(kernels: Kernels, groups: Groups, traits: Traits, validate: bool) -> LaunchPlan:
    """The launch: as many blocks as are resident, or as there are tiles."""
    (rows, m), n, count = groups.a.shape, groups.b.shape[1], groups.out.batches or 0
    constants = {"traits": traits, "validate": validate}
    tiles = tiles_of(groups.out, traits.tile)
    kernel, (device, stream) = kernels.of(traits), groups.device_stream
    blocks = min(tiles, resident_blocks(kernel, traits.threads, device, **constants))
    numbers = {"sizes": groups.sizes, "groups": count, "rows": rows, "m": m, "n": n}
    if not isinstance(traits, WarpgroupTraits):
        values = ragged_k_parameters(traits)(**_matrices(groups), **numbers)
        return LaunchPlan(kernel, blocks, traits.threads, values, constants)
    values = tensor_ragged_k_parameters(traits)(**numbers, **mapped(groups, traits, blocks))
    return LaunchPlan(kernel, blocks, traits.threads, values, constants, stream=stream)


def tiles_of(out: Matrix, tile: tuple[int, int, int]) -> int:
    """How many tiles the outputs of all groups have. Raises LaunchError for more than can be numbered."""
    count, m, n = out.full_shape
    tiles = count * -(-m // tile[0]) * -(-n // tile[1])
    if tiles > MOST_TILES:
        raise LaunchError(
            f"{count} groups with outputs of {m} × {n} have {tiles} tiles, more than 2**31",
            help="take larger tiles, or compute the groups in parts",
        )
    return tiles


def _matrices(groups: Groups) -> dict[str, Any]:
    """A, B and out as kernels take them."""
    return {name: group_values(matrix) for name, matrix in (("a", groups.a), ("b", groups.b), ("out", groups.out))}


def mapped(groups: Groups, traits: WarpgroupTraits, blocks: int) -> dict[str, Any]:
    """The matrices as a kernel of the sm_90a path takes them: with maps of all of A and B, and memory for those of
    groups."""
    device, stream = groups.device_stream
    boxes = {"boxes": groups.out.mapped(traits.out_map)} if traits.operands.out_boxes else {}
    maps = room(device, stream, "maps", blocks * map_bytes(traits))
    _, counters = workspace(device, stream, u32, 0, COUNTERS)
    a, b = _plane(groups.a), _plane(groups.b)
    return {
        "a_map": a.mapped(traits.a.map),
        "b_map": b.mapped(traits.b.map),
        "maps": maps,
        "counters": counters,
        **_matrices(replace(groups, a=_widened(groups.a), b=_widened(groups.b))),
        **boxes,
    }


def _widened(matrix: Matrix) -> Matrix:
    """The same; one of a single line with a distance to the next that a tensor map can have."""
    lines, unit = matrix.shape[matrix.major != "row"], WIDEST_ACCESS // matrix.type.bytes
    return matrix if lines > 1 else replace(matrix, stride=-(-matrix.stride // unit) * unit)


def _plane(matrix: Matrix) -> Matrix:
    """The matrix as the only one of a batch."""
    return replace(matrix, batches=1)
