"""Cluster sizes that the directives of a kernel declare (PTX ISA, "Cluster Dimension Directives")."""

from __future__ import annotations

from dataclasses import dataclass

from .. import ir


@dataclass(frozen=True, slots=True)
class Clusters:
    """The cluster size that a kernel declares: exactly `required` blocks, or at most `most`.

    `explicit` kernels always run in clusters: without `required`, the launch sets the cluster size.
    """

    required: tuple[int, int, int] | None = None
    most: int | None = None
    explicit: bool = False


def clusters_of(function: ir.Function) -> Clusters:
    """What the directives of a kernel say."""
    promised = function.bounds
    exact = promised.get("reqnctapercluster")
    required = None
    if exact:
        x, y, z = [*exact, 1, 1][:3]
        required = x, y, z
    most = promised.get("maxclusterrank", [None])[0]
    return Clusters(required, most, "explicitcluster" in promised)
