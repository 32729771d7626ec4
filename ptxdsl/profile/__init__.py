"""The cost of a launch by Python line: counted on the emulator, compared with the peak rates of a GPU, and measured if
there is one.
"""

from ptxdsl.profile.counted import KernelProfile, profile_of
from ptxdsl.profile.roofline import GpuPeaks, peaks_of

__all__ = ["GpuPeaks", "KernelProfile", "peaks_of", "profile_of"]
