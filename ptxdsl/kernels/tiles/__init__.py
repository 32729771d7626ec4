"""Which tiles a block computes, and how blocks share one."""
