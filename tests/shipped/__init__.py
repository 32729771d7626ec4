"""What the sm_90a path ships: the kernels that calls of any sizes and types choose, and what the assembler makes of
them."""
