"""The traits that kernels are specialised for, and their parameters."""
