"""The products of a kernel.

- operands: `Operands`: types, layouts and access widths of the arrays
- product: `Product`, `WorkTile` and `OutputTile`
- accumulators: `TileAccumulators` and their layout
- words: memory words; float32 rounded to tf32
"""
