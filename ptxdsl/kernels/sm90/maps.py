"""Tensor maps of the problems of a list: a block rewrites maps of its own where its next tile is of another problem."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import ptxdsl as pd
from ptxdsl import b8, u32, u64
from ptxdsl.isa.tensor_map import MAP_BYTES
from ptxdsl.kernels.product.product import View, Work
from ptxdsl.kernels.sm90.copies import TensorView
from ptxdsl.kernels.sm90.tiling import WARP, WARPGROUP
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.kernels.tiles.visitor import EVERY_LANE
from ptxdsl.trace.instruction import Scalar
from ptxdsl.trace.mapped import MappedTensor
from ptxdsl.trace.memory import PointerValue

MATRICES = 2  # A and B
NO_PROBLEM = 0xFFFFFFFF
COPY = "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned"


def versions_of(stages: int) -> int:
    """Of how many problems the copies of a block may be under way: one for each stage of the ring, and the next one."""
    return stages + 1


def map_bytes(traits: WarpgroupTraits) -> int:
    """The global memory that a block takes for its maps: those of A and B, and one of the output of each warpgroup."""
    outputs = traits.tiling.consumers if traits.operands.out_boxes else 0
    return (versions_of(traits.tiling.stages) * MATRICES + outputs) * MAP_BYTES


class ChangedMaps:
    """Maps that a warp changes in shared memory and brings to global memory, made of `patterns`, maps of other matrices
    with the same boxes. One of its lanes copies by them."""

    def __init__(self, patterns: Sequence[MappedTensor], changed: PointerValue) -> None:
        self.patterns, self.changed = patterns, changed

    def begin(self) -> None:
        """Brings the patterns to shared memory, a word of each by every lane."""
        for number, pattern in enumerate(self.patterns):
            word = self._changed(number).bitcast(u32) + pd.laneid
            word[0] = (pattern.pointer.bitcast(u32) + pd.laneid)[0]
        self._meet()

    def alone(self) -> AbstractContextManager[Any]:
        """The body is for the lane that copies."""
        return pd.elect()

    def map(self, number: int) -> TensorView:
        """A matrix by its map, as it was rewritten last."""
        return TensorView(MappedTensor(self._generic(number), self.patterns[number].type))

    def rewrite(self, matrices: Sequence[tuple[View, Scalar, Scalar]]) -> None:
        """Makes the maps those of other matrices, of so many lines, each of so many elements."""
        with self.alone():
            for number, (view, lines, length) in enumerate(matrices):
                self._set(number, view, lines, length)
        self._meet()
        for number in range(len(matrices)):
            pd.ptx(COPY, self._kept(number), self._changed(number), MAP_BYTES)
        with self.alone():
            self._acquire()
        self._meet()  # the changed maps have been copied before they are changed again

    def _meet(self) -> None:
        """All lanes come here, and know of what each has written."""
        pd.ptx.bar.warp.sync(EVERY_LANE)

    def _acquire(self) -> None:
        """The lane that copies sees the maps."""
        for number in range(len(self.patterns)):
            pd.ptx("fence.proxy.tensormap::generic.acquire.gpu", self._generic(number), MAP_BYTES)

    def _set(self, number: int, view: View, lines: Scalar, length: Scalar) -> None:
        """Where a matrix begins, its extents, and the bytes between its lines."""
        changed = self._changed(number)
        replace, where = "tensormap.replace.tile", "shared::cta.b1024"
        pd.ptx(f"{replace}.global_address.{where}.b64", changed, view.pointer.value)
        pd.ptx(f"{replace}.global_dim.{where}.b32", changed, 0, length)
        pd.ptx(f"{replace}.global_dim.{where}.b32", changed, 1, lines)
        apart = view.stride.to(u64) * self.patterns[number].element.bytes
        pd.ptx(f"{replace}.global_stride.{where}.b64", changed, 0, apart)

    def _changed(self, number: int) -> PointerValue:
        """A map in shared memory, as it was changed last."""
        return self.changed + number * MAP_BYTES

    def _kept(self, number: int) -> PointerValue:
        """Where a map is in global memory."""
        raise NotImplementedError

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

    def of(self, work: Work) -> Work:
        """The work with A and B by their maps; these are rewritten where it is of another problem."""
        with pd.if_(work.item[0] != self.problem):
            self.problem.set(work.item[0])
            self.version.set(pd.select(self.version == self.versions - 1, 0, self.version + 1))
            self.rewrite(self._matrices(work))
        return work._replace(product=work.product._replace(a=self.map(0), b=self.map(1)))

    def _matrices(self, work: Work) -> list[tuple[View, Scalar, Scalar]]:
        product = work.product
        sizes = (product.a, product.m, self.majors[0]), (product.b, product.n, self.majors[1])
        return [(view, mn, product.k) if major == "k" else (view, product.k, mn) for view, mn, major in sizes]

    def _kept(self, number: int) -> PointerValue:
        """A map in global memory, in the version of the current problem."""
        return self.kept + (self.version * MATRICES + number).to(u64) * MAP_BYTES


class RewrittenOut(ChangedMaps):
    """The map of the output for a warpgroup that stores, by the first of its threads. It is rewritten when all that was
    stored by it is in memory."""

    def __init__(
        self, traits: WarpgroupTraits, pattern: MappedTensor, memory: PointerValue, consumer: pd.warpgroup
    ) -> None:
        """`memory` is that of RewrittenMaps, behind whose maps these are."""
        changed = pd.shared(b8, traits.tiling.consumers * MAP_BYTES, align=MAP_BYTES, name="changed_outputs")
        super().__init__([pattern], changed.address(0) + consumer.index * MAP_BYTES)
        self.warp, self.leads = consumer.thread % WARPGROUP // WARP, consumer.thread % WARPGROUP == 0
        number = versions_of(traits.tiling.stages) * MATRICES + consumer.index
        self.kept = memory + (pd.ctaid.x.to(u64) * map_bytes(traits) + pd.cast(number, u64) * MAP_BYTES)
        self.problem = pd.var(u32, NO_PROBLEM)

    def alone(self) -> AbstractContextManager[Any]:
        return pd.if_(self.leads)

    def follow(self, work: Work) -> None:
        """Rewrites the map where the work is of another problem."""
        with pd.if_(work.item[0] != self.problem):
            self.problem.set(work.item[0])
            with pd.if_(self.warp == 0):
                with pd.if_(self.leads):
                    pd.ptx.cp.async_.bulk.wait_group(0)
                self.rewrite([(work.product.out, work.product.m, work.product.n)])

    def _kept(self, number: int) -> PointerValue:
        return self.kept
