"""The machine: starts blocks and schedules their lanes until all have exited or none can continue."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from ...errors import Location
from ..asynchronous.copies import CopyQueue
from ..asynchronous.products import ProductQueue
from ..asynchronous.remote import RemoteStores
from ..asynchronous.tensor_memory import TensorMemory
from ..memory.heap import keep_freed_memory
from ..memory.spaces import Memory
from ..observe.bounds import Bounds
from ..observe.contents import Contents
from ..observe.mbarriers import MbarrierObjects
from ..observe.phases import PhaseCounter
from ..observe.races import BarrierReuse, GridWaits, MapFences, Races, TensorOrder
from ..observe.read_only import ReadOnlyLoads
from ..observe.traffic import TrafficCounter
from ..report import Report
from .barriers import Barriers
from .circles import Circles
from .cluster_barriers import ClusterBarriers
from .core import Abort, Core, EmulatedLaunch
from .deadlock import report_deadlock
from .decode import decode
from .joint import meet_elsewhere
from .processor import Processor
from .registers import RegisterPool, at_launch
from .residents import WARP, Residents
from .scheduler import ROUNDS_BEFORE_OTHERS, Group, Scheduler
from .watching import Watcher

LANES = 16384
"""Lanes that run together: more make an instruction cheaper for each, until arrays leave the cache."""
THREADS_EACH, BLOCKS_EACH, SHARED_EACH = 2048, 32, 228 << 10  # per multiprocessor of an H200


class Machine(Core):
    """Runs a launch."""

    def __init__(self, launch: EmulatedLaunch, memory: Memory) -> None:
        super().__init__(launch, memory)
        memory.subscribe(Bounds())
        memory.subscribe(self.bulk)
        memory.subscribe(PhaseCounter(self.phases, launch.shared_bytes))
        if launch.traffic:
            self.traffic = TrafficCounter(self.report)
            memory.subscribe(self.traffic)
        order: TensorOrder | None = None
        if launch.checks:
            memory.subscribe(Contents(self._under_way, lambda: self.copies, self.bulk))
            if self.program.uses_async_proxy:
                memory.subscribe(MbarrierObjects(lambda: memory.spaces["shared"]))
            plain = not self.program.uses_async_proxy and self.each == 1
            races = Races(lambda: (memory.spaces["shared"], memory.spaces["global"]), plain)
            memory.subscribe(races)
            memory.subscribe(MapFences(races))
            memory.subscribe(BarrierReuse(races))
            if self.program.reads_without_coherence:
                memory.subscribe(ReadOnlyLoads(memory.spaces["global"]))
            if launch.beside is not None:
                memory.subscribe(GridWaits(races, launch.beside))
            order = TensorOrder(races)
        if self.program.uses_tensor_memory:
            self.tensor = TensorMemory(memory, self.bulk, launch.shared_bytes, order)
            memory.subscribe(self.tensor)

    def run(self) -> Report:
        """Run all blocks. Raises FirstFinding with `only_first`, EmulationError for what cannot be emulated."""
        keep_freed_memory()
        try:
            while self.blocks < self.total:
                self._start(self.next_blocks(self._batch()))
                self._finish()
            self.note_discarded()
        except Abort:
            pass
        except KeyboardInterrupt as interruption:
            interruption.add_note(self._whereabouts())
            raise
        finally:
            if self.traffic is not None:
                self.traffic.tell()
        for watcher in self.launch.watchers:
            watcher.ended()
        if not self.launch.watchers:
            self._free_shared()
        return self.report

    def _free_shared(self) -> None:
        """Return unused shared memory to the pool, for the blocks that start next."""
        if (shared := self.memory.spaces.pop("shared", None)) is not None:
            shared.free()

    def _whereabouts(self) -> str:
        """Describe where the kernel is, for a user who interrupts it."""
        x = self.processor
        at = f" ({x.step.location})" if x.step.location is not None else ""
        first = self.residents.name(int(x.group.lanes[0] if x.group else np.argmax(x.alive)))
        return f"{self.program.kernel.name} was at {x.name}{at}, after {self.clock} steps, with {first} and others"

    # Blocks

    def _residents(self, ordinals: np.ndarray) -> Residents:
        return Residents(self.launch.grid, self.launch.block, ordinals, self.cluster, self.program.pairs)

    def _batch(self) -> int:
        """Return the number of blocks that start together: enough lanes for speed, at most those that a GPU holds."""
        threads = -(-int(np.prod(self.launch.block)) // 32) * 32
        return min(self._capacity(), self._whole_clusters(LANES // threads))

    def _whole_clusters(self, blocks: int) -> int:
        """Round down to whole clusters, whose blocks start together; at least one cluster."""
        return max(self.each, blocks - blocks % self.each)

    def _capacity(self) -> int:
        """Return the number of blocks that an H200 holds at once, by threads and shared memory, without registers.

        Later blocks start, in order, when earlier ones end, or when the running ones wait.
        """
        if self.launch.resident is not None:
            return self._whole_clusters(self.launch.resident)
        threads = -(-int(np.prod(self.launch.block)) // 32) * 32
        shared = self.total_shared_bytes + 1024
        each = min(BLOCKS_EACH, THREADS_EACH // threads, SHARED_EACH // shared)
        blocks = max(1, each) * self.multiprocessors
        if self.program.cancels_clusters:  # some clusters have to be left to cancel
            blocks = min(blocks, -(-self.total // 2))
        return self._whole_clusters(blocks)

    def _start(self, blocks: np.ndarray) -> None:
        """Start new blocks at the first step of the kernel."""
        self._free_shared()
        self.settle(self._residents(blocks))
        self.memory.settle(self.residents)
        self.circles = Circles()
        self.scheduler, self.barriers = Scheduler(self.schedule), Barriers(self.residents)
        self.cluster_barriers = ClusterBarriers(self.residents)
        self.copies, self.remote = CopyQueue(self.memory, self.residents.lanes), RemoteStores()
        self.products = ProductQueue(self.residents.lanes // WARP)
        self.pool = RegisterPool(self.residents, at_launch(self.program.kernel))
        self.processor = Processor(self)
        self.entry = self.new_frame(decode(self.program.kernel), None, -1)
        self.scheduler.add(Group(self.entry, 0, self.residents.all[self.residents.exists]))

    def _finish(self) -> None:
        """Run until all started lanes have exited."""
        while self.processor.living:
            if self.scheduler.weary:
                self._relieve()
            if self.bulk.loads and (number := self.schedule.landing(len(self.bulk.loads))) is not None:
                self.bulk.land(self.processor, number)
            if self.tensor is not None:
                self.tensor.land_early(self.processor, self.schedule)
            if self.scheduler.parked and self.schedule.looks():
                self.scheduler.wake(self.memory.state)
            group = self.scheduler.take()
            if group is not None:
                self.circles.ran(group)
                self.processor.run(group)
            elif not self._stir():
                report_deadlock(self, self.processor, self.total - self.blocks)
                raise Abort

    def _stir(self, patient: bool = False) -> bool:
        """Let something happen when no lane is ready: parked lanes, late copies, more blocks; return True if lanes can
        continue.

        With `patient`, ready threads may still announce bytes at mbarriers, so copies of others do not land.
        """
        woken = self.scheduler.wake(self.memory.state) or self._land(patient)
        return woken or meet_elsewhere(self.processor) or self._join()

    def _relieve(self) -> None:
        """Give a turn to whatever the looping lanes may wait for, although they could run on."""
        self.scheduler.weary = False
        if self.processor.rounds < ROUNDS_BEFORE_OTHERS:
            self._stir(patient=bool(self.scheduler.ready))
            return
        woken, met = self.scheduler.wake(self.memory.state), meet_elsewhere(self.processor)
        if self._join() or woken or met or self._land():
            self.processor.rounds = 0
        elif self.circles.closed(self, self.processor):
            for group in self.scheduler.ready.values():
                group.circles = True
            report_deadlock(self, self.processor, self.total - self.blocks)
            raise Abort

    def _land(self, patient: bool = False) -> bool:
        """Complete the copies that a thread may wait for; return True if there was any."""
        x, tensor = self.processor, self.tensor
        if self.copies.flush(x) or self.remote.flush() or (tensor is not None and tensor.flush(x, awaited=True)):
            return True
        return self.bulk.flush(x, patient) or (tensor is not None and not patient and tensor.flush(x, awaited=False))

    def _land_departed(self) -> None:
        """Complete copies to other blocks by threads that have exited, before other blocks take their place."""
        self.remote.flush()
        alive = self.processor.alive
        while any(not alive[load.lanes].all() for load in self.bulk.loads):
            self.bulk.flush(self.processor)

    def _under_way(self) -> list[Location]:
        tensor = self.tensor.locations() if self.tensor is not None else []
        return [*self.copies.locations(), *self.bulk.locations(), *tensor]

    def _join(self) -> bool:
        """Start more blocks in addition to the waiting ones, if a GPU would have room for them."""
        r = self.residents
        alive = self.processor.living_warps() > 0
        room = min(self._capacity() - int(alive.sum()), len(alive))
        if self.blocks >= self.total or room < self.each:
            return False
        self._land_departed()
        fresh = self.next_blocks(room - room % self.each)
        ordinals = np.append(r.ordinals[alive], fresh)
        self._move(self._residents(ordinals))
        started = self.residents.exists & (self.residents.ordinals[self.residents.slot] >= fresh[0])
        self.processor.begin(started)
        self.scheduler.add(Group(self.entry, 0, self.residents.all[started]))
        return True

    def _move(self, new: Residents) -> None:
        """Move the blocks that have not ended, with all state of their lanes and slots, among other residents."""
        lanes, slots = new.moved(self.residents)
        self.products.settle(self.processor)
        if self.tensor is not None:
            self.tensor.deliver(self.processor)
        old_lanes, old_slots = np.flatnonzero(lanes >= 0), np.flatnonzero(slots >= 0)
        shared, local = self.memory.spaces["shared"], self.memory.spaces["local"]
        self.settle(new)
        self.circles = Circles()
        self.memory.spaces["shared"].adopt(shared, old_slots, slots[old_slots])
        shared.free()
        self.memory.spaces["local"] = local.like(new.lanes, new.all)
        self.memory.spaces["local"].adopt(local, old_lanes, lanes[old_lanes])
        self.entry.resize(new.lanes, old_lanes, lanes[old_lanes])
        waiting = [w.group for w in self.barriers.waiting] + [w.group for w in self.cluster_barriers.waiting]
        for group in [*self.scheduler.everyone(), *waiting]:
            group.lanes, group.loop = np.sort(lanes[group.lanes]), None
        self.cluster_barriers.move(new, old_lanes, lanes[old_lanes])
        self.barriers.move(new, old_slots, slots[old_slots])
        self.products.move(self.processor, lanes, new.lanes // WARP)
        self.pool.move(lanes, slots, new)
        self.copies.move(lanes, slots, new.lanes, self.launch.shared_bytes)
        self.memory.move(new, lanes, slots)
        self.processor.move(new, old_lanes, lanes[old_lanes])


class MachineWatcher(Watcher, Protocol):
    """A watcher with access to the machine."""

    def attach(self, machine: Machine) -> None:
        """Prepare for a launch that is about to begin."""
