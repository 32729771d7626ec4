"""Calls of gemm(): checked, chosen, planned; rooms for launching, for convolutions and for groups."""
