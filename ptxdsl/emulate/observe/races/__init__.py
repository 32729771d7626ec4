"""Data races, by vector clocks: which accesses of different threads nothing orders."""

from .detector import Races
from .map_fences import MapFences

__all__ = ["MapFences", "Races"]
