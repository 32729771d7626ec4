"""Calls of scaled 8-bit floats: a product, groups of rows, and of K."""
