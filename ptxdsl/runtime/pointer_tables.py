"""Tables of the addresses of arrays, for kernels that take a pointer to pointers."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from ptxdsl.arrays import HOST, AddressTable, describe, library_of
from ptxdsl.errors import public
from ptxdsl.runtime.shape import refuse
from ptxdsl.trace.parameters import brief


@public
def pointer_table(arrays: Sequence[Any]) -> Any:
    """Return an array of the addresses of arrays, for a kernel that takes a pointer to pointers.

    The table lies where the arrays do. For numpy arrays it is an array of uint64 that keeps them alive, and whose
    addresses the emulator replaces by its own. For torch and CuPy arrays it is an array of int64 on their GPU; keep the
    arrays alive until the kernel has run. Raises LaunchError for something that is not an array, and for arrays on
    several devices.

        kernel[grid, block](pd.pointer_table([x, y]), 2)
    """
    described = []
    for n, array in enumerate(arrays):
        each = describe(array)
        if each is None:
            refuse(f"element {n} of pd.pointer_table is {brief(array)}", "pass numpy, torch or CuPy arrays")
        described.append(each)
    devices = {each.device for each in described}
    if len(devices) > 1:
        refuse("the arrays of pd.pointer_table are on several devices", "move them to one")
    addresses = np.array([each.pointer for each in described], np.uint64)
    if devices - {HOST}:
        return _on_gpu(addresses.view(np.int64), arrays[0])
    table = addresses.view(AddressTable)
    table.holders = [(n, f"table[{n}]", each) for n, each in enumerate(described)]
    return table


def _on_gpu(addresses: np.ndarray, array: Any) -> Any:
    """Return the addresses as an array on the GPU of an array of torch or CuPy."""
    library = library_of(type(array))
    if library is not None and library.name == "torch":
        return sys.modules["torch"].from_numpy(addresses).to(array.device)
    if library is not None and library.name == "cupy":
        with array.device:
            return sys.modules["cupy"].asarray(addresses)
    refuse(
        f"pd.pointer_table allocates no GPU memory for a {type(array).__name__}",
        "pass torch or CuPy arrays, or make the table with the library of the arrays",
    )
