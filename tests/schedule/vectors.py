"""The numbers that CUTLASS's own headers gave."""

import json
from pathlib import Path

VECTORS = Path(__file__).parents[1] / "vectors"


def load(name):
    return json.loads((VECTORS / f"{name}.json").read_text())


def tuples(value):
    return tuple(map(tuples, value)) if isinstance(value, list) else value
