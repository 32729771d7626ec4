"""Kernels that ship with ptxdsl, written to be read."""
