"""Who looks at accesses: bounds, contents."""
