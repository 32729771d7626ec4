"""Cluster launch control: a persistent walk of a block over its own tile and those of clusters that it cancels."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

from ptxdsl.errors import is_looped_here, public, public_class
from ptxdsl.isa.cluster_size import clusters_of
from ptxdsl.trace.arrays import shared
from ptxdsl.trace.builder import ControlRegion, current, refuse
from ptxdsl.trace.changes import Bindings
from ptxdsl.trace.control import branch, if_, iteration, refuse_iteration
from ptxdsl.trace.instruction import emit
from ptxdsl.trace.operators import operate, steps
from ptxdsl.trace.ring import Ring
from ptxdsl.trace.value import Value, ctaid, make_value, special, var
from ptxdsl.types import b64, b128, pred, u32

ANSWER_BYTES = 16
CANCEL = "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes"
QUERY = "clusterlaunchcontrol.query_cancel"


class TileIndex(NamedTuple):
    """The index of a block in the grid: its own, or one that was cancelled. Each coordinate is a u32."""

    x: Any
    y: Any
    z: Any


@public_class
class ClusterLaunchControl:
    """Walk over the tiles of a grid that has one block for each: this block's, then those of clusters it cancels.

        tiles = pd.ClusterLaunchControl(readers=130)
        with pd.warp(3), pd.elect():
            tiles.request()
        with pd.warp(0), pd.elect():
            for tile in tiles:                 # tile.x, tile.y, tile.z in place of pd.ctaid
                load(tile.x)
        with pd.warpgroup(1):
            for tile in tiles:
                store(tile.x)

    Each iteration takes the answer to a request of `request`, which one thread of each block calls in a role of its
    own: it asks for the next tile while this one is computed. `readers` is the number of threads of a block that
    iterate. All of them see the same tiles, and the loop ends when no cluster is left to cancel. In a kernel with
    clusters, all blocks of a cluster walk together, and each has its own tile of the cancelled cluster.

    Create it at the beginning of the kernel, as a `pd.Ring`. Raises TraceError for other counts, inside of roles,
    branches and loops, and in a Python function that iterates. Targets: sm_100 and later; with clusters sm_100a.
    """

    def __init__(self, *, readers: int) -> None:
        builder = current("pd.ClusterLaunchControl")
        builder.check_kernel("pd.ClusterLaunchControl", "make it in the kernel")
        if type(readers) is not int or readers < 1:
            refuse(
                f"pd.ClusterLaunchControl has {readers!r} readers", "count the threads of a block that iterate over it"
            )
        required = clusters_of(builder.function).required
        self.cluster = math.prod(required) if required else 1
        self._ring = Ring(2, stage_bytes=ANSWER_BYTES, consumers=readers + 1, cluster=self.cluster)
        self._answers = shared(b64, (2, ANSWER_BYTES // b64.bytes), align=ANSWER_BYTES, name="answers")

    @public
    def request(self) -> None:
        """Ask for tiles until no cluster is left to cancel, in one thread of each block."""
        ring = self._ring
        for _ in self._walk("request"):
            slot = ring.acquire()
            with steps():
                multicast = ".multicast::cluster::all" if self.cluster > 1 else ""
                guard = special("%cluster_ctarank") == 0 if self.cluster > 1 else None
                target = self._answers.address(slot.index, 0)
            emit(f"{CANCEL}{multicast}.b128", (target, slot.full), guard=guard)
            ring.commit()
        if self.cluster > 1:
            ring.drain()

    def __iter__(self) -> Iterator[TileIndex]:
        if not is_looped_here():
            refuse_iteration("pd.ClusterLaunchControl", "all readers see the same tiles")
        return self._walk("for")

    def _walk(self, words: str) -> Iterator[TileIndex]:
        """Trace one iteration; the next one follows if the answer names a cluster."""
        builder = current("pd.ClusterLaunchControl")
        reader, where = self._ring.reader(), builder.site().location
        tile = TileIndex(*(var(u32, axis) for axis in (ctaid.x, ctaid.y, ctaid.z)))
        start = builder.function.label("$tile")
        builder.append(start)
        bindings = Bindings(builder, loops=True)
        region = ControlRegion(f"the `{words}` over pd.ClusterLaunchControl ({where})", where)
        help = "all readers take all answers: skip the work of a tile by `with pd.if_(…):`"
        with iteration(builder, region, bindings, help):
            yield TileIndex(*(Value(axis.read(), u32, builder) for axis in tile))
        bindings.end(region, surely=True)
        branch(start, when=self._next(reader, tile))

    def _next(self, reader: Ring, tile: TileIndex) -> Any:
        """Wait for an answer, and set the tile to it; return a predicate: there is one."""
        slot = reader.wait()
        with steps():
            answer = operate("ld.shared.b128", self._answers.address(slot.index, 0), type=b128)
            is_cancelled: Any = operate(f"{QUERY}.is_canceled.pred.b128", answer, type=pred)
            with if_(is_cancelled):
                ((first, _),) = emit(f"{QUERY}.get_first_ctaid.v4.b32.b128", (answer,), type=u32)
                for axis, name, value in zip(tile, "xyz", make_value(first, u32), strict=False):
                    axis.set(value + special(f"%cluster_ctaid.{name}") if self.cluster > 1 else value)
        reader.release()
        return is_cancelled
