"""The numbers that CUTLASS's own headers gave, read as our values."""

import json
from pathlib import Path

from ptxdsl.layout import ComposedLayout, Layout, Swizzle

VECTORS = Path(__file__).parents[1] / "vectors"


def load(name):
    return json.loads((VECTORS / f"{name}.json").read_text())


def nested(value):
    return tuple(map(nested, value)) if isinstance(value, list) else value


def layout(value):
    """A layout, composed layout, tiler or int as the vectors write it."""
    if isinstance(value, list):
        return tuple(map(layout, value))
    if not isinstance(value, dict):
        return value
    if "swizzle" in value:
        return ComposedLayout(Swizzle(*value["swizzle"]), value["offset"], layout(value["inner"]))
    return Layout(nested(value["shape"]), nested(value["stride"]))
