"""Tensor maps of the problems of a list. A block rewrites its own maps when its next tile is of another problem."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import ptxdsl as pd
from ptxdsl import b8, u32, u64
from ptxdsl.isa.tensor_map import MAP_BYTES
from ptxdsl.kernels.product.operands import Major
from ptxdsl.kernels.product.product import Product, View
from ptxdsl.kernels.sm90.loads import TensorView
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.kernels.tiles.visitor import EVERY_LANE
from ptxdsl.trace.instruction import Scalar
from ptxdsl.trace.mapped import MappedTensor
from ptxdsl.trace.memory import PointerValue

MATRICES = 2  # A and B
VERSIONS_AHEAD = 4  # problems: two whose stores are in flight, the next one, and the one located after it
NO_PROBLEM = 0xFFFFFFFF
COPY = "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned"
REPLACE, IN_SHARED = "tensormap.replace.tile", "shared::cta.b1024"
ACQUIRE = "fence.proxy.tensormap::generic.acquire.gpu"


def versions_of(traits: WarpgroupTraits, ahead: int = 0) -> int:
    """Return the number of problems whose loads a block has in flight, one for each stage of the ring, with the next
    one and those `ahead`."""
    return traits.tiling.stages + 1 + ahead


def map_bytes(traits: WarpgroupTraits, matrices: int = MATRICES, ahead: int = 0) -> int:
    """Return the bytes of global memory for the maps of a block."""
    return versions_of(traits, ahead) * matrices * MAP_BYTES


def problem_map_bytes(traits: WarpgroupTraits) -> int:
    """Return the bytes of global memory for the maps of a block, for a list of problems."""
    return map_bytes(traits, MATRICES + traits.operands.out_boxes, VERSIONS_AHEAD)


class ProblemMaps:
    """The maps of A, B and perhaps the output of the current problem. A warp modifies them in shared memory and copies
    them to global memory. They start as copies of `patterns`, maps of other matrices with the same boxes.

    A version of the maps is rewritten only after all of its copies have completed. There is one for each stage of the
    ring, since each problem fills at least one, and one for the next problem. If the warp runs `ahead` of those that
    load and store, there are more, and these `acquire` a version before they use it. Otherwise the lane that issues the
    loads does so at once."""

    def __init__(
        self, traits: WarpgroupTraits, patterns: Sequence[MappedTensor], memory: PointerValue, ahead: int = 0
    ) -> None:
        """`memory` has `map_bytes` for each block, and is aligned to 128 bytes."""
        changed = pd.shared(b8, len(patterns) * MAP_BYTES, align=MAP_BYTES, name="changed_maps")
        self.patterns, self.changed, self.is_ahead = patterns, changed.address(0), ahead > 0
        self.versions = versions_of(traits, ahead)
        self.majors = traits.operands.a_major, traits.operands.b_major
        self.kept = memory + pd.ctaid.x.to(u64) * map_bytes(traits, len(patterns), ahead)
        self.problem, self.version = pd.var(u32, NO_PROBLEM), pd.var(u32, 0)

    def begin(self) -> None:
        """Copy the patterns to shared memory, one word of each by every lane."""
        for number, pattern in enumerate(self.patterns):
            word = self._changed(number).bitcast(u32) + pd.laneid
            word[0] = (pattern.pointer.bitcast(u32) + pd.laneid)[0]
        pd.ptx.bar.warp.sync(EVERY_LANE)

    def follow(self, problem: Scalar, product_of: Callable[[Scalar], Product]) -> None:
        """Rewrite the maps if the problem has changed."""
        with pd.if_(problem != self.problem):
            self.problem.set(problem)
            self.version.set(pd.select(self.version == self.versions - 1, 0, self.version + 1))
            product = product_of(problem)
            matrices = [
                described(product.a, product.m, product.k, self.majors[0]),
                described(product.b, product.n, product.k, self.majors[1]),
                (product.out, product.m, product.n),
            ]
            self._rewrite(matrices[: len(self.patterns)])

    def acquire(self, number: int, version: Scalar | None = None) -> None:
        """Make a map visible to the thread that uses it, in a version or the current one."""
        pd.ptx(ACQUIRE, self._generic(number, version), MAP_BYTES)

    def of(self, number: int, version: Scalar | None = None, row: Scalar | None = None) -> TensorView:
        """Return a matrix by a version of its map, from a row on."""
        return TensorView(MappedTensor(self._generic(number, version), self.patterns[number].type), 0, row)

    def _rewrite(self, matrices: Sequence[tuple[View, Scalar, Scalar]]) -> None:
        """Rewrite the maps for other matrices, given as (matrix, rows, elements of a row)."""
        with pd.elect():
            for number, (view, rows, length) in enumerate(matrices):
                self._set(number, view, rows, length)
        pd.ptx.bar.warp.sync(EVERY_LANE)
        for number in range(len(matrices)):
            pd.ptx(COPY, self._kept(number), self._changed(number), MAP_BYTES)
        if not self.is_ahead:
            with pd.elect():
                for number in range(len(matrices)):
                    self.acquire(number)
        pd.ptx.bar.warp.sync(EVERY_LANE)  # the maps have been copied, and may be changed again

    def _set(self, number: int, view: View, rows: Scalar, length: Scalar) -> None:
        """Set the address of a map, its extents, and the bytes between rows."""
        changed = self._changed(number)
        pd.ptx(f"{REPLACE}.global_address.{IN_SHARED}.b64", changed, view.pointer.value)
        pd.ptx(f"{REPLACE}.global_dim.{IN_SHARED}.b32", changed, 0, length)
        pd.ptx(f"{REPLACE}.global_dim.{IN_SHARED}.b32", changed, 1, rows)
        row_bytes = view.stride.to(u64) * self.patterns[number].element.bytes
        pd.ptx(f"{REPLACE}.global_stride.{IN_SHARED}.b64", changed, 0, row_bytes)

    def _changed(self, number: int) -> PointerValue:
        """Return the address of a map in shared memory."""
        return self.changed + number * MAP_BYTES

    def _kept(self, number: int, version: Scalar | None = None) -> PointerValue:
        """Return the address of a map in global memory."""
        of = self.version if version is None else version
        return self.kept + (of * len(self.patterns) + number).to(u64) * MAP_BYTES

    def _generic(self, number: int, version: Scalar | None = None) -> PointerValue:
        address: Scalar = pd.ptx.cvta.global_.u64(self._kept(number, version).value)
        return pd.pointer(address, b8, "generic")


def described(view: View, mn: Scalar, k: Scalar, major: Major) -> tuple[View, Scalar, Scalar]:
    """Return A or B as its map describes it: (matrix, rows, elements of a row)."""
    return (view, mn, k) if major is Major.K else (view, k, mn)
