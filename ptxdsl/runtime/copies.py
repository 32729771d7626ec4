"""Copy host arrays to device memory for a launch, and copy results back."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from ptxdsl import driver
from ptxdsl.arrays import AddressTable, Array
from ptxdsl.driver import call
from ptxdsl.runtime.shape import refuse
from ptxdsl.runtime.values import Value, with_arrays


@contextmanager
def copied(arrays: Sequence[Array]) -> Iterator[list[int | None]]:
    """Yield the addresses of copies of the arrays in the current context, None for an empty array."""
    owned: list[int] = []
    try:
        yield [_copy(array, owned) if array.size else None for array in arrays]
    finally:
        for memory in owned:
            driver.cuda.cuMemFree(memory)  # after a fault every call fails; the first failure is already raised


def moved(values: Sequence[Value], addresses: Sequence[int | None]) -> list[Value]:
    """Return the values with the addresses of their arrays replaced in order; None keeps an address."""
    following = iter(addresses)

    def at_next(array: Array) -> Array:
        address = next(following)
        return array if address is None else replace(array, pointer=address)

    return [with_arrays(value, at_next) for value in values]


def _copy(array: Array, owned: list[int]) -> int:
    """Copy an array to new device memory, append the allocation to `owned`, and return the address of element 0."""
    if isinstance(array.owner, AddressTable):
        refuse(
            "a pointer table of numpy arrays cannot be copied to a GPU, which cannot read host memory",
            "run it on the emulator, or pass torch or CuPy arrays",
        )
    start, end = array.span
    memory = int(call(f"allocating {end - start} bytes", driver.cuda.cuMemAlloc, end - start))
    owned.append(memory)
    call("copying to the GPU", driver.cuda.cuMemcpyHtoD, memory, start, end - start)
    return memory + array.pointer - start


def copy_back(address: int, array: Array) -> None:
    """Copy back only the elements, since the gaps between them may belong to another array."""
    start, end = array.span
    content = ctypes.create_string_buffer(end - start)
    call("copying from the GPU", driver.cuda.cuMemcpyDtoH, content, address - (array.pointer - start), end - start)
    array.view()[...] = array.view(ctypes.addressof(content) + array.pointer - start)
