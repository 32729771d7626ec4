"""Tensor maps of the problems of a list: a block rewrites maps of its own where its next tile is of another problem."""

from __future__ import annotations

import ptxdsl as pd
from ptxdsl import b8, u32, u64
from ptxdsl.isa.tensor_map import MAP_BYTES
from ptxdsl.kernels.sm90.copies import TensorView
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.kernels.tiles.product import View, Work
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


def map_bytes(stages: int) -> int:
    """The global memory that a block takes for its maps."""
    return versions_of(stages) * MATRICES * MAP_BYTES


class RewrittenMaps:
    """The maps of A and B for the warp that copies, made of `patterns`, maps of other matrices with the same boxes.

    A copy may read its map until it has ended. A version of the maps is written again when as many problems came behind
    it as the ring has stages, each of which has filled one: its copies have ended then.
    """

    def __init__(self, traits: WarpgroupTraits, patterns: tuple[MappedTensor, ...], memory: PointerValue) -> None:
        """`memory` has `map_bytes` for each block, and begins at a multiple of 128 bytes."""
        stages = traits.tiling.stages
        self.patterns, self.versions = patterns, versions_of(stages)
        self.majors = traits.operands.a_major, traits.operands.b_major
        self.bytes = traits.operands.inputs.bytes
        self.kept = memory + pd.ctaid.x.to(u64) * map_bytes(stages)
        self.changed = pd.shared(b8, MATRICES * MAP_BYTES, align=MAP_BYTES, name="changed_maps")
        self.problem, self.version = pd.var(u32, NO_PROBLEM), pd.var(u32, 0)

    def begin(self) -> None:
        """Brings the patterns to shared memory, a word of each by every lane."""
        for number, pattern in enumerate(self.patterns):
            word = self._changed(number).bitcast(u32) + pd.laneid
            word[0] = (pattern.pointer.bitcast(u32) + pd.laneid)[0]
        pd.ptx.bar.warp.sync(EVERY_LANE)

    def of(self, work: Work) -> Work:
        """The work with A and B by their maps; these are rewritten where it is of another problem."""
        with pd.if_(work.item[0] != self.problem):
            self.problem.set(work.item[0])
            self.version.set(pd.select(self.version == self.versions - 1, 0, self.version + 1))
            self._rewrite(work)
        a, b = (TensorView(MappedTensor(self._generic(n), pattern.type)) for n, pattern in enumerate(self.patterns))
        return work._replace(product=work.product._replace(a=a, b=b))

    def _rewrite(self, work: Work) -> None:
        product = work.product
        with pd.elect():
            self._set(0, product.a, product.m, product.k)
            self._set(1, product.b, product.n, product.k)
        self._meet()
        for number in range(MATRICES):
            pd.ptx(COPY, self._kept(number), self._changed(number), MAP_BYTES)
        with pd.elect():
            self._acquire()
        self._meet()  # the changed maps have been copied before they are changed again

    def _meet(self) -> None:
        """All lanes come here, and know of what each has written."""
        pd.ptx.bar.warp.sync(EVERY_LANE)

    def _acquire(self) -> None:
        """The lane that copies sees the maps."""
        for number in range(MATRICES):
            pd.ptx("fence.proxy.tensormap::generic.acquire.gpu", self._generic(number), MAP_BYTES)

    def _set(self, number: int, view: View, mn: Scalar, k: Scalar) -> None:
        """Where a matrix begins, its extents, and the bytes between its lines."""
        changed = self._changed(number)
        length, lines = (k, mn) if self.majors[number] == "k" else (mn, k)
        replace, where = "tensormap.replace.tile", "shared::cta.b1024"
        pd.ptx(f"{replace}.global_address.{where}.b64", changed, view.pointer.value)
        pd.ptx(f"{replace}.global_dim.{where}.b32", changed, 0, length)
        pd.ptx(f"{replace}.global_dim.{where}.b32", changed, 1, lines)
        pd.ptx(f"{replace}.global_stride.{where}.b64", changed, 0, view.stride.to(u64) * self.bytes)

    def _changed(self, number: int) -> PointerValue:
        """A map in shared memory, as it was changed last."""
        return self.changed.address(number * MAP_BYTES)

    def _kept(self, number: int) -> PointerValue:
        """A map in global memory, in the version of the current problem."""
        return self.kept + (self.version * MATRICES + number).to(u64) * MAP_BYTES

    def _generic(self, number: int) -> PointerValue:
        address: Scalar = pd.ptx.cvta.global_.u64(self._kept(number).value)
        return pd.pointer(address, b8, "generic")
