"""Write a fat binary: machine code for several targets, from which the driver selects its GPU's.

A file has a header of 16 bytes, then for each target a header of 64 bytes and the uncompressed cubin, byte for byte as
NVIDIA's fatbinary command writes it. From sm_100 on, the command adds a table of its own, so it must be installed.
"""

from __future__ import annotations

import re
import struct
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from ptxdsl.assemble.assemblers import tool
from ptxdsl.errors import AssembleError

_FILE = struct.Struct("<IHHQ")  # magic, version, size of this header, size of the rest
_IMAGE = struct.Struct("<HHIQIIHHIIIQQQ")
MAGIC, VERSION = 0xBA55ED50, 1
ELF, IMAGE_VERSION = 2, 0x101
ABI_AT = 8  # the byte offset in the ELF header
ABI_MAJOR = 1
HOST_64, ARCHITECTURE_SPECIFIC = 0x11, 0x100000
ALIGN = 8
_PLAIN = re.compile(r"sm_([5-9]\d)(a?)")
COMMAND = "fatbinary"


def fatbin(cubins: Mapping[str, bytes]) -> bytes:
    """Return a fat binary of these cubins, by target.

    Raises AssembleError for a target that needs the fatbinary command if it is not installed.
    """
    later = [arch for arch in cubins if not _PLAIN.fullmatch(arch)]
    if not later:
        images = b"".join(_image(arch, cubin) for arch, cubin in cubins.items())
        return _FILE.pack(MAGIC, VERSION, _FILE.size, len(images)) + images
    command = tool(COMMAND)
    if command is None:
        raise AssembleError(
            f"packing machine code for {later[0]} needs the command {COMMAND}, which is not installed",
            help="install the CUDA toolkit, or build for targets up to sm_90a",
        )
    return _by_command(command, cubins)


def _image(arch: str, cubin: bytes) -> bytes:
    match = _PLAIN.fullmatch(arch)
    assert match
    padded = cubin + bytes(-len(cubin) % ALIGN)
    flags = HOST_64 | (ARCHITECTURE_SPECIFIC if match[2] else 0)
    abi = cubin[ABI_AT]
    head = (ELF, IMAGE_VERSION, _IMAGE.size, len(padded), 0, 0, abi, ABI_MAJOR, int(match[1]), 0, 0, flags, 0, 0)
    return _IMAGE.pack(*head) + padded


def _by_command(command: str, cubins: Mapping[str, bytes]) -> bytes:
    with tempfile.TemporaryDirectory(prefix="ptxdsl") as folder:
        images = []
        for arch, cubin in cubins.items():
            Path(folder, f"{arch}.cubin").write_bytes(cubin)
            images.append(f"--image3=kind=elf,sm={arch.removeprefix('sm_')},file={arch}.cubin")
        options = ["--64", "--create=all.fatbin", "--compress=false", *images]
        done = subprocess.run([command, *options], cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise AssembleError(f"{COMMAND} failed: {(done.stderr or done.stdout).strip()}")
        return Path(folder, "all.fatbin").read_bytes()
