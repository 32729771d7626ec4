"""PTX that compilers and people wrote parses, and what we print of it assembles to the same code and data."""

import re
import struct

import pytest

import ptxdsl as pd
from ptxdsl.assemble import assemble
from tests.corpus import make

NAMES = make.names()
LEAST_FILES = 60
SECTIONS = (".text.", ".nv.constant", ".nv.global", ".nv.shared")
NO_BYTES = 8  # SHT_NOBITS: a section with a size and no bytes in the file
LATER = {"sm_75": "sm_80"}  # we assemble for sm_80 and later; PTX for an earlier target assembles for those too


@pytest.fixture
def text(request, name):
    """The PTX called `name`; compiled files are kept in pytest's cache from run to run."""
    try:
        return make.ptx_text(name, request.config.cache.mkdir("corpus"))
    except make.Unavailable as reason:
        pytest.skip(str(reason))


def assembled(text):
    target = re.search(r"^\s*\.target\s+(\w+)", text, re.MULTILINE)[1]
    return assemble(text, LATER.get(target, target))


def contents(image):
    """name: bytes, of each section of a cubin (an ELF64 file) that holds code, constants or module variables."""
    (table,) = struct.unpack_from("<Q", image, 40)
    size, count, names = struct.unpack_from("<HHH", image, 58)
    headers = [struct.unpack_from("<IIQQQQ", image, table + i * size) for i in range(count)]
    found = {}
    for name, kind, _, _, start, length in headers:
        at = headers[names][4] + name
        section = image[at : image.index(b"\0", at)].decode()
        if section.startswith(SECTIONS):
            found[section] = length if kind == NO_BYTES else image[start : start + length]
    assert any(section.startswith(".text.") for section in found)
    return found


def test_the_corpus_is_large_and_of_every_origin():
    assert len(NAMES) >= LEAST_FILES
    assert {name.partition("-")[0] for name in NAMES} == {"cuda", "triton", "numba", "written"}


@pytest.mark.parametrize("name", NAMES)
def test_it_parses_prints_and_assembles_to_the_same_cubin(name, text):
    printed = pd.parse(text).ptx()
    assert pd.parse(printed).ptx() == printed

    original, ours = assembled(text), assembled(printed)
    assert ours.kernels == original.kernels  # registers, spills, stack, shared bytes
    assert contents(ours.image) == contents(original.image)


def test_a_changed_instruction_changes_the_code(request):
    """The comparison above sees a single wrong modifier, and does not mind other names of registers."""
    text = make.ptx_text("written-names", request.config.cache.mkdir("corpus"))
    code = contents(assembled(text).image)
    assert ".text.names" in code
    assert contents(assembled(text.replace("Upper", "%lower")).image) == code
    assert contents(assembled(text.replace("fma.rn.f32 f5, f0", "fma.rz.f32 f5, f0")).image) != code
    assert contents(assembled(text.replace("0b101", "0b100")).image) != code
