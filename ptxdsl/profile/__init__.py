"""What a launch costs, by Python line: counted on the emulator, held against what a GPU can do at best, and measured
where there is one."""

from ptxdsl.profile.counted import KernelProfile, profile_of
from ptxdsl.profile.roofline import GpuPeaks, peaks_of

__all__ = ["GpuPeaks", "KernelProfile", "peaks_of", "profile_of"]
