"""How many blocks the clusters of a kernel have, as its directives say (PTX ISA, "Cluster Dimension Directives")."""

from __future__ import annotations

from dataclasses import dataclass

from .. import ir


@dataclass(frozen=True, slots=True)
class Clusters:
    """What a kernel promises: clusters of exactly `required` blocks, or of at most `most`.

    `explicit` kernels run in clusters only: where none are required, the launch says how many blocks they have.
    """

    required: tuple[int, int, int] | None = None
    most: int | None = None
    explicit: bool = False


def clusters_of(function: ir.Function) -> Clusters:
    """What the directives of a kernel say."""
    promised = {d.name: [int(str(n)) for n in d.arguments] for d in function.directives if "cluster" in d.name}
    exact = promised.get("reqnctapercluster")
    required = None
    if exact:
        x, y, z = [*exact, 1, 1][:3]
        required = x, y, z
    most = promised.get("maxclusterrank", [None])[0]
    return Clusters(required, most, "explicitcluster" in promised)
