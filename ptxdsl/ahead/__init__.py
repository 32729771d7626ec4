"""Compile kernels ahead of time: machine code for several targets in one file, with C++ and Python launchers."""
