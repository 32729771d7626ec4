"""The machinery of the sm_80 path: tiles in shared memory, copies, fragments, mma.sync."""
