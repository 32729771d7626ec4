"""Data races, by vector clocks: accesses of different threads that nothing orders.

- detector, checks, telling: find, judge and describe a race
- journal, stamps, clocks, clusters, locations: vector clocks of warps, clusters, flags, fences and mbarriers
- beside: the previous grid, next to which a dependent grid runs
- proxies, initialised, map_fences, sources, reuse: the async proxy, mbarriers, tensor maps, copies in flight, barriers
- tensor: operations on tensor memory and their fences
- shadow, accesses, items, readers, crowds, behind, pages, recent: the recorded accesses, by word and by page
"""

from .beside import GridBeside, GridWaits
from .detector import Races
from .map_fences import MapFences
from .reuse import BarrierReuse
from .tensor import TensorOrder

__all__ = ["BarrierReuse", "GridBeside", "GridWaits", "MapFences", "Races", "TensorOrder"]
