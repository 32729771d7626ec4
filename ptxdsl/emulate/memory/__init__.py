"""The bytes of the state spaces, and the gateway to them.

- spaces, access, regions: `Memory`; an access as observers see it; the bytes
- conflicts: atomic operations of several lanes
- distributed, heap: shared memory of a cluster; allocations between launches
"""
