"""Launches: worked out, remembered, made again, and the memory of a GPU beside the arrays."""
