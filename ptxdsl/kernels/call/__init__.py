"""The arrays of a call, checked; launches that are remembered; memory beside the arrays."""
