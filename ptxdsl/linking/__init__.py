"""PTX of others in a program: as text in a kernel, or as modules that are joined with it."""
