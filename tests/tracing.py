"""Helpers for tests of the front end: what a kernel emits, what it computes, how it is refused."""

from __future__ import annotations

import linecache
from textwrap import indent

import numpy as np

import ptxdsl as pd
from ptxdsl.types import TYPES

FILE = "kernel.py"


def emitted(kernel, arch="sm_80", **constants):
    """The kernel's own instructions as text: without loads of parameters, special registers and the final ret."""
    module = kernel.ir(arch, **constants)
    start = kernel.__wrapped__.__code__.co_firstlineno
    listing = [i for i in module.kernels[0].walk() if i.location.line != start or i.location.inlined_at]
    return [str(i) for i in listing]


def mnemonics(kernel, arch="sm_80", **constants):
    """The opcodes of `emitted`."""
    return [text.partition(" ")[0].rstrip(";") for text in emitted(kernel, arch, **constants)]


def source_kernel(body, head="x: ptr[f32], n: u32", options="", **names):
    """A kernel made of source text: its `def` is on line 2 of kernel.py, the body starts on line 3."""
    text = f"@pd.kernel{options}\ndef k({head}):\n{indent(body, '    ')}\n"
    linecache.cache[FILE] = (len(text), None, text.splitlines(keepends=True), FILE)
    scope = {"pd": pd, "np": np, "ptr": pd.ptr, **TYPES, **names}
    exec(compile(text, FILE, "exec"), scope)
    return scope["k"]


def refusal(body, head="x: ptr[f32], n: u32", arch="sm_80", **names):
    """The text of the error that a kernel's body meets, or "" if it is fine."""
    try:
        source_kernel(body, head, **names).ptx(arch)
    except pd.Error as error:
        return str(error)
    return ""
