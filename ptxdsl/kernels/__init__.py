"""Kernels that ship with ptxdsl, written to be read."""

from ptxdsl.runtime import kept as kept  # each first call looks there, and shall not have to import it
