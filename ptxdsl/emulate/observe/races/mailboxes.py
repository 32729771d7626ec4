"""Messages that releases leave at a location, by the threads that may receive them.

A release synchronizes with an acquire only if the scope of each includes the thread of the other (PTX ISA, "Morally
strong operations"): a `.gpu` release and a `.cta` acquire do so within one block, but not between two. The read must be
morally strong with the write whose value it returns. An atomic operation passes on the messages of earlier writes, so
that write need not be the one that released, and a fence after the read may be wider than the read.
"""

from __future__ import annotations

from collections.abc import Sequence

from .clocks import Message, joined

BLOCK, CLUSTER, DEVICE = range(3)
REACH = {"cta": BLOCK, "cluster": CLUSTER, "gpu": DEVICE, "sys": DEVICE}
"""The threads that a scope includes: those of the block, of its cluster, or all of the grid."""


class Mailbox:
    """The messages at one location of `size` bytes, joined for receivers of each reach.

    `blocks` holds all messages from threads of a block, `clusters` those of at least cluster scope from threads of a
    cluster, and `device` those of gpu scope. A thread that acquires at some scope receives what all three hold for it,
    up to that scope. `writer` is the reach and the block of the last write; None at an mbarrier, whose phases have
    several arrivals, each read for itself.
    """

    def __init__(self, size: int = 0) -> None:
        self.size = size
        self.blocks: dict[int, Message] = {}
        self.clusters: dict[int, Message] = {}
        self.device: Message | None = None
        self.writer: tuple[int, int] | None = None
        self.all_are_wide = True  # all messages have gpu scope
        self._received: dict[tuple[int, int], Message | None] = {}

    def leave(self, message: Message, reach: int, block: int, cluster: int) -> None:
        """Add a message from a thread of a block, for the threads that a scope includes."""
        self._received.clear()
        self.all_are_wide &= reach == DEVICE
        before = self.blocks.get(block), self.clusters.get(cluster), self.device
        joint: dict[int, Message] = {}  # the three are often one message
        for old in before[: reach + 1]:
            if id(old) not in joint:
                joint[id(old)] = message.joined(old)
        self.blocks[block] = joint[id(before[BLOCK])]
        if reach >= CLUSTER:
            self.clusters[cluster] = joint[id(before[CLUSTER])]
        if reach >= DEVICE:
            self.device = joint[id(before[DEVICE])]

    def add(self, other: Mailbox) -> None:
        """Add all messages of another mailbox."""
        self._received.clear()
        self.all_are_wide &= other.all_are_wide
        for kept, others in ((self.blocks, other.blocks), (self.clusters, other.clusters)):
            for number, message in others.items():
                kept[number] = message.joined(kept.get(number))
        if other.device is not None:
            self.device = other.device.joined(self.device)

    @property
    def is_device_wide(self) -> bool:
        """True if the last write and all messages have gpu scope."""
        return self.all_are_wide and (self.writer is None or self.writer[0] == DEVICE)

    def is_observed(self, reach: int, block: int, cluster_blocks: int) -> bool:
        """True if a read at a scope by a thread of a block is morally strong with the last write."""
        if self.writer is None or self.writer[1] == block:
            return True
        same_cluster = self.writer[1] // cluster_blocks == block // cluster_blocks
        return min(self.writer[0], reach) >= (CLUSTER if same_cluster else DEVICE)

    def receive(self, reach: int, block: int, cluster: int) -> Message | None:
        """Return what a thread of a block acquires at a scope."""
        if reach == DEVICE and self.all_are_wide:
            return self.device
        if (reach, block) not in self._received:
            messages = (self.blocks.get(block), self.clusters.get(cluster), self.device)[: reach + 1]
            self._received[reach, block] = _total(messages)
        return self._received[reach, block]


def _total(messages: Sequence[Message | None]) -> Message | None:
    present = [message for message in messages if message is not None]
    return joined(present) if present else None
