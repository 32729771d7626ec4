"""Kernels that bring arrays into another order, beside those that multiply: a thread moves a word."""
