"""The paths, which are families of kernels, and the one function that selects a configuration among theirs."""
