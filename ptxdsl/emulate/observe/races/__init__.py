"""Data races, by vector clocks: which accesses of different threads nothing orders."""

from .beside import GridBeside, GridWaits
from .detector import Races
from .map_fences import MapFences
from .reuse import BarrierReuse

__all__ = ["BarrierReuse", "GridBeside", "GridWaits", "MapFences", "Races"]
