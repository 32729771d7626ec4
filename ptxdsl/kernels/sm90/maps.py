"""Tensor maps of the problems of a list. A block rewrites its own maps when its next tile is of another problem."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import ptxdsl as pd
from ptxdsl import b8, u32, u64
from ptxdsl.isa.tensor_map import MAP_BYTES
from ptxdsl.kernels.product.product import Product, View, WorkTile
from ptxdsl.kernels.sm90.loads import TensorView
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.kernels.tiles.visitor import EVERY_LANE
from ptxdsl.trace.instruction import Scalar
from ptxdsl.trace.mapped import MappedTensor
from ptxdsl.trace.memory import PointerValue

MATRICES = 2  # A and B
AHEAD = 4  # problems
NO_PROBLEM = 0xFFFFFFFF
COPY = "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned"


def versions_of(stages: int) -> int:
    """Return how many problems can have loads in flight in a block: one for each stage of the ring, and the next
    one."""
    return stages + 1


def map_bytes(traits: WarpgroupTraits) -> int:
    """Return the bytes of global memory for the maps of A and B of a block."""
    return versions_of(traits.tiling.stages) * MATRICES * MAP_BYTES


def problem_versions_of(stages: int) -> int:
    """Return how many versions of the maps a list needs: those of `versions_of`, two whose stores are in flight, the
    next problem, and the one located after it."""
    return versions_of(stages) + AHEAD


def problem_map_bytes(traits: WarpgroupTraits) -> int:
    """Return the bytes of global memory for the maps of a block, for a list of problems."""
    matrices = MATRICES + traits.operands.out_boxes
    return problem_versions_of(traits.tiling.stages) * matrices * MAP_BYTES


class ChangedMaps(ABC):
    """Maps that a warp modifies in shared memory and copies to global memory. They start as copies of `patterns`, maps
    of other matrices with the same boxes. One lane of the warp issues the loads."""

    def __init__(self, patterns: Sequence[MappedTensor], changed: PointerValue) -> None:
        self.patterns, self.changed = patterns, changed

    def begin(self) -> None:
        """Copy the patterns to shared memory, one word of each by every lane."""
        for number, pattern in enumerate(self.patterns):
            word = self._changed(number).bitcast(u32) + pd.laneid
            word[0] = (pattern.pointer.bitcast(u32) + pd.laneid)[0]
        self._meet()

    def map(self, number: int) -> TensorView:
        """Return a matrix by its current map."""
        return TensorView(MappedTensor(self._generic(number), self.patterns[number].type))

    def rewrite(self, matrices: Sequence[tuple[View, Scalar, Scalar]]) -> None:
        """Rewrite the maps for other matrices, given as (matrix, rows, elements of a row)."""
        with pd.elect():
            for number, (view, lines, length) in enumerate(matrices):
                self._set(number, view, lines, length)
        self._meet()
        for number in range(len(matrices)):
            pd.ptx(COPY, self._kept(number), self._changed(number), MAP_BYTES)
        with pd.elect():
            self._acquire()
        self._meet()  # the maps have been copied, and may be changed again

    def _meet(self) -> None:
        """Synchronise the warp, and make its writes visible to all its lanes."""
        pd.ptx.bar.warp.sync(EVERY_LANE)

    def _acquire(self) -> None:
        """Make the maps visible to the lane that issues the loads."""
        for number in range(len(self.patterns)):
            pd.ptx("fence.proxy.tensormap::generic.acquire.gpu", self._generic(number), MAP_BYTES)

    def _set(self, number: int, view: View, lines: Scalar, length: Scalar) -> None:
        """Set the address of a map, its extents, and the bytes between rows."""
        changed = self._changed(number)
        replace, where = "tensormap.replace.tile", "shared::cta.b1024"
        pd.ptx(f"{replace}.global_address.{where}.b64", changed, view.pointer.value)
        pd.ptx(f"{replace}.global_dim.{where}.b32", changed, 0, length)
        pd.ptx(f"{replace}.global_dim.{where}.b32", changed, 1, lines)
        apart = view.stride.to(u64) * self.patterns[number].element.bytes
        pd.ptx(f"{replace}.global_stride.{where}.b64", changed, 0, apart)

    def _changed(self, number: int) -> PointerValue:
        """Return the address of a map in shared memory."""
        return self.changed + number * MAP_BYTES

    @abstractmethod
    def _kept(self, number: int) -> PointerValue:
        """Return the address of a map in global memory."""

    def _generic(self, number: int) -> PointerValue:
        address: Scalar = pd.ptx.cvta.global_.u64(self._kept(number).value)
        return pd.pointer(address, b8, "generic")


class RewrittenMaps(ChangedMaps):
    """The maps of A and B for the warp that copies.

    A copy may read its map until it has ended. A version of the maps is written again when as many problems came behind
    it as the ring has stages, each of which has filled one: its copies have ended then.
    """

    def __init__(self, traits: WarpgroupTraits, patterns: tuple[MappedTensor, ...], memory: PointerValue) -> None:
        """`memory` has `map_bytes` for each block, and begins at a multiple of 128 bytes."""
        changed = pd.shared(b8, MATRICES * MAP_BYTES, align=MAP_BYTES, name="changed_maps")
        super().__init__(patterns, changed.address(0))
        self.versions = versions_of(traits.tiling.stages)
        self.majors = traits.operands.a_major, traits.operands.b_major
        self.kept = memory + pd.ctaid.x.to(u64) * map_bytes(traits)
        self.problem, self.version = pd.var(u32, NO_PROBLEM), pd.var(u32, 0)

    def of(self, work: WorkTile) -> WorkTile:
        """The work with A and B by their maps; these are rewritten where it is of another problem."""
        with pd.if_(work.item[0] != self.problem):
            self.problem.set(work.item[0])
            self.version.set(pd.select(self.version == self.versions - 1, 0, self.version + 1))
            self.rewrite(_matrices_of(work.product, self.majors))
        return work._replace(product=work.product._replace(a=self.map(0), b=self.map(1)))

    def _kept(self, number: int) -> PointerValue:
        """A map in global memory, in the version of the current problem."""
        return self.kept + (self.version * MATRICES + number).to(u64) * MAP_BYTES


class ProblemMaps(ChangedMaps):
    """The maps of A and B, and of an output that is stored in boxes, for the warp that locates the tiles of a list of
    problems. It passes the version of the maps on to other warps, which `acquire` them before they use them.

    A version is reused only when no copy uses it any more: loads are at most two tiles behind, and the stores of the
    third tile have completed.
    """

    def __init__(self, traits: WarpgroupTraits, patterns: Sequence[MappedTensor], memory: PointerValue) -> None:
        """`memory` has `problem_map_bytes` for each block, and is aligned to 128 bytes."""
        changed = pd.shared(b8, len(patterns) * MAP_BYTES, align=MAP_BYTES, name="changed_maps")
        super().__init__(patterns, changed.address(0))
        self.versions = problem_versions_of(traits.tiling.stages)
        self.majors = traits.operands.a_major, traits.operands.b_major
        self.kept = memory + pd.ctaid.x.to(u64) * problem_map_bytes(traits)
        self.problem, self.version = pd.var(u32, NO_PROBLEM), pd.var(u32, 0)

    def follow(self, number: Scalar, product_of: Callable[[Scalar], Product]) -> None:
        """Rewrite the maps if the problem has changed."""
        with pd.if_(number != self.problem):
            self.problem.set(number)
            self.version.set(pd.select(self.version == self.versions - 1, 0, self.version + 1))
            product = product_of(number)
            matrices = [*_matrices_of(product, self.majors), (product.out, product.m, product.n)]
            self.rewrite(matrices[: len(self.patterns)])

    def acquire(self, number: int, version: Scalar) -> None:
        """Make a version of a map visible to the thread that uses it."""
        pd.ptx("fence.proxy.tensormap::generic.acquire.gpu", self._generic(number, version), MAP_BYTES)

    def of(self, number: int, version: Scalar, row: Scalar | None = None) -> TensorView:
        """Return a matrix by a version of its map, from a row on."""
        return TensorView(MappedTensor(self._generic(number, version), self.patterns[number].type), 0, row)

    def _acquire(self) -> None:
        """Do nothing: each thread acquires the maps that it uses."""

    def _kept(self, number: int, version: Scalar | None = None) -> PointerValue:
        of = self.version if version is None else version
        return self.kept + (of * len(self.patterns) + number).to(u64) * MAP_BYTES

    def _generic(self, number: int, version: Scalar | None = None) -> PointerValue:
        address: Scalar = pd.ptx.cvta.global_.u64(self._kept(number, version).value)
        return pd.pointer(address, b8, "generic")


def _matrices_of(product: Product, majors: tuple[str, str]) -> list[tuple[View, Scalar, Scalar]]:
    """Return A and B as their maps describe them: (matrix, rows, elements of a row)."""
    sizes = (product.a, product.m, majors[0]), (product.b, product.n, majors[1])
    return [(view, mn, product.k) if major == "k" else (view, product.k, mn) for view, mn, major in sizes]
