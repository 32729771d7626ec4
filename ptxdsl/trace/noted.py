"""Record arrays, rings and roles during tracing, for messages and debuggers."""

from __future__ import annotations

from dataclasses import replace

from ptxdsl.notes import ExternNote, KernelNotes, RingNote, RoleNote, SharedArray
from ptxdsl.trace.builder import Builder


def remember(builder: Builder, array: SharedArray) -> None:
    """Record an array under a unique name."""
    known: dict[str, SharedArray] = builder.memory.setdefault(SharedArray, {})
    called, number = array.name, 0
    while called in known:
        number += 1
        called = f"{array.name}_{number}"
    known[called] = replace(array, name=called)


def remember_extern(builder: Builder, function: ExternNote) -> None:
    """Record a function of another module, once."""
    *_, kernel = builder.callers
    kernel.memory.setdefault(ExternNote, {}).setdefault(function.name, function)


def kernel_notes(builder: Builder) -> KernelNotes:
    """Return the notes of a kernel."""
    arrays: dict[str, SharedArray] = builder.memory.get(SharedArray, {})
    rings, roles = builder.memory.get(RingNote, ()), builder.memory.get(RoleNote, ())
    externs: dict[str, ExternNote] = builder.memory.get(ExternNote, {})
    return KernelNotes(tuple(arrays.values()), tuple(rings), tuple(roles), tuple(externs.values()))
