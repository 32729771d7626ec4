"""What a kernel computes.

- operands: `Operands`: types, layouts and widths of the arrays
- product: `Product`, its tiles (`Work`) and their parts
- sums: `Sums`: accumulators and their layout
- words, tf32: memory words; float32 rounded to tf32
"""
