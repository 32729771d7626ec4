"""What a kernel computes.

- operands: `Operands`: types, layouts and widths of the arrays
- product: `Product`, its tiles (`WorkTile`) and their parts
- accumulators: `TileAccumulators`: accumulators and their layout
- words, tf32: memory words; float32 rounded to tf32
"""
