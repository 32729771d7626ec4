"""Kernels ahead of time: machine code for several targets in one file, with a launcher in C++ and one in Python."""
