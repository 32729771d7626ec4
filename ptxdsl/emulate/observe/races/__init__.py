"""Data races, by vector clocks: which accesses of different threads nothing orders."""

from .detector import Races

__all__ = ["Races"]
