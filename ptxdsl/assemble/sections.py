"""The static shared memory of the kernels in a cubin, which is an ELF file of 64 bits.

No log says it reliably: of a module that nvJitLink compiles to be linked, ptxas leaves out what is declared outside of
functions, and the linker counts what the system reserves. A kernel's section of shared memory is what is launched.
"""

from __future__ import annotations

import re
import struct

_RESERVED_BYTES = 1024  # of each block, for the system, since sm_90
_PREFIX = ".nv.shared."


def shared_bytes(image: bytes, arch: str) -> dict[str, int]:
    """Bytes of shared memory that each kernel declares, as the driver reports them; kernels with none are left out."""
    number = int(re.findall(r"\d+", arch)[0])
    reserved = _RESERVED_BYTES if number >= 90 else 0
    sizes = {name.removeprefix(_PREFIX): size for name, size in _sections(image).items() if name.startswith(_PREFIX)}
    return {kernel: max(0, size - reserved) for kernel, size in sizes.items()}


def _sections(image: bytes) -> dict[str, int]:
    """The sections of an ELF file and their sizes."""
    (start,) = struct.unpack_from("<Q", image, 0x28)
    each, count, of_names = struct.unpack_from("<3H", image, 0x3A)
    headers = [struct.unpack_from("<I20xQQ", image, start + each * n) for n in range(count)]
    names = headers[of_names][1] if headers else 0
    return {_text(image, names + name): size for name, _, size in headers}


def _text(image: bytes, start: int) -> str:
    return image[start : image.index(b"\0", start)].decode()
