"""Kernels that reorder arrays, one 16-byte word a thread.

- packed, dilated: images of few channels; zeros between pixels
- lines, transposed: aligned copies of rows; transposes
- rows, routing: rows by index; tokens by expert
"""
