"""Control flow: where the lanes of the running group continue, wait or exit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ... import ir
from ...isa.step import Awaited, LateInputs
from ..memory.access import BarrierArrival, BarrierCompletion, BlockExit, ClusterArrival, Convergence
from .barriers import BARRIERS, EVERYONE, Arrivals, Waiting, outcome
from .calls import Calls
from .cluster_barriers import ClusterWaiting
from .core import Abort
from .decode import Decoded
from .frames import Frame, Index
from .meetings import report_deserters
from .requests import Requests
from .residents import WARP
from .scheduler import PATIENCE, ROUNDS_BEFORE_OTHERS, TURNS_PER_EPOCH, Group, Loop


class Flow(Requests):
    """The part of the processor that moves lanes."""

    calls: Calls

    def stand(self, frame: Frame, pc: int) -> None:
        """Continue the running group at a step of a frame."""
        self.frame, self.pc, self.steps = frame, pc, frame.code.steps
        self.stops = self.scheduler.stops(frame)
        self.memory.spaces["local"].table = frame.table
        frame.sharing = self.dense
        if self.dense:
            frame.owned.clear()

    def yield_to_others(self) -> None:
        """Return the running group to the ready groups."""
        group = self.running
        group.frame, group.pc = self.frame, self.pc
        self.scheduler.add(group)
        self.group = None

    @property
    def running(self) -> Group:
        assert self.group is not None
        return self.group

    def jump(self, target: ir.Label) -> None:
        self._go(self.frame, self.frame.code.labels[target])

    def jump_each(self, index: np.ndarray, targets: ir.Label) -> None:
        labels = self.frame.code.lists[targets]
        beyond = index >= len(labels)
        if beyond.any():
            count = f"{len(labels)} target{'s' * (len(labels) != 1)}"
            message = f"{self.name} takes target {int(index[beyond][0])} of {targets}, which has {count}"
            self.finding("call", message, beyond, help="bound the index first, or add targets")
            self.end(self.lanes_now[beyond])
        lanes = self.lanes_now
        for number in np.unique(index[~beyond]):
            self._send(lanes[index == number], self.frame, self.frame.code.labels[labels[number]])

    def _go(self, frame: Frame, pc: int) -> None:
        """Continue all current lanes at a step."""
        if self.partial:
            self._send(self.lanes_now, frame, pc)
            return
        backward = frame is self.frame and pc < self.pc
        if backward and self._goes_in_circles(pc):
            return
        if frame is self.frame:
            self.pc = pc
        else:
            self.stand(frame, pc)
        if self.scheduler.ready or self.scheduler.weary:
            self.yield_to_others()

    def _send(self, lanes: np.ndarray, frame: Frame, pc: int) -> None:
        """Let some lanes leave the group and continue at a step."""
        group = Group(frame, pc, lanes, self.running.turns)
        if frame is self.frame and pc < self.pc:
            group.turns += 1
            self._count_round()
            group.loop = Loop((frame, pc), self.memory.state)
            if self.running.loop is not None and self.running.loop.parked:
                group.loop.parked, group.loop.saved = True, self._snapshot(pc, lanes)
        self.departed.append(lanes)
        self.scheduler.add(group)

    def call(
        self,
        function: ir.Function | ir.Symbol | np.ndarray,
        arguments: Sequence[ir.Operand],
        results: Sequence[ir.Operand],
    ) -> None:
        if not isinstance(function, np.ndarray):
            self.calls.enter(function, arguments, results)
            return
        lanes, targets = self.lanes_now, np.unique(function)
        for address in targets:
            if len(targets) > 1:
                self.aim(lanes[function == address])
                self.partial = True
            self.calls.enter(self.calls.at_address(int(address)), arguments, results)

    def go_to_function(self, frame: Frame) -> None:
        self._go(frame, 0)

    def leave(self) -> None:
        caller = self.frame.parent
        if caller is None:
            self.end(self.lanes_now)
            return
        self.products.settle(self, self.frame, range(len(self.frame.registers)))
        if self.tensor_memory is not None:
            self.tensor_memory.deliver(self, self.frame, range(len(self.frame.registers)))
        self.calls.hand_back(self.frame, caller)
        self._go(caller, self.frame.site + 1)

    def exit(self) -> None:
        self.end(self.lanes_now)

    def end(self, lanes: np.ndarray) -> None:
        """End lanes."""
        if self.scheduler.held:
            report_deserters(self, lanes)
        self.departed.append(lanes)
        self.alive[lanes] = False
        self.living -= len(lanes)
        if not self.bulk.idle:
            self.bulk.end_blocks(self, self.living_warps() == 0)
        if self.tensor_memory is not None:
            self.tensor_memory.end_blocks(self, self.living_warps() == 0)
        if self.residents.cluster_blocks > 1 or self.remote.under_way:
            self._end_blocks(lanes)
        self.barriers.complete(self)
        self.cluster_barriers.complete(self)
        self.scheduler.recheck()

    def abort(self) -> None:
        raise Abort

    def sleep(self, nanoseconds: np.ndarray) -> None:
        self.machine.clock += int(nanoseconds.max())
        if self.scheduler.ready and not self.partial:
            self.running.turns += TURNS_PER_EPOCH
            self.yield_to_others()

    def suspend(self, ready: np.ndarray) -> None:
        flat = ready.reshape(-1)
        lanes = self.lanes_now[~flat]
        if not lanes.size:
            return
        is_limited = self.step.op.awaits is Awaited.PHASE
        if is_limited and self.scheduler.gives_up(self.step, int(lanes[0])):
            return
        self.kept = flat
        self.departed.append(lanes)
        self.scheduler.park(Group(self.frame, self.pc - 1, lanes, self.running.turns), self.memory.version)

    def reads_result(self) -> bool:
        return self.frame.code.reads_result(self.step)

    def share_effects(self) -> None:
        self.order(Convergence(self.lanes_now[::WARP] // WARP, self.active))

    def hold(self, lanes: np.ndarray) -> None:
        """Hold lanes at this collective until the others of their warps arrive."""
        self.departed.append(lanes)
        self.memory.private += 1
        self.scheduler.hold(Group(self.frame, self.pc - 1, lanes, self.running.turns))

    # Loops that wait

    def _goes_in_circles(self, target: int) -> bool:
        """Park the group if its last iteration of a loop changed nothing; count its iterations."""
        group, state = self.running, self.memory.state
        self._count_round()
        if self.scheduler.ready or self.scheduler.parked:
            group.turns += 1
            if group.turns % TURNS_PER_EPOCH == 0:
                self.scheduler.wake(state)
                self.scheduler.weary = True
        loop = group.loop
        if loop is None or loop.position != (self.frame, target):
            group.loop = Loop((self.frame, target), state)
            return False
        if loop.version != state:
            loop.version, loop.idle = state, 0
            loop.saved = self._snapshot(target, self.group_index) if loop.parked else {}
            return False
        return self._idle_round(loop, target)

    def _count_round(self) -> None:
        self.rounds += 1
        self.scheduler.weary |= self.rounds >= ROUNDS_BEFORE_OTHERS

    def _idle_round(self, loop: Loop, target: int) -> bool:
        """Return True for an iteration in which memory did not change."""
        loop.idle += 1
        if loop.saved and self._unchanged(loop):
            group = self.running
            group.frame, group.pc, group.circles, loop.parked = self.frame, target, True, True
            self.scheduler.park(group, self.memory.version)
            self.group = None
            return True
        self.scheduler.weary |= loop.idle % PATIENCE == 0
        rare = loop.idle & (loop.idle - 1) == 0
        loop.saved = self._snapshot(target, self.group_index) if rare or loop.parked else {}
        return False

    def _snapshot(self, target: int, index: Index) -> dict[int, np.ndarray]:
        """Return the registers that the loop writes; −1 if there are none.

        Between two arrivals at its start without another backward jump, only the steps from there to here can have run.
        """
        saved = {-1: np.empty(0)}
        for slot in self.frame.code.written(target, self.pc - 1):
            register = self.frame.registers[slot]
            if register is not None:
                saved[slot] = register[slice(None) if index is None else index].copy()
        return saved

    def _unchanged(self, loop: Loop) -> bool:
        index = slice(None) if self.group_index is None else self.group_index
        for slot, saved in loop.saved.items():
            register = self.frame.registers[slot] if slot >= 0 else None
            if register is not None and register[index].tobytes() != saved.tobytes():
                return False
        return True

    # Products and registers of warpgroups

    def change_registers(self, count: int, more: bool) -> None:
        self.suspend(self.machine.pool.change(self, count, more))

    def touch(self, step: Decoded) -> None:
        """Handle an access to registers that an asynchronous instruction reads or writes."""
        if self.frame.code.multiplies_late:
            self.products.touch(self, step)
        if self.tensor_memory is not None:
            self.tensor_memory.touch(self, step)

    def multiply_late(self, inputs: LateInputs) -> None:
        self.products.issue(self, inputs)

    def fence_products(self) -> None:
        self.products.fence(self)

    def commit_products(self) -> None:
        self.products.commit(self)

    def wait_products(self, pending: int) -> None:
        self.products.wait(self, pending)

    # Barriers of the block

    def barrier(self, index: np.ndarray, threads: np.ndarray | None, arrive: bool = False) -> None:
        if not arrive and self._all_of_machine(index, threads):
            self.order(BarrierArrival(None, None, None))
            return
        come = self._arrivals(index, threads)
        if arrive or not self._passes(come):
            self._wait_at(come, None, None, arrive)

    def barrier_reduce(
        self, index: np.ndarray, threads: np.ndarray | None, values: np.ndarray, how: str
    ) -> np.ndarray | None:
        come = self._arrivals(index, threads)
        if not self._passes(come):
            self._wait_at(come, values, how, False)
            return None
        votes, voters = np.zeros((2, self.residents.slots, BARRIERS), np.int64)
        np.add.at(votes, (come.slot, come.barrier), (values & self.active).sum(-1))
        np.add.at(voters, (come.slot, come.barrier), self.active.sum(-1))
        outcomes = outcome(votes[come.slot, come.barrier], voters[come.slot, come.barrier], how)
        return np.repeat(outcomes[:, np.newaxis], WARP, axis=1)

    def _all_of_machine(self, index: np.ndarray, threads: np.ndarray | None) -> bool:
        """Return True if all threads of all blocks arrive at one idle barrier together."""
        if not self.whole or self.partial or not self.barriers.idle or (index != index.flat[0]).any():
            return False
        complete = threads is None or bool((threads == self.residents.threads).all())
        return complete and int(index.flat[0]) < BARRIERS

    def _passes(self, come: Arrivals) -> bool:
        """Return True if arriving warps complete their barriers at once."""
        self.order(BarrierArrival(come.slot, come.warp, come.barrier))
        if not self.barriers.suffices(self, come):
            return False
        self.order(BarrierCompletion(self.barriers.of(come), come.slot, come.warp, come.barrier))
        return True

    def _wait_at(self, come: Arrivals, values: np.ndarray | None, how: str | None, arrive: bool) -> None:
        """Count the arrivals of warps, which wait until their barriers are complete unless they only arrive."""
        self.memory.private += 1  # a loop with a barrier makes progress: its lanes learn of others
        if arrive:
            self.order(BarrierArrival(come.slot, come.warp, come.barrier))
        self.barriers.arrive(self, come, not arrive)
        if values is not None:
            self.barriers.vote(come, values, self.active)
        if not arrive:
            self._stay(come, how)
        self.barriers.complete(self)

    def _stay(self, come: Arrivals, how: str | None) -> None:
        """Let lanes leave their groups until their barriers are complete."""
        lanes = self.lanes_now.reshape(-1, WARP)
        for number in np.unique(come.barrier):
            present = (come.barrier == number)[:, np.newaxis] & self.active
            for behind, step, members in self.met or [(self._behind(), self.step, self.active)]:
                waiting = np.sort(lanes[present & members])
                if waiting.size:
                    self.departed.append(waiting)
                    group = Group(behind.frame, behind.pc, waiting, behind.turns)
                    self.barriers.waiting.append(Waiting(int(number), group, step, how))

    def _behind(self) -> Group:
        """Return the running group at the step after the current instruction."""
        return Group(self.frame, self.pc, self.running.lanes, self.running.turns)

    def _check_agreement(self, number: str, values: np.ndarray, first: np.ndarray) -> None:
        """Report warps whose lanes pass several barriers or counts."""
        differ = (values != first[:, np.newaxis]) & self.active
        if differ.any():
            warp, lane = (int(n[0]) for n in np.nonzero(differ))
            message = (
                f"{self.name}: lanes of one warp pass the {number} {int(first[warp])} and {int(values[warp, lane])}"
            )
            self.finding("barrier", message, differ, help=f"pass the same value in all lanes of a warp: the {number}")

    def _arrivals(self, index: np.ndarray, threads: np.ndarray | None) -> Arrivals:
        """Return one barrier and one count for each warp; report invalid ones."""
        first = np.arange(len(self.active)), self.active.argmax(1)
        barrier = index[first].astype(np.int64)
        count = np.full(barrier.shape, EVERYONE) if threads is None else threads[first].astype(np.int64)
        beyond = barrier >= BARRIERS
        if beyond.any():
            message = f"{self.name}: barrier {int(barrier[beyond][0])} does not exist; a block has barriers 0 to 15"
            self.finding_of_warps("barrier", message, beyond, "use one of these")
        self._check_agreement("barriers", index, barrier)
        if threads is not None:
            self._check_agreement("counts", threads, count)
        most = self.residents.warps * WARP
        wrong = (count != EVERYONE) & ((count % WARP != 0) | (count <= 0) | (count > most))
        if wrong.any():
            message = (
                f"{self.name} waits for {int(count[wrong][0])} threads; the count must be a multiple of 32, "
                f"at least 32 and at most {most}, the threads of the block"
            )
            self.finding_of_warps("barrier", message, wrong, "count whole warps, or omit the count for all threads")
        lanes = self.lanes_now[::WARP]
        slot, warp = self.residents.slot[lanes], self.residents.warp[lanes]
        return Arrivals(slot, warp, np.where(beyond, 0, barrier), np.where(wrong, EVERYONE, count))

    # The barrier of the cluster

    def cluster_arrive(self, releases: bool) -> None:
        self.memory.private += 1
        lanes = self._who_run()
        self.order(ClusterArrival(lanes, releases))
        self.cluster_barriers.arrive(self, lanes)

    def cluster_wait(self) -> None:
        self.memory.private += 1
        lanes = self._who_run()
        waiting = lanes[self.cluster_barriers.wait(self, lanes)]
        if waiting.size:
            self.departed.append(waiting)
            behind = Group(self.frame, self.pc, waiting, self.running.turns)
            self.cluster_barriers.waiting.append(ClusterWaiting(behind, self.step))

    def _end_blocks(self, lanes: np.ndarray) -> None:
        """Report the blocks that end with these lanes."""
        slots = np.unique(self.residents.slot[lanes])
        slots = slots[self.living_warps()[slots] == 0]
        if slots.size:
            self.order(BlockExit(slots))
        for slot in slots.tolist():
            store = self.remote.towards(slot)
            if store is not None:
                block = self.residents.numbered(int(self.residents.ordinals[slot]), 0).block_text
                message = f"block {block} ends while {store.origin.name} to its shared memory is in flight"
                others = [store.origin.location] if store.origin.location is not None else []
                help = "wait on the mbarrier where the bytes complete, before the block ends"
                self.finding("cluster", message, np.ones(self.lanes_now.shape, bool), others, help)

    def _who_run(self) -> np.ndarray:
        """Return the lanes that run this instruction; for a collective, the participating lanes of its warps."""
        return self.lanes_now[self.active.reshape(-1)] if self.collective else self.lanes_now
