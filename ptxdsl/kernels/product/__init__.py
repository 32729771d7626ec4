"""What kernels compute: the facts about their operands, products and tiles of them, sums in registers, words."""
