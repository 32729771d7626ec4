"""What layouts and schedules compute with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

# An int, a numpy array of them, or a traced register: the same lines compute with each. Type checkers have no word for
# that, since a comparison gives a bool, an array or a predicate.
Number: TypeAlias = Any
Extents: TypeAlias = Sequence[Number]
"""Of a problem, a tile or a grid: (m, n, k) or (x, y, z)."""
Coordinate: TypeAlias = Any
"""Of a layout: a number, None for a mode that is kept, or a tuple of coordinates, one for each mode."""
