"""Kernels that reorder arrays, one 16-byte word a thread.

- packed, dilated: images of few channels; zeros between pixels
- rows, transposed: aligned copies of rows, also by an index; transposes
- routing: tokens by expert
"""
