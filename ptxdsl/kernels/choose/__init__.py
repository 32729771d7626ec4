"""Which configuration takes the least time: candidates, one cost model, and the rates of GPUs as data."""
