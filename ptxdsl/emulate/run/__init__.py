"""Runs lanes: the machine, its processor, its scheduler."""
