"""From sums to memory, with a function of the caller."""
