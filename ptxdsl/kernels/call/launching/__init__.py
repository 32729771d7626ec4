"""Launch plans, the cache of launches, and workspaces in GPU memory."""
