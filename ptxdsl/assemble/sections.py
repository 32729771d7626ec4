"""The static shared memory of the kernels in a cubin, a 64-bit ELF file.

No log gives it reliably. When nvJitLink compiles relocatable code, ptxas omits variables declared outside of functions,
and the linker includes memory reserved by the system. The size of a kernel's shared-memory section is authoritative.
"""

from __future__ import annotations

import re
import struct

_RESERVED_BYTES = 1024  # per block, reserved by the system since sm_90
_PREFIX = ".nv.shared."


def shared_bytes(image: bytes, arch: str) -> dict[str, int]:
    """Return the bytes of static shared memory of each kernel, as the driver reports them; kernels without any are
    omitted.
    """
    number = int(re.findall(r"\d+", arch)[0])
    reserved = _RESERVED_BYTES if number >= 90 else 0
    sizes = {name.removeprefix(_PREFIX): size for name, size in _sections(image).items() if name.startswith(_PREFIX)}
    return {kernel: max(0, size - reserved) for kernel, size in sizes.items()}


def _sections(image: bytes) -> dict[str, int]:
    """Return the sections of an ELF file with their sizes."""
    (start,) = struct.unpack_from("<Q", image, 0x28)
    each, count, of_names = struct.unpack_from("<3H", image, 0x3A)
    headers = [struct.unpack_from("<I20xQQ", image, start + each * n) for n in range(count)]
    names = headers[of_names][1] if headers else 0
    return {_text(image, names + name): size for name, _, size in headers}


def _text(image: bytes, start: int) -> str:
    return image[start : image.index(b"\0", start)].decode()
